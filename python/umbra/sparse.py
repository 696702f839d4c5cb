"""Sparse tensors: made of their parts, multiplied, summed, and turned into strided ones.

    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    x.to_dense()                                  # tensor([[0., 0., 3.], [4., 0., 0.]])
    torch.sparse.mm(x, torch.ones(3, 1))          # tensor([[3.], [4.]])

The gradient of a sparse matrix in `mm` and `addmm` has the matrix's places alone. What is not built refuses them by name.
"""
import functools

import umbra
from umbra import _C, _modules
from umbra._C import FakeTensor, Tensor
from umbra._legacy import SPARSE_TYPES
from umbra.overrides import heard_by_modes

globals().update(SPARSE_TYPES)  # FloatTensor and its like
_COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


def _part(values, dtype, device):
    """A tensor of one of the parts, given as a tensor or as numbers."""
    if isinstance(values, Tensor):
        return values.to(device) if device is not None else values
    return umbra.tensor(values, dtype=dtype, device=device)


def _is_strict(check_invariants):
    """Whether the order of indices is checked as well. Whether they fit always is: `check_invariants=False` has nothing to leave out."""
    if check_invariants not in (None, True, False):
        raise TypeError(f"check_invariants must be bool, not {type(check_invariants).__name__}")
    return check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants


def _finish(tensor, requires_grad, check_invariants):
    _is_strict(check_invariants)
    if tensor.layout is _C.strided:  # what a fake operator makes of parts
        raise NotImplementedError("sparse tensors made of their parts under FakeTensorMode are not in Umbra yet")
    return tensor.requires_grad_() if requires_grad else tensor


@heard_by_modes
def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
                      check_invariants=None, is_coalesced=None):
    """A tensor given by the places of its elements, one column of `indices` each, and their values.

    With sizes alone it has no elements: `torch.sparse_coo_tensor((2, 3))`.
    """
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if values is None:
        sizes = size if indices is None else indices
        if sizes is None:
            raise TypeError("sparse_coo_tensor() received an invalid combination of arguments: neither elements nor sizes were given")
        return _finish(umbra.ops.aten.sparse_coo_tensor.size(list(sizes), dtype=dtype, device=device), requires_grad, check_invariants)
    indices, values = _part(indices, umbra.int64, device).to(umbra.int64), _part(values, dtype, device)
    options = {"dtype": dtype, "is_coalesced": is_coalesced}
    if size is None:
        if isinstance(indices, FakeTensor):
            raise NotImplementedError("the size of a sparse tensor of fake indices is in their data: give torch.sparse_coo_tensor its size")
        made = umbra.ops.aten.sparse_coo_tensor.indices(indices, values, **options)
    else:
        made = umbra.ops.aten.sparse_coo_tensor.indices_size(indices, values, list(size), **options)
    return _finish(made, requires_grad, check_invariants)


def _compressed_size(layout, compressed, plain, values):
    """The least sizes that hold all indices."""
    batch, inner = compressed.shape[:-1], values.shape[compressed.dim():]
    block, inner = (inner[:2], inner[2:]) if layout in (_C.sparse_bsr, _C.sparse_bsc) else ((1, 1), inner)
    groups, places = compressed.shape[-1] - 1, int(plain.max()) + 1 if plain.numel() else 0
    if layout in (_C.sparse_csc, _C.sparse_bsc):
        groups, places = places, groups
    return [*batch, groups * block[0], places * block[1], *inner]


@heard_by_modes
def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
                             pin_memory=False, requires_grad=False, check_invariants=None):
    """A tensor whose elements stand row by row (CSR, BSR) or column by column (CSC, BSC)."""
    if layout not in _COMPRESSED:
        given = "none" if layout is None else {_C.strided: "Strided", _C.sparse_coo: "Sparse"}.get(layout, layout)
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {given}")
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    compressed, plain = _part(compressed_indices, None, device), _part(plain_indices, None, device)
    values = _part(values, dtype, device)
    if size is None:
        size = _compressed_size(layout, compressed, plain, values)
    if _is_strict(check_invariants):
        umbra._validate_sparse_compressed_tensor_args(compressed, plain, values, list(size), layout)
    made = umbra.ops.aten.sparse_compressed_tensor.comp_plain_value_size(compressed, plain, values, list(size), dtype=dtype, layout=layout)
    return _finish(made, requires_grad, check_invariants)


@heard_by_modes
def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options):
    """Compressed by rows: row `i` has the elements from `crow_indices[i]` on, up to `crow_indices[i + 1]`."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=_C.sparse_csr, **options)


@heard_by_modes
def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """Compressed by columns."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=_C.sparse_csc, **options)


@heard_by_modes
def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **options):
    """Blocks, compressed by rows of blocks."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=_C.sparse_bsr, **options)


@heard_by_modes
def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """Blocks, compressed by columns of blocks."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=_C.sparse_bsc, **options)


