"""Operators that take functions: cond, while_loop, map; eager, captured, exported, under modes."""
import operator

import pytest

import umbra
from call_log import CallLog
from export_functions import Function
from umbra import tensor
from umbra._higher_order_ops import associative_scan, cond, map, scan, while_loop
from umbra.functorch.compile import aot_function, nop
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.utils import _pytree as pytree


def double_until(x, limit):
    return while_loop(lambda i, x: x.sum() < limit, lambda i, x: (i + 1, x * 2), (tensor(0), x))


def test_while_loop_is_exported_with_what_it_closes_over():
    class Model(umbra.nn.Module):
        def forward(self, x, limit):
            return double_until(x, limit)
    module = umbra.export.export(Model(), (tensor([1.]), tensor(10.))).module()
    for x, limit in ((1., 100.), (5., 3.)):
        expected = double_until(tensor([x]), tensor(limit))
        assert [t.tolist() for t in module(tensor([x]), tensor(limit))] == [t.tolist() for t in expected]


def test_while_loop_is_saved_and_read(tmp_path):
    class Model(umbra.nn.Module):
        def forward(self, x, limit):
            return double_until(x, limit)
    umbra.export.save(umbra.export.export(Model(), (tensor([1.]), tensor(10.))), tmp_path / "loop.pt2")
    module = umbra.export.load(tmp_path / "loop.pt2").module()
    assert module(tensor([3.]), tensor(20.))[1].tolist() == [24.]


def test_a_relation_of_sizes_is_decided_in_each_run():
    class Model(umbra.nn.Module):
        def forward(self, x):
            return cond(x.shape[0] > 3, lambda x: x.sin(), lambda x: x.cos(), (x,))
    module = umbra.export.export(Model(), (umbra.ones(4),), dynamic_shapes=({0: umbra.export.Dim.DYNAMIC},)).module()
    assert umbra.equal(module(umbra.ones(5)), umbra.ones(5).sin()) and umbra.equal(module(umbra.ones(2)), umbra.ones(2).cos())


def test_every_tensor_a_branch_may_use_has_a_gradient():
    w, b = tensor([2.], requires_grad=True), tensor([7.], requires_grad=True)
    cond(tensor(True), lambda x: x * w, lambda x: x + b, (tensor([3.]),)).sum().backward()
    assert w.grad.item() == 3 and b.grad.item() == 0


def test_map_gives_a_tree_and_is_captured():
    def f(x, y):
        return map(lambda row, y: {"s": row.sin() + y, "p": row.sum()}, x, y)
    graph = make_fx(f)(umbra.ones(3, 2), tensor([1., 2.]))
    x = umbra.arange(6.).view(3, 2)
    assert umbra.equal(graph(x, tensor([10., 20.]))["s"], x.sin() + tensor([10., 20.]))


def test_a_mode_says_that_it_knows_operators_that_take_functions():
    class Knows(CallLog):
        supports_higher_order_operators = True
    x = tensor([1.])
    with CallLog() as log, pytest.raises(NotImplementedError, match="cond"):
        cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    assert log.seen == ["aten.sum.default", "aten.gt.Scalar"]
    predicate = tensor(True)
    with Knows() as log:
        y = cond(predicate, lambda x: x.sin(), lambda x: x.cos(), (x,))
    assert umbra.equal(y, x.sin()) and log.seen == ["cond"]


def test_a_checkpoint_computes_again_with_the_same_random_numbers():
    from umbra.utils.checkpoint import CheckpointError, checkpoint
    seen = []

    def f(x):
        seen.append(umbra.rand(4))
        return (x * seen[-1]).sin()
    x = umbra.ones(4, requires_grad=True)
    checkpoint(f, x, use_reentrant=False).sum().backward()
    assert umbra.equal(seen[0], seen[1]) and umbra.allclose(x.grad, seen[0] * seen[0].cos())
    calls = []

    def other(x):
        calls.append(1)
        return x.sin().cos() if len(calls) == 1 else x.sin()
    with pytest.raises(CheckpointError, match="different number of tensors"):
        checkpoint(other, x, use_reentrant=False).sum().backward()


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_has_the_gradient_of_what_it_closes_over(reentrant):
    from umbra.utils.checkpoint import checkpoint
    x, w = tensor([1., 2.], requires_grad=True), tensor([3.], requires_grad=True)
    checkpoint(lambda x: (x * w).sin(), x, use_reentrant=reentrant).sum().backward()
    assert umbra.allclose(x.grad, 3 * (x * 3).cos()) and umbra.allclose(w.grad, (x * (x * 3).cos()).sum())


