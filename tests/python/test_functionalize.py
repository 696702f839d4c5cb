"""Writes taken out of a program: what is refused with data is refused then too, and outputs have the size that they were given."""
import pytest

import umbra as torch
from umbra.func import functionalize
from umbra.functorch.compile import aot_function, nop
from umbra.fx.experimental.proxy_tensor import make_fx

WAYS = {"functionalize": functionalize, "aot": lambda f: aot_function(f, nop), "make_fx": lambda f: lambda *args: make_fx(functionalize(f))(*args)(*args)}


def outcome(function, *inputs):
    try:
        return function(*[t.clone() for t in inputs]).tolist()
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("function,inputs", [
    (lambda x, y: x.clone().add_(y), (torch.ones(3), torch.ones(2, 3))),
    (lambda x, y: x.clone().add_(y), (torch.ones(3, dtype=torch.int64), torch.ones(3))),
    (lambda x: x.clone().div_(2), (torch.ones(3, dtype=torch.int32),)),
    (lambda x: x.clone().abs_(), (torch.ones(3, dtype=torch.complex64),)),
    (lambda x: x.clone().expand(3, 2).add_(1), (torch.ones(2),)),
    (lambda x: x.clone()[1:].add_(x.clone()[:-1]), (torch.ones(3),)),
    (lambda x: (lambda y: y[1:].add_(y[:-1]))(x.clone()), (torch.ones(3),)),
    (lambda x: torch.add(x, 0.5, out=torch.zeros(3, dtype=torch.int64)), (torch.ones(3),)),
    (lambda x: torch.mm(x, x, out=torch.zeros(2, 2, dtype=torch.float64)), (torch.ones(2, 2),)),
    (lambda x: (lambda o: torch.sum(o, 0, out=o))(x.clone()), (torch.ones(3),)),
    (lambda x: x.clone().expand(3, 2).zero_(), (torch.ones(2),)),
])
def test_the_checks_of_writes_are_kept(way, function, inputs):
    assert outcome(way(function), *inputs) == outcome(function, *inputs)


@pytest.mark.parametrize("way", [WAYS["functionalize"], WAYS["aot"]])
@pytest.mark.parametrize("size", [(0,), (5,), (1, 1)])
def test_an_output_of_another_size_gets_the_size_of_the_result(way, size):
    seen = []

    def inside(x):
        out = torch.zeros(size)
        result = torch.mul(x, 3, out=out)
        seen.append((out.shape, out.stride(), result is out))
        return out.t() + 1
    assert way(inside)(torch.ones(2, 3)).tolist() == [[4.0, 4.0]] * 3
    assert set(seen) == {((2, 3), (3, 1), True)}
    out = torch.zeros(size)
    way(lambda x, out: torch.mul(x, 3, out=out))(torch.ones(2, 3), out)
    assert out.shape == (2, 3) and out.tolist() == [[3.0] * 3] * 2


def test_a_part_that_would_have_to_grow_is_refused():
    def function(x):
        return torch.mul(x, 3, out=torch.zeros(4)[1:3])
    with pytest.raises(NotImplementedError, match="cannot be captured"):
        functionalize(function)(torch.ones(3))

    def stale(x):
        out = torch.zeros(2)
        view = out.view(2)
        torch.mul(x, 3, out=out)
        return view + 1
    with pytest.raises(NotImplementedError, match="cannot be captured"):
        functionalize(stale)(torch.ones(3))