def with_values(coo, values):
    """A COO tensor with the places of another one."""
    return umbra.ops.aten._sparse_coo_tensor_unsafe(coo._indices(), values, coo.shape, is_coalesced=coo.is_coalesced())


# ---- functions of sparse tensors ----

def mm(input, mat2, reduce=None):
    """The product of a sparse matrix and a strided or sparse one; of a CSR matrix also with the products of a row reduced otherwise than by
    their sum: `reduce` is "sum", "mean", "amax" or "amin"."""
    return umbra.ops.aten._sparse_mm(input, mat2, *(() if reduce is None else (reduce,)))


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`beta * mat + alpha * (mat1 @ mat2)`, where `mat1` is sparse."""
    return umbra.ops.aten._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """`beta * input + alpha * (mat1 @ mat2)` at the places of a CSR tensor."""
    if out is not None:
        return umbra.ops.aten.sparse_sampled_addmm.out(input, mat1, mat2, beta=beta, alpha=alpha, out=out)
    return umbra.ops.aten.sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """The sum over some dimensions of a COO tensor, or over all; strided where no sparse dimension is left."""
    options = {} if dtype is None else {"dtype": dtype}
    return umbra.ops.aten._sparse_sum(input, *(() if dim is None else (dim,)), **options)


def softmax(input, dim, *, dtype=None):
    """Softmax over the elements that are there."""
    return umbra.ops.aten._sparse_softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of the softmax over the elements that are there."""
    return umbra.ops.aten._sparse_log_softmax(input, dim, dtype)


def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix with the rows of `diagonals` along its diagonals."""
    return umbra.ops.aten._spdiags(diagonals, offsets, shape, layout)


class check_sparse_tensor_invariants:
    """Whether parts that do not fit are refused when a sparse tensor is made of them. They always are here, where there are data to look at;
    the switch is kept for programs that turn it, and says what it was set to.

        with torch.sparse.check_sparse_tensor_invariants():
            ...
    """

    _enabled = False

    @staticmethod
    def is_enabled():
        """What the switch was set to last."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable():
        """Turns it on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable():
        """Turns it off."""
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable=True):
        self.state, self.saved_state = enable, None

    def __enter__(self):
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for context nesting.")
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exception):
        check_sparse_tensor_invariants._enabled, self.saved_state = self.saved_state, None

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)
        return wrapped


# ---- printing ----

def _part_text(name, part, indent):
    """`values=tensor([...])`, without the type, which stands among the facts of the whole."""
    from umbra._tensor_str import _tensor_str
    head = f"{name}=tensor("
    if isinstance(part, _C.FakeTensor):
        return f"{head}..., size={tuple(part.shape)})"
    if part.numel() == 0:
        return f"{head}[], size={tuple(part.shape)})"
    return f"{head}{_tensor_str(part, indent + len(head))})"


def describe(tensor, head, facts):
    """The text of a sparse tensor, as PyTorch prints it."""
    indent = len(head) + 1
    if tensor.layout == _C.sparse_coo:
        parts = {"indices": tensor._indices(), "values": tensor._values()}
        own_line = True  # for the facts
    else:
        rows = tensor.layout in (_C.sparse_csr, _C.sparse_bsr)
        names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        parts = {name: getattr(tensor, name)() for name in (*names, "values")}
        own_line = False
    body = [_part_text(name, part, indent) for name, part in parts.items()]
    known = [] if isinstance(tensor, _C.FakeTensor) else [f"nnz={tensor._nnz()}"]  # of a fake one the sizes of its parts tell it
    facts = [f"size={tuple(tensor.shape)}", *known, *facts]
    return _join(head, body, facts, indent, own_line)


def _join(head, body, facts, indent, own_line):
    margin = "\n" + " " * indent
    text = head + "(" + ("," + margin).join(body)
    width = umbra._C._get_print_options()["linewidth"]
    used = len(text) - text.rfind("\n") + 1
    for fact in facts:
        if own_line or used + len(fact) + 2 > width:
            text, used, own_line = text + "," + margin + fact, indent + len(fact), False
        else:
            text, used = text + ", " + fact, used + len(fact) + 2
    return text + ")"


def as_sparse_gradcheck(gradcheck):
    """A gradcheck, or a partial one, for functions whose inputs and results may be sparse: it is given the elements alone.

        check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        check(lambda x: x.to_sparse_csr(), x.to_sparse_coo().requires_grad_())
    """
    from umbra.autograd._gradcheck_sparse import over_elements

    def gradcheck_of_sparse(func, inputs, *, masked=False, **options):
        return gradcheck(*over_elements(func, inputs, masked), **options)
    return gradcheck_of_sparse


def __getattr__(name):
    _modules.raise_missing(__name__, name)
