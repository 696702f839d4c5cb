"""Reductions of `umbra.masked` of sparse tensors: the result is sparse, with elements where anything was there."""
import umbra
from umbra.masked import _masks


def reduced(function, input, dim, keepdim, dtype, mask):
    """What `function`, a reduction of strided tensors, gives of a COO or CSR tensor; without a mask, of the elements that it has."""
    name = function.__name__
    _check(name, input, keepdim, mask)
    there = _places(input) if mask is None else _masks.input_mask(input.to_dense(), mask)
    result = function(input.to_dense(), dim, keepdim=keepdim, dtype=dtype, mask=there)
    for d in reversed(_masks.canonical_dims(dim, input.ndim)):
        there = there.any(dim=d, keepdim=keepdim)
    if input.layout is umbra.sparse_csr:
        return result.sparse_mask(there.to_sparse_csr())
    places = there.nonzero().t()
    return umbra.sparse_coo_tensor(places, result[there].reshape(-1), result.shape, is_coalesced=True, check_invariants=False)


def _check(name, input, keepdim, mask):
    if input.layout not in (umbra.sparse_coo, umbra.sparse_csr):
        raise ValueError(f"masked {name} expects strided, sparse_coo or sparse_csr tensor (got {input.layout} tensor)")
    kind = str(input.layout).removeprefix("torch.")
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for {kind} tensor input")
    if input.layout is umbra.sparse_csr and not keepdim:
        error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise error("reduction operations on CSR tensors with keepdim=False is unsupported")


def _places(input):
    """A strided mask of the elements that a sparse tensor has."""
    if input.layout is umbra.sparse_csr:
        marks = umbra.sparse_csr_tensor(input.crow_indices(), input.col_indices(), umbra.ones_like(input.values(), dtype=umbra.int8), input.shape)
    else:
        marks = umbra.sparse_coo_tensor(input._indices(), umbra.ones_like(input._values(), dtype=umbra.int8), input.shape)
    return marks.to_dense() != 0
