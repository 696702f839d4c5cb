"""sort, topk, pad, einsum, group_norm: against NumPy, with gradients, without data, and captured."""
import numpy as np
import pytest

import umbra
import umbra.export
from umbra import nn
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.nn import functional as F


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dim, descending):
    x = umbra.randint(0, 5, (4, 6, 3)).to(umbra.float32)
    values, indices = umbra.sort(x, dim, descending)
    expected = np.sort(x.numpy(), axis=dim)
    assert np.array_equal(values.numpy(), np.flip(expected, axis=dim) if descending else expected)
    assert umbra.equal(x.gather(dim, indices), values)
    if not descending:
        assert np.array_equal(indices.numpy(), np.argsort(x.numpy(), axis=dim, kind="stable"))


def test_nan_is_the_largest():
    x = umbra.tensor([2.0, float("nan"), 1.0])
    assert umbra.argsort(x).tolist() == [2, 0, 1]
    assert umbra.argsort(x, descending=True).tolist() == [1, 0, 2]
    assert umbra.topk(x, 2, largest=False).indices.tolist() == [2, 0]


def test_topk_and_its_gradient():
    x = umbra.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], requires_grad=True)
    values, indices = x.topk(2)
    assert indices.tolist() == [[0, 2], [1, 2]]
    (values * umbra.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [[1, 0, 10], [0, 1, 10]]
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(4)
    with pytest.raises(IndexError):
        x.topk(1, dim=2)


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_by_edges(mode, numpy_mode):
    x = umbra.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(F.pad(x, (2, 1), mode=mode).numpy(), np.pad(x.numpy(), ((0, 0), (0, 0), (2, 1)), mode=numpy_mode))
    y = x[None]
    assert np.array_equal(F.pad(y, (1, 2, 2, 1), mode=mode).numpy(), np.pad(y.numpy(), ((0, 0), (0, 0), (2, 1), (1, 2)), mode=numpy_mode))


def test_constant_padding():
    x = umbra.arange(6.0).reshape(2, 3).requires_grad_()
    y = F.pad(x, (1, -1, 0, 2), value=7.0)
    assert y.tolist() == [[7, 0, 1], [7, 3, 4], [7, 7, 7], [7, 7, 7]]
    (y * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2, 0], [2, 2, 0]]
    with pytest.raises(RuntimeError, match="divisible by 2"):
        F.pad(x, (1,))
    with pytest.raises(RuntimeError, match="length must be non-negative"):
        F.pad(x, (-2, -2))
    with pytest.raises(TypeError, match=r"pad\(\): argument 'pad' \(position 2\) must be tuple of ints, but found element of type float at pos 0"):
        F.pad(x, (1.5, 1))
    with pytest.raises(TypeError, match=r"pad\(\): argument 'pad' \(position 2\) must be tuple of ints, not Tensor"):
        F.pad(x, umbra.tensor([1, 1]))
    with pytest.raises(NotImplementedError):
        F.pad(x, (1, 1, 1, 1), mode="reflect")


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
    ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]), ("i,i", [(4,), (4,)]), ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 5)]),
    ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ab,bc,cd->da", [(2, 3), (3, 4), (4, 5)]), ("i...->...", [(2, 3, 4)]),
    ("bn,anm,bm->ba", [(2, 3), (5, 3, 4), (2, 4)]), ("ijk,ilm->kjml", [(2, 3, 4), (2, 5, 6)]), (" a b , b -> a ", [(2, 3), (3,)]),
])
def test_einsum(equation, shapes):
    tensors = [umbra.randn(*shape, dtype=umbra.float64, requires_grad=True) for shape in shapes]
    result = umbra.einsum(equation, *tensors)
    expected = np.einsum(equation.replace(" ", ""), *[t.detach().numpy() for t in tensors])
    assert result.shape == expected.shape
    assert np.allclose(result.detach().numpy(), expected)
    result.sum().backward()
    assert all(t.grad is not None and t.grad.shape == t.shape for t in tensors)


