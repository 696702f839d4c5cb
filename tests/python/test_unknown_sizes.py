"""Sizes that only the run tells: operators take them as they are, and what they rely on becomes an assertion."""
import pytest

import umbra
import umbra.nn.functional as F
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv


def rows(function):
    """The shapes of what a function gives for (u0, 3)."""
    with FakeTensorMode(shape_env=ShapeEnv()):
        result = function(umbra.empty(10, 3)[umbra.empty(10, dtype=umbra.bool)])
    return [", ".join(map(str, t.shape)) for t in (result if isinstance(result, (tuple, list)) else [result])]


@pytest.mark.parametrize("function, shape", [
    (lambda x: umbra.cat([x, umbra.ones(2, 3)], 1), "2, 6"), (lambda x: umbra.ones(2, 5) @ x, "2, 3"),
    (lambda x: umbra.mv(x.t(), umbra.ones(6)), "3"), (lambda x: umbra.dot(x[:, 0], umbra.ones(5)), ""),
    (lambda x: x.expand(5, 3), "5, 3"), (lambda x: x.topk(2, 0).values, "2, 3"), (lambda x: x.quantile(0.5), ""),
    (lambda x: x.diagonal(), "Min(3, u0)"), (lambda x: umbra.eye(x.shape[0]), "u0, u0"), (lambda x: x[:, 0].diag(), "u0, u0"),
    (lambda x: F.avg_pool1d(x.t(), 2), "3, (u0//2)"), (lambda x: x[:, 0].unfold(0, 2, 1), "u0 - 1, 2"),
    (lambda x: F.one_hot(x[:, 0].long(), 5), "u0, 5"), (lambda x: F.cross_entropy(x, umbra.zeros(7, dtype=umbra.int64)), ""),
    (lambda x: umbra.combinations(x[:, 0]), "((u0*(u0 - 1))//2), 2"),
    (lambda x: x[1:], "u0 - Min(1, u0), 3"), (lambda x: x[:2], "Min(2, u0), 3"), (lambda x: x[:-1], "Max(0, u0 - 1), 3"),
    (lambda x: x[2:5], "Max(0, -Min(2, u0) + Min(5, u0)), 3"), (lambda x: x[::2], "((u0 + 1)//2), 3"), (lambda x: x[-2:], "Max(0, u0 - Max(0, u0 - 2)), 3"),
])
def test_operators_take_them(function, shape):
    assert rows(function) == [shape]


def stored(kept):
    out = umbra.zeros(4)
    out[0:kept.shape[0]] = kept
    return out


@pytest.mark.parametrize("function", [
    stored, lambda kept: umbra.broadcast_tensors(kept, umbra.ones(2, 1)), lambda kept: list(umbra.broadcast_shapes(kept.shape, (2, 1), (1,))),
    lambda kept: umbra.ones(umbra.broadcast_shapes(kept.shape, kept.shape)),
])
def test_unknown_sizes_are_broadcast_and_assigned(function):
    graph = make_fx(lambda x: function(x[x > 0]), tracing_mode="symbolic")(umbra.tensor([1.0, -1.0, 2.0, 3.0]))
    for data in ([-1.0, -1.0], [5.0, -1.0], [1.0, 2.0, 3.0, 4.0]):
        x = umbra.tensor(data)
        for result, expected in zip(graph(x), function(x[x > 0])):
            assert umbra.equal(result, expected) if isinstance(expected, umbra.Tensor) else result == expected


def test_what_an_operator_relies_on_is_asserted_when_the_program_runs():
    def f(x):
        kept = x[x > 0]
        return kept @ umbra.arange(3.0), kept.expand(3)
    graph = make_fx(f, tracing_mode="symbolic")(umbra.tensor([1.0, -1.0, 2.0, 3.0]))
    value, _ = graph(umbra.tensor([-1.0, 4.0, 5.0, 6.0]))
    assert value == 17
    with pytest.raises(RuntimeError):
        graph(umbra.tensor([-1.0, -4.0, 5.0, 6.0]))


