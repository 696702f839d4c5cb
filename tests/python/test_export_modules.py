"""What `ExportedProgram.module()` is: the checks of inputs as a call of their own, and where nodes come from."""
import copy
import io
import json
import re
import subprocess
import sys
import warnings
import zipfile

import pytest

import umbra as torch
from umbra._dynamo.exc import UserError
from umbra._export.verifier import SpecViolationError
from umbra.export import Dim, export, unflatten


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return self.lin(x) + self.count


def function(f):
    class Function(torch.nn.Module):
        forward = staticmethod(f)
    return Function()


def calls(program):
    return [node for node in program.graph.nodes if node.op == "call_function"]


def names(graph):
    return [(node.op, node.name) for node in graph.nodes]


def test_guards_are_the_first_call_of_the_module():
    module = export(Layer(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("b", max=8)},)).module()
    assert names(module.graph)[:5] == [("get_attr", "lin_weight"), ("get_attr", "lin_bias"), ("get_attr", "count"), ("placeholder", "x"),
                                       ("call_module", "_guards_fn")]
    assert "_guards_fn = self._guards_fn(x);  _guards_fn = None" in module.code
    assert type(module._guards_fn).__name__ == "GuardsFn" and "_guards_fn" in dict(module.named_modules())
    with pytest.raises(AssertionError, match=r"^Guard failed: x.size\(\)\[1\] == 3"):
        module(torch.ones(2, 4))
    with pytest.raises(AssertionError, match=r"^Guard failed: x.size\(\)\[0\] <= 8"):
        copy.deepcopy(module)(torch.ones(9, 3))


def test_a_graph_without_its_guards_takes_what_it_is_given():
    module = export(function(lambda x: x + 1), (torch.ones(2),)).module()
    module.graph.erase_node(next(node for node in module.graph.nodes if node.op == "call_module"))
    module.recompile()
    assert module(torch.ones(3)).shape == (3,)
    assert module(torch.ones(2)).shape == (2,)


def test_guards_may_be_left_to_the_call():
    module = export(function(lambda x: x + 1), (torch.ones(2),)).module(check_guards=False)
    assert "_guards_fn" not in module.code
    with pytest.raises(RuntimeError, match=r"^Expected input at \*args\[0\].shape\[0\] to be equal to 2, but got 3"):
        module(torch.ones(3))


def test_dead_code_elimination_keeps_guards():
    module = export(function(lambda x: x + 1), (torch.ones(2),)).module()
    module.graph.eliminate_dead_code()
    assert ("call_module", "_guards_fn") in names(module.graph)


def test_exporting_the_module_again_keeps_its_guards():
    program = export(function(lambda x: x + 1 if x.shape[0] > 3 else x), (torch.ones(5),), dynamic_shapes=({0: Dim.AUTO},))
    again = export(program.module(), (torch.ones(6),), dynamic_shapes=({0: Dim.AUTO},))
    assert [node.op for node in again.graph.nodes] == ["placeholder", "call_function", "output"]
    with pytest.raises(AssertionError, match="Guard failed"):
        again.module()(torch.ones(2))


def chain(node):
    """The nodes that a node was made of, newest first."""
    found, sources = [], node.meta.get("from_node", [])
    while sources:
        found.append((sources[0].name, sources[0].target, sources[0].pass_name, sources[0]._get_action_string()))
        sources = sources[0].from_node
    return found


def test_nodes_know_which_nodes_they_were_made_of():
    program = export(Layer(), (torch.ones(2, 3),))
    assert all("from_node" not in node.meta for node in program.graph.nodes)
    nodes = {node.name: node for node in program.module().graph.nodes}
    assert chain(nodes["linear"]) == [("linear", "aten.linear.default", "ExportedProgram.module()", "create")]
    assert chain(nodes["lin_weight"]) == [("p_lin_weight", "p_lin_weight", "ExportedProgram.module().unlift()", "create+replace"),
                                          ("p_lin_weight", "p_lin_weight", "ExportedProgram.module()", "create")]
    parts = {node.name: node for node in program.run_decompositions().graph.nodes}
    for name in ("permute", "addmm"):
        assert chain(parts[name]) == [("linear", "aten.linear.default", "Interpreter_PropagateUnbackedSymInts", "create"),
                                      ("linear", "aten.linear.default", "ExportedProgram.module()", "create")]
        assert parts[name].meta["torch_fn"] == nodes["linear"].meta["torch_fn"]


def test_origins_are_part_of_files():
    program = export(Layer(), (torch.ones(2, 3),)).run_decompositions()
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    for before, after in zip(calls(program), calls(loaded)):
        assert chain(before) == chain(after) and before.meta["torch_fn"] == after.meta["torch_fn"]