def test_elements_that_share_memory_get_one_value():
    def function(x):
        y = x * 1
        y.expand(3, 2).fill_(5)
        return y
    assert functionalize(function)(torch.ones(2)).tolist() == [5.0, 5.0]
    x = torch.ones(2)
    functionalize(lambda x: x.zero_())(x.expand(3, 2))
    assert x.tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="cannot be captured"):
        functionalize(lambda x: x.masked_fill_(torch.tensor([[True, False], [False, True]]), 7.0))(torch.ones(1, 2).expand(2, 2))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("write", [
    lambda y: y.expand(2, 4).diagonal().add_(10), lambda y: y.expand(2, 4)[1].add_(10), lambda y: y.expand(4, 4)[1:3].fill_(7), lambda y: y.expand(4, 4)[1:3, 1:].fill_(7),
    lambda y: y.view(-1, 1, 1).expand(-1, 2, 3)[:, 1].select(1, 2).mul_(3), lambda y: y.expand(2, 4).t()[1:, 1].mul_(3), lambda y: y.unfold(0, 2, 1)[::2].add_(10),
    lambda y: y.as_strided((2, 2), (0, 1))[1].add_(10), lambda y: y.expand(2, 4)[1].view(torch.int32).fill_(0), lambda y: y.expand(1, 4)[0].add_(10),
], ids=["diagonal", "row", "rows", "part of rows", "one of many", "column", "windows", "strides", "bits", "itself"])
def test_a_part_of_a_tensor_that_shows_elements_several_times_is_written(way, write):
    def function(x):
        y = x * 1
        write(y)
        return y
    x = torch.tensor([1., float("inf"), 3., 4.])
    assert way(function)(x).tolist() == function(x).tolist()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("view", [lambda y: y.unfold(0, 2, 1), lambda y: y.unfold(0, 2, 1).flatten(1), lambda y: y.as_strided((2, 2), (1, 1))], ids=["windows", "flat", "strides"])
def test_a_write_to_elements_that_overlap_is_refused(way, view):
    def function(x):
        y = x * 1
        view(y).mul_(2)
        return y
    with pytest.raises(NotImplementedError, match="share memory"):
        way(function)(torch.ones(4))


def test_views_of_what_was_written_show_it_where_it_lies():
    def function(x):
        x.mul_(2)
        x.transpose(0, 1).masked_fill_(x.t() > 6, -1)
        return x.view(-1), x.as_strided((3,), (1,), x.storage_offset() + 1), x[1:].as_strided((2,), (2,), x.storage_offset())
    base = torch.arange(12.0)
    for x in (base[:6].view(2, 3), base[3:9].view(2, 3)):
        expected = [t.tolist() for t in function(x.clone())] if x.storage_offset() == 0 else None
        given = base.clone()[x.storage_offset():x.storage_offset() + 6].view(2, 3)
        again = base.clone()[x.storage_offset():x.storage_offset() + 6].view(2, 3)
        got = [t.tolist() for t in functionalize(function)(given)]
        assert got == [t.tolist() for t in function(again)]
        assert expected is None or got == expected
        assert given.tolist() == again.tolist()


def test_memory_around_a_written_part_stays_in_sight():
    def function(x):
        x.mul_(2)
        return x.as_strided((4,), (1,), 1) + 0
    one, two = torch.arange(6.0), torch.arange(6.0)
    assert functionalize(function)(one[2:4]).tolist() == function(two[2:4]).tolist() == [1.0, 4.0, 6.0, 4.0]


def test_a_write_to_memory_around_a_tensor_is_refused():
    def around(x):
        return x.as_strided((4,), (1,), 1).mul_(2)

    def inside(x):
        return x.as_strided((2,), (2,), 1).mul_(2)
    with pytest.raises(NotImplementedError, match="cannot be captured"):
        functionalize(around)(torch.arange(6.0)[2:4])
    with pytest.raises(NotImplementedError, match="cannot be captured"):
        functionalize(around)(torch.arange(6.0)[1::2])
    base = torch.arange(6.0)
    assert functionalize(inside)(base[1::2]).tolist() == [2.0, 6.0] and base.tolist() == [0.0, 2.0, 2.0, 6.0, 4.0, 5.0]
    functionalize(around)(base)


def test_one_tensor_given_twice_is_one():
    def function(x, y):
        x.mul_(2)
        return x + y
    x = torch.ones(2)
    assert functionalize(function)(x, x).tolist() == [4.0, 4.0]
    with pytest.raises(NotImplementedError, match="shares memory"):
        functionalize(function)(x, x.view(2))


