"""Names of torch._C that other packages ask for and that are written in Python."""
import importlib
import sys
import types

from umbra import _C
from umbra._C import Tensor
from umbra._ops import ops

_C._TensorMeta = type(Tensor)
_C._log_api_usage_once = lambda event: None  # nothing is reported to anybody
_C._current_graph_task_id = lambda: _C._backward_pass() or -1
_C.Value, _C.Block, _C.Type = _C._jit_Value, _C._jit_Block, _C._jit_Type  # of TorchScript's graphs
_C._get_accelerator = lambda check=None: _C.device("cpu") if not check else None  # there is no accelerator
_C._get_privateuse1_backend_name = lambda: "privateuseone"
_C._are_functorch_transforms_active = lambda: _C._level_count() > _C._jit_is_tracing()


def _schema_of(name):
    return _C._find_overload(name)._schema


def _schemas_of(packet):
    """The schemas of an operator's overloads: of the operators of tensors, not of TorchScript's own on numbers and containers."""
    return [_schema_of(packet if overload == "default" else f"{packet}.{overload}") for overload in _C._overload_names(packet)]


_C._jit_get_schemas_for_operator = _schemas_of
_C._jit_get_all_schemas = lambda: [_schema_of(name) for name in _C._operator_names()]


class _FunctionsBehindNn(types.ModuleType):
    """Where torch keeps the functions behind nn.functional; checkpoints name some of them (an activation of gelu)."""

    def __getattr__(self, name):
        if name.startswith("__"):  # what Python asks of every module, `inspect` for one
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        from umbra.nn import functional
        found = vars(functional).get(name)
        if type(found).__name__ != "Function":
            getattr(ops.aten, name)  # an error where there is no such operator
            found = _C._find_function("aten::" + name, 1)
        setattr(self, name, found)
        return found

    _parse_to = staticmethod(_C._parse_to)


_C._nn = sys.modules["umbra._C._nn"] = _FunctionsBehindNn("umbra._C._nn")


class _FunctionsBehindArea(types.ModuleType):
    """Where torch keeps the built-in functions of torch.linalg, torch.fft and torch.special: graphs call `torch._C._linalg.linalg_det`."""

    def __getattr__(self, name):
        area = self.__name__.rpartition("._")[2]
        plain = name.removeprefix(f"{area}_")
        found = None if plain == name else vars(importlib.import_module(f"umbra.{area}")).get(plain)
        if found is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return found


for _area in ("linalg", "fft", "special"):
    setattr(_C, f"_{_area}", sys.modules.setdefault(f"umbra._C._{_area}", _FunctionsBehindArea(f"umbra._C._{_area}")))


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


class _Switches:
    """Switches of torch's compilers of TorchScript: they are kept and have no effect, since scripts are interpreted."""

    def __init__(self):
        self.values = {"cpu": False, "gpu": True, "texpr": True}

    def setter(self, name):
        def set_switch(enabled):
            self.values[name] = enabled
        return set_switch

    def getter(self, name):
        return lambda: self.values[name]


_switches = _Switches()
_C._jit_override_can_fuse_on_cpu, _C._jit_can_fuse_on_cpu = _switches.setter("cpu"), _switches.getter("cpu")
_C._jit_override_can_fuse_on_gpu, _C._jit_can_fuse_on_gpu = _switches.setter("gpu"), _switches.getter("gpu")
_C._jit_set_texpr_fuser_enabled, _C._jit_texpr_fuser_enabled = _switches.setter("texpr"), _switches.getter("texpr")
_C._jit_set_nvfuser_enabled = _C._jit_set_nvfuser_guard_mode = lambda enabled: None  # of no effect in torch either
_C._jit_nvfuser_enabled = lambda: False

# What is built in: libraries of the processor's, no accelerator.
_C.has_lapack = _C.has_spectral = _C._has_mkldnn = True
for _absent in ("has_mkl", "has_openmp", "_has_mkldnn_acl", "_has_cuda", "_has_cudnn", "_has_cusparselt", "_has_eigen_sparse", "_has_gds", "_has_kleidiai",
                "_has_magma", "_has_mps", "_has_xpu"):
    setattr(_C, _absent, False)
