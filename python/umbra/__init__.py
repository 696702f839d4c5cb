"""Umbra captures tensor programs: fake tensors, symbolic shapes, graph capture, AOT autograd and export, in C++.

`import umbra as torch` runs ordinary torch code. Operators come from the library's own registry: one that is added in C++ is a
function here, a method of Tensor and a member of `umbra.ops.aten`.
"""
import importlib as _importlib
import sys as _sys

from umbra import _C
from umbra._C import (  # noqa: F401  (the package's surface)
    Generator, OutOfMemoryError, Size, SymBool, SymFloat, SymInt, Tensor, UntypedStorage, default_generator, device, dtype,
    finfo, from_dlpack, from_numpy, frombuffer, get_default_dtype, iinfo, is_anomaly_check_nan_enabled,
    is_anomaly_enabled, layout, memory_format, set_default_dtype, sym_float,
    sym_ite, sym_max, sym_min, sym_not, tensor)
from umbra._C import (  # noqa: E402, F401
    _sym_acos, _sym_asin, _sym_atan, _sym_cos, _sym_cosh, _sym_log2, _sym_sin, _sym_sinh, _sym_sqrt, _sym_tan, _sym_tanh)

sym_sqrt = _sym_sqrt

from umbra.torch_version import __version__  # noqa: E402, F401  (that of PyTorch; Umbra's own is umbra.version.umbra)

# ---- dtypes, layouts and memory formats, under all their names ----
for _value in list(vars(_C).values()):
    if isinstance(_value, (dtype, layout, memory_format)):
        globals()[str(_value).removeprefix("torch.")] = _value
float, double, half = float32, float64, float16  # noqa: F821, A001
int, long, short = int32, int64, int16  # noqa: F821, A001
cfloat, cdouble, chalf = complex64, complex128, complex32  # noqa: F821
inf, nan, pi, e = _C._inf, _C._nan, _C._pi, _C._e
newaxis = None
legacy_contiguous_format = contiguous_format  # noqa: F821

from umbra import _modules  # noqa: E402

# ---- operators as functions ----
for _name in _C._function_names():
    if not _modules.is_module_of_torch(_name):
        globals()[_name] = _C._find_function("aten::" + _name, 1)

_modules.install_finder()
from umbra import _tensor  # noqa: E402, F401  (completes the Tensor class)

_modules.mark_missing_methods(_sys.modules[__name__])
_modules.hide_other_methods(Tensor, "torch.Tensor")  # noqa: F821
from umbra._ops import Tag, ops  # noqa: E402, F401

from umbra._functions import *  # noqa: E402, F401, F403
from umbra.functional import *  # noqa: E402, F401, F403
from umbra._legacy import *  # noqa: E402, F401, F403
from umbra._linear_algebra import *  # noqa: E402, F401, F403
from umbra.autograd.grad_mode import (  # noqa: E402, F401
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled)
from umbra._tensor_str import set_printoptions  # noqa: E402, F401
from umbra.sparse import (  # noqa: E402, F401
    sparse_bsc_tensor, sparse_bsr_tensor, sparse_compressed_tensor, sparse_coo_tensor, sparse_csc_tensor, sparse_csr_tensor)
from umbra import storage  # noqa: E402, F401
from umbra.storage import TypedStorage, is_storage  # noqa: E402, F401

globals().update(storage._CLASSES)
StorageBase = UntypedStorage
from umbra._settings import (  # noqa: E402, F401
    cholesky, compiled_with_cxx11_abi, eig, get_deterministic_debug_mode, get_float32_matmul_precision, has_lapack, has_mkl, has_openmp, has_spectral,
    is_vulkan_available, is_warn_always_enabled, lstsq, matrix_rank, qr, set_deterministic_debug_mode, set_float32_matmul_precision, set_warn_always,
    solve, symeig)
from umbra import _c_names, _class_docs  # noqa: E402, F401  (complete _C)

