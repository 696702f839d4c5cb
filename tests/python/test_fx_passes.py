"""Rewriting graphs: patterns and replacements, passes, splitting, folding; copies and pickles of graph modules."""
import copy
import operator
import pickle

import pytest

import umbra as torch
import umbra.export
from umbra import fx
from umbra.fx.experimental.const_fold import split_const_subgraphs
from umbra.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from umbra.fx.passes.infra.pass_base import PassBase, PassResult
from umbra.fx.passes.infra.pass_manager import PassManager, _topological_sort_passes, this_before_that_pass_constraint
from umbra.fx.passes.operator_support import OperatorSupport
from umbra.fx.passes.split_module import split_module
from umbra.fx.passes.split_utils import split_by_tags
from umbra.fx.passes.utils.matcher_utils import SubgraphMatcher
from umbra.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from umbra.fx.subgraph_rewriter import replace_pattern_with_filters


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
        self.scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x):
        return torch.relu(self.lin(x) * self.scale)


def names(gm):
    return [node.name for node in gm.graph.nodes]


# ---- when edits take effect ----

def test_an_edit_takes_effect_when_the_module_is_compiled_again():
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.neg
    assert gm(torch.ones(1)).item() == 2 and "relu(" in gm.code and "neg" in gm.print_readable(print_output=False)
    gm.recompile()
    assert gm(torch.ones(1)).item() == 0 and "relu(" not in gm.code


def test_an_edit_of_a_captured_graph_takes_effect_when_it_is_compiled_again():
    gm = fx.experimental.proxy_tensor.make_fx(lambda x: x.sin() + 1)(torch.ones(1))
    sin = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.sin.default)
    sin.target = torch.ops.aten.neg.default
    assert gm(torch.zeros(1)).item() == 1
    gm.recompile()
    assert gm(torch.ones(1)).item() == 0


def test_arguments_of_nodes_cannot_be_changed_by_the_way():
    gm = fx.symbolic_trace(lambda x: torch.cat([x, x]))
    node = next(n for n in gm.graph.nodes if n.target is torch.cat)
    with pytest.raises(TypeError, match="does not support mutation"):
        node.args[0].append(1)
    with pytest.raises(TypeError, match="does not support mutation"):
        node.kwargs["dim"] = 1
    assert node.args[0] == [node.args[0][0]] * 2 and isinstance(node.args[0], list)


# ---- patterns ----

def test_values_that_are_used_elsewhere_are_not_replaced():
    def f(x):
        y = x.neg()
        return torch.relu(y) + y
    gm = fx.symbolic_trace(f)
    assert fx.replace_pattern(gm, lambda x: torch.relu(x.neg()), lambda x: torch.sin(x)) == []
    assert len(fx.replace_pattern(gm, lambda x: x.neg(), lambda x: x * 3)) == 1
    assert gm(torch.tensor([2.0])).item() == 12


def test_matches_in_a_row_are_all_replaced():
    gm = fx.symbolic_trace(lambda x: torch.sin(torch.sin(torch.sin(x))))
    assert len(fx.replace_pattern(gm, lambda x: torch.sin(x), lambda x: x * 2)) == 3
    assert gm(torch.ones(1)).item() == 8


def test_a_pattern_of_several_results():
    gm = fx.symbolic_trace(lambda x, y: (x + y).sin() * (x - y).cos())
    fx.replace_pattern(gm, lambda x, y: (x + y, x - y), lambda x, y: (x * 2, y * 3))
    x, y = torch.tensor(0.5), torch.tensor(0.25)
    assert torch.equal(gm(x, y), (x * 2).sin() * (y * 3).cos())


def test_the_replacement_brings_its_modules():
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    replacement = fx.symbolic_trace(Block())
    fx.replace_pattern(gm, lambda x: torch.relu(x), replacement)
    x = torch.tensor([[1.0, -2.0]])
    assert torch.equal(gm(x), replacement(x) + 1) and [n for n, _ in gm.named_children()] == ["lin"]


