"""Sparse gradients: of embeddings and gather, how they add up, what optimisers do with them, and ahead of time."""
import pytest

import umbra as torch
from umbra._functorch.aot_autograd import aot_function
from umbra.nn import functional as F


def table():
    return torch.arange(12.0).reshape(6, 2).requires_grad_()


def parts(x):
    return x.is_coalesced(), x._indices().tolist(), x._values().tolist()


def weighted(y):
    return (y * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum()


def test_an_embedding_gives_a_row_for_each_index():
    w = table()
    weighted(F.embedding(torch.tensor([1, 2, 1]), w, sparse=True)).backward()
    assert w.grad.is_sparse and w.grad.shape == (6, 2) and parts(w.grad) == (False, [[1, 2, 1]], [[1, 2], [3, 4], [5, 6]])
    dense = table()
    weighted(F.embedding(torch.tensor([1, 2, 1]), dense)).backward()
    assert torch.equal(w.grad.to_dense(), dense.grad)


def test_padding_has_no_row():
    w = table()
    weighted(F.embedding(torch.tensor([1, 2, 1]), w, padding_idx=1, sparse=True)).backward()
    assert parts(w.grad) == (True, [[2]], [[3, 4]])
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        F.embedding(torch.tensor([1]), w, scale_grad_by_freq=True, sparse=True).sum().backward()


@pytest.mark.parametrize("options, rows", [
    ({"mode": "sum"}, [[1, 2], [1, 2], [3, 4], [3, 4]]), ({"mode": "mean"}, [[0.5, 1], [0.5, 1], [1.5, 2], [1.5, 2]]),
    ({"mode": "sum", "per_sample_weights": torch.tensor([1.0, 2, 3, 4])}, [[1, 2], [2, 4], [9, 12], [12, 16]]),
])
def test_bags(options, rows):
    w = table()
    weighted(F.embedding_bag(torch.tensor([1, 2, 1, 4]), w, torch.tensor([0, 2]), sparse=True, **options)).backward()
    assert parts(w.grad) == (False, [[1, 2, 1, 4]], rows)


def test_gather():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    weighted(torch.gather(x, 1, torch.tensor([[0, 0], [2, 1]]), sparse_grad=True)).backward()
    assert parts(x.grad) == (False, [[0, 0, 1, 1], [0, 0, 2, 1]], [1, 2, 3, 4])


def test_an_embedding_without_columns_or_indices_has_a_gradient_without_rows():
    for rows, columns, indices in ((0, 0, []), (10, 0, [0, 2]), (10, 3, [])):
        table = torch.nn.Embedding(rows, columns, sparse=True)
        table(torch.tensor(indices, dtype=torch.int64)).sum().backward()
        assert table.weight.grad.is_sparse and table.weight.grad.shape == (rows, columns) and table.weight.grad._nnz() == 0


def test_gradients_add_up_sparse_and_strided():
    w = table()
    F.embedding(torch.tensor([1, 2]), w, sparse=True).sum().backward()
    F.embedding(torch.tensor([2, 3]), w, sparse=True).sum().backward()
    assert w.grad.is_sparse and w.grad.to_dense()[:, 0].tolist() == [0, 1, 2, 1, 0, 0]
    F.embedding(torch.tensor([2]), w).sum().backward()
    assert not w.grad.is_sparse and w.grad[:, 0].tolist() == [0, 1, 3, 1, 0, 0]
    F.embedding(torch.tensor([2]), w, sparse=True).sum().backward()
    assert not w.grad.is_sparse and w.grad[:, 0].tolist() == [0, 1, 4, 1, 0, 0]
    for order in (1, -1):
        w.grad = None
        sum([F.embedding(torch.tensor([1]), w, sparse=True).sum(), w.sum()][::order]).backward()
        assert w.grad.tolist() == (torch.ones(6, 2) + torch.eye(6)[:, 1:2]).tolist()


def test_they_pass_through_what_comes_before():
    w = table()
    F.embedding(torch.tensor([1, 2, 1]), w * 2, sparse=True).sum().backward()
    assert w.grad.is_sparse and parts(w.grad)[1:] == ([[1, 2, 1]], [[2, 2]] * 3)


def test_hooks_zeroing_and_clipping():
    w, seen = table(), []
    w.register_hook(lambda g: seen.append(g.is_sparse))
    F.embedding(torch.tensor([1, 2]), w, sparse=True).sum().backward()
    assert seen == [True]
    norm = torch.nn.utils.clip_grad_norm_([w], 1.0)
    assert norm.item() == 2 and abs(w.grad.norm().item() - 1) < 1e-5
    optimizer = torch.optim.SGD([w], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.is_sparse and w.grad._nnz() == 0


def test_second_derivatives():
    w = table()
    gradient, = torch.autograd.grad(F.embedding(torch.tensor([1, 2, 1]), w, sparse=True).square().sum(), w, create_graph=True)
    assert gradient.requires_grad
    (gradient.to_dense() * torch.ones(6, 2)).sum().backward()
    assert w.grad.to_dense()[:, 0].tolist() == [0, 4, 2, 0, 0, 0]


# ---- optimisers ----

def parameter():
    p = torch.nn.Parameter(torch.tensor([[0.0, 1, 0], [2, 0, 3]]))
    p.grad = torch.sparse_coo_tensor([[1, 0, 1], [2, 1, 2]], [1.0, 2.0, 5.0], (2, 3))
    return p


def stepped(optimizer, count=2):
    for _ in range(count):
        optimizer.step()
    return optimizer.param_groups[0]["params"][0].detach()


def test_sgd():
    torch.testing.assert_close(stepped(torch.optim.SGD([parameter()], 0.1)), torch.tensor([[0.0, 0.6, 0], [2, 0, 1.8]]))
    torch.testing.assert_close(stepped(torch.optim.SGD([parameter()], 0.1, momentum=0.9)), torch.tensor([[0.0, 0.42, 0], [2, 0, 1.26]]))
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        torch.optim.SGD([parameter()], 0.1, fused=True).step()


def test_adagrad():
    p = parameter()
    optimizer = torch.optim.Adagrad([p], 0.1)
    torch.testing.assert_close(stepped(optimizer), torch.tensor([[0.0, 0.8292893, 0], [2, 0, 2.8292894]]))
    assert optimizer.state[p]["sum"].tolist() == [[0, 8, 0], [0, 0, 72]]
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        torch.optim.Adagrad([parameter()], weight_decay=0.1).step()


def test_sparse_adam():
    p = parameter()
    optimizer = torch.optim.SparseAdam([p], 0.1)
    torch.testing.assert_close(stepped(optimizer), torch.tensor([[0.0, 0.8, 0], [2, 0, 2.8]]))
    torch.testing.assert_close(optimizer.state[p]["exp_avg_sq"], torch.tensor([[0.0, 0.007996, 0], [0, 0, 0.071964]]))
    assert optimizer.state[p]["step"] == 2
    p.grad = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()
    with pytest.raises(ValueError, match="requires dense parameter tensors"):
        torch.optim.SparseAdam([torch.ones(2).to_sparse().requires_grad_()])


@pytest.mark.parametrize("name, text", [
    ("Adam", "Adam does not support sparse gradients, please consider SparseAdam instead"), ("RMSprop", "RMSprop does not support sparse"),
    ("Adadelta", "Adadelta does not support sparse"), ("NAdam", "NAdam does not support sparse"), ("ASGD", "ASGD does not support sparse"),
])
def test_others_refuse_them(name, text):
    with pytest.raises(RuntimeError, match=text):
        getattr(torch.optim, name)([parameter()]).step()


# ---- ahead of time ----

@pytest.mark.parametrize("call", [
    lambda w, i: F.embedding(i, w, sparse=True), lambda w, i: F.embedding_bag(i, w, torch.zeros(1, dtype=torch.int64), mode="sum", sparse=True),
    lambda w, i: F.embedding_bag(i, w, torch.zeros(1, dtype=torch.int64), mode="mean", sparse=True),
])
def test_ahead_of_time(call):
    indices, eager, compiled = torch.tensor([1, 2, 1]), table(), table()
    weighted(call(eager, indices)).backward()
    weighted(aot_function(call, lambda graph, _: graph)(compiled, indices)).backward()
    assert compiled.grad.is_sparse and torch.equal(compiled.grad.to_dense(), eager.grad.to_dense())


def test_the_graph_makes_the_sparse_tensor_by_one_operator():
    graphs = []
    run = aot_function(lambda w, i: F.embedding(i, w, sparse=True), lambda graph, _: graph, lambda graph, _: graphs.append(graph) or graph)
    run(table(), torch.tensor([1, 2])).sum().backward()
    names = [str(node.target) for node in graphs[0].graph.nodes if node.op == "call_function"]
    assert names == ["aten.view.default", "aten.view.default", "aten._sparse_coo_tensor_with_dims_and_tensors.default"]


def test_sparse_inputs_ahead_of_time_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="ahead-of-time autograd of a tensor of layout torch.sparse_coo"):
        aot_function(lambda x, y: x @ y, lambda graph, _: graph)(torch.eye(2).to_sparse(), torch.ones(2, 2, requires_grad=True))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_gradcheck_of_sparse_inputs(layout):
    from umbra.autograd import gradcheck
    from umbra.autograd.gradcheck import GradcheckError
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    x = torch.eye(4, dtype=torch.float64).to_sparse(layout=layout, blocksize=blocks).requires_grad_()
    for masked in (True, False):
        assert gradcheck(lambda a: a.to_dense(masked_grad=masked), (x,), masked=masked)
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
            gradcheck(lambda a: a.to_dense(masked_grad=not masked), (x,), masked=masked)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        gradcheck(lambda a: a * 2, (x,))


@pytest.mark.parametrize("masked", [False, True])
def test_a_gradcheck_of_sparse_results(masked):
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    dense = torch.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=torch.float64)
    for x in (dense.to_sparse_coo(), dense.to_sparse_csr()):
        x.requires_grad_()
        assert check(lambda a: a * 2, x, masked=masked)
        assert check(lambda a, b: torch.sparse.mm(a, b), (x, dense.clone().requires_grad_()), masked=masked)
    assert check(lambda a: a.to_sparse_csr(), dense.to_sparse_coo().requires_grad_(), masked=masked)
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        check(lambda a: a * 2, dense)


def test_gradcheck_sees_a_backward_that_does_not_scale_with_what_comes_in():
    from umbra.autograd import gradcheck
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)

    class Adds(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a.clone()

        @staticmethod
        def backward(ctx, g):
            return g + 1e-6
    with pytest.raises(RuntimeError, match="backward not multiplied by grad_output"):
        gradcheck(Adds.apply, (x,))
