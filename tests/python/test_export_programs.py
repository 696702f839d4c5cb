"""Exported programs as objects: regions of autocast, signatures that are changed, passes, drafts, names."""
import collections
import copy
import io
import operator

import pytest

import umbra as torch
from export_functions import Function, reloaded
from umbra._export.pass_base import _ExportPassBaseDeprecatedDoNotUse
from umbra._export.verifier import SpecViolationError
from umbra.export import Dim, export
from umbra.export.graph_signature import ExportGraphSignature, OutputKind, OutputSpec, TensorArgument
from umbra.fx.passes.infra.pass_base import PassResult
from umbra.nn import functional as F


def program(function, *example, dynamic=None):
    return export(Function(function), example, dynamic_shapes=dynamic)


def targets(exported):
    return [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]


# ---- autocast ----

def cast_product(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ y
    return product + 1


def test_a_region_of_autocast_is_a_graph_of_its_own():
    exported = program(cast_product, torch.ones(2, 2), torch.ones(2, 2))
    assert targets(exported) == ["wrap_with_autocast", "<built-in function getitem>", "aten.add.Tensor"]
    (call,) = [node for node in exported.graph.nodes if str(node.target) == "wrap_with_autocast"]
    assert call.args[:4] == ("cpu", torch.bfloat16, True, False)
    for one in (exported, reloaded(exported)):
        result = one.module()(torch.full((2, 2), 1.001), torch.ones(2, 2))
        assert result.dtype is torch.bfloat16 and result[0, 0] == cast_product(torch.full((2, 2), 1.001), torch.ones(2, 2))[0, 0]


def test_casts_stand_in_the_order_of_pytorch():
    def function(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.nn.functional.linear(x, y)
    casts = [node.args[0].name for node in program(function, torch.ones(2, 2), torch.ones(2, 2)).run_decompositions().graph.nodes if "_to_copy" in node.name]
    assert casts == ["y", "x"]


def test_regions_of_autocast_stand_inside_each_other():
    def function(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            short = x @ y
            with torch.autocast("cpu", enabled=False):
                full = x @ y
        return short, full
    exported = program(function, torch.ones(2, 2), torch.ones(2, 2))
    short, full = exported.module()(torch.ones(2, 2), torch.ones(2, 2))
    assert (short.dtype, full.dtype) == (torch.bfloat16, torch.float32)
    assert [str(node.target) for node in exported.graph_module.submod_1.graph.nodes].count("wrap_with_autocast") == 1


def test_gradients_flow_through_a_region_of_autocast():
    module = program(cast_product, torch.ones(2, 2), torch.ones(2, 2)).module()
    x = torch.ones(2, 2, requires_grad=True)
    module(x, torch.full((2, 2), 2.0)).sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_decomposed_program_has_the_casts_of_its_region():
    decomposed = program(cast_product, torch.ones(2, 2), torch.ones(2, 2)).run_decompositions()
    assert decomposed.module()(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.bfloat16


def test_a_region_around_export_is_refused():
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(NotImplementedError, match="begin inside the program"):
        program(lambda x: x @ x, torch.ones(2, 2))


# ---- programs as objects ----

def test_a_changed_signature_counts():
    exported = program(lambda x: x.sin() + 1, torch.ones(4))
    exported.graph_signature.output_specs[0].arg.name = "nothing"
    with pytest.raises(SpecViolationError):
        exported.validate()


def test_a_function_that_is_no_operator_is_found_by_the_verifier():
    exported = program(lambda x: x.sin(), torch.ones(4))
    output = next(node for node in exported.graph.nodes if node.op == "output")
    with exported.graph.inserting_before(output):
        exported.graph.call_function(torch.sin, (next(iter(exported.graph.nodes)),))
    with pytest.raises(SpecViolationError, match="not an allowed operator type"):
        exported.validate()


def test_parts_of_a_program_cannot_be_set():
    exported = program(lambda x: x.sin(), torch.ones(4))
    for name in ("graph_module", "graph_signature", "state_dict", "range_constraints", "call_spec"):
        with pytest.raises(RuntimeError, match=f"Unable to set ExportedProgram's {name} attribute"):
            setattr(exported, name, None)
    exported.example_inputs = ((torch.zeros(4),), {})
    assert exported.example_inputs[0][0].sum() == 0


def test_constants_are_no_state_of_the_module():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.ones(2))
            self.constant = torch.full((2,), 3.0)

        def forward(self, x):
            return x + self.kept + self.constant
    module = export(Model(), (torch.ones(2),)).module()
    assert list(module.state_dict()) == ["kept"] and module.constant.tolist() == [3.0, 3.0]
    assert module(torch.ones(2)).tolist() == [5.0, 5.0]


def test_an_ordered_dict_is_taken_in_its_order():
    class Model(torch.nn.Module):
        def forward(self, d):
            return d["a"] - d["b"]
    one, two = torch.ones(2), torch.full((2,), 2.0)
    module = export(Model(), (collections.OrderedDict(a=one, b=two),)).module()
    assert module(collections.OrderedDict(a=two, b=one)).tolist() == [1.0, 1.0]
    for given in (collections.OrderedDict(b=one, a=two), {"a": two, "b": one}):
        with pytest.raises(ValueError, match="tree spec"):
            module(given)
    assert export(Model(), ({"a": one, "b": two},)).module()({"b": one, "a": two}).tolist() == [1.0, 1.0]


def test_specs_print_as_they_do_in_the_signature():
    signature = export(torch.nn.Linear(2, 2), (torch.ones(2),)).graph_signature
    assert str(signature.input_specs[0]) == "p_weight: PARAMETER target='weight'"
    assert str(signature.output_specs[0]) == "linear: USER_OUTPUT"


# ---- names ----

def test_inputs_keep_names_that_python_has_a_use_for():
    exported = export(torch.nn.Linear(2, 2), (torch.ones(2),))
    assert [node.name for node in exported.graph.nodes] == ["p_weight", "p_bias", "input", "linear", "output"]
    assert [node.name for node in reloaded(exported).graph.nodes] == ["p_weight", "p_bias", "input", "linear", "output"]
    assert "def forward(self, p_weight, p_bias, input):" in exported.graph_module.code


def test_sizes_that_are_equal_are_called_after_the_first_by_name():
    exported = program(lambda x, y: x + y, torch.ones(4), torch.ones(4), dynamic=({0: Dim.AUTO}, {0: Dim.AUTO}))
    assert list(map(str, exported.range_constraints)) == ["s17"]
    n = Dim("n")
    assert list(map(str, program(lambda x, y: x + y, torch.ones(4), torch.ones(4), dynamic=({0: n}, {0: n})).range_constraints)) == ["s17"]


def test_a_literal_is_lifted_and_detached():
    exported = program(lambda x: x * torch.tensor([1.0, 2.0]), torch.ones(2))
    assert targets(exported) == ["aten.lift_fresh_copy.default", "aten.detach_.default", "aten.mul.Tensor"]
    assert targets(exported.run_decompositions()) == ["aten.clone.default", "aten.mul.Tensor"]
    assert exported.module()(torch.ones(2)).tolist() == [1.0, 2.0]


# ---- decompositions ----

def test_running_statistics_are_results_of_a_functional_program():
    model = torch.nn.BatchNorm1d(2)
    for table in ({}, None):
        decomposed = export(model, (torch.ones(3, 2),)).run_decompositions(table)
        assert set(decomposed.graph_signature.buffers_to_mutate.values()) == {"running_mean", "running_var", "num_batches_tracked"}
        assert "aten.batch_norm.default" not in targets(decomposed)
        module = decomposed.module()
        module(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        assert module.running_mean.tolist() == pytest.approx([0.3, 0.4])
        model.reset_running_stats()


def test_export_below_autograd_takes_composites_apart():
    from umbra.export._trace import _export
    below = _export(Function(lambda x: F.linear(x, x)), (torch.ones(2, 2),), pre_dispatch=False)
    assert targets(below) == ["aten.t.default", "aten.mm.default"]


# ---- passes ----

class SineToCosine(_ExportPassBaseDeprecatedDoNotUse):
    def call_operator(self, op, args, kwargs, meta):
        op = torch.ops.aten.cos.default if op == torch.ops.aten.sin.default else op
        return super().call_operator(op, args, kwargs, meta)


def test_a_pass_rebuilds_the_graph_call_by_call():
    exported = program(lambda x: x.sin() + 1, torch.ones(4))
    result = SineToCosine()(exported.graph_module)
    assert result.modified and [str(node.target) for node in result.graph_module.graph.nodes] == ["x", "aten.cos.default", "aten.add.Tensor", "output"]
    assert exported._transform_do_not_use(SineToCosine()).module()(torch.zeros(4)).tolist() == [2.0] * 4
    assert exported.module()(torch.zeros(4)).tolist() == [1.0] * 4


def test_a_pass_may_change_the_graph_in_place():
    def to_cosine(module):
        for node in module.graph.nodes:
            if node.target == torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default
        return PassResult(module, True)
    exported = program(lambda x: x.sin() + 1, torch.ones(4))
    assert exported._transform_do_not_use(to_cosine).module()(torch.zeros(4)).tolist() == [2.0] * 4


# ---- drafts ----

def test_a_draft_of_a_sound_program_has_no_failures():
    draft = torch.export.draft_export(Function(lambda x: x + 1), (torch.ones(2),))
    assert draft._report.successful() and targets(draft) == ["aten.add.Tensor"]


def test_a_draft_answers_questions_about_data_by_the_example_and_asserts_them():
    with pytest.warns(UserWarning, match="1 issue"):
        draft = torch.export.draft_export(Function(lambda x: x + 1 if x.item() > 2 else x - 1), (torch.tensor(5),))
    assert not draft._report.successful()
    assert [failure.failure_type.name for failure in draft._report.failures] == ["DATA_DEPENDENT_ERROR"]
    assert "u0 > 2" in str(draft._report) or "2 < u0" in str(draft._report)
    assert draft.module()(torch.tensor(3)) == 4
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        draft.module()(torch.tensor(1))


def test_a_draft_lets_named_dimensions_become_automatic():
    with pytest.warns(UserWarning, match="issue"):
        draft = torch.export.draft_export(Function(lambda x, y: x + y), (torch.ones(3), torch.ones(3)),
                                          dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}))
    assert [failure.failure_type.name for failure in draft._report.failures] == ["GUARD_ADDED"]
    assert draft.module()(torch.ones(5), torch.ones(5)).shape == (5,)


# ---- gradients, strictness ----

def test_detaching_in_place_cuts_gradients_off_in_the_program():
    def function(x):
        y = x.clone()
        y.detach_()
        return y * x
    exported = program(function, torch.ones(2))
    assert targets(exported) == ["aten.clone.default", "aten.detach_.default", "aten.mul.Tensor"]
    x = torch.full((2,), 3.0, requires_grad=True)
    exported.module()(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_strict_export_has_its_own_names_for_what_it_cannot_follow():
    def strict(function, example):
        return export(Function(function), (example,), strict=True)

    def fails(x):
        raise ValueError("not here")
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Data-dependent branching"):
        strict(lambda x: x + 1 if x.sum() > 0 else x, torch.ones(2))
    with pytest.raises(torch._dynamo.exc.UserError, match="Consider annotating"):
        strict(lambda x: x + 1 if x.item() > 2 else x, torch.tensor(3))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="ValueError: not here"):
        strict(fails, torch.ones(2))
    with pytest.raises(ValueError, match="not here"):
        program(fails, torch.ones(2))


def test_a_module_without_guards_still_refuses_inputs_that_do_not_fit():
    exported = program(lambda x: x * 2, torch.ones(4))
    with pytest.raises(RuntimeError) as error:
        exported.module(check_guards=False)(torch.ones(5))
    assert type(error.value) is RuntimeError


def test_conditions_on_sizes_can_be_left_to_the_run():
    exported = export(Function(lambda x, y: x.reshape(2, -1) + y.sum()), (torch.ones(4), torch.ones(3)),
                      dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}), prefer_deferred_runtime_asserts_over_guards=True)
    assert [str(bounds) for bounds in exported.range_constraints.values()] == ["VR[0, int_oo]", "VR[0, int_oo]"]
    assert exported.module()(torch.ones(6), torch.ones(2)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        exported.module()(torch.ones(5), torch.ones(2))
    with pytest.raises(torch._dynamo.exc.UserError, match="must always be equal"):
        export(Function(lambda x, y: x + y), (torch.ones(4), torch.ones(4)), dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}),
               prefer_deferred_runtime_asserts_over_guards=True)