torch = _sys.modules[__name__]  # torch.torch is torch

del _value, _name


# Names that live in submodules.
from umbra import multiprocessing  # noqa: E402, F401  (queues of Python's multiprocessing share tensors)

_LAZY = {
    "lobpcg": "umbra._lobpcg", "to_dlpack": "umbra.utils.dlpack",
    "compile": "umbra._dynamo.compilation", "estimate": "umbra._estimate", "from_torch": "umbra._from_torch", "vmap": "umbra.func", "Future": "umbra.futures",
    "load": "umbra.serialization", "save": "umbra.serialization", "PyTorchFileReader": "umbra._checkpoint", "GradScaler": "umbra.amp", "ScriptModule": "umbra.jit", "ScriptFunction": "umbra.jit", "ScriptMethod": "umbra.jit",
    **dict.fromkeys((
     "qint8", "qint32", "quint8", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "uint1", "uint2", "uint3", "uint4", "uint5",
     "uint6", "uint7", "int1", "int2", "int3", "int4", "int5", "int6", "int7",
     "float4_e2m1fn_x2", "bcomplex32", "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
     "per_channel_affine_float_qparams"), "umbra._unbuilt_types"),
    **dict.fromkeys((
     "AnyType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType", "FloatType", "FutureType", "IntType", "InterfaceType",
     "ListType", "NoneType", "NumberType", "OptionalType", "StringType", "TensorType", "TupleType", "UnionType"), "umbra.jit._type_names"),
    **dict.fromkeys(("Stream", "Event", "get_device_module"), "umbra._accelerator"),
    **dict.fromkeys((
     "autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "is_autocast_cache_enabled",
     "set_autocast_cache_enabled", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_ipu_dtype",
     "get_autocast_xla_dtype", "is_autocast_cpu_enabled", "is_autocast_enabled", "is_autocast_ipu_enabled", "is_autocast_xla_enabled",
     "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
     "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled"), "umbra.amp.autocast_mode")}

# What torch has under two names.
_OTHER_NAMES = {"dsmm": "mm", "spmm": "mm", "hsmm": "hspmm", "saddmm": "sspaddmm", "_segment_reduce": "segment_reduce"}


def __dir__():
    """Without the operators that torch has as methods alone: who copies a module's names ("set", "slice", "copy") would hide Python's own by them."""
    known = _modules.torch_names()["torch"]
    return [name for name in _modules.names_of(__name__, _LAZY) if name in known or name.startswith("_") or type(globals().get(name)) is not type(add)]  # noqa: F405


def __getattr__(name):
    """Submodules are loaded when they are first used; operators that were registered later appear when they are asked for."""
    if name == "__all__":
        return _modules.names_for_star("umbra")
    if name in _OTHER_NAMES:
        return getattr(_sys.modules[__name__], _OTHER_NAMES[name])
    if name == "Storage":  # of the default type, whichever it is now
        return storage.class_of(get_default_dtype())
    if name in _LAZY:
        return getattr(_importlib.import_module(_LAZY[name]), name)
    if name == "set_vital":  # which noted things for who runs a program, and notes nothing any more
        import warnings
        warnings.warn("'set_vital' is deprecated, please do not call", stacklevel=2)
        return lambda *args: None
    if not name.startswith("__") or name in ("__config__", "__future__"):
        try:
            return _importlib.import_module(f"umbra.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"umbra.{name}":
                raise
        if _C._overload_names("aten::" + name):
            function = _C._find_function("aten::" + name, 1)
            setattr(_sys.modules["umbra"], name, function)
            return function
        # Functions of the package call operators that torch has under other names (torch.nn.functional.l1_loss).
        if name not in _modules.torch_names()["torch"] and name in _modules.torch_names()["torch.ops.aten"]:
            raise _modules.NotInUmbraYet(f"torch.ops.aten.{name} is not in Umbra yet", name=name)
    _modules.raise_missing("umbra", name)
