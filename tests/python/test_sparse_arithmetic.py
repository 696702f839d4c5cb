"""Arithmetic, products, reductions and parts of sparse tensors, as PyTorch has them."""
import copy

import pytest

import umbra as torch

D = torch.tensor([[0.0, 1, 0], [2, 0, 3]])
E = torch.tensor([[5.0, 0, 0], [1, 0, -3]])
X = torch.arange(6.0).reshape(3, 2)


def loose():
    """Elements that are not in order, two of them in one place."""
    return torch.sparse_coo_tensor([[1, 0, 1], [2, 1, 2]], [1.0, 2.0, 5.0], (2, 3))


def rows():
    """One sparse dimension and one dense one."""
    return torch.sparse_coo_tensor([[0, 2, 0]], [[1.0, 2], [3, 4], [5, 6]], (3, 2))


def parts(x):
    return x.is_coalesced(), x._indices().tolist(), x._values().tolist()


LAYOUTS = [lambda t: t.to_sparse(), lambda t: t.to_sparse_csr()]


# ---- sums ----

def test_a_sum_has_the_places_of_both_and_keeps_zeros():
    assert parts(D.to_sparse() + E.to_sparse()) == (True, [[0, 0, 1, 1], [0, 1, 0, 2]], [5, 1, 3, 0])
    assert torch.equal(torch.add(D.to_sparse(), E.to_sparse(), alpha=-2).to_dense(), D - 2 * E)
    assert torch.equal((D.to_sparse() - E.to_sparse()).to_dense(), D - E)


def test_sums_walk_both_as_if_they_were_in_order():
    assert parts(loose() + loose()) == (False, [[1, 0, 1], [2, 1, 2]], [2, 4, 10])
    assert parts(loose() + D.to_sparse()) == (False, [[0, 1, 1, 0, 1], [1, 0, 2, 1, 2]], [1, 2, 4, 2, 5])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_strided_tensor_plus_a_sparse_one_is_strided(layout):
    x = torch.ones(2, 3)
    assert torch.equal(x + layout(D), 1 + D) and torch.equal(x.add(layout(D), alpha=3), 1 + 3 * D)
    x.add_(layout(D), alpha=-1)
    assert torch.equal(x, 1 - D)
    turned = torch.ones(3, 2).t()
    turned.add_(layout(D))
    assert torch.equal(turned, 1 + D)


def test_compressed_tensors_add_up():
    total = D.to_sparse_csr() + E.to_sparse_csr()
    assert (total.crow_indices().tolist(), total.col_indices().tolist(), total.values().tolist()) == ([0, 2, 4], [0, 1, 0, 2], [5, 1, 3, 0])


@pytest.mark.parametrize("call, text", [
    (lambda: D.to_sparse() + torch.ones(2, 3), r"add\(sparse, dense\) is not supported"),
    (lambda: D.to_sparse() + 1, r"add\(sparse, dense\) is not supported"),
    (lambda: torch.ones(3) + D.to_sparse(), "does not currently support broadcasting"),
    (lambda: D.to_sparse() + torch.sparse_coo_tensor([[0]], [1.0], (3,)), r"expected sizes of 'self' and 'other' to match"),
    (lambda: torch.tensor([[1, 2]]).add_(torch.tensor([[1.5, 0]]).to_sparse()), "Can't convert result type Float to output Long"),
    (lambda: D.to_sparse() / D.to_sparse(), "Sparse division requires a scalar"),
    (lambda: D.to_sparse().pow(0), "zeroth power"),
    (lambda: rows() * D.to_sparse(), "equal dimensionality"),
    (lambda: rows().transpose(0, 1), "transposed dimensions must be sparse"),
    (lambda: D.to_sparse() @ torch.ones(2, 2), "Expected dim 0 size 3, got 2"),
    (lambda: torch.cat([D.to_sparse(), D]), "a dense tensor was found at position 1"),
    (lambda: D.to_sparse().to_dense(torch.float64), "dtype argument is not supported"),
    (lambda: torch.zeros(2, 3).copy_(D.to_sparse()), "between dense and sparse Tensors"),
    (lambda: loose().sin_(), "sin_ requires coalesced input"),
    (lambda: D.to_sparse().expand(2, 2, 3), "expand is unsupported for Sparse tensors"),
    (lambda: torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True), "cannot set is_coalesced to true"),
])
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


# ---- products of elements ----

