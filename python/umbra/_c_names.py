"""Names of torch._C that other packages ask for and that are written in Python."""
import sys
import types

from umbra import _C
from umbra._C import Tensor, device as Device, dtype as DType
from umbra._ops import ops

_C._TensorMeta = type(Tensor)
_C._log_api_usage_once = lambda event: None  # nothing is reported to anybody
_C._current_graph_task_id = lambda: _C._backward_pass() or -1
_C.Value, _C.Block, _C.Type = _C._jit_Value, _C._jit_Block, _C._jit_Type  # of TorchScript's graphs
_C._are_functorch_transforms_active = lambda: _C._level_count() > _C._jit_is_tracing()


class _FunctionsBehindNn(types.ModuleType):
    """Where torch keeps the functions behind nn.functional; checkpoints name some of them (an activation of gelu)."""

    def __getattr__(self, name):
        from umbra.nn import functional
        found = vars(functional).get(name)
        return found if type(found).__name__ == "Function" else getattr(ops.aten, name)

    @staticmethod
    def _parse_to(*args, **kwargs):
        """What `to(...)` is asked for: a device, a type, non_blocking and a memory format."""
        for name in kwargs.keys() - {"device", "dtype", "non_blocking", "memory_format", "tensor"}:
            raise TypeError(f"to() got an unexpected keyword argument '{name}'")
        device, dtype, non_blocking = kwargs.get("device"), kwargs.get("dtype"), kwargs.get("non_blocking", False)
        for value in (*args, kwargs.get("tensor")):
            if isinstance(value, DType):
                dtype = value
            elif isinstance(value, Tensor):
                device, dtype = value.device, value.dtype
            elif isinstance(value, bool):
                non_blocking = value
            elif isinstance(value, (str, Device, int)):
                device = value
            elif value is not None:
                raise TypeError(f"to() received an invalid combination of arguments: {type(value).__name__}")
        return None if device is None else Device(device), dtype, non_blocking, kwargs.get("memory_format")


_C._nn = sys.modules["umbra._C._nn"] = _FunctionsBehindNn("umbra._C._nn")


def _loaded_when_asked_for(name):
    """What torch._C has and is written in Python here: classes of TorchScript, dispatch keys."""
    import umbra
    if name == "_functorch":
        from umbra._functorch import levels
        return levels
    if name in ("DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard", "_after_autograd_keyset", "_after_ADInplaceOrView_keyset"):
        from umbra._library import keys  # noqa: F401  (puts them here)
        return vars(_C)[name]
    if not umbra._LAZY.get(name, "").startswith("umbra.jit"):
        raise AttributeError(f"module 'umbra._C' has no attribute '{name}'")
    return getattr(umbra, name)


_C.__getattr__ = _loaded_when_asked_for
