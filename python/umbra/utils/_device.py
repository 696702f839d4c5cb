"""The default device of factories: `with umbra.device("meta"):` and `umbra.set_default_device`."""
import umbra
from umbra import _C
from umbra.overrides import TorchFunctionMode

_FACTORIES = {"empty", "empty_permuted", "empty_strided", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace",
              "logspace", "eye", "tensor", "scalar_tensor", "as_tensor", "asarray", "bartlett_window", "blackman_window", "hamming_window", "hann_window",
              "kaiser_window", "tril_indices", "triu_indices", "fft_fftfreq", "fft_rfftfreq", "sparse_coo_tensor", "sparse_compressed_tensor",
              "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor"}  # range is none of them, in PyTorch too


class DeviceContext(TorchFunctionMode):
    def __init__(self, device):
        self.device = umbra.device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _FACTORIES and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


_entered = []
_default = None


def current():
    for mode in reversed(_C._torch_function_modes()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return None


def _enter(device):
    mode = DeviceContext(device)
    mode.__enter__()
    _entered.append(mode)


def _leave():
    _entered.pop().__exit__(None, None, None)


def get_default():
    """The device that was set for all factories, if one was."""
    return None if _default is None else _default.device


def set_default(device):
    """Becomes the outermost function mode, in the place of the one before."""
    global _default
    modes = [_C._pop_torch_function_mode() for _ in _C._torch_function_modes()][::-1]
    modes = [mode for mode in modes if mode is not _default]
    _default = None if device is None else DeviceContext(device)
    for mode in ([_default] if _default else []) + modes:
        _C._push_torch_function_mode(mode)
