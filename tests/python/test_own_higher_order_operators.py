"""Operators that take functions and are a user's own: a rule for each layer, and refusals where there is none."""
import copy

import pytest

import umbra
from umbra import tensor
from umbra._higher_order_ops import utils as helpers
from umbra._ops import HigherOrderOperator
from umbra._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from umbra.func import functionalize, grad, vmap
from umbra.functorch.compile import aot_function, nop
from umbra.fx import GraphModule, Interpreter
from umbra.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, make_fx, track_tensor_tree
from umbra.utils import _pytree as pytree
from umbra.utils._python_dispatch import TorchDispatchMode

DispatchKey, TransformType = umbra._C.DispatchKey, umbra._C._functorch.TransformType


class Repeat(HigherOrderOperator):
    """`operator(function, x, count)`: the function applied so often."""

    def __call__(self, function, x, count=2):
        return super().__call__(function, x, count)


def repeat(function, x, count):
    for _ in range(count):
        x = function(x)
    return x


def bare(name):
    """With rules for data and for autograd alone."""
    op = Repeat(name)
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(repeat)

    @op.py_impl(DispatchKey.Autograd)
    def below(function, x, count):
        with umbra._C._AutoDispatchBelowAutograd():
            return op(function, x, count)
    return op


def whole(name):
    """With a rule for every layer but transforms."""
    op = bare(name)

    @op.py_impl(FakeTensorMode)
    def fake(mode, function, x, count):
        with mode:
            return repeat(function, x, count)

    @op.py_impl(ProxyTorchDispatchMode)
    def record(mode, function, x, count):
        body = make_fx(function)(x)
        path = mode.tracer.get_fresh_qualname("body_")
        mode.tracer.root.register_module(path, body)
        args = pytree.tree_map(mode.tracer.unwrap_proxy, (body, x, count))
        node = mode.tracer.create_proxy("call_function", op, args, {})
        return track_tensor_tree(repeat(function, x, count), node, constant=None, tracer=mode.tracer)

    @op.py_functionalize_impl
    def values(ctx, function, x, count):
        inner, x = ctx.functionalize(function), ctx.unwrap_tensors(x)
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(op(inner, x, count))
    return op


