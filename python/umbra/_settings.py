"""Switches of PyTorch that choose among kernels, and functions that it has removed."""
import warnings

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.overrides import heard, overridable

_state = {"float32_matmul_precision": "highest", "warn_always": False}


def get_float32_matmul_precision():
    """How exact products of float matrices have to be: "highest", "high" or "medium"."""
    return _state["float32_matmul_precision"]


def set_float32_matmul_precision(precision):
    """Products of floats are always in full precision; faster ones with fewer digits are allowed by this and not there."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.", stacklevel=2)
        return
    _state["float32_matmul_precision"] = precision


def is_warn_always_enabled():
    """Whether a warning is given each time rather than once."""
    return _state["warn_always"]


def set_warn_always(b):
    """Whether warnings that are given once in a process are given each time. Python says how often each is shown."""
    _state["warn_always"] = bool(b)
    _C._set_warns_always(bool(b))


def get_deterministic_debug_mode():
    """0, 1 or 2: whether operators that are not deterministic pass, warn or are refused."""
    if not umbra.are_deterministic_algorithms_enabled():
        return 0
    return 1 if umbra.is_deterministic_algorithms_warn_only_enabled() else 2


def set_deterministic_debug_mode(debug_mode):
    """What becomes of operators that may give other results in each run: 0 or "default" lets them, 1 or "warn" warns, 2 or "error" refuses."""
    modes = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str):
        if debug_mode not in modes:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = modes[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    umbra.use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def is_vulkan_available():
    """False: there is no Vulkan."""
    return False


def compiled_with_cxx11_abi():
    """Whether the library is built with the C++11 form of strings."""
    return True


has_lapack, has_mkl, has_openmp, has_spectral = True, False, False, True


# ---- functions that PyTorch has removed; calling one says what there is instead ----

_REMOVED = {
    "cholesky": """ `torch.cholesky` is deprecated in favor of `torch.linalg.cholesky`.
L = torch.cholesky(A) should be replaced with:
L = torch.linalg.cholesky(A)
U = torch.cholesky(A, upper=True) should be replaced with:
U = torch.linalg.cholesky(A).mH""",
    "eig": """ `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors.

L, _ = torch.eig(A) should be replaced with:
L_complex = torch.linalg.eigvals(A)

and

L, V = torch.eig(A, eigenvectors=True) should be replaced with:
L_complex, V_complex = torch.linalg.eig(A)""",
    "symeig": """ The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower \
triangular portion.

L, _ = torch.symeig(A, upper=upper) should be replaced with:
L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')

and

L, V = torch.symeig(A, eigenvectors=True) should be replaced with:
L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')""",
    "lstsq": """ `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.""",
    "solve": """ `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not \
return the LU factorization.

To get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.
X = torch.solve(B, A).solution should be replaced with:
X = torch.linalg.solve(A, B)""",
    "matrix_rank": """
Please use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to \
'hermitian'.""",
    "qr": """ `torch.qr` is deprecated in favor of `torch.linalg.qr`.""",
}


def _removed(name):
    def function(*args, **kwargs):
        raise RuntimeError("This function was deprecated since version 1.9 and is now removed." + _REMOVED[name])
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Refuses: torch.linalg has what takes its place."
    return function


qr, cholesky, eig, symeig, lstsq, solve, matrix_rank = map(_removed, ("qr", "cholesky", "eig", "symeig", "lstsq", "solve", "matrix_rank"))


# ---- methods of Tensor ----

def _where(self, condition, other):
    """The tensor's elements where `condition` is True, those of `other` elsewhere."""
    return umbra.where(condition, self, other)


def _polygamma(self, n):
    return umbra.polygamma(n, self)


def _pin_memory(self, device=None):
    raise RuntimeError("Cannot access accelerator device when none is available.")


def _memories(tensor):
    """The storages behind a tensor: a sparse one has several."""
    from umbra._tensor import _SPARSE, _sparse_parts
    parts = (part for part in _sparse_parts(tensor) if isinstance(part, Tensor)) if tensor.layout in _SPARSE else (tensor,)
    return [part.untyped_storage() for part in parts]


def _share_memory(self):
    """Moves the tensor's memory to where processes that are forked, or that the tensor is sent to, see it too."""
    for storage in _memories(self):
        if self.device.type != "cpu":
            raise RuntimeError("_share_fd_: only available on CPU")
        storage.share_memory_()
    return self


def _is_shared(self):
    """Whether other processes may see the tensor's memory."""
    return all(storage.is_shared() for storage in _memories(self))


def _storage_type(self):
    return type(self.storage()) if self.dtype not in umbra.storage._STORAGE_NAMES else umbra.storage._CLASSES[umbra.storage._STORAGE_NAMES[self.dtype]]


def _reinforce(self, reward):
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


@heard
def _module_load(self, other, assign=False):
    """What load_state_dict puts in the place of this parameter: `other`, or this tensor's memory with the values of it."""
    if umbra.overrides.has_torch_function((self, other)):
        return umbra.overrides.handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
    if assign:
        return other.detach()
    with umbra.no_grad():
        return self.copy_(other).detach()


def _use_count(self):
    """How many hold the tensor: its object, and what autograd or C++ keeps of it."""
    return umbra._C._use_count(self)


def _to_sparse_coo(self):
    return self.to_sparse()


def _on_accelerator(kind):
    def to_device(self, device=None, non_blocking=False):
        raise AssertionError(f"Torch not compiled with {kind.upper()} enabled")
    to_device.__name__ = kind
    return to_device


def _reduce_generator(self):
    return type(self), (self.device,), (self.initial_seed(), None, self.get_state())


def _restore_generator(self, saved):
    seed, _, state = saved
    self.manual_seed(seed)
    self.set_state(state)


umbra.Generator.__reduce__ = _reduce_generator
umbra.Generator.__setstate__ = _restore_generator

for _name, _function in (("where", _where), ("polygamma", _polygamma), ("pin_memory", _pin_memory), ("share_memory_", _share_memory), ("is_shared", _is_shared),
                         ("storage_type", _storage_type), ("reinforce", _reinforce), ("module_load", _module_load), ("_use_count", _use_count),
                         ("to_sparse_coo", _to_sparse_coo), ("ipu", _on_accelerator("ipu")), ("xpu", _on_accelerator("xpu")),
                         ("mtia", _on_accelerator("mtia")), *((f.__name__, f) for f in (qr, cholesky, eig, symeig, lstsq, solve))):
    if _name in ("share_memory_", "is_shared", "where", "polygamma", "pin_memory", "storage_type", "ipu", "xpu", "mtia"):  # classes of tensors hear of these
        _function.__name__ = _name
        _function = overridable(_function)
    setattr(Tensor, _name, _function)
for _name in ("is_ipu", "is_maia", "is_mtia", "is_vulkan", "is_xla"):
    setattr(Tensor, _name, property(lambda self: False))


def _volatile(self):
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


Tensor.volatile = property(_volatile)
