"""Apple's GPUs: there is none here."""


def is_available():
    return False


def device_count():
    return 0


def manual_seed(seed):
    """There is no generator to seed."""


def _refusing(name):
    def refused(*args, **kwargs):
        raise RuntimeError(f"Cannot execute {name}() without MPS backend.")
    refused.__name__ = refused.__qualname__ = name
    return refused


seed, get_rng_state, set_rng_state, synchronize, empty_cache, current_allocated_memory, driver_allocated_memory, recommended_max_memory = map(
    _refusing, ("seed", "get_rng_state", "set_rng_state", "synchronize", "empty_cache", "current_allocated_memory", "driver_allocated_memory",
                "recommended_max_memory"))
