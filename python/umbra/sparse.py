"""Sparse tensors: made of their parts, read, and turned into strided ones.

    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    x.to_dense()          # tensor([[0., 0., 3.], [4., 0., 0.]])

Arithmetic on them is not in Umbra yet, and refused by name.
"""
import umbra
from umbra import _C, _modules
from umbra._C import Tensor

_COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


def _part(values, dtype, device):
    """A tensor of one of the parts, given as a tensor or as numbers."""
    if isinstance(values, Tensor):
        return values.to(device) if device is not None else values
    return umbra.tensor(values, dtype=dtype, device=device)


def _finish(tensor, requires_grad, check_invariants):
    """Indices are always checked; `check_invariants=False` has nothing to leave out."""
    if check_invariants not in (None, True, False):
        raise TypeError(f"check_invariants must be bool, not {type(check_invariants).__name__}")
    return tensor.requires_grad_() if requires_grad else tensor


def sparse_coo_tensor(indices, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
                      check_invariants=None, is_coalesced=None):
    """A tensor given by the places of its elements, one column of `indices` each, and their values.

    With sizes alone it has no elements: `torch.sparse_coo_tensor((2, 3))`.
    """
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if values is None:
        return _finish(umbra.ops.aten.sparse_coo_tensor.size(list(indices), dtype=dtype, device=device), requires_grad, check_invariants)
    indices, values = _part(indices, umbra.int64, device), _part(values, dtype, device)
    options = {"dtype": dtype, "is_coalesced": is_coalesced}
    if size is None:
        made = umbra.ops.aten.sparse_coo_tensor.indices(indices, values, **options)
    else:
        made = umbra.ops.aten.sparse_coo_tensor.indices_size(indices, values, list(size), **options)
    return _finish(made, requires_grad, check_invariants)


def _compressed_size(layout, compressed, plain, values):
    """The least sizes that hold all indices."""
    block = values.shape[1:] if layout in (_C.sparse_bsr, _C.sparse_bsc) else (1, 1)
    groups, places = compressed.shape[-1] - 1, int(plain.max()) + 1 if plain.numel() else 0
    if layout in (_C.sparse_csc, _C.sparse_bsc):
        groups, places = places, groups
    return [groups * block[0], places * block[1]]


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
                             pin_memory=False, requires_grad=False, check_invariants=None):
    """A tensor whose elements stand row by row (CSR, BSR) or column by column (CSC, BSC)."""
    if layout not in _COMPRESSED:
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    compressed, plain = _part(compressed_indices, None, device), _part(plain_indices, None, device)
    values = _part(values, dtype, device)
    if size is None:
        size = _compressed_size(layout, compressed, plain, values)
    made = umbra.ops.aten.sparse_compressed_tensor.comp_plain_value_size(compressed, plain, values, list(size), dtype=dtype, layout=layout)
    return _finish(made, requires_grad, check_invariants)


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options):
    """Compressed by rows: row `i` has the elements from `crow_indices[i]` on, up to `crow_indices[i + 1]`."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=_C.sparse_csr, **options)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """Compressed by columns."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=_C.sparse_csc, **options)


def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **options):
    """Blocks, compressed by rows of blocks."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=_C.sparse_bsr, **options)


def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """Blocks, compressed by columns of blocks."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=_C.sparse_bsc, **options)


def _part_text(name, part, indent):
    """`values=tensor([...])`, without the type, which stands among the facts of the whole."""
    from umbra._tensor_str import _tensor_str
    head = f"{name}=tensor("
    if part.numel() == 0:
        return f"{head}[], size={tuple(part.shape)})"
    return f"{head}{_tensor_str(part, indent + len(head))})"


def describe(tensor, head, facts):
    """The text of a sparse tensor, as PyTorch prints it."""
    indent = len(head) + 1
    if tensor.layout == _C.sparse_coo:
        parts = {"indices": tensor._indices(), "values": tensor._values()}
        separator = ",\n" + " " * indent
    else:
        rows = tensor.layout in (_C.sparse_csr, _C.sparse_bsr)
        names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        parts = {name: getattr(tensor, name)() for name in (*names, "values")}
        separator = None
    body = [_part_text(name, part, indent) for name, part in parts.items()]
    facts = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}", *facts]
    return _join(head, body, facts, indent, separator)


def _join(head, body, facts, indent, separator):
    margin = "\n" + " " * indent
    text = head + "(" + ("," + margin).join(body)
    width = umbra._C._get_print_options()["linewidth"]
    column = len(text) - text.rfind("\n") - 1
    if separator:  # PyTorch begins a line of its own for the facts of a COO tensor
        text, column = text + "," + margin, indent
    else:
        text, column = text + ", ", column + 2
    for i, fact in enumerate(facts):
        last = i + 1 == len(facts)
        if i and column + len(fact) + 2 > width:
            text, column = text.rstrip(" ") + margin, indent
        text += fact + (")" if last else ", ")
        column += len(fact) + 2
    return text


def __getattr__(name):
    _modules.raise_missing(__name__, name)