@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_elements(layout):
    x = layout(D)
    assert torch.equal((x * 2).to_dense(), 2 * D) and torch.equal((torch.tensor(3.0) * x).to_dense(), 3 * D)
    assert torch.equal((x * layout(E)).to_dense(), D * E) and (x * layout(E))._nnz() == 2
    assert torch.equal((x * E).to_dense(), D * E) and (x * E)._nnz() == 3
    assert torch.equal((x * torch.arange(3.0)).to_dense(), D * torch.arange(3.0))


def test_a_product_with_elements_out_of_order_keeps_their_places():
    assert parts(loose() * D.to_sparse()) == (False, [[1, 0, 1], [2, 1, 2]], [3, 2, 15])
    assert parts(loose() * loose()) == (False, [[1, 0, 1], [2, 1, 2]], [6, 4, 30])


def test_in_place():
    x = D.to_sparse()
    y = x.detach()
    x.mul_(3).add_(E.to_sparse())
    assert torch.equal(x.to_dense(), 3 * D + E) and torch.equal(y.to_dense(), D)
    x.copy_(E.to_sparse())
    assert torch.equal(x.to_dense(), E)
    x.zero_()
    assert x._nnz() == 0 and x.shape == (2, 3)
    assert torch.equal(D.to_sparse().sin_().to_dense(), D.sin())


def test_operators_that_keep_zero_take_the_values():
    assert parts(loose().abs()) == (True, [[0, 1], [1, 2]], [2, 6])
    assert parts(-loose()) == (False, [[1, 0, 1], [2, 1, 2]], [-1, -2, -5])
    for name in ("sqrt", "tanh", "relu", "sign", "floor", "expm1"):
        for layout in LAYOUTS:
            assert torch.equal(getattr(layout(D), name)().to_dense(), getattr(D, name)())
    assert parts(loose() ** 2) == (True, [[0, 1], [1, 2]], [4, 36]) and (D.to_sparse() / 2)._values().tolist() == [0.5, 1, 1.5]


# ---- products of matrices ----

@pytest.mark.parametrize("layout", [*LAYOUTS, lambda t: t.to_sparse_csc()])
def test_products_with_strided_matrices(layout):
    x = layout(D)
    assert torch.equal(x @ X, D @ X) and torch.equal(torch.sparse.mm(x, X), D @ X) and torch.equal(x @ X[:, 1], D @ X[:, 1])
    assert torch.equal(X @ x, X @ D) and torch.equal(torch.addmm(torch.ones(2), x, X, beta=2, alpha=3), 2 + 3 * (D @ X))


def test_products_of_sparse_matrices():
    assert parts(torch.sparse.mm(D.to_sparse(), E.t().to_sparse())) == (True, [[1, 1], [0, 1]], [10, -7])
    assert torch.equal(torch.sparse.mm(loose(), loose().t()).to_dense(), loose().to_dense() @ loose().to_dense().t())
    csr = D.to_sparse_csr() @ E.t().to_sparse_csr()
    assert csr.layout == torch.sparse_csr and torch.equal(csr.to_dense(), D @ E.t())
    batch = torch.stack([D.to_sparse(), E.to_sparse()])
    assert torch.equal(torch.bmm(batch, torch.stack([X, X])), torch.stack([D @ X, E @ X]))
    assert parts(torch.hspmm(D.to_sparse(), X)) == (False, [[0, 1]], [[2, 3], [12, 17]])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_products(layout):
    w = X.clone().requires_grad_()
    (layout(D) @ w).square().sum().backward()
    assert torch.equal(w.grad, 2 * D.t() @ (D @ X))
    a = layout(D).requires_grad_()
    torch.sparse.mm(a, X).sum().backward()
    assert a.grad.layout == a.layout and torch.equal(a.grad.to_dense(), (torch.ones(2, 2) @ X.t()) * (D != 0))
    b = layout(D).requires_grad_()
    (b @ X).sum().backward()
    assert b.grad.layout == torch.strided and torch.equal(b.grad, torch.ones(2, 2) @ X.t())
    v = torch.tensor([1.0, 2, 3], requires_grad=True)
    made = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], v, (2, 3))
    torch.sparse.mm(made, X).sum().backward()
    assert v.grad.tolist() == [9, 1, 1]


def test_gradients_of_sparse_products():
    a, b = D.to_sparse().requires_grad_(), E.t().to_sparse().requires_grad_()
    torch.sparse.sum(torch.sparse.mm(a, b)).backward()
    assert (a.grad._indices().tolist(), a.grad._values().tolist()) == ([[1, 1], [0, 2]], [6, -3])
    assert (b.grad._indices().tolist(), b.grad._values().tolist()) == ([[0, 0, 2], [0, 1, 1]], [2, 2, 3])


