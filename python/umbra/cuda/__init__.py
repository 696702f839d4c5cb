"""CUDA: there is no device here that could run. Fake tensors may live on "cuda" all the same."""
from umbra import _accelerator
from umbra._C import OutOfMemoryError  # noqa: F401
from umbra._modules import lazy_submodules

_accelerator.absent(globals(), "CUDA", "CUDA")
has_half = False
has_magma = False


class CudaError(RuntimeError):
    """What the driver would raise."""


class DeferredCudaCallError(Exception):
    """What a call raises that was put off until there is a device."""


def device_memory_used(device=None):
    """Nothing is used."""
    return 0


def get_sync_debug_mode():
    return 0


__getattr__ = lazy_submodules(__name__)
