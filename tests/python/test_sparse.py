"""Tensors that are not strided: their metadata, their parts, other layouts of them, and what refuses them."""
import pytest

import umbra as torch
from umbra.fx.experimental.proxy_tensor import make_fx

INDICES, VALUES = [[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0]


def coo():
    return torch.sparse_coo_tensor(INDICES, VALUES, (2, 3))


def csr():
    return torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], VALUES, size=(2, 3))


DENSE = torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])


def test_a_coo_tensor_has_sizes_and_no_memory():
    x = coo()
    assert x.layout == torch.sparse_coo and x.is_sparse and not x.is_sparse_csr
    assert x.shape == (2, 3) and x.numel() == 6 and x.stride() == (0, 0) and x.dtype == torch.float32
    assert (x.sparse_dim(), x.dense_dim(), x._nnz(), x.is_coalesced()) == (2, 0, 3, False)
    with pytest.raises(NotImplementedError, match="Cannot access storage of SparseTensorImpl"):
        x.untyped_storage()
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="nbytes is not defined"):
        x.nbytes


def test_a_compressed_tensor_has_no_strides():
    x = csr()
    assert x.layout == torch.sparse_csr and x.is_sparse_csr and not x.is_sparse
    assert x.crow_indices().tolist() == [0, 1, 3] and x.col_indices().tolist() == [2, 0, 2] and x.values().tolist() == VALUES
    with pytest.raises(RuntimeError, match="Sparse CSR tensors do not have strides"):
        x.stride()
    with pytest.raises(RuntimeError, match="ccol_indices expected sparse column compressed tensor layout but got SparseCsr"):
        x.ccol_indices()


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_there_and_back(layout):
    dense = torch.tensor([[0.0, 0, 1, 2], [0, 0, 0, 3], [4, 0, 0, 0], [0, 0, 0, 0]])
    options = {"blocksize": (2, 2)} if layout.startswith("sparse_bs") else {}
    x = dense.to_sparse(layout=getattr(torch, layout), **options)
    assert x.layout == getattr(torch, layout) and torch.equal(x.to_dense(), dense)
    assert torch.equal(x.to_sparse().to_dense(), dense)


def test_elements_of_one_place_add_up():
    x = torch.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 4.0], (3,))
    assert x.to_dense().tolist() == [2, 0, 5]
    with pytest.raises(RuntimeError, match="Cannot get values on an uncoalesced tensor"):
        x.values()
    y = x.coalesce()
    assert y.is_coalesced() and y.indices().tolist() == [[0, 2]] and y.values().tolist() == [2, 5]


def test_dense_dimensions():
    x = torch.tensor([[1.0, 2], [0, 0], [3, 4]]).to_sparse(1)
    assert (x.sparse_dim(), x.dense_dim()) == (1, 1) and x._values().tolist() == [[1, 2], [3, 4]]
    assert x.to_dense().tolist() == [[1, 2], [0, 0], [3, 4]]


def test_it_prints_as_pytorch_does():
    assert repr(coo()) == """tensor(indices=tensor([[0, 1, 1],
                       [2, 0, 2]]),
       values=tensor([3., 4., 5.]),
       size=(2, 3), nnz=3, layout=torch.sparse_coo)"""
    assert repr(csr()) == """tensor(crow_indices=tensor([0, 1, 3]),
       col_indices=tensor([2, 0, 2]),
       values=tensor([3., 4., 5.]), size=(2, 3), nnz=3,
       layout=torch.sparse_csr)"""


@pytest.mark.parametrize("make, message", [
    (lambda: torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)), "for dim 0, size is 3 but found index 5"),
    (lambda: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0]), "found negative index -1 for dim 0"),
    (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]), "nnz from indices: 2, nnz from values: 3"),
    (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)), r"len\(size\) = 2, sparse_dim = 1, dense_dim = 0"),
    (lambda: torch.sparse_csr_tensor([0, 1, 3], [2, 0], [3.0, 4.0], size=(2, 3)), r"crow_indices\[..., -1\] == nnz"),
    (lambda: torch.ones(4, 4).to_sparse_bsr(3), r"must be divisible by given blocksize \(3,3\)"),
    (lambda: torch.ones(2).values(), "values expected sparse tensor layout but got Strided"),
])
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(RuntimeError, match=message):
        make()