@pytest.mark.parametrize("function", [
    lambda a, b: umbra.stack([a, b]), lambda a, b: umbra.zeros(7).scatter_add(0, a.long(), b), lambda a, b: umbra.zeros(7).index_add(0, a.long(), b),
    lambda a, b: umbra.zeros(7).index_copy(0, a.long(), b), lambda a, b: umbra.zeros(7).index_put((a.long(),), b), lambda a, b: a[b > 2],
    lambda a, b: F.scaled_dot_product_attention(*(t.view(1, 1, -1, 1) for t in (a, a, b))), lambda a, b: umbra.linalg.solve(umbra.eye(a.shape[0]), b),
    lambda a, b: a.slice_scatter(b[1:], 0, 1), lambda a, b: umbra.bincount(a.long(), b)])
def test_two_of_them_that_have_to_be_equal_are_compared_by_the_run(function):
    def f(x, y):
        return function(x[x > 0], y[y > 0])
    graph = make_fx(f, tracing_mode="symbolic")(umbra.tensor([1.0, -1, 2, 3]), umbra.tensor([-1.0, 1, 2, 4]))
    for one, other in (([1.0, -1, -2, 3], [2.0, 4, -1, -1]), ([1.0, 2, 5, 3], [2.0, 4, 1, 3])):
        assert umbra.allclose(graph(umbra.tensor(one), umbra.tensor(other)), f(umbra.tensor(one), umbra.tensor(other)))
    with pytest.raises((RuntimeError, IndexError)):
        graph(umbra.tensor([1.0, 2, 5, 3]), umbra.tensor([2.0, 4, -1, -3]))


@pytest.mark.parametrize("function", [lambda a: F.interpolate(a.view(1, 1, -1), scale_factor=2), lambda a: a.kthvalue(1).values,
                                      lambda a: F.pad(a.view(1, 1, -1), (1, 1), mode="reflect")])
def test_what_has_to_be_large_enough_is_measured_by_the_run(function):
    graph = make_fx(lambda x: function(x[x > 0]), tracing_mode="symbolic")(umbra.tensor([1.0, -1, 2, 3]))
    x = umbra.tensor([4.0, 5, -1, 2])
    assert graph(x).tolist() == function(x[x > 0]).tolist()
    with pytest.raises((RuntimeError, IndexError)):
        graph(umbra.tensor([-1.0, -1, -1, -1]))


@pytest.mark.parametrize("values", [[1.0, 2, 3, 4], [-1.0, -2, -3, -4], [5.0, -1, -1, -1]])
def test_slices_are_right_for_every_number_of_rows(values):
    def f(x):
        kept = x[x > 0]
        return kept[1:], kept[:2], kept[:-1], kept[2:5], kept[::2], kept[-2:], kept[1:2]
    graph = make_fx(f, tracing_mode="symbolic")(umbra.tensor([1.0, -1.0, 2.0, 3.0]))
    x = umbra.tensor(values)
    for got, expected in zip(graph(x), f(x)):
        assert got.tolist() == expected.tolist()


def test_real_tensors_that_are_carried_answer_questions():
    with umbra._functorch.config.patch(fake_tensor_propagate_real_tensors=True):
        mode = FakeTensorMode(shape_env=ShapeEnv())
        x = mode.from_tensor(umbra.tensor([1.0, -2, 3, 4]))
        with mode:
            kept = x[x > 0]
            n, first = kept.shape[0], x[0].int().item()
            assert isinstance(n, umbra.SymInt) and n > 2 and not n > 5 and n == 3 and first == 1
            assert umbra.zeros(n).real_tensor.shape == (3,)
    with FakeTensorMode(shape_env=ShapeEnv()):
        x = umbra.empty(4)
        with pytest.raises(GuardOnDataDependentSymNode):
            bool(x[x > 0].shape[0] > 2)