def test_filters_and_literals():
    gm = fx.symbolic_trace(lambda x: torch.add(x, 1) * torch.add(x, 5))

    def large(match, original, pattern):
        return any(value == 5 for value in match.nodes_map.values())
    done = replace_pattern_with_filters(gm, lambda x, n: torch.add(x, n), lambda x, n: torch.sub(x, n), [large])
    assert len(done) == 1 and [n.target for n in done[0].replacements] == [torch.sub] and gm(torch.tensor(10.0)).item() == 55
    pattern = fx.symbolic_trace(lambda x: torch.add(x, 1)).graph
    assert len(SubgraphMatcher(pattern).match(gm.graph)) == 1
    assert len(SubgraphMatcher(pattern, ignore_literals=True).match(fx.symbolic_trace(lambda x: torch.add(x, 7)).graph)) == 1


# ---- passes ----

def test_passes_keep_their_constraints():
    log = []

    def named(name):
        def run(gm):
            log.append(name)
            return PassResult(gm, False)
        return run
    a, b, c = named("a"), named("b"), named("c")
    PassManager([a, b, c], [this_before_that_pass_constraint(c, a), this_before_that_pass_constraint(b, c)])(fx.symbolic_trace(Block()))
    assert log == ["b", "c", "a"]
    with pytest.raises(RuntimeError, match="Circular"):
        PassManager([a, b], [this_before_that_pass_constraint(a, b), this_before_that_pass_constraint(b, a)])(fx.symbolic_trace(Block()))


def first(gm):
    return PassResult(gm, False)


def test_a_pass_that_gives_something_else_is_refused():
    with pytest.raises(Exception, match="An error occurred when running the '<lambda>' pass after the following passes: \\['first'\\]") as caught:
        PassManager([first, lambda gm: gm])(fx.symbolic_trace(Block()))
    assert "PassResult" in str(caught.value.__cause__)

    class Needs(PassBase):
        def requires(self, graph_module):
            raise ValueError("not fit")

        def call(self, graph_module):
            return PassResult(graph_module, True)
    with pytest.raises(Exception, match="Needs") as caught:
        PassManager([Needs()])(fx.symbolic_trace(Block()))
    assert "not fit" in str(caught.value.__cause__)


def test_a_split_module_computes_the_same():
    def f(x, y):
        a = x + y
        b = a * 2
        return a, (b + x) - y
    gm = fx.symbolic_trace(f)
    parts = {"add": 0, "mul": 0, "add_1": 1, "sub": 2}
    split = split_module(gm, torch.nn.Module(), lambda n: parts[n.name], keep_original_node_name=True)
    x, y = torch.tensor(3.0), torch.tensor(5.0)
    assert [t.item() for t in split(x, y)] == [t.item() for t in f(x, y)]
    assert names(split.submod_0) == ["x", "y", "add", "mul", "output"] and names(split.submod_1) == ["mul", "x", "add_1", "output"]
    cyclic = {"add": 0, "mul": 1, "add_1": 0, "sub": 1}
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(gm, torch.nn.Module(), lambda n: cyclic[n.name])


def test_what_follows_from_attributes_alone_is_computed_once():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.tensor([2.0])), torch.nn.Parameter(torch.tensor([5.0]))

        def forward(self, x):
            return x * (self.a * self.b + 1) + (self.a - 1)
    gm = split_const_subgraphs(fx.symbolic_trace(Model()))
    assert [n.target for n in gm.graph.nodes if n.op == "call_function"].count(operator.mul) == 1
    for value in (3.0, 1.0):
        assert gm(torch.tensor([value])).item() == value * 11 + 1
    with pytest.raises(AssertionError):
        gm.run_folding()
    assert split_const_subgraphs(fx.symbolic_trace(lambda x: x + 1)).const_subgraph_module is None


