"""Compressed sparse tensors that are batches of matrices, or whose elements are tensors themselves; factories of sparse layouts."""
import pytest

import umbra as torch

BATCH = torch.tensor([[[1.0, 0, 2, 0], [0, 3, 0, 0]], [[0.0, 0, 4, 5], [6, 0, 0, 0]]])
MATRIX = torch.tensor([[1.0, 0, 2, 0], [0, 3, 0, 0]])
DENSE_ELEMENTS = torch.stack([MATRIX, 2 * MATRIX], -1)
LAYOUTS = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "bsr": torch.sparse_bsr, "bsc": torch.sparse_bsc}


def compressed(dense, name, **options):
    block = ((1, 2),) if name.startswith("b") else ()
    return getattr(dense, f"to_sparse_{name}")(*block, **options)


def indices(x):
    return (x.crow_indices(), x.col_indices()) if x.layout in (torch.sparse_csr, torch.sparse_bsr) else (x.ccol_indices(), x.row_indices())


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_a_batch_is_made_and_taken_apart(name):
    x = compressed(BATCH, name)
    assert x._nnz() == 3 and x.sparse_dim() == 2 and x.dense_dim() == 0 and x.values().shape == (2, 3)
    assert torch.equal(x.to_dense(), BATCH)
    again = torch.sparse_compressed_tensor(*indices(x), x.values(), layout=x.layout)
    assert again.shape == x.shape and torch.equal(again.to_dense(), BATCH)
    assert torch.equal(x[1].to_dense(), BATCH[1]) and x[1].layout == x.layout
    assert torch.equal(x.transpose(1, 2).to_dense(), BATCH.transpose(1, 2))
    assert torch.equal(x.to_sparse().to_dense(), BATCH)


@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_that_are_tensors(name):
    x = compressed(DENSE_ELEMENTS, name, dense_dim=1)
    assert x.dense_dim() == 1 and torch.equal(x.to_dense(), DENSE_ELEMENTS)
    assert torch.equal(x.select(-1, 1).to_dense(), 2 * MATRIX) and x.select(-1, 1).layout == x.layout
    assert torch.equal((x * 2).to_dense(), 2 * DENSE_ELEMENTS) and torch.equal((-x).to_dense(), -DENSE_ELEMENTS)
    assert torch.zeros_like(x).dense_dim() == 1
    with pytest.raises(RuntimeError, match="hybrid sparse compressed tensors"):
        x.transpose(0, 1)


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_conversions_keep_elements_and_the_type_of_indices(source, target):
    x = compressed(MATRIX, source)
    x = torch.sparse_compressed_tensor(*(part.int() for part in indices(x)), x.values(), x.shape, layout=x.layout)
    block = (1, 2) if target.startswith("b") else None
    y = x.to_sparse(layout=LAYOUTS[target], blocksize=block)
    assert y.layout == LAYOUTS[target] and torch.equal(y.to_dense(), MATRIX) and {part.dtype for part in indices(y)} == {torch.int32}


def test_elements_of_columns_stay_in_their_order():
    coo = MATRIX.to_sparse_csc().to_sparse()
    assert not coo.is_coalesced() and coo._indices().tolist() == [[0, 1, 0], [0, 1, 2]]
    assert MATRIX.to_sparse_csr().to_sparse().is_coalesced()


def test_columns_that_are_not_in_order():
    x = torch.sparse_csr_tensor([0, 3, 3], [2, 0, 2], [1.0, 2.0, 3.0], (2, 3))
    dense = torch.tensor([[2.0, 0, 4], [0, 0, 0]])
    assert torch.equal(x.to_dense(), dense) and torch.equal((x * x).to_dense(), dense * dense)
    with pytest.raises(RuntimeError, match="sorted and distinct along the last dimension"):
        torch.sparse_csr_tensor([0, 3, 3], [2, 0, 2], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)


