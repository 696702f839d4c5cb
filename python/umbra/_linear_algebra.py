"""Norms, products and transforms whose arguments are more than an operator's: names of norms, counts of dimensions, modes."""
import builtins

import umbra
from umbra._C import SymInt, Tensor, _find_function
from umbra.overrides import overridable

__all__ = ["cdist", "chain_matmul", "lu", "norm", "stft", "tensordot"]


def _with_out(operator, *args, out=None, **kwargs):
    return operator(*args, **kwargs) if out is None else operator(*args, **kwargs, out=out)


@overridable
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements or along `dim`; "fro" and "nuc" are norms of matrices."""
    rank = input.dim()
    dims = [dim] if isinstance(dim, (builtins.int, SymInt)) else dim
    if isinstance(p, str):
        if p == "fro" and (dims is None or len(dims) <= 2):
            return _with_out(umbra.linalg.vector_norm, input, 2, dims, keepdim, dtype=dtype, out=out)
        if dims is None:
            dims = list(range(rank))
        return _with_out(umbra.linalg.matrix_norm, input, p, dims, keepdim, dtype=dtype, out=out)
    return _with_out(umbra.linalg.vector_norm, input, 2.0 if p is None else p, dims, keepdim, dtype=dtype, out=out)


@overridable
def tensordot(a, b, dims=2, out=None):
    """The sum of products over dimensions of both: the last and first `dims` of them, or two lists."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else builtins.int(dims.item())
    if isinstance(dims, (tuple, list)):
        first, second = dims
    elif isinstance(dims, (builtins.int, SymInt)):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(-dims, 0)), list(range(dims))
    else:
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or "
                           f"list[list[int]] containing two lists, but got dims={dims}")
    return _with_out(umbra.ops.aten.tensordot, a, b, list(first), list(second), out=out)


_CDIST_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


_find_distances = _find_function("aten::cdist", 1)


@overridable
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distances between the rows of x1 and those of x2."""
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _find_distances(x1, x2, p, _CDIST_MODES[compute_mode])


_chain_matmul = _find_function("aten::chain_matmul", 1)


@overridable
def chain_matmul(*matrices, out=None):
    """The product of matrices, in the order that takes the fewest multiplications."""
    return _chain_matmul(list(matrices), out=out)


_find_frames = umbra._C._find_function("aten::stft", 1)


@overridable
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):
    """Fourier transforms of overlapping frames of a signal."""
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:  # padded here, so that a captured program has what PyTorch's has
        half, rank = int(n_fft // 2), input.dim()
        padded = umbra.nn.functional.pad(input.view([1] * (3 - rank) + list(input.size())), [half, half], pad_mode)
        input = padded.view(padded.shape[-rank:])
    return _find_frames(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


@overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """The packed LU factors and the pivots; with get_infos, what the factorisation says of each matrix too."""
    factors, pivots, infos = umbra.ops.aten._lu_with_info(A, pivot, not get_infos)
    results = (factors, pivots, infos) if get_infos else (factors, pivots)
    if out is None:
        return results
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {out!r}")
    for target, result in zip(out, results):
        target.resize_as_(result).copy_(result)
    return out


def _norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    return norm(self, p, dim, keepdim, dtype=dtype)


def _lu(self, pivot=True, get_infos=False):
    return lu(self, pivot, get_infos)


for _name, _function in {"norm": _norm, "lu": _lu, "stft": lambda self, *args, **kwargs: stft(self, *args, **kwargs)}.items():
    _function.__name__ = _name
    setattr(Tensor, _name, overridable(_function))