# ---- copies ----

def test_a_pickled_graph_module_runs():
    gm = fx.symbolic_trace(Block())
    gm.meta["note"] = 1
    again = pickle.loads(pickle.dumps(gm))
    x = torch.tensor([[1.0, -2.0]])
    assert torch.equal(again(x), gm(x)) and names(again) == names(gm) and again.meta == {"note": 1} and type(again).__name__ == "Block"
    captured = fx.experimental.proxy_tensor.make_fx(lambda x: {"a": [x.sin(), x.view(-1)[1:]]})(x)
    assert torch.equal(pickle.loads(pickle.dumps(captured))(x)["a"][0], x.sin())


def test_a_deep_copy_has_its_own_metadata():
    gm = fx.symbolic_trace(Block())
    gm.meta["note"] = [1]
    deep, shallow = copy.deepcopy(gm), copy.copy(gm)
    gm.meta["note"].append(2)
    assert deep.meta == {"note": [1]} and shallow.meta == {"note": [1, 2]}


def test_nested_concrete_arguments():
    def f(d, n, y):
        return d["a"] * n + d["b"][0] + (0 if y is None else y)
    gm = fx.symbolic_trace(f, concrete_args={"d": {"a": fx.PH, "b": [fx.PH]}, "y": None})
    assert gm({"a": torch.ones(1), "b": [torch.ones(1)]}, 3, None).item() == 4
    with pytest.raises(AssertionError, match="specialized"):
        gm({"a": torch.ones(1), "b": [torch.ones(1)]}, 3, 1)
    with pytest.raises(KeyError, match="b"):
        gm({"a": torch.ones(1)}, 3, None)


def test_the_code_of_a_graph_runs_by_itself():
    gm = fx.symbolic_trace(lambda x, y=3: torch.relu(x - y).view(-1, 2)[0])
    code = gm.graph.python_code("self")
    scope = dict(code.globals)
    exec(code.src, scope)
    assert scope["forward"](None, torch.tensor([4.0, 2.0])).tolist() == [1, 0]


def test_calls_that_do_not_fit_the_graph_are_refused():
    gm = fx.symbolic_trace(lambda x, y: x + y)
    for args, kwargs, text in (((), {}, "missing 2 required positional arguments: 'x' and 'y'"), ((1,), {}, "missing 1 required positional argument: 'y'"),
                               ((1, 2, 3), {}, "takes 3 positional arguments but 4 were given"), ((1, 2), {"z": 1}, "unexpected keyword argument 'z'"),
                               ((1, 2), {"y": 1}, "multiple values for argument 'y'")):
        with pytest.raises(TypeError, match=text):
            gm(*args, **kwargs)


def test_a_modules_call_that_nobody_uses_goes_unless_the_module_says_otherwise():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
            self.b._is_impure = True

        def forward(self, x):
            self.a(x), self.b(x)
            return x
    gm = fx.symbolic_trace(Model())
    assert gm.graph.eliminate_dead_code() and names(gm) == ["x", "b", "output"]
    drawn = fx.experimental.proxy_tensor.make_fx(lambda x: (torch.rand_like(x), x)[1])(torch.ones(1))
    node = next(n for n in drawn.graph.nodes if "rand_like" in n.name)
    assert node.is_impure() and not node.is_impure(impure_random=False)


# ---- parts that a backend takes ----

def partitions_of(function, taken, **options):
    from umbra.fx.passes.operator_support import create_op_support
    support = create_op_support(lambda _, node: node.op == "call_function" and node.target in taken)
    return CapabilityBasedPartitioner(torch.fx.symbolic_trace(function), support, **options)


