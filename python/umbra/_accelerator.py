"""What modules of accelerators (torch.cuda, torch.xpu, ...) say where there is no such device: none is there, nothing is allocated, and what
needs one is refused as a CPU build of PyTorch refuses it."""
import contextlib
import importlib


class Stream:
    """Work of an accelerator, of which there is none."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("Cannot access accelerator device when none is available.")


class Event(Stream):
    """A point in the work of an accelerator, of which there is none."""


def get_device_module(device=None):
    """The module of a type of device: torch.cpu for "cpu" and for None."""
    import umbra
    kind = "cpu" if device is None else umbra.device(device).type
    return importlib.import_module(f"umbra.{kind}")


def absent(module, name, prefix=""):
    """Puts the functions that a module of an absent accelerator has into it. `name`: as errors spell it."""
    def refuse(*args, **kwargs):
        raise AssertionError(f"Torch not compiled with {name} enabled")

    def refusing(function):
        def refused(*args, **kwargs):
            refuse()
        refused.__name__ = refused.__qualname__ = function
        refused.__doc__ = f"Needs a {name} device, and there is none: an AssertionError."
        return refused

    def none(*args, **kwargs):
        """There is nothing to do."""

    def zero(*args, **kwargs):
        """Nothing is there."""
        return 0

    def nowhere(*args, **kwargs):
        """There is no device to tell of."""
        return []

    def no_statistics(device=None):
        """Nothing is allocated."""
        return {}

    def no_flags():
        """Nothing is compiled for a device."""
        return ""

    def no(*args, **kwargs):
        """There is no such device."""
        return False

    module.update({function: no for function in ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported",
                                                 "is_current_stream_capturing")})
    module.update({function: zero for function in ("device_count", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
                                                   "memory_cached", "max_memory_cached")})
    module.update({function: none for function in ("empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state_all")})
    module.update({function: nowhere for function in ("get_arch_list", "get_rng_state_all")})
    for function in ("init", "_lazy_init", "current_device", "set_device", "synchronize", "get_device_name", "get_device_properties", "get_device_capability",
                     "current_stream", "default_stream", "set_stream", "get_rng_state", "set_rng_state", "initial_seed", "mem_get_info", "ipc_collect",
                     "reset_peak_memory_stats", "reset_max_memory_allocated", "can_device_access_peer", "memory_summary", "memory_snapshot",
                     "graph_pool_handle", "make_graphed_callables", "utilization"):
        module[function] = refusing(function)
    module["memory_stats"] = no_statistics
    module["get_gencode_flags"] = no_flags
    module["default_generators"] = ()
    for cls in ("Stream", "Event", f"{prefix}Graph", "graph", "device", "device_of"):
        module[cls] = type(cls, (), {"__init__": refuse, "__module__": module["__name__"], "__doc__": f"There is no {name} device."})

    class StreamContext:
        """A region on a stream; on None it is any region."""

        def __init__(self, stream):
            if stream is not None:
                refuse()

        def __enter__(self):
            return None

        def __exit__(self, *exception):
            return None
    StreamContext.__module__ = module["__name__"]
    module["StreamContext"], module["stream"] = StreamContext, StreamContext
    module["_fork_rng"] = contextlib.nullcontext