def test_resize_to_the_same_size_keeps_elements_that_share_memory():
    x = torch.zeros(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element"):
        x.clone().as_strided_((3,), (0,)).resize_(3).normal_()
    with pytest.raises(RuntimeError, match="share memory|more than one element"):
        functionalize(lambda x: x.resize_(3).normal_())(x)


def test_an_output_that_grew_and_was_turned_has_both():
    def run(a, u, s, v):
        return torch.svd(a, out=(u, s, v))
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    eager, captured = ([torch.empty(0) for _ in range(3)] for _ in range(2))
    run(a, *eager)
    functionalize(run)(a, *captured)
    for e, c in zip(eager, captured):
        torch.testing.assert_close(c, e)


def test_views_become_copies():
    def f(x):
        y = x.clone()
        y[0].add_(1)
        return y.t()
    gm = make_fx(functionalize(f, remove="mutations_and_views"))(torch.ones(2, 3))
    calls = [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]
    assert calls[:4] == ["aten.clone.default", "aten.select_copy.int", "aten.add.Tensor", "aten.select_scatter.default"] and calls[-1] == "aten.t_copy.default"
    assert torch.equal(gm(torch.ones(2, 3)), f(torch.ones(2, 3)))


def test_nothing_that_is_left_shares_memory():
    def f(x):
        return x.view(-1), x[0], x.split(1)[1]
    x = torch.arange(4.0).reshape(2, 2)
    for result in functionalize(f, remove="mutations_and_views")(x):
        assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_inputs_are_written_through_views_that_became_copies():
    def f(x):
        a, b = x.split(1)
        a.add_(b)
        return x.t()
    x = torch.ones(2, 2)
    result = functionalize(f, remove="mutations_and_views")(x)
    assert x.tolist() == [[2, 2], [1, 1]] and result.tolist() == [[2, 1], [2, 1]]


def test_an_input_that_gets_another_tensors_memory_gets_its_contents():
    def replace(x, y):
        x.set_(y)
        x.add_(1)
        return y * 2
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    assert torch.func.functionalize(replace)(x, y).tolist() == [[4.0] * 3] * 2
    assert x.tolist() == y.tolist() == [[2.0] * 3] * 2

    def of_another_size(x):
        x.set_(torch.arange(8.0)[1:4])
        return x * 2
    x = torch.zeros(2, 3)
    assert torch.func.functionalize(of_another_size)(x).tolist() == [2, 4, 6] and x.tolist() == [1, 2, 3]
    module = make_fx(functionalize(of_another_size))(torch.zeros(2, 3))
    x = torch.zeros(2, 3)
    assert module(x).tolist() == [2, 4, 6] and x.tolist() == [1, 2, 3]


def test_an_input_that_an_output_resizes_is_resized_by_the_graph():
    def double(a, b):
        torch.mul(b, 2, out=a)
        return a + 1
    graph = make_fx(torch.func.functionalize(double))(torch.ones(2), torch.ones(3))
    assert [n.target for n in graph.graph.nodes if n.op == "call_function"][-2:] == [torch.ops.aten.resize_.default, torch.ops.aten.copy_.default]
    a = torch.ones(2)
    assert graph(a, torch.ones(3)).tolist() == [3.0] * 3 and a.tolist() == [2.0] * 3


def test_an_exported_input_keeps_the_shape_it_was_given_with():
    class Doubles(torch.nn.Module):
        def forward(self, a, b):
            torch.mul(b, 2, out=a)
            return a + 1
    program = torch.export.export(Doubles(), (torch.ones(2), torch.ones(3)))
    assert [tuple(n.meta["val"].shape) for n in program.graph.nodes if n.op == "placeholder"] == [(2,), (3,)]
    a = torch.ones(2)
    assert program.module()(a, torch.ones(3)).tolist() == [3.0] * 3 and a.tolist() == [2.0] * 3
    with pytest.raises(NotImplementedError, match=r"changes the shape of its input a from \[2\] to \[3\]"):
        program.run_decompositions()


@pytest.mark.parametrize("way", [*WAYS.values(), torch.func.vmap, torch.func.grad])
def test_the_storage_of_a_wrapper_is_not_resized(way):
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match=r"resize_\(\) on an invalid python storage"):
        way(lambda x: (x.untyped_storage().resize_(0), x.sum())[1])(x)
    assert x.untyped_storage().nbytes() == 36