def test_a_product_sampled_at_places():
    m1, m2 = torch.ones(2, 4, requires_grad=True), torch.arange(12.0).reshape(4, 3).requires_grad_()
    a = D.to_sparse_csr().requires_grad_()
    y = torch.sparse.sampled_addmm(a, m1, m2, beta=0.5, alpha=2)
    assert y.values().tolist() == [44.5, 37, 53.5]
    y.to_dense().sum().backward()
    assert a.grad.values().tolist() == [0.5] * 3 and m1.grad[0].tolist() == [2, 8, 14, 20] and torch.equal(m2.grad, torch.full((4, 3), 2.0))
    with pytest.raises(NotImplementedError):
        torch.sparse.sampled_addmm(D.to_sparse(), m1, m2)


# ---- reductions ----

def test_sums_over_dimensions():
    x = D.to_sparse()
    assert x.sum().item() == 6 and torch.sparse.sum(loose()).item() == 8
    assert parts(torch.sparse.sum(x, 0)) == (True, [[0, 1, 2]], [2, 1, 3]) and parts(x.sum(1)) == (True, [[0, 1]], [1, 5])
    assert torch.sparse.sum(rows(), 0).tolist() == [9, 12] and parts(torch.sparse.sum(rows(), 1)) == (True, [[0, 2]], [14, 7])
    assert torch.equal(D.to_sparse_csr().sum(0, keepdim=True).to_dense(), D.sum(0, keepdim=True))
    assert abs(loose().norm().item() - 6.3245554) < 1e-5 and x.any().item()


def test_softmax_of_what_is_there():
    y = torch.sparse.softmax(D.to_sparse(), 1)
    assert parts(y)[:2] == (True, [[0, 1, 1], [1, 0, 2]])
    torch.testing.assert_close(y._values(), torch.tensor([1.0, 0.26894143, 0.7310586]))
    torch.testing.assert_close(torch.sparse.log_softmax(rows(), 0)._values(), torch.tensor([[6.0, 8], [3, 4]]).log_softmax(0))
    w = D.clone().requires_grad_()
    torch.sparse.softmax(w.to_sparse(), 1).to_dense().square().sum().backward()
    torch.testing.assert_close(w.grad, torch.tensor([[0.0, 0, 0], [-0.18171549, 0, 0.18171549]]))


def test_gradients_of_reductions_have_the_places_of_the_input():
    x = D.to_sparse().requires_grad_()
    torch.sparse.sum(x, 0).to_dense().square().sum().backward()
    assert x.grad.is_sparse and x.grad.to_dense().tolist() == [[0, 2, 0], [4, 0, 6]]
    y = loose().requires_grad_()
    torch.sparse.sum(y).backward()
    assert y.grad._indices().tolist() == [[0, 1], [1, 2]] and y.grad._values().tolist() == [1, 1]


# ---- dimensions and parts ----

def test_dimensions():
    x = D.to_sparse()
    assert torch.equal(x.t().to_dense(), D.t()) and torch.equal(x.T.to_dense(), D.t()) and not x.t().is_coalesced()
    assert D.to_sparse_csr().t().layout == torch.sparse_csc and torch.equal(D.to_sparse_csr().t().to_dense(), D.t())
    assert torch.equal(x.unsqueeze(0).to_dense(), D.unsqueeze(0)) and torch.equal(rows().unsqueeze(-1).to_dense(), rows().to_dense().unsqueeze(-1))
    stacked = torch.stack([x, E.to_sparse()])
    assert torch.equal(stacked.permute(2, 0, 1).to_dense(), torch.stack([D, E]).permute(2, 0, 1))


def test_parts_of_it():
    x = D.to_sparse()
    assert parts(x[1]) == (False, [[0, 2]], [2, 3]) and x[0, 1].item() == 1 and rows()[0].tolist() == [6, 8] and rows()[1].tolist() == [0, 0]
    assert torch.equal(torch.stack([r.to_dense() for r in x]), D)
    assert parts(x.index_select(0, torch.tensor([1, 0]))) == (False, [[0, 0, 1], [0, 2, 1]], [2, 3, 1])
    assert torch.equal(x.index_select(1, torch.tensor([2, 2])).to_dense(), D[:, [2, 2]])
    assert torch.equal(x.narrow_copy(1, 1, 2).to_dense(), D[:, 1:])
    assert torch.equal(torch.cat([x, E.to_sparse()], 1).to_dense(), torch.cat([D, E], 1))
    assert torch.equal(torch.cat([rows(), rows()], 1).to_dense(), torch.cat([rows().to_dense()] * 2, 1))
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        x[0] = x[1]