def test_a_tensor_given_twice_is_one_tensor():
    x = torch.ones(2, 3)
    program = export(function(lambda a, b: a + b if a is b else a - b), (x, x))
    assert "torch.ops.aten.add.Tensor(b, b)" in program.graph_module.code
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    packed = export(attention, (x, x, x))
    assert sum("linear" in node.name for node in packed.graph.nodes) == 2  # one product for the three, one for the result
    assert torch.allclose(packed.module()(x, x, x)[0], attention(x, x, x)[0], atol=1e-6)


def test_dims_of_a_tensor_given_twice_are_those_of_one_size():
    x = torch.ones(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = export(function(lambda a, b: a + b), (x, x), dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}))
        assert len(program.range_constraints) == 1
        with pytest.raises(Exception, match="b as dynamic but your code specialized"):
            export(function(lambda a, b: a + b), (x, x), dynamic_shapes=(None, {0: Dim("b")}))


def test_composites_that_a_table_leaves_out_stay_whole_inside_of_others():
    def my_linear(x, weight, bias):
        return torch.ops.aten.matmul(x, weight.t()) + bias
    program = export(torch.nn.Linear(3, 2), (torch.ones(4, 5, 3),)).run_decompositions({torch.ops.aten.linear.default: my_linear})
    assert [str(node.target) for node in calls(program)] == ["aten.t.default", "aten.matmul.default", "aten.add.Tensor"]
    table = torch.export.default_decompositions()
    del table[torch.ops.aten.matmul.default]
    x = torch.randn(2, 3, 4, 5)
    attention = export(function(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v)), (x, x + 1, x + 2)).run_decompositions(table)
    assert sum(str(node.target) == "aten.matmul.default" for node in attention.graph.nodes) == 2
    assert torch.allclose(attention.module()(x, x + 1, x + 2), torch.nn.functional.scaled_dot_product_attention(x, x + 1, x + 2), atol=1e-5)


def test_sizes_of_inputs_are_read_in_their_order():
    program = export(function(lambda x, y: y.reshape(y.shape[1], y.shape[0]) + x.shape[0]), (torch.ones(4), torch.ones(3, 5)),
                     dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}))
    sizes = [(node.name, str(node.args[0]), node.args[1]) for node in program.graph.nodes if "sym_size" in str(node.target)]
    assert sizes == [("sym_size_int_3", "x", 0), ("sym_size_int_4", "y", 0), ("sym_size_int_5", "y", 1)]


def test_ranges_are_declared_of_every_size():
    program = export(function(lambda x, y: x[1:] + y), (torch.ones(5), torch.ones(4)), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))
    assert str(program.range_constraints) == "{s17 + 1: VR[3, int_oo], s17: VR[2, int_oo]}"
    program = export(function(lambda x: x.sum() if x.shape[0] * x.shape[1] < 30 else x), (torch.ones(4, 6),),
                     dynamic_shapes=({0: Dim("a"), 1: Dim("b")},))
    assert {str(r) for r in program.range_constraints.values()} == {"VR[0, int_oo]"}
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(6, 6))


def test_sizes_of_starred_arguments_have_the_names_of_their_places():
    program = export(function(lambda *xs, **kw: xs[0] + xs[1].sum() + kw["z"].sum()), (torch.ones(3), torch.ones(4)), {"z": torch.ones(5)},
                     dynamic_shapes={"xs": ({0: Dim.AUTO}, {0: Dim.AUTO}), "kw": {"z": {0: Dim.AUTO}}})
    assert [str(node.meta["val"].shape[0]) for node in program.graph.find_nodes(op="placeholder")] == ["s31", "s80", "s10"]


def test_guards_on_starred_arguments_hold():
    program = export(function(lambda *xs, **kw: xs[0] + 1 if xs[0].shape[0] > kw["z"].shape[0] else xs[0]), (torch.ones(5),), {"z": torch.ones(4)},
                     dynamic_shapes={"xs": ({0: Dim.AUTO},), "kw": {"z": {0: Dim.AUTO}}})
    assert program.module()(torch.ones(7), z=torch.ones(6)).shape == (7,)
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(5), z=torch.ones(6))


def test_errors_that_a_draft_would_report_say_so():
    with pytest.raises(torch._dynamo.exc.UserError, match=r"replace your `export\(\)` call with `draft_export\(\)`\.$"):
        export(function(lambda x: x + torch.ones(4)), (torch.ones(4),), dynamic_shapes=({0: Dim("a")},))


def test_additional_inputs_are_checked_by_what_is_expected():
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(6),))
    with pytest.raises(RuntimeError, match=r"^Expected input at \*args\[0\].shape\[0\] to be equal to 4, but got 6"):
        more.verify(export(function(lambda x: x + 1), (torch.ones(4),)))