def test_a_fake_tensor_can_be_said_to_be_on_another_device():
    from umbra._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        x = torch.ones(2, 2)
        x.fake_device = torch.device("cuda:0")
        assert x.device == torch.device("cuda:0") and (x @ x).device == torch.device("cuda:0")


class Labelled(torch.Tensor):
    """A tensor with a label, which results keep."""

    @staticmethod
    def __new__(cls, inner, label):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner, label):
        self.inner, self.label = inner, label

    def __tensor_flatten__(self):
        return ["inner"], self.label

    @staticmethod
    def __tensor_unflatten__(parts, label, size, stride):
        return Labelled(parts["inner"], label)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        from umbra.utils._pytree import tree_leaves, tree_map
        label = next(t.label for t in tree_leaves((args, kwargs)) if isinstance(t, Labelled))
        args, kwargs = tree_map(lambda t: t.inner if isinstance(t, Labelled) else t, (args, kwargs or {}))
        return tree_map(lambda t: Labelled(t, label) if isinstance(t, torch.Tensor) else t, function(*args, **kwargs))


def test_a_tensor_class_is_an_input_of_a_program_and_comes_to_its_handler_when_that_runs():
    import io
    model = torch.nn.Linear(2, 2)
    program = torch.export.export(model, (Labelled(torch.ones(3, 2), "example"),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for each in (program, program.run_decompositions(), torch.export.load(file)):
        for rows in (3, 5):
            result = each.module()(Labelled(torch.ones(rows, 2), "given"))
            assert type(result) is Labelled and result.label == "given" and torch.allclose(result.inner, model(torch.ones(rows, 2)))
        assert type(each.module()(torch.ones(3, 2))) is torch.Tensor


class Pair(torch.Tensor):
    """Two tensors, to which everything is done."""

    @staticmethod
    def __new__(cls, a, b, shape=None):
        return torch.Tensor._make_wrapper_subclass(cls, shape or a.shape, dtype=a.dtype, requires_grad=a.requires_grad)

    def __init__(self, a, b, shape=None):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Pair(parts["a"], parts["b"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        from umbra.utils._pytree import tree_map
        one, other = (function(*tree_map(lambda t: getattr(t, part) if isinstance(t, Pair) else t, args), **kwargs or {}) for part in "ab")
        return Pair(one, other) if isinstance(one, torch.Tensor) else one


class Paired(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(Pair(torch.tensor([1., 2, 3]), torch.tensor([4., 5, 6])))

    def forward(self, x):
        return {"sum": x.sum(0), "pair": x * self.weight, "own": Pair(x, x + 1)}


def same(result, expected):
    return type(result) is Pair and torch.equal(result.a, expected.a) and torch.equal(result.b, expected.b) and result.shape == expected.shape


def test_a_result_that_is_a_wrapper_is_put_together_by_each_call():
    module = Paired()
    program = torch.export.export(module, (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert program.graph_signature.user_outputs == ("sum_1", "mul", "mul_1", "x", "add")
    again = torch.export.export(program.module(), (torch.ones(2, 3),))
    for each in (program.module(), program.run_decompositions().module(), torch.export.unflatten(program), again.module()):
        x = torch.arange(6.0).view(2, 3)
        result, expected = each(x), module(x)
        assert all(same(result[key], expected[key]) for key in ("pair", "own")) and torch.equal(result["sum"], expected["sum"])
    x = torch.ones(5, 3)
    assert same(program.module()(x)["pair"], module(x)["pair"])


def test_gradients_go_through_a_result_that_is_a_wrapper_to_the_parameter_that_is_one():
    module, given, x = Paired(), Pair(torch.ones(2, 3), torch.full((2, 3), 10.0)), torch.full((2, 3), 2.0)
    exported = torch.export.export(module, (x,)).module()
    assert [name for name, parameter in exported.named_parameters() if parameter.requires_grad] == [
        "parametrizations.weight.original0", "parametrizations.weight.original1"]
    gradients = torch.autograd.grad(exported(x)["pair"], list(exported.parameters()), given)
    assert same(Pair(*gradients), torch.autograd.grad(module(x)["pair"], module.weight, given)[0])
    assert not module.weight.a.requires_grad
    with torch.no_grad():
        assert not exported(x)["pair"].requires_grad


def test_wrappers_that_no_call_or_file_could_make_are_refused(tmp_path):
    class Other(torch.nn.Module):
        def forward(self, x):
            return Pair(x, x, (x.shape[0] + 1, 3))
    rows = ({0: torch.export.Dim("rows")},)
    with pytest.raises(NotImplementedError, match="a Pair whose sizes vary and are those of no tensor inside it"):
        torch.export.export(Other(), (torch.ones(2, 3),), dynamic_shapes=rows)
    with pytest.raises(NotImplementedError, match="a Pair, which a file cannot tell how to make"):
        torch.export.save(torch.export.export(Paired(), (torch.ones(2, 3),)), tmp_path / "pair.pt2")


# ---- devices ----

def test_a_program_moves_to_another_device():
    from umbra.export.passes import move_to_device_pass

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.constant = torch.ones(2)

        def forward(self, x):
            return (x * self.weight + self.constant + torch.zeros(2)).to("cpu"), torch.tensor([1.0, 2.0]) * x
    exported = move_to_device_pass(export(Net(), (torch.ones(2),)), {"cpu": "meta", "cuda:0": "cpu"})
    assert {str(tensor.device) for tensor in (*exported.state_dict.values(), *exported.constants.values(), exported.example_inputs[0][0])} == {"meta"}
    assert isinstance(exported.state_dict["weight"], torch.nn.Parameter)
    assert {str(node.meta["val"].device) for node in exported.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)} == {"meta"}
    assert [result.device.type for result in exported.module()(torch.ones(2, device="meta"))] == ["meta", "meta"]
    unmoved = move_to_device_pass(export(Net(), (torch.ones(2),)), {"cuda:0": "meta"})
    assert unmoved.module()(torch.ones(2))[0].tolist() == [2, 2]


def test_floats_of_the_run_have_their_range_in_the_text():
    exported = program(lambda x, y: y * x.item(), torch.tensor(2.5), torch.ones(2))
    assert str(exported.range_constraints) == "{zuf0: VR[-oo, oo]}" and "Range constraints: {zuf0: VR[-oo, oo]}" in str(exported)


def test_modules_of_a_program_tell_which_condition_an_input_breaks():
    flat = torch.export.unflatten(program(lambda x: x.reshape(3, -1), torch.ones(6), dynamic=({0: Dim.AUTO},)))
    with pytest.raises(RuntimeError, match=r"Guard failed: x.size\(\)\[0\] % 3 == 0"):
        flat(torch.ones(7))


def test_the_verifier_looks_into_branches():
    def choose(x):
        return torch.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))

    program = export(Function(choose), (torch.ones(3),)).run_decompositions({})
    program.validate()
    node = program.graph_module.true_graph_0.graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor)[0]
    node.target = torch.ops.aten.add_.Tensor
    with pytest.raises(SpecViolationError, match="not functional"):
        program.validate()


def test_with_strict_what_a_program_logs_is_no_part_of_it():
    import logging
    seen = []
    logger = logging.getLogger("umbra.tests.export")
    logger.addFilter(lambda record: seen.append(record.getMessage()))

    def told(x):
        logger.warning("inside")
        return x + 1
    export(Function(told), (torch.ones(2),), strict=True)
    logger.warning("outside")
    export(Function(told), (torch.ones(2),))
    assert seen == ["outside", "inside"]


def test_keywords_in_the_order_of_a_program_and_structures_that_are_alike():
    from umbra.export._tree_utils import is_equivalent, reorder_kwargs
    from umbra.utils._pytree import tree_structure
    spec = tree_structure(((1,), {"a": 1, "b": 2}))
    assert list(reorder_kwargs({"b": 1, "a": 2}, spec)) == ["a", "b"]
    with pytest.raises(ValueError, match="kwarg keyword mismatch"):
        reorder_kwargs({"b": 1}, spec)

    def by_type(type1, context1, type2, context2):
        return type1 is type2 or {type1, type2} == {list, tuple}
    assert is_equivalent(tree_structure([1, (2,)]), tree_structure((1, [2])), by_type)
    assert not is_equivalent(tree_structure([1, (2,)]), tree_structure((1, {"a": 2})), by_type)


def test_results_that_are_alike():
    from umbra._dynamo.utils import same
    assert same([torch.ones(2), 3], [torch.ones(2) + 1e-6, 3])
    assert not same([torch.ones(2)], [torch.zeros(2)]) and not same([torch.ones(2)], (torch.ones(2),))


def test_the_tables_of_a_signature_are_to_read():
    tables = export(torch.nn.Linear(2, 2), (torch.ones(2),)).graph_signature
    assert tables.inputs_to_parameters == {"p_weight": "weight", "p_bias": "bias"}
    with pytest.raises(TypeError):
        tables.inputs_to_parameters["x"] = "weight"


def notes(program):
    return {node.name: node.meta["custom"] for node in program.graph.nodes if "custom" in node.meta}


def test_what_users_note_of_nodes_is_there_in_programs_made_of_the_program():
    program = export(torch.nn.Linear(3, 3), (torch.ones(2, 3),))
    for node in program.graph.nodes:
        node.meta["custom"] = {"of": node.name}
    program.graph_module.meta["custom"] = {"whole": 1}
    decomposed, again = program.run_decompositions(), export(program.module(), (torch.ones(2, 3),))
    weights = {name: {"of": name} for name in ("p_weight", "p_bias")}
    assert notes(decomposed) == {**weights, "input": {"of": "input"}, "permute": {"of": "linear"}, "addmm": {"of": "linear"}, "output": {"of": "output"}}
    assert notes(again) == {**weights, "linear": {"of": "linear"}}
    assert decomposed.graph_module.meta["custom"] == again.graph_module.meta["custom"] == {"whole": 1}


def test_a_program_takes_another_graph_and_signature():
    program = export(Function(lambda x: torch.topk(x, 2)), (torch.arange(3.),))
    module = copy.deepcopy(program.graph_module)
    output = module.graph.output_node()
    with module.graph.inserting_before(output):
        item = module.graph.call_function(operator.getitem, (output.args[0][0].args[0], 0))
    output.args = ((*output.args[0], item),)
    specs = program.graph_signature.output_specs
    signature = ExportGraphSignature(program.graph_signature.input_specs, [*specs, OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(item.name), None)])
    changed = program._update(module, signature)
    assert [node.target for node in changed.graph.nodes].count(operator.getitem) == 2
    assert len(changed.graph_signature.output_specs) == 3 and len(program.graph_signature.output_specs) == 2


def test_composites_of_users_libraries_come_apart_where_the_table_has_them():
    earlier = torch.export.default_decompositions()
    with torch.library._scoped_library("export_programs", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x.sin() + 1, "CompositeImplicitAutograd")
        program = export(Function(lambda x: torch.ops.export_programs.twice(x) * 2), (torch.ones(3),))
        table = torch.export.default_decompositions()
        assert table.pop(torch.ops.export_programs.twice.default) is not None
        with pytest.raises(KeyError, match="export_programs.twice.default"):
            table.pop(torch.ops.export_programs.twice.default)
        assert targets(program.run_decompositions()) == targets(program.run_decompositions(earlier)) == ["aten.sin.default", "aten.add.Tensor", "aten.mul.Tensor"]
        whole = ["export_programs.twice.default", "aten.mul.Tensor"]
        assert targets(program.run_decompositions({})) == targets(program.run_decompositions(table)) == targets(program) == whole


def test_the_code_of_a_moved_program_names_the_new_device():
    from umbra.export.passes import move_to_device_pass
    moved = move_to_device_pass(program(lambda x: torch.cond(x.sum() > 0, lambda x: x + torch.ones(2), lambda x: x.clone(), (x + torch.ones(2),)), torch.ones(2)), "meta")
    assert "device(type='meta')" in moved.graph_module.code and "device(type='meta')" in moved.graph_module.true_graph_0.code


def test_what_is_computed_of_weights_alone_is_computed_once():
    from umbra._export.passes.constant_folding import constant_fold

    class Folded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.shift, self.count = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Buffer(torch.ones(2)), torch.nn.Buffer(torch.zeros(2))

        def forward(self, x):
            self.count.add_(1)
            return x @ (self.weight.t() * 2 + self.shift) + self.count + self.shift.exp() * torch.rand(2)
    module = export(Folded(), (torch.ones(2, 2),)).module()
    torch.manual_seed(0)
    expected = Folded()(torch.ones(2, 2))
    constant_fold(module)
    assert [name for name, _ in module.named_buffers()] == ["count", "_frozen_param0", "_frozen_param1"] and not list(module.parameters())
    assert [str(node.target) for node in module.graph.nodes if node.op == "call_function"] == [
        "aten.add_.Tensor", "aten.matmul.default", "aten.add.Tensor", "aten.rand.default", "aten.mul.Tensor", "aten.add.Tensor"]
    torch.manual_seed(0)
    assert torch.equal(module(torch.ones(2, 2)), expected)
    assert torch.equal(module.count, torch.ones(2))  # the written buffer goes on


def test_passes_name_nodes_as_exported_graphs_do():
    from umbra._export.pass_base import _ExportPassBaseDeprecatedDoNotUse as Pass
    program = export(Function(lambda x: (x + 2).relu_()), (torch.ones(2),))
    assert [node.name for node in Pass()(program.graph_module).graph_module.graph.nodes] == [node.name for node in program.graph.nodes]
