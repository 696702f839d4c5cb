"""Symbolic tracing: what meets a Proxy is recorded wherever the Proxy stands, and graphs can be traced, copied and run again."""
import collections
import copy
import math
import operator
from math import sqrt

import pytest

import umbra as torch
from umbra import fx
from umbra.fx import _symbolic_trace as tracing

Pair = collections.namedtuple("Pair", "x y")
constant = torch.tensor([10.0, 20.0])


@fx.wrap
def halved(x):
    return x / 2


def test_a_proxy_among_tensors_of_a_list_takes_the_call():
    for function in (lambda x: torch.cat([constant, x]), lambda x: torch.stack((constant, constant, x), dim=1), lambda x: torch.ops.aten.cat([constant, x]),
                     lambda x: torch.ops.aten.cat.default([constant, x])):
        traced = fx.symbolic_trace(function)
        for x in (torch.ones(2), torch.zeros(2)):
            assert torch.equal(traced(x), function(x))


def test_a_proxy_as_an_index_or_a_target_of_to_is_recorded():
    traced = fx.symbolic_trace(lambda i: constant[i])
    assert traced(torch.tensor(1)).item() == 20 and traced(torch.tensor(0)).item() == 10
    assert fx.symbolic_trace(lambda x: constant.to(x))(torch.ones(1, dtype=torch.int64)).dtype == torch.int64

    def write(x):
        changed = torch.zeros(2) + x
        base = constant.clone()
        base[0] = x
        return changed, base
    assert "setitem" in fx.symbolic_trace(write).code


def test_functions_imported_by_name_are_wrapped_like_those_of_their_module():
    traced = fx.symbolic_trace(lambda x: x * sqrt(x.size(0)))
    assert torch.equal(traced(torch.ones(4)), torch.full((4,), 2.0)) and torch.equal(traced(torch.ones(9)), torch.full((9,), 3.0))


def test_operators_that_assign_bind_the_name_anew():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.call_function(operator.iadd, (x, y))
    product = graph.call_function(operator.imul, (x, 2))
    graph.output((x, product))
    module = fx.GraphModule(torch.nn.Module(), graph)
    assert module(2, 3) == (10, 10) and "x += y;  iadd = x" in module.code


def test_dicts_with_numbers_as_keys_are_arguments():
    class Chooses(torch.nn.Module):
        def forward(self, table):
            return table[42] - table["other"]

    class Calls(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Chooses()

        def forward(self, x):
            return self.inner({42: x, "other": x * 3})

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Chooses)

    root = Calls()
    graph = Leaves().trace(root)
    module = fx.GraphModule(root, graph)
    assert module(torch.ones(1)).item() == -2 and "{42: x, 'other': mul}" in module.code
    assert list(next(n for n in graph.nodes if n.op == "call_module").args[0]) == [42, "other"]


def test_a_graph_is_traced_again_with_its_own_parameters():
    def function(flag, table):
        return halved(table["a"]) if flag else table["b"]
    given = {"table": {"a": fx.PH, "b": fx.PH}, "flag": True}
    values = {"table": {"a": torch.ones(2), "b": torch.zeros(2)}, "flag": True}
    traced = fx.symbolic_trace(function, concrete_args=given)
    assert torch.equal(traced(**values), torch.full((2,), 0.5))
    again = fx.symbolic_trace(traced)
    assert [n.name for n in again.graph.nodes if n.op == "placeholder"] == ["flag", "table"] and "halved" in again.code
    assert torch.equal(again(**values), torch.full((2,), 0.5))
    assert torch.equal(fx.symbolic_trace(again, concrete_args=given)(**values), torch.full((2,), 0.5))


def test_a_traced_module_can_be_scripted():
    traced = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    x = torch.randn(4, 2)
    assert torch.equal(torch.jit.script(traced)(x), traced(x))


def test_placeholders_take_what_was_written_on_the_objects_that_stood_for_them():
    graph = fx.symbolic_trace(lambda a, b: a + b, concrete_args={"a": tracing.PHWithMeta(ph_key="first"), "b": fx.PH}).graph
    first, second = [n for n in graph.nodes if n.op == "placeholder"]
    assert first.ph_key == "first" and not hasattr(second, "ph_key")


def test_parameters_in_stars_may_be_concrete():
    class Sums(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + 2 * args[1]
    assert fx.symbolic_trace(Sums(), concrete_args=(fx.PH, fx.PH))(torch.ones(1), torch.ones(1)).item() == 3

    class WithoutSelf(torch.nn.Module):
        def forward(*args, **kwargs):
            return args[1]
    with pytest.raises(RuntimeError, match=r"cannot be part of \*args expansion"):
        fx.symbolic_trace(WithoutSelf())


def test_objects_may_say_what_they_are_in_a_graph():
    class Box(metaclass=fx.ProxyableClassMeta):
        def __init__(self, value):
            self.value = value

    class Named:
        def __init__(self, value):
            self.value = value

        def __fx_create_arg__(self, tracer):
            return tracer.create_node("call_function", Named, (tracer.create_arg(self.value),), {})

    boxed = fx.symbolic_trace(lambda x: Box(x).value * 2)
    assert boxed(torch.ones(1)).item() == 2 and "Box" in boxed.code
    assert fx.symbolic_trace(lambda x: Named(x))(3).value == 3


def test_nodes_know_the_classes_of_the_modules_that_they_run_in():
    class Inner(torch.nn.Module):
        def forward(self, x):
            return x + 1

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)
    graph = fx.symbolic_trace(Outer()).graph
    added = next(n for n in graph.nodes if n.op == "call_function")
    assert added.meta["nn_module_stack"] == {"inner": ("inner", Inner)} and list(added.meta).count("nn_module_stack") == 1
    added.meta["nn_module_stack"] = "outside"
    changed = fx.Transformer(fx.GraphModule(torch.nn.Module(), graph)).transform()
    assert next(n for n in changed.graph.nodes if n.op == "call_function").meta["nn_module_stack"] == "outside"