def test_three_sequences_of_any_length_are_padded():
    from umbra.export import Dim, export

    class Pad(umbra.nn.Module):
        def forward(self, a, b, c):
            return umbra.nn.utils.rnn.pad_sequence([a, b, c])
    program = export(Pad(), (umbra.ones(3), umbra.ones(5), umbra.ones(4)), dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}, {0: Dim("c")}))
    inputs = umbra.ones(7), umbra.ones(2), umbra.ones(6)
    assert umbra.equal(program.module()(*inputs), Pad()(*inputs))


def test_a_program_that_asks_for_contiguity_is_told_or_refused():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        n = mode.shape_env.create_unbacked_symint()
        umbra._check(n >= 0)
        x = umbra.empty(n, 3)
        assert x.is_contiguous() and x[1:].is_contiguous() and x.t().contiguous().is_contiguous() and umbra.empty(n, n).is_contiguous()
        for open_question in (x.t(), x[:, :2]):
            with pytest.raises(GuardOnDataDependentSymNode):
                open_question.is_contiguous()
        with pytest.raises(GuardOnDataDependentSymNode):
            x.t().view(-1)
        umbra._check(n >= 2)
        assert not x.t().is_contiguous()
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            x.t().view(-1)


def test_every_call_of_a_program_has_a_value_that_of_assertions_is_none():
    class Masked(umbra.nn.Module):
        def forward(self, x):
            return x[x > 0].reshape(-1, 1)
    nodes = [node for node in umbra.export.export(Masked(), (umbra.ones(4),)).graph.nodes if node.op == "call_function"]
    assert all("val" in node.meta for node in nodes)
    assert {node.meta["val"] for node in nodes if node.target is umbra.ops.aten._assert_scalar.default} == {None}


def test_nodes_say_which_symbols_they_are_the_first_to_have():
    def f(x):
        places = x.nonzero()
        return places * 2, places.shape[0] + 1, x.unique(), x.sum().item()
    graph = make_fx(f, tracing_mode="symbolic")(umbra.ones(4)).graph
    bindings = {node.name: {str(name): "".join(map(str, path)) for name, path in node.meta["unbacked_bindings"].items()}
                for node in graph.nodes if "unbacked_bindings" in node.meta}
    assert bindings == {"nonzero": {"u0": ".size()[0]"}, "_unique2": {"u1": "[0].size()[0]"}, "_local_scalar_dense": {"zuf0": ""}}
    places = next(node for node in graph.nodes if node.name == "nonzero")
    assert "unbacked_bindings" in list(places.meta) and next(iter(graph.nodes)).meta.get("unbacked_bindings") is None


def test_what_a_call_gives_when_it_is_run_again_has_the_symbols_of_its_node():
    from umbra.fx.experimental.symbolic_shapes import rebind_unbacked, resolve_unbacked_bindings, statically_known_true
    graph = make_fx(lambda x: x.nonzero(), tracing_mode="symbolic")(umbra.ones(4)).graph
    node = next(node for node in graph.nodes if node.name == "nonzero")
    mode = node.meta["val"].fake_mode
    with mode:
        again = umbra.empty(4).nonzero()
    assert not statically_known_true(again.shape[0] == node.meta["val"].shape[0])
    rebind_unbacked(mode.shape_env, node, again)
    assert statically_known_true(again.shape[0] == node.meta["val"].shape[0])
    assert resolve_unbacked_bindings(mode.shape_env, node.meta["unbacked_bindings"]) == node.meta["unbacked_bindings"]


def test_a_fresh_size_is_told_by_the_run():
    graph = make_fx(lambda x: x.new_zeros(umbra.sym_fresh_size(x.shape[0])), tracing_mode="symbolic")(umbra.ones(4))
    assert graph(umbra.ones(4)).shape == (4,) and graph(umbra.ones(7)).shape == (7,) and umbra.sym_fresh_size(3) == 3


