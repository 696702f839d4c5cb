"""The accelerator of this machine: none."""


def is_available():
    return False


def current_accelerator(check_available=False):
    """There is no accelerator, neither built in nor available."""
    return None


def device_count():
    return 0


def empty_cache():
    """There is nothing to free."""


def memory_allocated(device_index=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_stats(device_index=None):
    return {}


def _refusing(name):
    def refused(*args, **kwargs):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    refused.__name__ = refused.__qualname__ = name
    return refused


current_device_index, current_device_idx, set_device_index, set_device_idx, current_stream, set_stream, synchronize, get_device_capability = map(
    _refusing, ("current_device_index", "current_device_idx", "set_device_index", "set_device_idx", "current_stream", "set_stream", "synchronize",
                "get_device_capability"))
reset_peak_memory_stats, reset_accumulated_memory_stats, get_memory_info, device_index = map(
    _refusing, ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "get_memory_info", "device_index"))