def test_what_a_nested_function_closes_over_has_its_gradient():
    from umbra._functorch.aot_autograd import aot_function
    from umbra._higher_order_ops import scan
    functions = [
        lambda x, w: map(lambda a: cond(a.sum() > 0, lambda a: a * w, lambda a: a.sin(), (a,)), x),
        lambda x, w: cond(x.sum() > -9, lambda a: cond(a.sum() > -9, lambda b: b * w, lambda b: b.sin(), (a,)), lambda a: a * 1, (x,)),
        lambda x, w: map(lambda a: map(lambda b: (b * w).sum(), a.unsqueeze(0)), x),
        lambda x, w: scan(lambda c, a: (cond(a.sum() > 0, lambda c, a: c + a * w, lambda c, a: c - a, (c, a)), c * w), umbra.zeros(2), x)[1],
    ]
    for function in functions:
        seen = []
        for run in (function, aot_function(function, lambda graph, _: graph)):
            x, w = umbra.arange(1., 7.).view(3, 2).sin().requires_grad_(), tensor([0.8, 0.9], requires_grad=True)
            seen.append(umbra.autograd.grad(run(x, w).sum(), (x, w)))
        assert all(umbra.allclose(a, b) for a, b in zip(*seen)) and seen[0][1].abs().sum() > 0


def test_a_result_requires_gradients_whichever_branch_ran():
    w = umbra.ones(2, requires_grad=True)
    y = cond(tensor(False), lambda x: x * w, lambda x: x * 1, (umbra.ones(2),))
    y.sum().backward()
    assert y.requires_grad and w.grad.tolist() == [0., 0.]


# ---- what only the run tells ----