def test_graphs_and_tracers_are_copied_with_what_made_them():
    class Own(fx.Tracer):
        pass
    graph = fx.Graph(tracer_cls=Own)
    graph.output(graph.placeholder("x"))
    assert copy.deepcopy(graph)._tracer_cls is Own
    tracer = Own()
    tracer.trace(lambda x: x + 1)
    assert str(copy.deepcopy(tracer).graph) == str(tracer.graph)
    node = next(iter(tracer.graph.nodes))
    proxy = copy.deepcopy(fx.Proxy(node, tracer))
    assert proxy.node is not node and proxy.node.name == node.name and isinstance(proxy.tracer, Own)


def test_types_stand_in_the_source_by_names_that_it_knows():
    import typing

    def function(x: torch.Tensor, pair: Pair, rest: typing.Optional[typing.List[int]] = None) -> typing.Tuple[torch.Tensor, int]:
        return x + pair.x, 1
    module = fx.symbolic_trace(function)
    assert "rest : typing_Union[typing_List[int],NoneType] = None) -> typing_Tuple[torch.Tensor,int]:" in module.code
    assert fx.symbolic_trace(module)(torch.ones(1), Pair(1, 2))[0].item() == 2


def test_operators_go_to_the_handlers_of_tensor_classes_and_modes():
    seen = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return super().__torch_function__(function, types, args, kwargs or {})
    x = torch.ones(2).as_subclass(Own)
    assert type(torch.ops.aten.add(x, 1)) is Own and type(torch.ops.aten.add.Tensor(x, 1)) is Own and seen == ["aten.add", "aten.add.Tensor"]

    class Counts(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))
    seen.clear()
    plain = torch.ones(2)
    with Counts():
        torch.ops.aten.mul(plain, 2)
        torch.ops.aten.mul.Tensor(plain, 2)
    assert seen == ["aten.mul", "aten.mul.Tensor"]


def test_nodes_of_what_a_module_has_not_got_are_noticed():
    module = fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    with module.graph.inserting_before(module.graph.output_node()):
        with pytest.warns(UserWarning, match="get_attr Node with no underlying reference"):
            module.graph.get_attr("missing.part")
        with pytest.raises(AttributeError, match="missing"):
            module.graph.call_module("missing")


def test_a_run_notes_the_order_in_memory():
    module = fx.symbolic_trace(lambda x: x + 1)
    for shape, known in (((2, 3, 4, 4), torch.channels_last), ((2, 3, 2, 2, 2), torch.channels_last_3d)):
        fx.passes.shape_prop.ShapeProp(module).propagate(torch.ones(shape).to(memory_format=known))
        assert all(n.meta["tensor_meta"].memory_format is known for n in module.graph.nodes)


def test_a_tracer_may_bring_its_own_trace():
    """As other packages do that call more classes whole than `Module.__call__` is asked for."""
    class Leaf(torch.nn.Module):
        def __call__(self, x):
            return x.sort().values

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf, self.scale = Leaf(), torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return math.floor(self.leaf(x) * self.scale)

    class Own(fx.Tracer):
        def is_leaf_module(self, module, name):
            return True

        @tracing.compatibility(is_backward_compatible=True)
        def trace(self, root):
            self.root, self.graph, proxies = root, fx.Graph(), {}
            function, args = self.create_args_for_root(type(root).forward, True)

            def call(module, *args):
                return self.call_module(module, lambda *a: tracing._orig_module_call(module, *a), args, {})

            def attribute(module, name):
                return self.getattr(name, tracing._orig_module_getattr(module, name), proxies)
            with tracing._Patcher() as patcher:
                patcher.patch_method(torch.nn.Module, "__getattr__", attribute, deduplicate=False)
                patcher.patch_method(Leaf, "__call__", call, deduplicate=False)
                for module in self._autowrap_search:
                    tracing._autowrap_check(patcher, vars(module), self._autowrap_function_ids)
                result = function(*args)
            self.create_node("output", "output", (self.create_arg(result),), {})
            return self.graph

    graph = Own().trace(Net())
    assert [node.op for node in graph.nodes] == ["placeholder", "call_module", "get_attr", "call_function", "call_function", "output"]
    assert isinstance(Net().scale, torch.nn.Parameter) and math.floor(1.5) == 1