@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize("use", [
    lambda x: x.view(6), lambda x: x.exp(), lambda x: x.cumsum(0), lambda x: x == x, lambda x: x.max(), lambda x: x.mean(),
    lambda x: x.masked_fill(DENSE > 0, 0.0), lambda x: torch.rand_like(x), lambda x: torch.add(torch.ones(2, 3), 1, out=x),
    lambda x: torch.func.vmap(lambda row: row)(x), lambda x: torch.func.grad(lambda t: t.to_dense().sum())(x),
    lambda x: torch.func.functionalize(lambda t: t.mul_(2).to_dense())(x),
])
def test_what_is_not_built_is_refused_by_name(make, use):
    with pytest.raises(NotImplementedError, match="sparse|Sparse"):
        use(make())


def test_capture_records_what_is_done_with_sparse_tensors():
    graph = make_fx(lambda x: x.to_dense() + 1)(coo())
    other = torch.sparse_coo_tensor([[0]], [[7.0, 8.0, 9.0]], (2, 3))
    assert torch.equal(graph(other), other.to_dense() + 1)
    made = make_fx(lambda v: torch.sparse_coo_tensor([[0]], v, (2,)).to_dense())(torch.ones(1))
    assert made(torch.tensor([5.0])).tolist() == [5, 0]


def test_a_wrapper_class_says_its_own_layout():
    class Ragged(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2, 3), layout=torch.jagged)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    assert Ragged().layout == torch.jagged
    with pytest.raises(TypeError):
        torch.Tensor._make_wrapper_subclass(Ragged, (2,), colour="red")


def test_a_strided_tensor_keeps_its_history():
    x = torch.ones(2, requires_grad=True)
    (x.to_dense(torch.float64) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_block_sizes_are_checked():
    with pytest.raises(RuntimeError, match="needs to be a tuple of size 2, but got 3"):
        torch.ops.aten.to_sparse(torch.ones(4, 4), layout=torch.sparse_bsr, blocksize=[2, 2, 2])
    with pytest.raises(RuntimeError, match="positive"):
        torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 0, 2), size=(2, 2))


def test_parts_are_printed_without_their_type():
    x = torch.sparse_csr_tensor(torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1]), torch.tensor([1, 2, 3, 4]), dtype=torch.float64)
    assert repr(x) == ("tensor(crow_indices=tensor([0, 2, 4]),\n       col_indices=tensor([0, 1, 0, 1]),\n"
                       "       values=tensor([1., 2., 3., 4.]), size=(2, 2), nnz=4,\n       dtype=torch.float64, layout=torch.sparse_csr)")
    empty = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0), (3,))
    assert repr(empty) == "tensor(indices=tensor([], size=(1, 0)),\n       values=tensor([], size=(0,)),\n       size=(3,), nnz=0, layout=torch.sparse_coo)"


def test_row_starts_of_rows_that_are_in_no_order_are_what_pytorch_makes_of_them():
    rows = torch.tensor([2, 4, 2, 1, 5])
    assert torch._convert_indices_from_coo_to_csr(rows, 7).tolist() == [0, 0, 0, 1, 1, 4, 5, 5]
    narrow = torch._convert_indices_from_coo_to_csr(rows.int(), 7, out_int32=True)
    assert narrow.tolist() == [0, 0, 0, 1, 1, 4, 5, 5] and narrow.dtype == torch.int32
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for 5 rows"):
        torch._convert_indices_from_coo_to_csr(rows, 5)


def test_sparse_tensors_by_their_old_classes():
    with pytest.warns(UserWarning, match="is deprecated"):
        x = torch.sparse.FloatTensor(torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0]), torch.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert isinstance(x, torch.sparse.FloatTensor) and not isinstance(x, torch.FloatTensor) and torch.sparse.LongTensor.dtype is torch.int64


def test_a_memory_format_is_for_strided_tensors():
    for make in (torch.empty_like, torch.zeros_like):
        with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
            make(torch.eye(2).to_sparse(), memory_format=torch.preserve_format)


def test_t_says_what_dimensions_it_has():
    for dims in (3, 2):
        with pytest.raises(RuntimeError, match=f"2 sparse and 0 dense dimensions, but got {dims} sparse and {3 - dims} dense dimensions"):
            torch.ones(2, 2, 2).to_sparse(dims).t()


@pytest.mark.parametrize("make", [coo, csr])
def test_functionalize_takes_sparse_tensors_as_they_are(make):
    """They are their own values: what is written is dense, and a write to a part of one is refused, not lost."""
    def use(t):
        return t.to_dense().add_(1), torch.sparse.mm(t, torch.ones(3, 2).mul_(2)), t

    dense, product, same = torch.func.functionalize(use)(make())
    assert torch.equal(dense, DENSE + 1) and torch.equal(product, DENSE @ torch.full((3, 2), 2.0))
    assert torch.equal(same.to_dense(), DENSE)

    def write_values(t):
        values = t._values() if t.layout == torch.sparse_coo else t.values()
        values.mul_(3)
        return t.to_dense()

    with pytest.raises(NotImplementedError, match="writes a part of a sparse tensor"):
        torch.func.functionalize(write_values)(make())