def test_files_have_sizes_as_they_turned_out():
    program = export(function(lambda x, y, z: x[1:] + y + z), (torch.ones(5), torch.ones(4), torch.ones(4)),
                     dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}, {0: Dim.AUTO}))
    file = io.BytesIO()
    torch.export.save(program, file)
    with zipfile.ZipFile(file) as archive:
        stored = json.loads(archive.read(next(name for name in archive.namelist() if name.endswith("models/model.json"))))
    sizes = {name: value["sizes"][0]["as_expr"]["expr_str"] for name, value in stored["graph_module"]["graph"]["tensor_values"].items()}
    symbols = {symbol for size in sizes.values() for symbol in re.findall(r"Symbol\('(\w+)'", size)}
    assert len(symbols) == 1 and symbols <= stored["range_constraints"].keys()
    file.seek(0)
    assert str(torch.export.load(file).range_constraints) == str(program.range_constraints)


def test_no_pointer_becomes_part_of_a_program():
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor"):
        export(function(lambda x: x + x.data_ptr()), (torch.ones(2),))


def test_bounds_of_hints_are_checked():
    with pytest.raises(AssertionError, match="min must be <= max, got min=5, max=2"):
        Dim.DYNAMIC(min=5, max=2)
    with pytest.raises(AssertionError, match="max must be non-negative, got -1"):
        Dim.AUTO(max=-1)
    with pytest.raises(TypeError, match="not callable"):
        Dim.AUTO(min=2)(max=3)


def test_results_with_names_are_read_by_who_never_made_one(tmp_path):
    program = export(function(lambda x: torch.ops.aten.kthvalue(x, 2)), (torch.arange(5.0),))
    torch.export.save(program, tmp_path / "named.pt2")
    code = f"import umbra; print(type(umbra.export.load({str(tmp_path / 'named.pt2')!r}).module()(umbra.arange(5.0))).__name__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == type(program.module()(torch.arange(5.0))).__name__


def test_graphs_of_modules_run_in_the_form_of_the_module():
    class Negated(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.ops.aten.neg.default if target is torch.ops.aten.relu.default else target, args, kwargs)
    x = torch.arange(3.0)
    module = export(function(lambda x, y: {"sum": torch.relu(x) + y[0]}), (x, [x.clone()])).module()
    expected = torch.relu(x) + x
    for run in (torch.fx.Interpreter(module).run, torch.fx.GraphModule(module, module.graph), torch.fx.symbolic_trace(module)):
        assert torch.equal(run(x, [x])["sum"], expected)
    changed = Negated(module).transform()
    assert torch.equal(changed(x, [x])["sum"], x - x)
    for each in (module, changed, torch.fx.symbolic_trace(module)):
        with pytest.raises(AssertionError, match="Guard failed"):
            each(torch.ones(4), [x])


def test_inputs_that_are_not_numbers_are_what_they_were():
    module = export(function(lambda x, y: x * y), (torch.ones(2), float("nan"))).module()
    assert module(torch.ones(2), float("nan")).isnan().all()
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(2), 1.0)


def test_what_is_no_archive_is_refused_as_such(tmp_path):
    (tmp_path / "text.pt2").write_text("hello")
    with pytest.raises(zipfile.BadZipFile, match="File is not a zip file"):
        torch.export.load(tmp_path / "text.pt2")
    with pytest.raises(zipfile.BadZipFile, match="File is not a zip file"):
        torch.export.load(io.BytesIO(b""))


# ---- what strict=True lifts ----

class PartlyUsed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.idle = torch.nn.Parameter(torch.ones(2))
        self.shift = torch.nn.Parameter(torch.ones(4))
        self.scale = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("kept", torch.ones(4))
        self.register_buffer("cache", torch.ones(4), persistent=False)
        self.same = self.shift

    def forward(self, x):
        return x * self.scale + self.same


def test_strict_programs_take_what_they_use_in_the_order_of_its_use():
    program = export(PartlyUsed(), (torch.ones(4),), strict=True)
    assert program.graph_signature.parameters == ("scale", "shift")
    assert program.graph_signature.buffers == ()
    assert list(program.state_dict) == ["idle", "shift", "scale", "same", "kept"]
    assert list(program.constants) == []
    assert program.module()(torch.full((4,), 3.)).tolist() == [4, 4, 4, 4]


def test_other_programs_take_all_parameters_and_buffers():
    program = export(PartlyUsed(), (torch.ones(4),))
    assert program.graph_signature.parameters == ("idle", "shift", "scale", "same")
    assert program.graph_signature.buffers == ("kept", "cache")