class Module(umbra.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def exported(function, *args, **options):
    return umbra.export.export(Module(function), args, **options)


def test_branches_of_different_sizes_give_a_size_that_the_run_tells():
    def f(x):
        y = cond(x.sum() > 0, lambda x: x[:1] * 2, lambda x: x * 1, (x,))
        return y + 1, y.shape[0]
    x = tensor([[1., 2.], [3., 4.]])
    program = exported(f, x)
    assert "u0: VR[1, 2]" in str(program)
    graph = make_fx(f, tracing_mode="symbolic")(x)
    for given in (x, -x):
        expected = f(given)
        for result in (program.module()(given), graph(given)):
            assert umbra.equal(result[0], expected[0]) and result[1] == expected[1]


def test_branches_that_give_different_ints_give_one_that_the_run_tells():
    def f(x):
        y, n = cond(x.sum() > 0, lambda x: (x * 2, 3), lambda x: (x * 1, 4), (x,))
        return y + n
    program = exported(f, tensor([1., 2.]))
    for x in (tensor([1., 2.]), tensor([-1., -2.])):
        assert umbra.equal(program.module()(x), f(x))
    captured = make_fx(f, tracing_mode="fake")(tensor([1., 2.]))
    assert umbra.equal(captured(tensor([-1., -2.])), f(tensor([-1., -2.])))
    with pytest.raises(Exception, match="give another number"):  # it would be that of the example for good
        make_fx(f)(tensor([1., 2.]))


def test_the_gradient_of_branches_of_different_sizes_is_refused_when_captured():
    from umbra._functorch.aot_autograd import aot_function
    compiled = aot_function(lambda x: cond(x.sum() > 0, lambda x: x[:1] * 2, lambda x: x * 1, (x,)), lambda graph, _: graph, dynamic=True)
    with pytest.raises(NotImplementedError, match="different sizes"):
        compiled(umbra.ones(3, requires_grad=True))
    assert compiled(-umbra.ones(3)).tolist() == [-1, -1, -1] and compiled(umbra.ones(4)).tolist() == [2]


def test_an_int_is_carried():
    def f(x, n):
        i, y = while_loop(lambda i, y: i < n, lambda i, y: (i + 2, y * i), (1, x))
        return y + i, i
    x = tensor([1., 2.])
    assert f(x, 5)[1] == 5 and f(x, 0)[1] == 1
    program = exported(lambda x: f(x, 5), x)
    graph = make_fx(lambda x: f(x, 6), tracing_mode="symbolic")(x)
    for result, expected in ((program.module()(x), f(x, 5)), (graph(umbra.ones(3)), f(umbra.ones(3), 6))):
        assert umbra.equal(result[0], expected[0]) and result[1] == expected[1]
    with pytest.raises(NotImplementedError, match="symbolic"):
        make_fx(lambda x: f(x, 6))(x)


def test_what_is_carried_stays_of_its_kind():
    x = tensor([1.])
    with pytest.raises(Exception, match="carried value 0 is int and becomes|boolean"):
        while_loop(lambda i, y: i < 3, lambda i, y: (i + 0.5, y * 2), (1, x))


def test_auto_functionalized_calls_an_operator_on_copies():
    lib = umbra.library.Library("joint_writes", "DEF")
    lib.define("add_to(Tensor(a!) x, Tensor y) -> Tensor")
    lib.impl("add_to", lambda x, y: x.add_(y) * 0 + y, "CPU")
    x, y = umbra.zeros(2), umbra.ones(2)
    operator = umbra.ops.joint_writes.add_to.default
    for result in (umbra.ops.higher_order.auto_functionalized(operator, x=x, y=y),
                   umbra.ops.higher_order.auto_functionalized_v2(operator, y=y, _x_base_index=0, _all_bases=[x])):
        assert [t.tolist() for t in result] == [[1, 1], [1, 1]] and x.tolist() == [0, 0]
    with pytest.raises(AssertionError, match="Cannot auto-functionalize op aten.add_.Tensor"):
        umbra.ops.higher_order.auto_functionalized(umbra.ops.aten.add_.Tensor, self=x, other=y)


def test_a_captured_while_loop_has_the_gradient_of_the_run():
    from umbra._functorch.aot_autograd import aot_function

    def f(x, w, limit):
        i, y, z = while_loop(lambda i, y, z: y.sum() < limit, lambda i, y, z: (i + 1, y * w + z, z.sin() * i), (tensor(0), x, x * 2))
        return y.square().sum() + z.sum(), i
    compiled = aot_function(f, lambda graph, _: graph)
    for limit in (30., 3., -5.):
        gradients = []
        for function in (f, compiled):
            x, w = tensor([1., 2.], requires_grad=True), tensor([1.5, 2.5], requires_grad=True)
            loss, steps = function(x, w, tensor(limit))
            loss.backward()
            gradients.append((loss.item(), steps.item(), x.grad, w.grad))
        (a, n, *expected), (b, m, *found) = gradients
        assert a == b and n == m and all(umbra.allclose(p, q, rtol=1e-5) for p, q in zip(expected, found))


def test_checkpoint_around_a_cond_that_closes_over_a_tensor_is_compiled():
    from umbra._functorch.aot_autograd import aot_function
    from umbra.utils.checkpoint import checkpoint

    def f(x, w):
        return checkpoint(lambda x: cond(x.sum() > 0, lambda x: x * w, lambda x: x - w, (x,)), x, use_reentrant=False)
    for sign in (1., -1.):
        seen = []
        for function in (f, aot_function(f, lambda graph, _: graph)):
            x, w = tensor([sign, 2 * sign], requires_grad=True), tensor([3., 4.], requires_grad=True)
            function(x, w).sum().backward()
            seen.append((x.grad.tolist(), w.grad.tolist()))
        assert seen[0] == seen[1]


def test_a_body_that_gives_one_value_by_itself():
    for body in (lambda i: i + 1, lambda i: (i + 1,)):
        result = while_loop(lambda i: i < 3, body, (tensor(0),))
        assert (result if isinstance(result, umbra.Tensor) else result[0]).item() == 3
        assert isinstance(result, tuple) == isinstance(body(tensor(0)), tuple)


def test_a_part_of_a_graph_runs_under_autocast():
    part = make_fx(lambda x, w: (x @ w,))(umbra.ones(2, 2), umbra.ones(2, 2))
    wrap = umbra.ops.higher_order.wrap_with_autocast
    assert wrap("cpu", umbra.bfloat16, True, False, part, umbra.ones(2, 2), umbra.ones(2, 2))[0].dtype is umbra.bfloat16
    graph = umbra.fx.Graph()
    x, w = graph.placeholder("x"), graph.placeholder("w")
    wrapped = graph.call_function(wrap, ("cpu", umbra.bfloat16, True, None, graph.get_attr("part"), x, w))
    graph.output(graph.call_function(operator.getitem, (wrapped, 0)))
    module = umbra.fx.GraphModule({"part": part}, graph)
    assert "torch.ops.higher_order.wrap_with_autocast('cpu', torch.bfloat16, True, None, part, x, w)" in module.code
    assert module(umbra.ones(2, 2), umbra.ones(2, 2)).dtype is umbra.bfloat16 and (umbra.ones(2, 2) @ umbra.ones(2, 2)).dtype is umbra.float32


def test_a_subgraph_is_called_and_differentiated():
    invoke = umbra.ops.higher_order.invoke_subgraph
    part = make_fx(lambda x, y: (x.sin() * y,))(umbra.ones(2), umbra.ones(2))
    graph = make_fx(lambda x, y: invoke(part, "id", x, y)[0] + invoke(part, "id", y, x)[0])(umbra.ones(2), umbra.ones(2))
    assert "torch.ops.higher_order.invoke_subgraph(repeated_subgraph0, 'id', x_1, y_1)" in graph.code
    a, b = tensor([1., 2.]), tensor([3., 4.])
    assert umbra.allclose(graph(a, b), a.sin() * b + b.sin() * a)
    graphs = []

    def compiler(g, _):
        graphs.append(g)
        return g
    from umbra.functorch.compile import aot_function
    compiled = aot_function(lambda x, y: invoke(part, "id", x, y)[0], compiler)
    a.requires_grad_(), b.requires_grad_()
    compiled(a, b).sum().backward()
    assert umbra.allclose(a.grad, (a.cos() * b).detach()) and umbra.allclose(b.grad, a.sin().detach())
    assert all(any("invoke_subgraph" in str(n.target) for n in g.graph.nodes) for g in graphs)


def test_parts_that_are_called_once():
    strict = umbra.ops.higher_order.strict_mode
    graph = make_fx(lambda x, y: strict(lambda x, y: (x.sin(), y.cos()), (x, y)))(umbra.ones(2), umbra.ones(2))
    assert "torch.ops.higher_order.strict_mode(strict_graph_0, (x_1, y_1))" in graph.code
    assert umbra.equal(graph(umbra.ones(2), umbra.zeros(2))[1], umbra.ones(2))
    part = make_fx(lambda x: (x + 1,))(umbra.ones(2))
    assert umbra.ops.higher_order.run_const_graph(part, (umbra.ones(2),))[0].tolist() == [2, 2]


def test_out_dtype_computes_in_the_wider_type():
    out_dtype, x = umbra.ops.higher_order.out_dtype, umbra.full((2, 2), 100, dtype=umbra.int8)
    assert out_dtype(umbra.ops.aten.mm.default, umbra.int32, x, x).tolist() == [[20000, 20000]] * 2
    for operator in (umbra.ops.aten.mm, umbra.ops.aten.add_.Tensor, umbra.ops.aten.split.Tensor):
        with pytest.raises(ValueError):
            out_dtype(operator, umbra.int32, x, x)


def test_auto_functionalized_writes_views_of_copies():
    with umbra.library._scoped_library("parts", "DEF") as library:
        library.define("inc(Tensor(a!) x, Tensor y) -> ()")
        library.impl("inc", lambda x, y: [x.add_(y)] and None, "CompositeExplicitAutograd")
        operator, x = umbra.ops.parts.inc.default, umbra.ones(4)
        functional = umbra.ops.higher_order.auto_functionalized_v2

        def new_base(**view):
            return functional(operator, y=umbra.ones(()), _x_base_index=0, _all_bases=[x], **view)[1].tolist()
        assert new_base(_x_size=(2,), _x_stride=(2,), _x_storage_offset=1) == [1, 2, 1, 2]
        assert new_base(_x_slice_dim=0, _x_slice_start=1, _x_slice_end=3) == [1, 2, 2, 1]
        assert new_base(_x_alias=True) == new_base() == [2] * 4 and x.tolist() == [1] * 4


# ---- what functions must not do ----

@pytest.mark.parametrize("function", [
    lambda x: cond(x.sum() > 0, lambda x: x, lambda x: x + 1, (x,)),
    lambda x: cond(x.sum() > 0, lambda x: x.add_(1) * 1, lambda x: x + 1, (x,)),
    lambda x: cond(x.sum() > 0, lambda x: 1.5, lambda x: 2.5, (x,)),
    lambda x: cond(x.sum() > 0, lambda: 1, lambda x: x + 1, (x,)),
    lambda x: cond(x.sum() > 0, lambda x: {"a": x + 1}, lambda x: {"b": x + 1}, (x,)),
    lambda x: map(lambda row: row, x),
    lambda x: while_loop(lambda x: x.sum() < 5, lambda x: (x.double(),), (x,)),
    lambda x: scan(lambda c, x: (c.double(), x + 1), umbra.zeros(()), x),
])
def test_functions_that_cannot_be_captured_are_refused_by_one_error(function):
    for call in (function, make_fx(function)):
        with pytest.raises(umbra._dynamo.exc.UncapturedHigherOrderOpError):
            call(umbra.ones(3))


@pytest.mark.parametrize("function", [
    lambda x: cond(x.sum() > 0, lambda x: x.long(), lambda x: x + 1, (x,)),
    lambda x: cond(x.sum() > 0, lambda x: (x + 1, x + 2), lambda x: x + 1, (x,)),
    lambda x: cond(x.sum() > 0, lambda x: x + umbra.ones(7), lambda x: x + 1, (x,)),
])
def test_branches_that_do_not_fit_are_an_error_of_their_run_without_data(function):
    with pytest.raises(umbra._dynamo.exc.TorchRuntimeError):
        function(umbra.ones(3))


def test_operands_of_cond_are_tensors_and_numbers_decide_at_once():
    with pytest.raises(RuntimeError, match="only consists of tensor leaves"):
        cond(tensor(True), lambda x, n: x + n, lambda x, n: x - n, (umbra.ones(2), 3))
    assert cond(1, lambda x: x + 1, lambda x: x - 1, (umbra.ones(2),)).tolist() == [2, 2]


def test_cond_is_captured_inside_functionalize():
    def true_function(x):
        y = x.clone()
        y.add_(1)
        return y
    def f(x):
        y = x * 2
        y.mul_(3)
        return cond(y.sum() > 0, true_function, lambda x: x.cos() * y, (y,))
    graph = make_fx(umbra.func.functionalize(f))(umbra.ones(2))
    assert not any(str(node.target).endswith("_.Tensor") for part in (graph, graph.true_graph_0) for node in part.graph.nodes)
    assert "higher_order.cond" in graph.code and graph.code.count("torch.ops.aten.cos") == 0
    for x in (umbra.ones(2), -umbra.ones(2)):
        assert umbra.allclose(graph(x), f(x))

    def writes_outside(x):
        y = x * 2
        cond(x.sum() > 0, lambda x: y.add_(1) * 1, lambda x: x + 1, (x,))
        return y
    with pytest.raises(umbra._dynamo.exc.TorchDynamoException, match="input mutation"):
        make_fx(umbra.func.functionalize(writes_outside))(umbra.ones(2))


def test_a_predicate_that_is_closed_over_may_meet_symbolic_sizes():
    predicate = tensor(False)

    def function(x):
        return cond(predicate, lambda a: a.sum(), lambda a: a.sum() * 2, (x,))
    captured = make_fx(function, tracing_mode="symbolic", _allow_non_fake_inputs=True)(umbra.ones(2, 3))
    assert captured(umbra.ones(2, 3)).item() == 12 and captured(umbra.ones(4, 3)).item() == 24


def test_functions_of_an_operator_see_the_region_of_autocast_around_it():
    x = umbra.ones(2, 2, requires_grad=True)

    def function(x):
        return umbra.cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ x + 1, (x,))
    for call in (function, umbra.compile(function, backend="aot_eager")):
        with umbra.autocast("cpu", dtype=umbra.bfloat16):
            y = call(x)
        assert y.dtype == umbra.bfloat16 and y.tolist() == [[2, 2], [2, 2]]
        (gradient,) = umbra.autograd.grad(y.sum(), x)
        assert gradient.dtype == umbra.float32 and gradient.tolist() == [[4, 4], [4, 4]]


