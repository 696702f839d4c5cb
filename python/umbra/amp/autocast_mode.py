"""autocast: a region, or a function, whose operators choose the floating type they compute in."""
import collections
import functools
import warnings

import umbra
from umbra import _C
from umbra._C import (  # noqa: F401  (torch's names for them)
    autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache, is_autocast_cache_enabled, set_autocast_cache_enabled)
from umbra.utils._contextlib import whole

_CPU_TYPES = (umbra.bfloat16, umbra.float16)


# ---- the state of this thread, under torch's names ----

def is_autocast_available(device_type):
    """Whether a type of device has autocast at all."""
    return umbra.device(device_type).type in ("cpu", "cuda", "mtia", "maia", "xpu", "ipu", "hpu", "xla", "mps")


def is_autocast_enabled(device_type="cuda"):
    """Whether operators cast their arguments on devices of this type."""
    return _C._is_autocast_enabled(umbra.device(device_type))


def set_autocast_enabled(device_type, enabled=None):
    """`set_autocast_enabled("cpu", True)`. With one argument it is about CUDA, as in PyTorch."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _C._set_autocast_enabled(umbra.device(device_type), enabled)


def get_autocast_dtype(device_type):
    """The type that operators cast to on devices of this type."""
    return _C._get_autocast_dtype(umbra.device(device_type))


def set_autocast_dtype(device_type, dtype):
    """Sets the type that operators cast to on devices of this type."""
    _C._set_autocast_dtype(umbra.device(device_type), dtype)


def _of_device(device_type):
    """The functions of one type of device that came before those with a `device_type`."""
    return (functools.partial(is_autocast_enabled, device_type), functools.partial(set_autocast_enabled, device_type),
            functools.partial(get_autocast_dtype, device_type), functools.partial(set_autocast_dtype, device_type))


is_autocast_cpu_enabled, set_autocast_cpu_enabled, get_autocast_cpu_dtype, set_autocast_cpu_dtype = _of_device("cpu")
_, _, get_autocast_gpu_dtype, set_autocast_gpu_dtype = _of_device("cuda")
is_autocast_ipu_enabled, set_autocast_ipu_enabled, get_autocast_ipu_dtype, set_autocast_ipu_dtype = _of_device("ipu")
is_autocast_xla_enabled, set_autocast_xla_enabled, get_autocast_xla_dtype, set_autocast_xla_dtype = _of_device("xla")


# ---- regions ----

@whole
class autocast:
    """Inside, matrix products and convolutions compute in `dtype`, what needs digits (losses, linear algebra) in float.

        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(x), y)
        loss.backward()

    Also a decorator. `enabled=False` switches it off for a part of a region. `cache_enabled`: weights are cast once a region.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._is_possible()
        self._before = []  # a decorated function may call itself

    def _is_possible(self):
        if self.device == "cpu":
            if self.fast_dtype in _CPU_TYPES:
                return True
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports dtypes of "
                          "torch.bfloat16, torch.float16 currently.", stacklevel=3)
        elif self.device == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
        else:
            warnings.warn(f"{self.device} is not available. Disabling autocast.", stacklevel=3)
        return False

    def __enter__(self):
        _C._autocast_region_begins(umbra.device(self.device), self.fast_dtype, self._enabled, self._cache_enabled)
        self._before.append((is_autocast_enabled(self.device), get_autocast_dtype(self.device), is_autocast_cache_enabled()))
        if self.device == "cpu":
            set_autocast_enabled("cpu", self._enabled)
            set_autocast_dtype("cpu", self.fast_dtype)
        autocast_increment_nesting()
        set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exception):
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        enabled, dtype, cache = self._before.pop()
        if self.device == "cpu":
            set_autocast_enabled("cpu", enabled)
            set_autocast_dtype("cpu", dtype)
        set_autocast_cache_enabled(cache)
        _C._autocast_region_ends()
        return False

    def __call__(self, func):
        @functools.wraps(func)
        def in_region(*args, **kwargs):
            with self:
                return func(*args, **kwargs)
        return in_region


def _enter_autocast(*vals):
    """The beginning of a region, as recorded programs call it; `_exit_autocast` takes what it gives."""
    region = autocast(*vals)
    region.__enter__()
    return region


def _exit_autocast(mode):
    mode.__exit__(None, None, None)


# ---- custom functions ----

def _cast(value, device_type, dtype):
    """The floating tensors of a device in a value, in another type."""
    if isinstance(value, umbra.Tensor):
        is_eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not umbra.float64
        return value.to(dtype) if is_eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        parts = (_cast(v, device_type, dtype) for v in value)
        return type(value)(parts) if isinstance(value, (list, tuple)) else parts
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For the `forward` of an autograd.Function: it runs with autocast as it is, or, given `cast_inputs`, without it and on inputs of that type."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        args[0]._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = enabled if cast_inputs is None else False
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))
    return decorated


def custom_bwd(bwd=None, *, device_type):
    """For the `backward` of an autograd.Function: it runs with autocast as its `forward` did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)
    return decorated