@pytest.mark.parametrize("equation, shapes, message", [
    ("ij,jk->ik", [(2, 3)], "fewer operands"), ("ij->ij", [(2,)], "number of subscripts"), ("ij->ik", [(2, 3)], "does not appear"),
    ("ij->ii", [(2, 3)], "more than once"), ("i1->i", [(2, 3)], "invalid subscript"), ("ij,jk->ik", [(2, 3), (4, 5)], "einsum"),
])
def test_einsum_refuses(equation, shapes, message):
    with pytest.raises(RuntimeError, match=message):
        umbra.einsum(equation, *[umbra.ones(shape) for shape in shapes])


def test_group_norm():
    x = umbra.randn(2, 6, 5, dtype=umbra.float64)
    norm = nn.GroupNorm(3, 6, dtype=umbra.float64)
    with umbra.no_grad():
        norm.weight.copy_(umbra.arange(6.0))
    grouped = x.numpy().reshape(2, 3, -1)
    expected = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    assert np.allclose(norm(x).detach().numpy(), expected.reshape(2, 6, 5) * np.arange(6.0)[:, None])
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        F.group_norm(x, 4)


def test_without_data():
    with FakeTensorMode():
        x = umbra.ones(4, 6, 8)
        assert umbra.sort(x).values.shape == (4, 6, 8)
        assert umbra.topk(x, 3, dim=1).indices.shape == (4, 3, 8)
        assert F.pad(x, (1, 2)).shape == (4, 6, 11)
        assert F.pad(x, (1, 2), mode="reflect").shape == (4, 6, 11)
        assert umbra.einsum("bij,bkj->bik", x, x).shape == (4, 6, 6)
        assert F.group_norm(x, 2).shape == (4, 6, 8)


def test_exported_with_a_dynamic_batch():
    class Net(nn.Module):
        def forward(self, x):
            y = F.group_norm(F.pad(x, (1, 1)), 2)
            return umbra.einsum("bij,bkj->bik", y, y).topk(2).values

    net, batch = Net(), umbra.export.Dim("batch", max=32)
    program = umbra.export.export(net, (umbra.randn(3, 4, 5),), dynamic_shapes=({0: batch},))
    x = umbra.randn(7, 4, 5)
    assert umbra.allclose(program.module()(x), net(x), atol=1e-6)


def test_copies_of_views_have_memory_of_their_own():
    x = umbra.ones(2, 3)
    copy = umbra.ops.aten.unsqueeze_copy.default(x, 0)
    copy.zero_()
    assert copy.shape == (1, 2, 3) and x.sum() == 6


@pytest.mark.parametrize("pattern, lengths, shape", [
    ("b c h w -> b h w c", {}, (2, 4, 5, 3)), ("b c (h1 h2) w -> b h1 c (h2 w)", {"h2": 2}, (2, 2, 3, 10)), ("b ... -> b (...)", {}, (2, 60)),
    ("... w -> w ...", {}, (5, 2, 3, 4)), ("b c h w -> () b c (h w) 1", {}, (1, 2, 3, 20, 1))])
def test_patterns_move_join_and_split_dimensions(pattern, lengths, shape):
    x = umbra.arange(120.0).reshape(2, 3, 4, 5)
    y = umbra.func.rearrange(x, pattern, **lengths)
    assert y.shape == shape and y.sort().values.flatten().sum() == x.sum()
    back = " -> ".join(reversed(pattern.split(" -> ")))
    if "..." not in pattern:
        assert umbra.equal(umbra.func.rearrange(y, back, **(lengths or {"h": 4})), x)


@pytest.mark.parametrize("pattern, text", [
    ("b c -> b c", "must be equal to the number of dimensions in the tensor"), ("a b c d -> a b c", "Identifiers only on one side"),
    ("a b c d", "single '->'"), ("a b c d -> a b c d d", "duplicate dimension 'd'"), ("a (b e) c d -> a b c d e", "Could not infer")])
def test_patterns_that_do_not_fit_are_refused(pattern, text):
    with pytest.raises(ValueError, match=text):
        umbra.func.rearrange(umbra.ones(2, 3, 4, 5), pattern)