@pytest.mark.parametrize("parts, message", [
    ((torch.tensor([[0, 1, 2]]), torch.tensor([0, 1]), torch.ones(2), (2, 2)), "dimensionalities must be equal but got 2 and 1"),
    ((torch.tensor([[0, 1], [0, 1]]), torch.tensor([[0]]), torch.ones(2, 1), (2, 1, 2)), "all batch dimensions of crow_indices"),
    ((torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2), (2, 2, 2)), r"\(=0 \+ 2 \+ 0\) but got 3"),
    ((torch.tensor([0, 2, 1]), torch.tensor([0]), torch.ones(1), (2, 2)), r"crow_indices\[..., 1:\] - crow_indices"),
    ((torch.tensor([0, 1, 2]), torch.tensor([0, 1], dtype=torch.int32), torch.ones(2), (2, 2)), "must have the same dtype"),
])
def test_parts_that_do_not_fit_are_named(parts, message):
    with pytest.raises(RuntimeError, match=message):
        torch.sparse_csr_tensor(*parts)


def test_matrices_of_a_batch_have_as_many_elements():
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        torch.tensor([[[1.0, 0], [0, 0]], [[1.0, 1], [0, 1]]]).to_sparse_csr()


@pytest.mark.parametrize("name", LAYOUTS)
def test_gradients_have_the_layout_of_what_they_belong_to(name):
    weight = torch.arange(8.0).reshape(2, 4)
    x = compressed(MATRIX, name).requires_grad_()
    (x.to_dense() * weight).sum().backward()
    assert x.grad.layout == x.layout and torch.equal(x.grad.to_dense(), weight * torch.ones_like(x.detach()).to_dense())
    dense = MATRIX.clone().requires_grad_()
    (dense.sparse_mask(x.detach()).to_dense() * weight).sum().backward()
    assert torch.equal(dense.grad, x.grad.to_dense())
    coo = MATRIX.to_sparse().requires_grad_()
    (coo.to_sparse(layout=x.layout, blocksize=(1, 2) if name.startswith("b") else None).to_dense() * weight).sum().backward()
    assert coo.grad.layout == torch.sparse_coo


@pytest.mark.parametrize("name", ["csr", "csc", "bsr"])
def test_matrix_vector_products(name):
    x, vector, start = compressed(MATRIX, name), torch.arange(4.0), torch.ones(2)
    assert torch.equal(torch.addmv(start, x, vector, beta=2, alpha=3), torch.addmv(start, MATRIX, vector, beta=2, alpha=3))


def test_the_same_places_are_added_value_by_value():
    x = compressed(MATRIX, "bsc")
    assert torch.equal((x + x).to_dense(), 2 * MATRIX) and (x + x).layout == torch.sparse_bsc
    assert torch.equal(x.fill_(3).values(), torch.full((3, 1, 2), 3.0))


def test_linear_with_a_coo_weight_and_more_dimensions():
    x, bias = torch.arange(16.0).reshape(2, 2, 4), torch.ones(2)
    expected = torch.nn.functional.linear(x, MATRIX, bias)
    assert torch.equal(torch.nn.functional.linear(x, MATRIX.to_sparse(), bias), expected)


@pytest.mark.parametrize("make", [torch.zeros, torch.empty])
def test_factories_of_sparse_layouts_have_no_elements(make):
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        x = make(3, 2, 4, layout=layout, dtype=torch.int64)
        assert x.layout == layout and x._nnz() == 0 and x.dtype == torch.int64 and torch.equal(x.to_dense(), torch.zeros(3, 2, 4, dtype=torch.int64))
    assert make(2, 2, layout=torch.sparse_coo, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match=r"expected sparse compressed \(non-block\) tensor layout but got SparseBsr"):
        make(2, 2, layout=torch.sparse_bsr)
    with pytest.raises(RuntimeError, match="Only batched sparse compressed"):
        make(2, layout=torch.sparse_csr)


def test_tensors_like_others_in_another_layout():
    assert torch.zeros_like(MATRIX, layout=torch.sparse_csr).layout == torch.sparse_csr
    assert MATRIX.new_zeros((2, 2), layout=torch.sparse_coo).layout == torch.sparse_coo
    assert torch.equal(torch.ones_like(MATRIX.to_sparse_csr()).to_dense(), (MATRIX != 0).float())
    assert torch.equal(torch.ones_like(MATRIX.to_sparse(), layout=torch.strided), torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="empty_like with different sparse layout"):
        torch.empty_like(MATRIX.to_sparse_csr(), layout=torch.strided)


