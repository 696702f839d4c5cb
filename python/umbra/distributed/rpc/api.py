"""Calls of functions in other processes, of which there are none."""
import functools


def _require_initialized(func):
    """`func` for those who have called init_rpc, which nobody has."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return wrapper