def test_the_elements_at_another_tensors_places():
    assert parts(D.sparse_mask(loose())) == (False, [[1, 0, 1], [2, 1, 2]], [3, 1, 3])
    assert parts(D.to_sparse().sparse_mask(E.to_sparse())) == (True, [[0, 1, 1], [0, 0, 2]], [0, 2, 3])
    assert D.to_sparse_csr().sparse_mask(E.to_sparse_csr()).values().tolist() == [2, 3]
    w = D.clone().requires_grad_()
    (w.sparse_mask(E.to_sparse()).to_dense() * X.t()).sum().backward()
    assert torch.equal(w.grad, X.t() * (E != 0))


def test_diagonals():
    y = torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 2]), (4, 4))
    assert parts(y) == (False, [[0, 1, 2, 1, 2, 3, 0], [0, 1, 2, 0, 1, 2, 2]], [0, 1, 2, 3, 4, 5, 8])
    with pytest.raises(RuntimeError, match="duplicate values"):
        torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 0]), (3, 3))


# ---- layouts, types, copies ----

def test_zeros_that_are_elements_stay_elements():
    x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [0.0, 2.0], (2, 2), is_coalesced=True)
    assert x.to_sparse_csr().values().tolist() == [0, 2] and x.to_sparse_csr().to_sparse()._values().tolist() == [0, 2]


def test_types_and_copies():
    x = D.to_sparse()
    assert x.double().dtype == torch.float64 and x.to(torch.float32) is x and torch.equal(x.int().to_dense(), D.int())
    y = copy.deepcopy(x.requires_grad_())
    assert y.requires_grad and torch.equal(y.to_dense(), D)
    assert torch.zeros_like(x)._nnz() == 0 and torch.zeros_like(x, layout=torch.strided).layout == torch.strided
    empty = torch.sparse_coo_tensor((2, 3))
    empty.sparse_resize_((4, 5), 2, 0)
    assert empty.shape == (4, 5)


def test_the_switch_of_invariants_is_kept():
    switch = torch.sparse.check_sparse_tensor_invariants
    assert not switch.is_enabled()
    with switch():
        assert switch.is_enabled()
    assert not switch.is_enabled() and switch(True)(switch.is_enabled)()


def test_to_dense_has_a_gradient_at_the_places_there_are():
    x = loose().requires_grad_()
    gradient, = torch.autograd.grad((x.to_dense() * E).sum(), x)
    assert parts(gradient) == (True, [[0, 1], [1, 2]], [0, -3])
    y = D.to_sparse().requires_grad_()
    y.to_dense(masked_grad=False).sum().backward()
    assert y.grad._nnz() == 6


@pytest.mark.parametrize("reduce, expected, gradient", [
    ("sum", [[2, 3], [12, 17], [0, 0]], [[2, 2], [1, 1], [3, 3]]), ("mean", [[2, 3], [6, 8.5], [0, 0]], [[1, 1], [1, 1], [1.5, 1.5]]),
    ("amax", [[2, 3], [12, 15], [0, 0]], [[0, 0], [1, 1], [3, 3]]), ("amin", [[2, 3], [0, 2], [0, 0]], [[2, 2], [1, 1], [0, 0]]),
])
def test_products_whose_rows_are_reduced(reduce, expected, gradient):
    csr = torch.tensor([[0.0, 1, 0], [2, 0, 3], [0, 0, 0]]).to_sparse_csr()
    x = X.clone().requires_grad_()
    y = torch.sparse.mm(csr, x, reduce)
    y.sum().backward()
    assert y.tolist() == expected and x.grad.tolist() == gradient
    with pytest.raises(NotImplementedError):
        torch.sparse.mm(csr.to_sparse(), x, reduce)


def test_a_mask_by_columns_takes_the_values_in_its_order():
    for to in ("to_sparse_csr", "to_sparse_csc"):
        mask = getattr(E, to)()
        assert torch.equal(D.sparse_mask(mask).to_dense(), D * (E != 0))


def test_parts_may_be_resized_by_whoever_has_them():
    indices, values = torch.tensor([[0], [1]]), torch.tensor([[3.0, 4, 5]])
    x = torch.sparse_coo_tensor(indices, values, (1, 2, 3))
    indices.resize_(2, 3)
    values.resize_(4, 5)
    assert x._indices().shape == (2, 1) and x._values().shape == (1, 3)


