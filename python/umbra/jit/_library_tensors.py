"""Functions of umbra itself, written in Python, as the compiler can read them."""
from typing import List, Optional, Tuple

import umbra as torch
from umbra import Tensor


# ---- norms and products ----

def norm_of_text(input: Tensor, p: str = "fro", dim: Optional[List[int]] = None, keepdim: bool = False,
                 dtype: Optional[int] = None) -> Tensor:
    if p == "fro" and (dim is None or len(dim) <= 2):
        return torch.ops.aten.linalg_vector_norm(input, 2, dim, keepdim, dtype=dtype)
    dims = list(range(input.dim())) if dim is None else dim
    return torch.ops.aten.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype)


def norm_of_text_along(input: Tensor, p: str = "fro", dim: int = 0, keepdim: bool = False,
                       dtype: Optional[int] = None) -> Tensor:
    return norm_of_text(input, p, [dim], keepdim, dtype)


def norm(input: Tensor, p: float = 2.0, dim: Optional[List[int]] = None, keepdim: bool = False,
         dtype: Optional[int] = None) -> Tensor:
    return torch.ops.aten.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)


def norm_along(input: Tensor, p: float = 2.0, dim: int = 0, keepdim: bool = False, dtype: Optional[int] = None) -> Tensor:
    return torch.ops.aten.linalg_vector_norm(input, p, [dim], keepdim, dtype=dtype)


def norm_of_whole(input: Tensor, p: int, dim: Optional[List[int]] = None, keepdim: bool = False,
                  dtype: Optional[int] = None) -> Tensor:
    return torch.ops.aten.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)


def norm_of_whole_along(input: Tensor, p: int, dim: int = 0, keepdim: bool = False, dtype: Optional[int] = None) -> Tensor:
    return torch.ops.aten.linalg_vector_norm(input, p, [dim], keepdim, dtype=dtype)


def _contracted(a: Tensor, b: Tensor, dims_a: List[int], dims_b: List[int], out: Optional[Tensor]) -> Tensor:
    if out is None:
        return torch.ops.aten.tensordot(a, b, dims_a, dims_b)
    return torch.ops.aten.tensordot(a, b, dims_a, dims_b, out=out)


def tensordot(a: Tensor, b: Tensor, dims: int = 2, out: Optional[Tensor] = None) -> Tensor:
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return _contracted(a, b, list(range(-dims, 0)), list(range(dims)), out)


def tensordot_of_pair(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]], out: Optional[Tensor] = None) -> Tensor:
    return _contracted(a, b, dims[0], dims[1], out)


def tensordot_of_lists(a: Tensor, b: Tensor, dims: List[List[int]], out: Optional[Tensor] = None) -> Tensor:
    return _contracted(a, b, dims[0], dims[1], out)


def stft(input: Tensor, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None, window: Optional[Tensor] = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: Optional[bool] = None, return_complex: Optional[bool] = None,
         align_to_window: Optional[bool] = None) -> Tensor:
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    return torch.ops.aten.stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Tuple[Tensor, Tensor]:
    factors, pivots, infos = torch._lu_with_info(A, pivot, True)
    return factors, pivots


def lu_with_infos(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    return torch._lu_with_info(A, pivot, False)


# ---- distinct elements: what is asked for decides what there is ----

def _distinct(input: Tensor, sorted: bool, dim: Optional[int]) -> Tuple[Tensor, Tensor, Tensor]:
    if dim is None:
        return torch._unique2(input, sorted, True, True)
    return torch.unique_dim(input, dim, sorted, True, True)


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    return _distinct(input, sorted, dim)[0]


def unique_inverse(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                   dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = _distinct(input, sorted, dim)
    return values, inverse


def unique_counts(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                  dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = _distinct(input, sorted, dim)
    return values, counts


def unique_both(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return _distinct(input, sorted, dim)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    return torch.ops.aten.unique_consecutive(input, True, True, dim)[0]


def unique_consecutive_inverse(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, True, True, dim)
    return values, inverse


def unique_consecutive_counts(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, True, True, dim)
    return values, counts


def unique_consecutive_both(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                            dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.unique_consecutive(input, True, True, dim)


# ---- tensors compressed by rows or columns ----

def sparse_csr_tensor(crow_indices: Tensor, col_indices: Tensor, values: Tensor, size: List[int], dtype: Optional[int] = None,
                      layout: Optional[int] = None, device: Optional[torch.device] = None) -> Tensor:
    return torch.ops.aten.sparse_compressed_tensor(crow_indices, col_indices, values, size, dtype=dtype, layout=torch.sparse_csr, device=device)


def sparse_csc_tensor(ccol_indices: Tensor, row_indices: Tensor, values: Tensor, size: List[int], dtype: Optional[int] = None,
                      layout: Optional[int] = None, device: Optional[torch.device] = None) -> Tensor:
    return torch.ops.aten.sparse_compressed_tensor(ccol_indices, row_indices, values, size, dtype=dtype, layout=torch.sparse_csc, device=device)


def sparse_bsr_tensor(crow_indices: Tensor, col_indices: Tensor, values: Tensor, size: List[int], dtype: Optional[int] = None,
                      layout: Optional[int] = None, device: Optional[torch.device] = None) -> Tensor:
    return torch.ops.aten.sparse_compressed_tensor(crow_indices, col_indices, values, size, dtype=dtype, layout=torch.sparse_bsr, device=device)


def sparse_bsc_tensor(ccol_indices: Tensor, row_indices: Tensor, values: Tensor, size: List[int], dtype: Optional[int] = None,
                      layout: Optional[int] = None, device: Optional[torch.device] = None) -> Tensor:
    return torch.ops.aten.sparse_compressed_tensor(ccol_indices, row_indices, values, size, dtype=dtype, layout=torch.sparse_bsc, device=device)