def test_sparse_tensors_of_fake_parts_are_refused():
    from umbra._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        with pytest.raises(NotImplementedError, match="sparse tensors made of their parts under FakeTensorMode"):
            torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))
        with pytest.raises(NotImplementedError, match="sparse tensors made of their parts under FakeTensorMode"):
            torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1))
        with pytest.raises(NotImplementedError, match="give torch.sparse_coo_tensor its size"):
            torch.sparse_coo_tensor([[0], [1]], [1.0])


# ---- masks by blocks, and the places of another tensor ----

FULL = torch.tensor([[1.0, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 4], [5, 0, 0, 6]])
CHOSEN = torch.tensor([[1.0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]])


@pytest.mark.parametrize("layout", [torch.sparse_bsr, torch.sparse_bsc])
def test_a_mask_by_blocks_takes_whole_blocks_of_sparse_tensors(layout):
    mask = CHOSEN.to_sparse(layout=layout, blocksize=(2, 2))
    kept = FULL * torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    for x in (FULL, FULL.to_sparse(), FULL.to_sparse_csr(), FULL.to_sparse(layout=layout, blocksize=(2, 2))):
        y = x.sparse_mask(mask)
        assert y.layout == layout and y.values().shape == (2, 2, 2) and y.to_dense().equal(kept)
    x = FULL.to_sparse(layout=layout, blocksize=(2, 2)).requires_grad_()
    (slope,) = torch.autograd.grad((x.relu().to_dense() ** 2).sum(), x)
    assert slope.layout == layout and slope.to_dense().equal(FULL * 2)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc])
def test_a_compressed_mask_keeps_its_places_where_a_coo_tensor_has_nothing(layout):
    mask = CHOSEN.to_sparse(layout=layout)
    y = FULL.to_sparse().sparse_mask(mask)
    assert y.layout == layout and y._nnz() == 5 and y.to_dense().equal(FULL * CHOSEN)
    assert FULL.to_sparse(layout=layout).sparse_mask(mask)._nnz() == 3


def test_resizing_takes_the_size_of_another_sparse_tensor():
    x, small = FULL.to_sparse(), torch.zeros(2, 2).to_sparse()
    assert small.resize_as_sparse_(x) is small and small.shape == (4, 4) and small._nnz() == 0
    assert x.clone().resize_as_sparse_(torch.zeros(6, 6).to_sparse()).to_dense()[:4, :4].equal(FULL)
    with pytest.raises(RuntimeError, match="shrinking the size of"):
        x.clone().resize_as_sparse_(torch.zeros(2, 2).to_sparse())
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.clone().requires_grad_().resize_as_sparse_(x)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.clone().requires_grad_().sparse_resize_((6, 6), 2, 0)
    y, other = FULL.to_sparse_csr(), CHOSEN.to_sparse_csr()
    y.resize_as_sparse_(other)
    assert y.col_indices().equal(other.col_indices()) and y.crow_indices().equal(other.crow_indices()) and y._nnz() == 5
    assert y.resize_as_sparse_(y.clone()).to_dense().shape == (4, 4)
    with pytest.raises(RuntimeError, match="src  expected sparse compressed tensor layout but got Sparse"):
        y.resize_as_sparse_(x)


def test_facts_of_a_sparse_tensor_begin_a_line_where_they_do_not_fit():
    x = torch.sparse_csr_tensor([0, 1, 3, 4, 5], [1, 0, 1, 0, 0], [0.2, 3.5, -0.4, 3.0, -0.9], (4, 2))
    assert repr(x) == """tensor(crow_indices=tensor([0, 1, 3, 4, 5]),
       col_indices=tensor([1, 0, 1, 0, 0]),
       values=tensor([ 0.2000,  3.5000, -0.4000,  3.0000, -0.9000]),
       size=(4, 2), nnz=5, layout=torch.sparse_csr)"""


def test_imaginary_parts_of_sparse_tensors():
    z = torch.complex(FULL, -FULL).to_sparse()
    assert z.imag.is_sparse and z.imag.to_dense().equal(-FULL) and z.conj().imag.to_dense().equal(FULL)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_log1p_of_a_sparse_tensor_has_a_gradient(layout):
    x = FULL.to_sparse(layout=layout).requires_grad_()
    (slope,) = torch.autograd.grad((x.log1p().to_dense() ** 2).sum(), x)
    torch.testing.assert_close(slope.to_dense(), 2 * FULL.log1p() / (FULL + 1))