def test_products_under_their_other_names():
    x = MATRIX.to_sparse()
    assert torch.equal(torch.dsmm(x, MATRIX.t()), MATRIX @ MATRIX.t()) and torch.equal(torch.spmm(x, MATRIX.t()), MATRIX @ MATRIX.t())
    assert torch.equal(torch.hsmm(x, MATRIX.t()).to_dense(), MATRIX @ MATRIX.t())
    assert torch.equal(torch.saddmm(torch.zeros(2, 2).to_sparse(), x, MATRIX.t()).to_dense(), MATRIX @ MATRIX.t())


# ---- COO tensors ----

def test_a_number_is_one_element_and_sizes_alone_are_none():
    one = torch.sparse_coo_tensor([[1], [0]], 3.0, (2, 2))
    assert one.to_dense().tolist() == [[0, 0], [3, 0]] and torch.sparse_coo_tensor([[1]], 5).shape == (2,)
    assert torch.sparse_coo_tensor(size=(2, 3), dtype=torch.int64)._nnz() == 0
    with pytest.raises(RuntimeError, match="nnz from indices: 2, nnz from values: 1"):
        torch.sparse_coo_tensor([[0, 1]], 3.0, (2,))


def test_new_tensors_of_a_sparse_one_are_sparse():
    x = MATRIX.to_sparse()
    assert x.new().shape == (0,) and x.new(2, 3).layout == torch.sparse_coo and x.new(torch.Size([4])).shape == (4,)
    assert x.new(torch.tensor([[0, 2]]), torch.ones(2), torch.Size([4])).to_dense().tolist() == [1, 0, 1, 0]


def test_conjugates_of_sparse_tensors_are_computed():
    dense = torch.tensor([[1 + 2j, 0], [4, 3j]])
    for x in (dense.to_sparse(), dense.to_sparse_csr()):
        assert not x.conj().is_conj() and torch.equal(x.conj().to_dense(), dense.conj().resolve_conj())
        assert torch.equal(x.real.to_dense(), dense.real)
    assert torch.equal(dense.to_sparse().mH.to_dense(), dense.mH.resolve_conj())


def test_products_with_a_tensor_of_more_dimensions():
    dense = torch.arange(24.0).reshape(3, 2, 4)
    for product in (MATRIX.to_sparse() * dense, dense * MATRIX.to_sparse()):
        assert product.layout == torch.sparse_coo and product.is_coalesced() and torch.equal(product.to_dense(), MATRIX * dense)
    with pytest.raises(RuntimeError, match=r"output with shape \[2, 4\] doesn't match the broadcast shape \[3, 2, 4\]"):
        MATRIX.to_sparse().mul_(dense)


def test_dense_dimensions_of_a_product_are_expanded():
    narrow, wide = torch.tensor([[2.0], [3.0]]), torch.arange(6.0).reshape(2, 3)
    for a, b in ((narrow, wide), (wide, narrow)):
        product = a.to_sparse(1) * b.to_sparse(1)
        assert product.shape == (2, 3) and torch.equal(product.to_dense(), a * b)


def test_sums_over_both_dimensions_of_a_matrix():
    total = MATRIX.to_sparse_csr().sum((0, 1), keepdim=True)
    assert total.layout == torch.sparse_csr and total.to_dense().tolist() == [[6.0]]


@pytest.mark.parametrize("make", ["to_sparse", "to_sparse_csr"])
def test_the_device_of_tensors_like_a_sparse_one(make):
    assert torch.zeros_like(getattr(MATRIX, make)(), device="meta").device.type == "meta"


def test_the_gradient_of_values_whose_places_a_sparse_gradient_has_not():
    x = MATRIX.to_sparse_csr()
    values = x.values().clone().requires_grad_()
    made = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)
    made.backward(torch.sparse_csr_tensor([0, 1, 1], [0], [2.0], x.shape))
    assert values.grad.tolist() == [2.0, 0, 0]


def test_new_tensors_have_no_dense_dimensions_and_those_like_another_do():
    x = torch.ones(2, 2).to_sparse(1)
    assert (x.new_zeros(2, 2).sparse_dim(), torch.zeros_like(x).sparse_dim()) == (2, 1)


def test_joined_tensors_of_less_than_two_elements_are_in_order():
    none = torch.sparse_coo_tensor((2, 3))
    assert torch.cat([none, none]).is_coalesced() and not torch.cat([MATRIX.to_sparse(), MATRIX.to_sparse()]).is_coalesced()
