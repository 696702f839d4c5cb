"""CUDA: there is no device here that could run. Fake tensors may live on "cuda" all the same."""


def is_available():
    return False


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def device_count():
    return 0


def manual_seed(seed):
    """There is no generator to seed."""


manual_seed_all = manual_seed


def empty_cache():
    """There is nothing to free."""


def _unavailable(*args, **kwargs):
    raise AssertionError("Umbra is not compiled with CUDA enabled")


init = current_device = set_device = synchronize = get_device_name = get_device_properties = get_device_capability = _unavailable
memory_allocated = max_memory_allocated = current_stream = _unavailable
