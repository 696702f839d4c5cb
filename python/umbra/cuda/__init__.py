"""CUDA: there is no device here that could run. Fake tensors may live on "cuda" all the same."""
from umbra import _accelerator, _legacy
from umbra._C import OutOfMemoryError, Tensor  # noqa: F401
from umbra._modules import lazy_submodules

_accelerator.absent(globals(), "CUDA", "CUDA")
has_half = False
has_magma = False
_initialized = False


def _is_in_bad_fork():
    """Whether a child process would use its parent's device: none has one."""
    return False


def _lazy_call(callable, **kwargs):
    """Puts a call off until there is a device, which there never is."""


def _legacy_type(name):
    """torch.cuda.FloatTensor and its like: no tensor with data is of such a type, and none can be made."""
    cpu = getattr(_legacy, name)

    def is_instance(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls._legacy_dtype and instance.device.type == "cuda"

    def make(cls, *args, **kwargs):
        raise AssertionError("Torch not compiled with CUDA enabled")
    kind = type("tensortype", (type(cpu),), {"__instancecheck__": is_instance, "__call__": make})
    return kind(name, (), {"_legacy_dtype": cpu._legacy_dtype, "__module__": "torch.cuda", "__doc__": f"Tensors of {cpu._legacy_dtype} on a GPU: there are none."})


(FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor, BoolTensor) = map(_legacy_type, (
    "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "BoolTensor"))


def cudart():
    """The CUDA runtime, which is not there."""
    _lazy_init()  # noqa: F821  (absent() put it here)


class CudaError(RuntimeError):
    """What the driver would raise."""


class DeferredCudaCallError(Exception):
    """What a call raises that was put off until there is a device."""


def device_memory_used(device=None):
    """Nothing is used."""
    return 0


def get_sync_debug_mode():
    """Nothing waits for a device, so there is nothing to warn of."""
    return 0


__getattr__ = lazy_submodules(__name__)