@pytest.mark.parametrize("function, expected", [
    (lambda a, b: (lambda c: (lambda d: (torch.cos(d) * c + torch.sin(b), d))(torch.relu(c)))(torch.sin(a) + b), [["add", "sin"], ["add_1", "cos", "mul", "sin_1"]]),
    (lambda a: (lambda x: torch.cos(x + torch.relu(x)))(torch.sin(a)), [["add", "cos"], ["sin"]]),
    (lambda a, b: (a + b, torch.relu(a) * 2), [["add", "mul"]]),
])
def test_parts_are_as_large_as_they_can_be_without_waiting_for_themselves(function, expected):
    taken = (operator.add, operator.mul, torch.sin, torch.cos)
    partitioner = partitions_of(function, taken, allows_single_node_partition=True)
    parts = partitioner.propose_partitions()
    assert sorted(sorted(node.name for node in part.nodes) for part in parts) == expected
    args = [torch.arange(3.0) + i for i in range(function.__code__.co_argcount)]
    results, wanted = partitioner.fuse_partitions(parts)(*args), function(*args)
    if isinstance(wanted, torch.Tensor):
        results, wanted = [results], [wanted]
    assert all(torch.equal(a, b) for a, b in zip(results, wanted))
    assert sum(node.op == "call_module" for node in partitioner.graph_module.graph.nodes) == len(expected)


def test_parts_of_one_node_are_left_alone_unless_they_are_asked_for():
    def function(a):
        return torch.relu(torch.sin(a))
    assert partitions_of(function, (torch.sin,)).propose_partitions() == []
    assert len(partitions_of(function, (torch.sin,), allows_single_node_partition=True).propose_partitions()) == 1


def test_a_check_takes_the_module_alone():
    with pytest.raises(TypeError, match="only take in one variable"):
        PassManager().add_checks(lambda gm, more: None)


def test_calls_that_are_banned_are_not_merged_and_the_module_stays():
    from umbra.fx.experimental.proxy_tensor import make_fx
    from umbra.fx.passes.dialect.common.cse_pass import CSEPass
    module = make_fx(lambda x: (x + 1) * (x + 1) + x.sin() * x.sin())(torch.ones(2))
    count = len(module.graph.nodes)
    merged, kept = CSEPass()(module), CSEPass(banned_ops=[torch.ops.aten.add])(module)
    assert len(module.graph.nodes) == count == len(merged.graph_module.graph.nodes) + 2 == len(kept.graph_module.graph.nodes) + 1
    assert merged.modified and torch.equal(merged.graph_module(torch.ones(2)), module(torch.ones(2)))


def test_modules_of_a_split_are_those_of_the_graph_and_their_inputs_have_no_defaults():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 2))

        def forward(self, x, k=2):
            return self.layers(x) * k
    traced, names = fx.symbolic_trace(Model()), {}
    split = split_module(traced, Model(), lambda node: 0 if node.op == "call_module" else 1, names)
    assert "self.layers_0(x)" in split.submod_0.code and "k = 2" not in split.submod_1.code and names == {"submod_0.layers_0": "layers.0"}
    assert torch.equal(split(torch.ones(1, 2)), traced(torch.ones(1, 2)))


def test_what_is_folded_keeps_its_meta():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * (self.a + 1)
    from umbra.fx.experimental.const_fold import split_const_subgraphs
    traced = fx.symbolic_trace(Model())
    for i, node in enumerate(traced.graph.nodes):
        node.meta["place"] = i
    folded = split_const_subgraphs(traced)
    assert [node.meta["place"] for node in folded.graph.nodes if node.op == "get_attr"] == [2]


def test_functions_that_write_are_refused_where_that_is_asked_for():
    tracer = fx.Tracer()
    tracer.check_mutable_operations = True
    with pytest.raises(RuntimeError, match="Tried to trace mutable operation"):
        tracer.trace(lambda x: torch.relu_(x))
    assert len(tracer.trace(lambda x: torch.relu(x)).nodes) == 3


