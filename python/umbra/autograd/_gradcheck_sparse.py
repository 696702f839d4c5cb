"""Sparse inputs of gradcheck: which of their elements are moved, and what the function is called with then."""
import umbra
from umbra._tensor import _SPARSE

_BY_BLOCKS = (umbra.sparse_bsr, umbra.sparse_bsc)


def is_sparse(value):
    """Whether a value is a tensor that has no strides."""
    return isinstance(value, umbra.Tensor) and value.layout in _SPARSE


def elements(tensor):
    """The elements that a sparse tensor has, as a strided tensor that shares their memory."""
    return tensor._values() if tensor.layout is umbra.sparse_coo else tensor.values()


def with_all_elements(tensor):
    """The same tensor with no element left out: those that were not there are zeros."""
    dense = tensor.detach().to_dense()
    numbered = umbra.arange(1, dense.numel() + 1).reshape(dense.shape)
    if tensor.layout is umbra.sparse_coo:
        full = numbered.to_sparse(tensor.sparse_dim())
    else:
        batch = elements(tensor).dim() - tensor.dense_dim() - (3 if tensor.layout in _BY_BLOCKS else 1)
        blocks = tuple(elements(tensor).shape[batch + 1:batch + 3]) if tensor.layout in _BY_BLOCKS else None
        full = numbered.to_sparse(layout=tensor.layout, blocksize=blocks, dense_dim=tensor.dense_dim())
    return with_elements(full, dense.reshape(-1)[elements(full) - 1]).requires_grad_(tensor.requires_grad)


def moved(tensor, k, amount):
    """The tensor with its `k`-th element changed by an amount."""
    changed = elements(tensor).detach().clone(memory_format=umbra.contiguous_format)
    changed.view(-1)[k] += amount
    return with_elements(tensor.detach(), changed).requires_grad_(tensor.requires_grad)


def place(tensor, k):
    """Where the `k`-th of a sparse tensor's elements stands in the strided one."""
    marks = umbra.zeros(elements(tensor).shape, dtype=umbra.int64)
    marks.view(-1)[k] = 1
    return int(with_elements(tensor.detach(), marks).to_dense().reshape(-1).argmax())


def with_elements(tensor, values):
    """A tensor of the same places with other elements."""
    if tensor.layout is umbra.sparse_coo:
        return umbra.sparse_coo_tensor(tensor._indices(), values, tensor.shape, check_invariants=False, is_coalesced=tensor.is_coalesced())
    by_rows = tensor.layout in (umbra.sparse_csr, umbra.sparse_bsr)
    compressed, plain = (tensor.crow_indices(), tensor.col_indices()) if by_rows else (tensor.ccol_indices(), tensor.row_indices())
    return umbra.sparse_compressed_tensor(compressed, plain, values, tensor.shape, layout=tensor.layout, check_invariants=False)


def over_elements(func, inputs, masked):
    """The same function over the elements of its sparse inputs, with strided results; and these inputs. `masked`: what an input leaves out stays away."""
    given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    wanted = [is_sparse(x) and x.requires_grad for x in given]
    places = [with_all_elements(x) if sparse and not masked else x for x, sparse in zip(given, wanted)]

    def strided(result):
        return result.to_dense(masked_grad=masked) if is_sparse(result) and result.requires_grad else result

    def called(*values, **keywords):
        results = func(*(with_elements(x, v) if sparse else v for x, v, sparse in zip(places, values, wanted)), **keywords)
        return tuple(map(strided, results)) if isinstance(results, (list, tuple)) else strided(results)
    return called, tuple(elements(x).detach().clone().requires_grad_() if sparse else x for x, sparse in zip(places, wanted))