def test_modules_of_a_program_have_the_state_that_it_does_not_use():
    program = export(PartlyUsed(), (torch.ones(4),), strict=True)
    assert sorted(unflatten(program).state_dict()) == ["idle", "kept", "same", "scale", "shift"]


def test_strict_export_refuses_arguments_by_their_own_errors():
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        export(PartlyUsed(), (), strict=True)
    with pytest.raises(UserError, match="inputs with type"):
        export(PartlyUsed(), (object(),), strict=True)


def test_parameters_of_a_program_are_parameters():
    program = export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    program.state_dict["weight"] = torch.ones(2, 2)
    with pytest.raises(SpecViolationError, match="weight is not an instance of torch.nn.Parameter"):
        program.validate()


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3)) for _ in range(2)])
        self.idle = torch.nn.Linear(1, 1)

    def forward(self, x, *, scale):
        for layer in self.layers:
            x = layer(x) * scale
        return x


def test_parts_of_an_unflattened_program_stand_in_the_order_of_the_model():
    whole = unflatten(export(Stack(), (torch.ones(2, 3),), {"scale": 2.0}))
    assert [name for name, _ in whole.named_modules()] == ["", "layers", "layers.0", "layers.0.0", "layers.0.1", "layers.0.2", "layers.1", "layers.1.0",
                                                           "layers.1.1", "layers.1.2", "idle"]
    assert type(whole.layers).__name__ == "InterpreterModule" and type(whole.idle).__name__ == "Module"


def test_what_an_unflattened_program_refuses():
    whole = unflatten(export(Stack(), (torch.ones(2, 3),), {"scale": 2.0}))
    with pytest.raises(TypeError, match="There is no flat args adapter specified"):
        whole(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"^Expected input at \*args\[0\].shape\[0\] to be equal to 2, but got 4"):
        whole(torch.ones(4, 3), scale=2.0)


def test_an_input_by_another_name_than_in_the_signature_is_found():
    program = export(Layer(), (torch.ones(1, 3),))
    node = next(iter(program.graph.nodes))
    node.name = "renamed"
    with pytest.raises(SpecViolationError, match="Input spec .* does not match node name renamed"):
        program.validate()


def test_modules_without_sizes_are_refused():
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        export(torch.nn.LazyLinear(2), (torch.ones(1, 3),))


def test_what_export_is_asked_for_and_has_not():
    with pytest.raises(AttributeError, match="'Layer' object has no attribute 'other'"):
        export(Layer(), (torch.ones(1, 3),), preserve_module_call_signature=("other",))
    with pytest.raises(ValueError, match=r"for dimension inputs\[0\].shape\[0\]"):
        export(Layer(), (torch.ones(1, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))


def test_a_transform_of_frames_pads_first():
    class Frames(torch.nn.Module):
        def forward(self, x):
            return torch.stft(x, 4, window=torch.ones(4), return_complex=True).abs()
    program = export(Frames(), (torch.ones(2, 16),), dynamic_shapes=({1: Dim.AUTO},))
    calls = [str(node.target) for node in program.graph.nodes if node.op == "call_function" and node.target is not torch.ops.aten.sym_size.int]
    assert calls == ["aten.ones.default", "aten.view.default", "aten.pad.default", "<built-in function add>", "aten.view.default", "aten.stft.default",
                     "aten.abs.default"]
    assert torch.allclose(program.module()(torch.arange(24.0).view(2, 12)), Frames()(torch.arange(24.0).view(2, 12)))


def test_symbols_of_strict_capture_are_named_after_the_flat_inputs():
    class Product(torch.nn.Module):
        def forward(self, x, y):
            return x @ y["b"][0]
    n = Dim("n")
    args = (torch.ones(2, 3), {"b": [torch.ones(3, 4)]})
    strict = export(Product(), args, dynamic_shapes=({0: Dim.AUTO}, {"b": [{1: Dim.AUTO}]}), strict=True)
    assert str(strict.range_constraints) == "{s6: VR[2, int_oo], s96: VR[2, int_oo]}"
    assert str(export(Product(), args, dynamic_shapes=({0: n}, {"b": [None]}), strict=True).range_constraints) == "{s6: VR[0, int_oo]}"
    with pytest.raises(AssertionError, match=r"x.size\(\)\[1\] == 3"):
        strict.module()(torch.ones(2, 4), args[1])


def test_an_unflattened_program_has_constants_of_its_own():
    class Sums(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.total = torch.zeros(2)

        def forward(self, x):
            self.total.add_(x)
            return self.total * 1
    program = export(Sums(), (torch.ones(2),))
    whole = unflatten(program)
    assert whole(torch.ones(2)).tolist() == [1, 1] and whole(torch.ones(2)).tolist() == [2, 2]
    assert program.constants["total"].tolist() == [0, 0]