def test_calls_that_compute_nothing_leave_the_borders_of_partitions():
    from umbra.fx.passes.operator_support import create_op_support
    module = fx.symbolic_trace(lambda x: torch.t(torch.relu(torch.t(torch.tanh(torch.t(x))))))
    partitioner = CapabilityBasedPartitioner(module, create_op_support(lambda modules, node: node.op == "call_function"), non_compute_ops=["torch.t"])
    partitions = partitioner.propose_partitions()
    partitioner.remove_bookend_non_compute_ops(partitions)
    assert [[n.name for n in part.nodes] for part in partitions] == [["tanh", "t_1", "relu"]]


def test_shape_prop_names_the_node_that_failed():
    from umbra.fx.passes.shape_prop import ShapeProp
    module = fx.symbolic_trace(lambda a, b: a @ b)
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%matmul") as error:
        ShapeProp(module).propagate(torch.ones(2, 3), torch.ones(2, 3))
    assert "cannot be multiplied" in str(error.value.__cause__)


def test_a_graph_out_of_order_is_put_in_order_and_runs():
    from umbra.fx.passes.tools_common import legalize_graph
    graph = fx.Graph()
    x = graph.placeholder("x")
    a, b = graph.call_function(torch.sin, (x,)), graph.call_function(torch.cos, (x,))
    graph.output(b)
    b.args = (graph.call_function(torch.neg, (a,)),)
    module = legalize_graph(fx.GraphModule({}, graph))
    assert [n.name for n in module.graph.nodes] == ["x", "sin", "neg", "cos", "output"] and module(torch.zeros(1)).item() == 1


def test_anchors_of_matches_are_nodes_of_the_pattern():
    module = fx.symbolic_trace(lambda x, w: torch.matmul(x, w).relu() + torch.matmul(w, x).relu())
    matches = fx.replace_pattern(module, lambda a, b: torch.matmul(a, b).relu(), lambda a, b: torch.mm(a, b))
    assert len(matches) == 2 and all(match.anchor.name == "relu" and match.anchor in match.nodes_map for match in matches)


def test_the_order_of_passes_by_constraints():
    def first(gm): ...
    def second(gm): ...
    def third(gm): ...
    constraints = [this_before_that_pass_constraint(third, first)]
    assert _topological_sort_passes([first, second, third], constraints) == [second, third, first]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        _topological_sort_passes([first, third], [*constraints, this_before_that_pass_constraint(first, third)])


def test_partitions_of_an_exported_program_by_function_and_module():
    from umbra.fx.passes.utils.source_matcher_utils import get_source_partitions

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)

        def forward(self, x):
            return self.b(torch.relu(self.a(x)))
    graph = torch.export.export(Net(), (torch.ones(1, 2),)).graph
    found = get_source_partitions(graph, [torch.nn.Linear, torch.nn.Conv2d, "relu"])
    assert {source: [[n.name for n in part.nodes] for part in parts] for source, parts in found.items()} == {
        torch.nn.Linear: [["linear"], ["linear_1"]], "relu": [["relu"]]}
    assert [n.name for n in found["relu"][0].input_nodes] == ["linear"]


def test_globals_of_a_source_are_those_it_names():
    code = fx.symbolic_trace(lambda x: torch.sin(x) + 1).graph.python_code("self")
    assert sorted(code.globals) == ["NoneType", "device", "fx_pytree", "inf", "nan", "pytree", "torch"]


def test_an_attribute_that_constants_and_the_rest_use_comes_first():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.v = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.arange(2.))

        def forward(self, x):
            return x * (self.w + self.v).relu() + self.w
    module = split_const_subgraphs(fx.symbolic_trace(Net()))
    assert module(torch.ones(2)).tolist() == [2, 3]
    assert [n.name for n in module.graph.nodes][:3] == ["x", "w", "_fx_const_folded_attrs"]