class Own(Exception):
    pass


def raises(error):
    raise error


@pytest.mark.parametrize("function", [lambda x: raises(ValueError("no")), lambda x: raises(RuntimeError("no")), lambda x: raises(Own("no")),
                                      lambda x: x.nothing, lambda x: x + {}["a"], lambda x: x / (1 // 0)])
def test_what_a_function_itself_raises_is_told_by_its_operator(function):
    for call in (lambda: cond(tensor(True), function, lambda x: x + 1, (umbra.ones(2),)),
                 lambda: scan(lambda c, x: (function(c), x * 1), umbra.ones(2), umbra.ones(3, 2))):
        with pytest.raises(umbra._dynamo.exc.UncapturedHigherOrderOpError, match="raised exception"):
            call()
    with pytest.raises(umbra._dynamo.exc.TorchRuntimeError):
        cond(tensor(True), lambda x: x @ umbra.ones(7), lambda x: x + 1, (umbra.ones(2),))


def test_a_predicate_that_is_a_number_is_told_of_when_a_program_is_exported():
    class Module(umbra.nn.Module):
        def forward(self, x):
            return umbra.cond(x.dim() == 1, lambda x: x.sin(), lambda x: x.cos(), (x,))

    with pytest.warns(UserWarning, match="Pred is a Python constant"):
        umbra.export.export(Module(), (umbra.ones(2),))


def test_calls_of_operators_that_take_functions_are_told_by_their_class():
    class Module(umbra.nn.Module):
        def forward(self, x):
            return umbra.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    program = umbra.export.export(Module(), (umbra.ones(2),))
    found = [node.name for node in program.graph.nodes if isinstance(node.target, umbra._ops.HigherOrderOperator)]
    assert found == ["cond"]


def test_foreach_map_applies_a_function_to_each_place_of_lists():
    from umbra._higher_order_ops.foreach_map import foreach_map
    x, y = umbra.ones(2), umbra.arange(2.)
    assert [t.tolist() for t in foreach_map(umbra.add, [x, y], (y, y))] == [[1, 2], [0, 2]]
    assert [t.tolist() for t in foreach_map(umbra.mul, [x, y], 3)] == [[3, 3], [0, 3]] and foreach_map(umbra.neg, y).tolist() == [0, -1]


def _checks_in_branches(x):
    def large(x):
        number = x.item()
        umbra._check(number != 5)
        return x + 1

    def small(x):
        number = x.item()
        umbra._check(number < 3)
        return x - 1

    return umbra.cond(x.sum() > 4, large, small, (x,))


@pytest.mark.parametrize("change", [lambda program: program, lambda program: program.run_decompositions({}), lambda program: umbra.export.export(program.module(), (umbra.tensor(6),))],
                         ids=["exported", "decomposed", "exported again"])
def test_what_a_branch_checks_of_its_numbers_is_checked_there_alone(change):
    module = change(umbra.export.export(Function(_checks_in_branches), (umbra.tensor(6),))).module()
    assert module(umbra.tensor(6)).item() == 7 and module(umbra.tensor(2)).item() == 1
    for refused in (5, 3):
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            module(umbra.tensor(refused))


def test_checks_inside_of_a_loop_are_part_of_its_graphs():
    def loop(index, x):
        def goes_on(index, x):
            number = index.item()
            umbra._check(number != 5)
            return number <= 9

        def body(index, x):
            number = index.item()
            umbra._check(number % 2 == 0)
            return index + 2, x + number

        return while_loop(goes_on, body, (index, x))

    program = umbra.export.export(Function(loop), (umbra.tensor([0]), umbra.zeros(1)))
    assert program.module()(umbra.tensor([0]), umbra.zeros(1))[1].item() == 20
    for graph in (program.graph_module.while_loop_cond_graph_0, program.graph_module.while_loop_body_graph_0):
        assert graph.code.count("_assert_scalar.default") == 1
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(umbra.tensor([1]), umbra.zeros(1))


def test_a_check_of_numbers_of_several_graphs_is_refused():
    def function(x, n):
        outside = n.item()

        def branch(x):
            umbra._check(x.item() != outside)
            return x + 1

        return umbra.cond(x.sum() > 4, branch, lambda x: x - 1, (x,))

    with pytest.raises(NotImplementedError, match="a number from outside that the function does not use"):
        umbra.export.export(Function(function), (umbra.tensor(6), umbra.tensor(1)))


# ---- out_dtype in captures ----

def test_captures_keep_out_dtype_as_one_call():
    out_dtype, x = umbra.ops.higher_order.out_dtype, umbra.full((2, 2), 100, dtype=umbra.int8)

    def f(x, y):
        return out_dtype(umbra.ops.aten.mul.Tensor, umbra.int32, out_dtype(umbra.ops.aten.mm.default, umbra.int32, x, y), 2)
    graphs = []
    assert aot_function(f, lambda module, _: graphs.append(module) or module)(x, x.clone()).tolist() == [[40000, 40000]] * 2
    for module in (*graphs, *(make_fx(f, **options)(x, x + 1) for options in ({}, {"tracing_mode": "symbolic"}, {"pre_dispatch": True}))):
        assert module.code.count("torch.ops.higher_order.out_dtype(torch.ops.aten.") == 2 and "_to_copy" not in module.code
        (result,) = pytree.tree_leaves(module(x, x.clone()))
        assert result.tolist() == [[40000, 40000]] * 2 and result.dtype is umbra.int32


def test_out_dtype_comes_apart_for_gradients_and_transforms():
    out_dtype, w = umbra.ops.higher_order.out_dtype, umbra.ones(2, dtype=umbra.float32, requires_grad=True)

    def f(w):
        return out_dtype(umbra.ops.aten.mul.Tensor, umbra.float64, w, w)
    aot_function(f, nop)(w).sum().backward()
    assert w.grad.tolist() == [2, 2] and umbra.vmap(f)(w.detach()).dtype is umbra.float64


def test_loops_have_a_name_of_their_own():
    assert [int(v) for v in umbra.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (umbra.tensor(0), umbra.tensor(1)))] == [3, 8]


def test_the_operator_of_cond_takes_its_arguments_by_name():
    def function(which, x):
        return umbra.ops.higher_order.cond(which, true_fn=lambda x: x + 1, operands=[x], false_fn=lambda x: x - 1)
    for which in (True, False):
        assert function(tensor(which), tensor([1.0])).item() == (2 if which else 0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        umbra.ops.higher_order.cond(tensor(True), true_fn=lambda x: x, false_fn=lambda x: x, operands=[tensor(1.0)], other=1)


@pytest.mark.parametrize("operator", ["map", "scan"])
def test_rows_of_a_tensor_written_before_are_captured_with_symbols(operator):
    def function(x):
        y = x.clone()
        y.add_(1)
        if operator == "map":
            return map(lambda row: row.sin(), y)
        return scan(lambda carry, row: (carry + row, carry * row), x.new_zeros(4), y)[1]

    compiled = umbra.compile(function, backend="aot_eager", dynamic=True)
    for rows in (3, 5):
        x = umbra.randn(rows, 4)
        assert umbra.allclose(compiled(x), function(x))


def test_branches_that_lay_out_their_results_differently_are_refused():
    def function(x):
        return cond(x.sum() > 0, lambda x: (x + 1).t().contiguous().t(), lambda x: x - 1, (x,))
    x = umbra.arange(6.).view(2, 3)
    for call in (function, make_fx(function)):
        with pytest.raises(RuntimeError, match="order of strides of the two branches' output doesn't match"):
            call(x)


def test_out_dtype_and_scans_refuse_what_pytorchs_do():
    from umbra._higher_order_ops import out_dtype
    with pytest.raises(ValueError, match="out_dtype only allows the following operators: aten.linear.default"):
        out_dtype(umbra.ops.aten.sin.default, umbra.int32, umbra.ones(1))
    with pytest.raises(AssertionError, match="expected 2, but got 3"):
        associative_scan(lambda a, b: (a, b), umbra.arange(4.), 0, combine_mode="generic")


def test_results_that_no_graph_can_give_are_refused():
    for result in (object(), {1}, print, umbra.nn.ReLU(), int):
        with pytest.raises(NotImplementedError, match="argument of type"):
            make_fx(lambda x: (x, result))(umbra.ones(1))
    assert make_fx(lambda x: (x, umbra.float32, "a", None, slice(1)))(umbra.ones(1))(umbra.ones(1))[1:] == (umbra.float32, "a", None, slice(1))