def test_outputs_get_the_sizes_that_only_the_run_tells():
    def unique(values, inverse, counts):
        return umbra.ops.aten._unique2.out(umbra.empty(5), True, True, True, out0=values, out1=inverse, out2=counts)
    def integers():
        return umbra.empty(0, dtype=umbra.int64)
    with FakeTensorMode(shape_env=ShapeEnv()):
        out = umbra.empty(0)
        values, inverse, counts = unique(out, integers(), integers())
        assert values is out and str(out.shape[0]) == "u0" and inverse.shape == (5,) and str(counts.shape[0]) == "u0"
        assert str(umbra.empty(3).resize_(out.shape[0]).shape[0]) == "u0"
    with FakeTensorMode():
        assert unique(umbra.empty(0), integers(), integers())[0].shape == (0,)


def test_identity_of_an_unknown_size():
    with FakeTensorMode(shape_env=ShapeEnv()):
        made = umbra.eye(umbra.ones(3).long().sum().item())
    assert [str(s) for s in made.shape] == ["u0", "u0"]


def test_lengths_of_parts_are_one_division():
    traced = make_fx(lambda x: x.chunk(2, 1), tracing_mode="symbolic")(umbra.ones(2, 4))
    assert "add = sym_size_int + 1" in traced.code and "floordiv = add // 2" in traced.code


def test_narrow_from_a_place_that_the_run_tells():
    class Window(umbra.nn.Module):
        def forward(self, x, start):
            return x.narrow(0, start.item(), 2)
    x = umbra.arange(5.0)
    program = umbra.export.export(Window(), (x, umbra.tensor(1)))
    for form in (program, program.run_decompositions()):
        module = form.module()
        for start in range(-5, 4):
            if start not in (-1, 4):
                assert umbra.equal(module(x, umbra.tensor(start)), x.narrow(0, start, 2))
        for start in (-6, -1, 4, 5):
            with pytest.raises(RuntimeError):
                module(x, umbra.tensor(start))


def test_a_check_of_all_elements_is_made_when_the_program_runs():
    class Checked(umbra.nn.Module):
        def forward(self, x):
            umbra._check_tensor_all(x > 0)
            return x * 2
    module = umbra.export.export(Checked(), (umbra.ones(2),)).module()
    assert module(umbra.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        module(-umbra.ones(2))


class Of(umbra.nn.Module):
    """function(n.item())"""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, n):
        return self.function(n.item())


@pytest.mark.parametrize("function, refused", [
    (lambda n: F.pad(umbra.ones(2), (n, 1)), (-4,)), (lambda n: F.pad(umbra.ones(2, 3), (0, -n)), (4,)), (lambda n: umbra.ones(3).topk(n), (-1, 4)),
    (lambda n: umbra.randperm(n).sum(), (-1,)), (lambda n: umbra.randint(n + 1, (2,)).shape[0], (-1,)), (lambda n: umbra.arange(0, 10, n), (0, -1)),
    (lambda n: umbra.ones(2, n, 3) @ umbra.ones(3, 4), (-1,)), (lambda n: umbra.ones(12).reshape(-1, n), (0, 5)),
], ids=["pad", "crop", "topk", "randperm", "randint", "arange", "matmul", "reshape"])
def test_what_operators_rely_on_is_checked_when_the_program_runs(function, refused):
    program = umbra.export.export(Of(function), (umbra.tensor(3),)).module()
    for n in (1, 2, 3):
        umbra.manual_seed(0)
        found = program(umbra.tensor(n))
        umbra.manual_seed(0)
        umbra.testing.assert_close(found, function(n))
    for n in refused:
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            program(umbra.tensor(n))


def test_captured_classes_are_checked():
    graph = make_fx(lambda x: F.one_hot(x, 3), tracing_mode="symbolic")(umbra.tensor([0, 2]))
    compiled = umbra.compile(lambda x: F.one_hot(x, 3), backend="aot_eager")
    mapped = umbra.vmap(lambda x: F.one_hot(x, 3))
    for function in (graph, compiled, mapped):
        assert function(umbra.tensor([1, 2])).tolist() == [[0, 1, 0], [0, 0, 1]]
        assert function(umbra.tensor([], dtype=umbra.int64)).shape == (0, 3)
        for wrong, message in (([0, 3], "smaller than num_classes"), ([-1, 0], "non-negative")):
            with pytest.raises(RuntimeError, match=message):
                function(umbra.tensor(wrong))