def calls(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


class Plain(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_the_rule_for_data_runs_below_that_for_autograd():
    op, seen = Repeat("own_order"), []

    @op.py_impl(DispatchKey.CPU)
    def run(function, x, count):
        seen.append("CPU")
        return repeat(function, x, count)

    @op.py_impl(DispatchKey.AutogradCPU)
    def differentiate(function, x, count):
        seen.append("AutogradCPU")
        with umbra._C._AutoDispatchBelowAutograd():
            return op(function, x, count)
    assert op(lambda x: x * 2, tensor([1.])).tolist() == [4.] and seen == ["AutogradCPU", "CPU"]


def test_a_layer_without_a_rule_refuses():
    op = Repeat("own_without_rules")
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator own_without_rules at dispatch key DispatchKey.AutogradCPU"):
        op(umbra.sin, tensor([1.]))


def test_a_layer_that_falls_through_needs_no_rule():
    op = Repeat("own_fallthrough")
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(repeat)
    op.fallthrough(DispatchKey.AutogradCPU)
    assert op(lambda x: x + 1, tensor([1.])).tolist() == [3.]


def test_a_composite_is_differentiated_through_what_it_calls():
    op = Repeat("own_composite")
    op.py_impl(DispatchKey.CompositeImplicitAutograd)(repeat)
    x = tensor([3.], requires_grad=True)
    op(lambda y: y * y, x).backward()
    assert x.grad.tolist() == [4 * 27.]


def test_a_second_rule_for_a_key_is_refused():
    with pytest.raises(RuntimeError, match="Trying to override a python impl for DispatchKey.Autograd"):
        bare("own_twice_registered").py_impl(DispatchKey.Autograd)(repeat)


def test_the_autograd_rule_is_asked_where_something_requires_gradients():
    op = Repeat("own_gradient")
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(repeat)

    class Thrice(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, function, x, count):
            with umbra._C._AutoDispatchBelowAutograd():
                return op(function, x, count)

        @staticmethod
        def backward(ctx, grad_output):
            return None, grad_output * 3, None
    op.py_autograd_impl(Thrice.apply)
    x = tensor([1.], requires_grad=True)
    op(umbra.sin, x).backward()
    assert x.grad.tolist() == [3.] and not op(umbra.sin, tensor([1.])).requires_grad


def test_it_is_one_node_of_a_captured_graph():
    op = whole("own_node")
    module = make_fx(lambda x: op(umbra.sin, x) + 1)(umbra.ones(2))
    assert calls(module) == ["own_node", "aten.add.Tensor"] and isinstance(module.body_0, GraphModule)


@pytest.mark.parametrize("run", [lambda module: module, lambda module: Interpreter(module).run, copy.deepcopy,
                                 lambda module: make_fx(module)(umbra.zeros(2))])
def test_a_graph_that_calls_it_runs(run):
    op = whole("own_runs")
    module = make_fx(lambda x: op(lambda y: y * 3, x) + 1)(umbra.ones(2))
    assert run(module)(umbra.ones(2)).tolist() == [10., 10.]


def test_inside_of_itself_it_is_a_graph_in_a_graph():
    op = whole("own_nested")
    module = make_fx(lambda x: op(lambda y: op(umbra.cos, y, 1), x))(umbra.ones(2))
    assert calls(module.body_0) == ["own_nested"] and umbra.equal(module(umbra.ones(2)), umbra.ones(2).cos().cos())


def test_results_of_several_parts_are_told_apart_in_a_graph():
    op = Repeat("own_parts")
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(lambda function, x, count: (function(x), {"more": x * count}))
    op.fallthrough(DispatchKey.AutogradCPU)

    @op.py_impl(ProxyTorchDispatchMode)
    def record(mode, function, x, count):
        node = mode.tracer.create_proxy("call_function", op, pytree.tree_map(mode.tracer.unwrap_proxy, (function, x, count)), {})
        return track_tensor_tree(op(function, x, count), node, tracer=mode.tracer)

    def both(x):
        one, rest = op(umbra.ops.aten.neg.default, x)
        return one - rest["more"]
    assert make_fx(both)(umbra.ones(1))(tensor([5.])).tolist() == [-15.]


def test_stand_ins_go_by_the_rule_of_their_mode():
    op = whole("own_fake")
    with FakeTensorMode():
        x = umbra.ones(3)
    result = op(umbra.sin, x)
    assert isinstance(result, FakeTensor) and result.shape == (3,)


def test_without_a_rule_for_recording_a_capture_is_refused():
    op = bare("own_not_recorded")
    with pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator own_not_recorded and mode ProxyTorchDispatchMode"):
        make_fx(lambda x: op(umbra.sin, x))(umbra.ones(2))


def test_writes_inside_of_its_function_become_values():
    op = whole("own_functional")

    def f(x):
        y = x.clone()
        y.mul_(2)
        return op(lambda z: z.clone().add_(1), y)
    module = make_fx(functionalize(f))(umbra.ones(2))
    assert calls(module.body_0) == ["aten.clone.default", "aten.add.Tensor"] and module(umbra.ones(2)).tolist() == [4., 4.]


def test_a_compiled_function_calls_it():
    op, graphs = whole("own_compiled"), []
    compiled = aot_function(lambda x: op(lambda y: y * 3, x * 2) + 1, lambda graph, _: graphs.append(graph) or graph)
    assert compiled(umbra.ones(2)).tolist() == [19., 19.]
    assert calls(graphs[0]) == ["aten.mul.Tensor", "own_compiled", "aten.add.Tensor"]


def test_a_compiled_function_has_the_gradient_of_its_rule():
    op = whole("own_compiled_gradient")

    class Through(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, function, x, count):
            ctx.save_for_backward(x)
            with umbra._C._AutoDispatchBelowAutograd():
                return op(function, x, count)

        @staticmethod
        def backward(ctx, grad_output):
            return None, grad_output * ctx.saved_tensors[0] * 100, None
    del op.py_kernels["Autograd"]
    op.py_autograd_impl(Through.apply)
    x = tensor([2.], requires_grad=True)
    aot_function(lambda x: op(umbra.sin, x) * 2, nop)(x).backward()
    assert x.grad.tolist() == [400.]


def test_a_program_calls_it():
    op = whole("own_exported")

    class Model(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = umbra.nn.Linear(3, 3)

        def forward(self, x):
            return op(umbra.sin, self.linear(x))
    model, x = Model(), umbra.ones(2, 3)
    program = umbra.export.export(model, (x,))
    assert "own_exported" in calls(program.graph_module)
    assert umbra.equal(program.module()(x), model(x)) and umbra.equal(program.run_decompositions().module()(x), model(x))


def test_a_batch_goes_by_the_rule_for_vmap():
    op = bare("own_batched")

    @op.py_impl(TransformType.Vmap)
    def batched(interpreter, function, x, count):
        functorch = umbra._C._functorch
        value, dim = functorch.get_unwrapped(x), functorch.maybe_get_bdim(x)
        with interpreter.lower():
            result = op(function, value.movedim(dim, 0), count)
        return functorch._add_batch_dim(result, 0, interpreter.level())
    assert vmap(vmap(lambda x: op(lambda y: y * 2, x)))(umbra.ones(2, 2)).tolist() == [[4., 4.], [4., 4.]]


def test_a_transform_without_a_rule_refuses():
    op = bare("own_in_grad")
    with pytest.raises(NotImplementedError, match="own_in_grad has no rule for the transform"):
        grad(lambda x: op(umbra.sin, x).sum())(umbra.ones(2))


def test_a_mode_has_a_rule_of_its_own():
    op = bare("own_in_mode")

    @op.py_impl(Plain)
    def of_mode(mode, function, x, count):
        return x * 100
    with Plain():
        assert op(umbra.sin, tensor([1.])).tolist() == [100.]


def test_a_mode_that_knows_such_operators_gets_the_call():
    op = bare("own_known_to_mode")

    class Knows(Plain):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return args[1] * 7 if func is op else super().__torch_dispatch__(func, types, args, kwargs)
    x = tensor([1.])
    with Knows():
        assert op(umbra.sin, x).tolist() == [7.]


def test_a_mode_without_a_rule_refuses():
    op = bare("own_unknown_to_mode")
    with Plain(), pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator own_unknown_to_mode and mode"):
        op(umbra.sin, umbra.ones(1))


def test_an_operator_of_the_library_has_rules_for_modes_too():
    cond = umbra.ops.higher_order.cond

    class Other(Plain):
        pass

    @cond.py_impl(Other)
    def of_mode(mode, predicate, if_true, if_false, operands):
        return tuple(10 * value for value in if_true(*operands))
    with Other():
        assert cond(tensor(True), lambda x: (x + 1,), lambda x: (x - 1,), (tensor([1.]),))[0].tolist() == [20.]
    del cond.python_key_table[Other]


def test_a_tensor_class_has_a_rule_of_its_own():
    class Wrapper(umbra.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return umbra.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    op = bare("own_for_class")
    with pytest.raises(NotImplementedError, match="no rule registered for HOP own_for_class and subclass"):
        op(umbra.neg, Wrapper(tensor([1.])))
    op.py_impl(Wrapper)(lambda function, x, count: op(function, x.inner, count) * 5)
    assert op(umbra.neg, Wrapper(tensor([1.]))).tolist() == [5.]


def test_torch_function_sees_it_first():
    class Sees(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return str(func)
    assert bare("own_overridden")(umbra.sin, umbra.ones(1).as_subclass(Sees)) == "own_overridden"


def test_it_is_found_by_its_name():
    op = bare("own_by_name")
    assert umbra.ops.higher_order.own_by_name is op and copy.deepcopy(op) is op and op.name() == "own_by_name"


def test_operators_of_the_library_are_of_the_same_class():
    assert isinstance(umbra.ops.higher_order.cond, HigherOrderOperator)
    assert isinstance(umbra.ops.aten.add.Tensor, umbra._ops.OperatorBase)


# ---- what rules are written with ----

def recorded_by_rule(name):
    """An operator whose rule for captures is written with PyTorch's helpers."""
    op = Repeat(name)
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(repeat)
    op.py_impl(DispatchKey.Autograd)(helpers.autograd_not_implemented(op, deferred_error=True))

    @op.py_impl(ProxyTorchDispatchMode)
    def record(mode, function, x, count):
        body = helpers.reenter_make_fx(function)(x)
        _, path = helpers.unique_graph_id(mode, prefix="own_body")
        mode.tracer.root.register_module(path, body)
        node = mode.tracer.create_proxy("call_function", op, pytree.tree_map(mode.tracer.unwrap_proxy, (body, x, count)), {})
        return track_tensor_tree(repeat(function, x, count), node, constant=None, tracer=mode.tracer)
    return op


def test_each_subgraph_of_a_rule_has_a_name_of_its_own():
    op = recorded_by_rule("own_names")
    module = make_fx(lambda x: op(umbra.cos, op(umbra.neg, x, 1), 1))(umbra.ones(2))
    assert [name for name, _ in module.named_children()] == ["own_body_0", "own_body_1"]
    assert calls(module.own_body_0) == ["aten.neg.default"] and calls(module.own_body_1) == ["aten.cos.default"]
    assert umbra.equal(module(umbra.full((2,), 3.)), umbra.full((2,), -3.).cos())


def test_the_root_of_a_capture_takes_tensors_and_subgraphs_and_nothing_else():
    op, weight, refused = Repeat("own_root"), umbra.full((2,), 5.), []
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(lambda function, x, count: x * weight)
    op.fallthrough(DispatchKey.AutogradCPU)

    @op.py_impl(ProxyTorchDispatchMode)
    def record(mode, function, x, count):
        root = mode.tracer.root
        before = hasattr(root, "own_weight")
        root.own_weight = weight
        with pytest.raises(NotImplementedError, match="register_module of a function"):
            root.own_function = function
        refused.append((before, hasattr(root, "own_weight"), hasattr(root, "own_function")))
        node = mode.tracer.create_proxy("get_attr", "own_weight", (), {})
        product = mode.tracer.create_proxy("call_function", umbra.ops.aten.mul.Tensor, (mode.tracer.unwrap_proxy(x), node), {})
        return track_tensor_tree(x * weight, product, constant=None, tracer=mode.tracer)
    module = make_fx(lambda x: op(lambda y: y, x))(umbra.ones(2))
    assert refused == [(False, True, False)]
    assert module(umbra.full((2,), 2.)).tolist() == [10., 10.] and umbra.equal(module.own_weight, weight)


def test_a_subgraph_of_a_rule_has_the_decompositions_of_its_capture():
    op = recorded_by_rule("own_decomposed")
    table = {umbra.ops.aten.silu.default: lambda x: x * umbra.sigmoid(x)}
    module = make_fx(lambda x: op(lambda y: umbra.nn.functional.silu(y), x, 1), decomposition_table=table)(umbra.ones(2))
    assert calls(module.own_body_0) == ["aten.sigmoid.default", "aten.mul.Tensor"]


@pytest.mark.parametrize("deferred", [True, False])
def test_a_rule_says_that_there_is_no_gradient(deferred):
    op = Repeat("own_no_gradient")
    op.py_impl(DispatchKey.CompositeExplicitAutograd)(repeat)
    op.py_impl(DispatchKey.Autograd)(helpers.autograd_not_implemented(op, deferred_error=deferred))
    assert not op(umbra.sin, umbra.ones(2)).requires_grad
    x = umbra.ones(2, requires_grad=True)
    with umbra.no_grad():
        assert not op(umbra.sin, x).requires_grad
    with pytest.raises(RuntimeError, match="Autograd not implemented for own_no_gradient"):
        result = op(umbra.sin, x)
        assert deferred and result.requires_grad and not result.is_leaf
        result.sum().backward()
    assert x.grad is None


def test_a_rule_for_stand_ins_is_run_under_their_mode():
    op = Repeat("own_stand_ins")
    helpers.register_fake(op, lambda function, x, count: umbra.empty(count, *x.shape))
    op.fallthrough(DispatchKey.AutogradCPU)
    with FakeTensorMode():
        result = op(umbra.sin, umbra.ones(3), 4)
    assert isinstance(result, FakeTensor) and result.shape == (4, 3)
