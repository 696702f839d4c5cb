"""scan and associative_scan: what they give, refuse and record."""
import pytest

import umbra
from umbra import tensor
from umbra._higher_order_ops import associative_scan, scan
from umbra.fx.experimental.proxy_tensor import make_fx


def test_scan_has_one_gradient_eager_and_compiled():
    from umbra._functorch.aot_autograd import aot_function
    w = tensor([2., -1.], requires_grad=True)

    def f(c, x):
        last, ys = scan(lambda c, x: (c * w + x, (c * x).sin()), c, x)
        return last.sum() * 2 + (ys * ys).sum()
    compiled = aot_function(f, lambda graph, _: graph)
    seen = []
    for function in (f, compiled):
        c, x = tensor([1., 2.], requires_grad=True), umbra.arange(6.).view(3, 2).requires_grad_()
        y = function(c, x)
        seen.append([y.item(), *(g.tolist() for g in umbra.autograd.grad(y, (c, x, w)))])
    assert seen[0][0] == pytest.approx(seen[1][0])
    for a, b in zip(seen[0][1:], seen[1][1:]):
        assert umbra.allclose(tensor(a), tensor(b))


def test_scan_along_another_dimension_and_backwards():
    x = umbra.arange(6.).view(2, 3)
    last, ys = scan(lambda c, row: (c + row, c * 1), umbra.zeros(2), x, dim=1, reverse=True)
    assert last.tolist() == [3., 12.] and ys.tolist() == [[3., 2., 0.], [9., 5., 0.]]
    assert associative_scan(umbra.add, x, 1, combine_mode="generic").tolist() == x.cumsum(1).tolist()
    with pytest.raises(RuntimeError):
        scan(lambda c, row: (umbra.stack([c, row]), c * 1), umbra.zeros(2), x, dim=1)


def test_associative_scan_is_an_operator_of_graphs():
    scan = umbra.ops.higher_order.associative_scan
    graph = make_fx(lambda x: scan(lambda a, b: [a * b], [x], ()))(umbra.ones(3))
    assert "torch.ops.higher_order.associative_scan(associative_scan_combine_graph_0, [x_1], ())" in graph.code
    assert graph(tensor([2., 3., 4.]))[0].tolist() == [2, 6, 24]


def test_scan_may_collect_nothing_and_less_than_its_inputs_have_dimensions():
    x = umbra.arange(6.).view(3, 2)
    total, nothing = scan(lambda c, x: (c + x, None), umbra.zeros(2), x)
    assert total.tolist() == [6, 9] and nothing is None
    assert scan(lambda c, x: (c + x, x.sum()), umbra.zeros(3), x, dim=1)[1].tolist() == [6, 9]
    assert scan(lambda c, x: (c + 1, x.sum(0)), umbra.zeros(()), umbra.ones(3, 2, 4), dim=1)[1].shape == (4, 2)
    assert scan(lambda c, x: (c + 1, x.sum(0)), umbra.zeros(()), umbra.ones(3, 2, 4), dim=-1)[1].shape == (4, 2)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_associative_scan_of_any_length(count):
    x = umbra.arange(float(count)) + 1
    assert umbra.equal(associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic"), x.cumprod(0))


def test_an_associative_scan_of_sizes_that_are_symbols():
    function = lambda x, y: associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, y), 0, combine_mode="generic")  # noqa: E731
    captured = make_fx(function, tracing_mode="symbolic")(umbra.ones(3, 2), umbra.ones(3, 2))
    x, y = umbra.randn(3, 4), umbra.randn(3, 4)
    assert all(umbra.allclose(a, b) for a, b in zip(captured(x, y), (x.cumsum(0), y.cumprod(0))))


def test_scan_over_nothing_gives_its_start_or_counts():
    start = {"a": umbra.ones(2)}
    assert scan(lambda c, x: (c, x), start, []) == (start, []) and scan(lambda c, x: (c, x), start, None) == (start, [])

    def step(carry, x):
        assert x is None
        return {"a": carry["a"] * 2}, carry["a"] + 1
    carry, collected = scan(step, start, None, length=3)
    assert carry["a"].tolist() == [8., 8.] and collected.tolist() == [[2., 2.], [3., 3.], [5., 5.]]
    carry, collected = scan(step, start, [], length=0)
    assert carry["a"].tolist() == [1., 1.] and collected.shape == (0, 2)
    assert scan(step, start, None, length=2, reverse=True)[1].tolist() == [[3., 3.], [2., 2.]]
    module = make_fx(lambda a: scan(step, {"a": a}, None, length=3)[0]["a"])(umbra.ones(2))
    assert module(umbra.full((2,), 3.)).tolist() == [24., 24.]


@pytest.mark.parametrize("length", [-1, True, 1.5, "a"])
def test_scan_refuses_what_is_no_length(length):
    with pytest.raises(RuntimeError, match="length must be a non-negative integer"):
        scan(lambda c, x: (c, x), umbra.ones(2), None, length=length)


def test_scan_compares_its_length_with_the_rows():
    xs = umbra.arange(6.).view(3, 2)
    assert scan(lambda c, x: (c + x, c * 2), umbra.zeros(2), xs, length=3)[0].tolist() == [6., 9.]
    with pytest.raises(RuntimeError, match="length=4 does not match xs size along dim=0: 3"):
        scan(lambda c, x: (c + x, c * 2), umbra.zeros(2), xs, length=4)