def test_attributes_stand_where_the_first_part_needs_them_in_the_original_order():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x):
            return x.relu() + self.shift
    block = Block()
    module, parts = fx.symbolic_trace(block), iter("ab")
    split = split_module(module, block, lambda node: next(parts), keep_original_order=True)
    assert [node.name for node in split.graph.nodes] == ["x", "submod_a", "shift", "submod_b", "output"]
    assert split(torch.tensor([-1., 1.])).tolist() == [1, 2]


def test_submodules_are_added_where_there_is_nothing_else():
    module = fx.symbolic_trace(torch.nn.ReLU())
    module.register_buffer("shift", torch.ones(1))
    assert module.add_submodule("a.b", torch.nn.Tanh()) and isinstance(module.a.b, torch.nn.Tanh)
    assert not module.add_submodule("shift.b", torch.nn.Tanh())
    with pytest.raises(KeyError, match="attribute 'shift' already exists"):
        module.add_submodule("shift", torch.nn.Tanh())


# ---- what matches and what is split ----

def test_patterns_match_calls_that_leave_out_defaults():
    def pattern(x, size, stride):
        return torch.ops.aten.max_pool2d_with_indices.default(x, size, stride, padding=[0, 0])

    class Pools(torch.nn.Module):
        def forward(self, x):
            return torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])
    matcher = SubgraphMatcher(fx.symbolic_trace(pattern).graph)
    assert len(matcher.match(fx.symbolic_trace(Pools()).graph)) == 1


def test_named_matches_take_patterns_that_are_programs():
    class Pattern(torch.nn.Module):
        def forward(self, x):
            made = x.relu()
            return made * 2, {"relu": made}

    class Target(torch.nn.Module):
        def forward(self, x):
            return (x + 1).relu() * 2
    args = (torch.ones(3),)
    matcher = SubgraphMatcherWithNameNodeMap(torch.export.export(Pattern(), args).module())
    (match,) = matcher.match(torch.export.export(Target(), args).module().graph)
    assert match.name_node_map["relu"].target is torch.ops.aten.relu.default


class Tagged(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return (self.layer(x) + self.weight).relu()


def tagged():
    traced = fx.symbolic_trace(Tagged())
    for node in traced.graph.nodes:
        if node.op.startswith("call"):
            node.tag = "layers" if node.op == "call_module" else "rest"
    return traced


def test_splitting_by_tags_says_where_names_went():
    split, names = split_by_tags(tagged(), ["layers", "rest"], return_fqn_mapping=True)
    assert names == {"layer": "layers.layer", "weight": "rest.weight"}
    assert split(torch.ones(1, 2)).shape == (1, 2)


def test_parts_split_by_tags_may_give_tuples():
    traced = tagged()
    split = split_by_tags(traced, ["layers", "rest"], return_tuple=True)
    x = torch.ones(1, 2)
    assert isinstance(split.layers(x), tuple)
    assert torch.equal(split(x), traced(x))


def test_items_of_what_is_no_part_are_no_partition():
    class Items(OperatorSupport):
        def is_node_supported(self, submodules, node):
            return node.target is operator.getitem

    class Statistics(torch.nn.Module):
        def forward(self, x):
            return torch.ops.aten.var_mean(x)[0]
    assert CapabilityBasedPartitioner(fx.symbolic_trace(Statistics()), Items(), allows_single_node_partition=True).propose_partitions() == []


def test_a_match_whose_input_is_made_of_its_own_values_is_none():
    def own_value(x):
        y = x + 1
        return y * y.sigmoid()

    def pattern(a, b):
        y = a + 1
        return y, y * b
    for match_placeholder in (False, True):
        matcher = SubgraphMatcher(fx.symbolic_trace(pattern).graph, match_placeholder=match_placeholder)
        assert matcher.match(fx.symbolic_trace(own_value).graph) == []
    assert len(SubgraphMatcher(fx.symbolic_trace(pattern).graph).match(fx.symbolic_trace(lambda x, z: (x + 1) * z).graph)) == 1
