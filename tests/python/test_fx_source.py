"""The source of graphs: types in it, other forms of it, packages and pickles of it."""
import copy
import pickle
import sys

import pytest

import umbra
from umbra import fx, nn, tensor
from umbra.fx.experimental.rewriter import RewritingTracer


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.act = nn.GELU()
        self.register_buffer("scale", tensor(2.))

    def forward(self, x):
        return self.act(self.linear(x)) * self.scale


def test_types_stand_in_the_source():
    graph = fx.Graph()
    x, y = graph.placeholder("x", type_expr=umbra.Tensor), graph.placeholder("y", type_expr=int, default_value=3)
    total = graph.call_function(umbra.add, (x, y), type_expr=umbra.Tensor)
    graph.output(total, type_expr=umbra.Tensor)
    module = fx.GraphModule({}, graph)
    assert module.code == ("\n\n\ndef forward(self, x : torch.Tensor, y : int = 3) -> torch.Tensor:\n"
                           "    add : torch.Tensor = torch.add(x, y);  x = y = None\n    return add\n    ")
    assert module(tensor([1.])).tolist() == [4.] and x.type is umbra.Tensor and "_type_expr" not in dict(x.meta)

    def annotated(x: umbra.Tensor, n: int = 2) -> umbra.Tensor:
        return x * n
    assert "def forward(self, x : torch.Tensor, n : int = 2) -> torch.Tensor:" in fx.symbolic_trace(annotated).code


def test_a_code_generator_writes_another_head():
    class OfOneList(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, inputs){maybe_return_annotation}:\n    {', '.join(free_vars)}, = inputs\n    note()"

        def additional_globals(self):
            return [("note", lambda: noted.append(1))]

        def process_inputs(self, *inputs):
            return inputs[0]
    noted = []
    module = fx.symbolic_trace(lambda a, b: a - b)
    module.graph.set_codegen(OfOneList())
    assert module(tensor(3.), tensor(1.)).item() == 2  # not compiled yet
    module.recompile()
    assert module([tensor(3.), tensor(1.)]).item() == 2 and noted == [1]
    assert module.graph.process_inputs([1, 2]) == [1, 2]


def test_lines_are_changed_for_a_while():
    module = fx.symbolic_trace(lambda x: x + 1)
    with module.graph.on_generate_code(lambda before: lambda lines: ["# first\n", *lines]):
        module.recompile()
        assert "# first" in module.code and module(tensor(1.)).item() == 2
    module.recompile()
    assert "# first" not in module.code


def test_a_module_becomes_a_package(tmp_path):
    module = fx.symbolic_trace(Model())
    module.to_folder(tmp_path / "packaged", "Packaged")
    sys.path.insert(0, str(tmp_path))
    try:
        from packaged import Packaged
    finally:
        sys.path.pop(0)
    x = umbra.ones(2, 4)
    assert umbra.equal(Packaged()(x), module(x))


def test_graphs_are_pickled():
    module = fx.symbolic_trace(Model())
    module.meta["note"] = 1
    again = pickle.loads(pickle.dumps(module))
    assert again.code == module.code and again.meta == {"note": 1} and umbra.equal(again(umbra.ones(1, 4)), module(umbra.ones(1, 4)))
    graph = fx.symbolic_trace(lambda x: umbra.relu(x) + 1).graph
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)


def test_shapes_of_parameters_are_known_where_that_is_asked_for():
    class Shaped(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(umbra.ones(3))

        def forward(self, x):
            return x + 1 if self.p.shape[0] == 3 and self.p.dim() == 1 else x
    graph = fx.Tracer(param_shapes_constant=True).trace(Shaped())
    assert [node.op for node in graph.nodes] == ["placeholder", "get_attr", "call_function", "output"]


def test_parts_are_made_one_call():
    from umbra.fx.passes.utils.common import compare_graphs
    from umbra.fx.passes.utils.fuser_utils import fuse_by_partitions, topo_sort, validate_partition
    module = fx.symbolic_trace(lambda x: umbra.cos(umbra.sin(umbra.relu(x))) + x)
    relu, sin, cos, _ = [node for node in module.graph.nodes if node.op == "call_function"]
    assert topo_sort([cos, sin]) == [sin, cos] and validate_partition([relu, sin]) and not validate_partition([relu, cos])
    assert compare_graphs(module.graph, fx.symbolic_trace(lambda x: umbra.cos(umbra.sin(umbra.relu(x))) + x).graph)
    expected = module(tensor(1.))
    fused = fuse_by_partitions(module, [{relu: None, sin: None}])
    assert [node.op for node in fused.graph.nodes] == ["placeholder", "call_module", "call_function", "call_function", "output"]
    assert umbra.equal(fused(tensor(1.)), expected)


def test_a_copy_of_a_graph_with_another_generator_takes_leaves():
    traced = fx.symbolic_trace(lambda x: {"a": x[0] + x[1]}, concrete_args={"x": [fx.PH, fx.PH]})
    plain = fx.GraphModule({}, copy.deepcopy(traced.graph))
    plain.graph.set_codegen(fx.graph.CodeGen())
    plain.recompile()
    values = [tensor([1.0]), tensor([2.0])]
    assert plain(*traced.graph.process_inputs(values)) == [tensor([3.0])]
    assert traced.graph.process_outputs(plain(*traced.graph.process_inputs(values))) == {"a": tensor([3.0])} == traced(values)


# ---- asserts ----

class Asserting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x, y=2, most=9):
        assert y == 2, "not two"
        if isinstance(y, object):
            assert x.sum() < most
        return super().extra_repr() or self.inner(x)


def test_asserts_become_calls_that_a_graph_keeps():
    module, tracer = Asserting(), RewritingTracer()
    graph = tracer.trace(module)
    traced = fx.GraphModule(tracer.root, graph)
    asserts = [node for node in graph.nodes if node.target is umbra._assert]
    assert [node.args[1] for node in asserts] == ["not two", ""] and tracer.root is not module and type(module) is Asserting
    x = umbra.ones(1, 2)
    assert traced(x).equal(module(x))
    with pytest.raises(AssertionError, match="not two"):
        traced(x, 3)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(Asserting())


def test_functions_around_one_with_asserts_are_seen_by_it():
    most = 3

    def f(x):
        assert x.sum() < most
        return x * most

    graph = RewritingTracer().trace(f)
    assert [node.name for node in graph.nodes] == ["x", "sum_1", "lt", "_assert", "mul", "output"]
    assert len(RewritingTracer().trace(lambda x: x + 1).nodes) == 3