def test_sums_with_nothing_take_any_number_of_sparse_dimensions():
    nothing = torch.sparse_coo_tensor((3, 2))
    for total in (nothing + rows(), rows() + nothing, torch.add(nothing, rows(), alpha=1)):
        assert total.sparse_dim() == 1 and torch.equal(total.to_dense(), rows().to_dense())
    with pytest.raises(RuntimeError, match="only same size"):
        D.to_sparse().copy_(E.to_sparse().narrow_copy(0, 0, 1))


def test_a_compressed_tensor_plus_a_strided_one_scales_the_compressed_one():
    """As PyTorch, which exchanges the two."""
    dense, strided = torch.tensor([[1.0, 0, 2], [0, 3, 0]]), torch.full((2, 3), 10.0)
    for sparse in (dense.to_sparse_csr(), dense.to_sparse_csc()):
        assert torch.equal(torch.add(sparse, strided, alpha=2), strided + 2 * dense)
        assert torch.equal(torch.add(strided, sparse, alpha=2), strided + 2 * dense)
        assert torch.equal(sparse + strided, strided + dense)


def test_products_of_compressed_matrices_by_rows_and_columns():
    dense = torch.tensor([[1.0, 0, 2], [0, 3, 0], [0, 1, 0]])
    for a in (dense.to_sparse_csr(), dense.to_sparse_csc()):
        for b in (dense.to_sparse_csr(), dense.to_sparse_csc()):
            product = a @ b
            assert product.layout == torch.sparse_csr and torch.equal(product.to_dense(), dense @ dense)


def test_factories_write_sparse_outputs():
    for sparse in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc()):
        layout = sparse.layout
        result = torch.zeros((4, 5), out=sparse)
        assert result is sparse and sparse.layout == layout and sparse.shape == (4, 5) and sparse._nnz() == 0
        assert torch.equal(sparse.to_dense(), torch.zeros(4, 5))


def test_values_like_those_of_a_compressed_tensor():
    sparse = torch.eye(2).to_sparse_csr()
    full = torch.full_like(sparse, 2, dtype=torch.float64)
    assert full.layout == torch.sparse_csr and full.dtype == torch.float64 and full.values().tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="fill_.Scalar"):
        torch.full_like(torch.eye(2).to_sparse(), 2)


def test_sparse_tensors_go_to_the_meta_device_without_elements():
    for sparse in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(4).to_sparse_bsr((2, 2))):
        there = sparse.to("meta")
        assert there.is_meta and there.layout == sparse.layout and there.shape == sparse.shape and there._nnz() == 0


def test_a_csr_matrix_gets_more_rows_and_columns():
    sparse = torch.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
    sparse.resize_(4, 5)
    assert torch.equal(sparse.to_dense(), torch.nn.functional.pad(torch.tensor([[1.0, 0, 2], [0, 3, 0]]), (0, 2, 0, 2)))
    with pytest.raises(RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller value is not supported"):
        sparse.resize_(4, 2)
    with pytest.raises(NotImplementedError, match="fewer rows"):
        sparse.resize_(1, 5)
    with pytest.raises(NotImplementedError, match="aten::resize_"):
        torch.eye(2).to_sparse().resize_(3, 3)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_lazily_conjugated_and_negated_tensors_beside_sparse_ones(layout):
    dense = torch.tensor([[1 + 2j, 0, 3j], [0, 0, -1 + 1j]])
    sparse = dense.to_sparse(layout=layout)
    rows, columns = torch.randn(4, 2, dtype=torch.complex64), torch.randn(4, 3, dtype=torch.complex64)
    assert rows.conj().is_conj() and columns.conj().imag.is_neg()
    torch.testing.assert_close(rows.conj() @ sparse, rows.conj() @ dense)
    torch.testing.assert_close(sparse @ columns.mH, dense @ columns.mH)
    torch.testing.assert_close(sparse @ columns[0].conj(), dense @ columns[0].conj())
    torch.testing.assert_close(torch.sparse.addmm(rows.mH, sparse, columns.mH), rows.mH + dense @ columns.mH)
    negated = columns.conj().imag.mT
    torch.testing.assert_close(dense.real.to_sparse(layout=layout) @ negated, dense.real @ negated)


def test_low_rank_of_a_sparse_complex_matrix():
    dense = torch.randn(6, 4, dtype=torch.complex128)
    dense[dense.abs() < 1] = 0
    for matrix in (dense, dense.mH):
        U, S, V = torch.svd_lowrank(matrix.resolve_conj().to_sparse(), q=4)
        torch.testing.assert_close((U * S) @ V.mH, matrix)
