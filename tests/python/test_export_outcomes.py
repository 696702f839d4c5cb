"""What export and its programs do at the edges: specifications that do not fit, inputs of other types, changed state, files of several programs."""
import enum
import io

import pytest

import umbra
from export_functions import Function
from umbra import nn
from umbra._dynamo.exc import UserError
from umbra._subclasses.fake_tensor import MetadataMismatchError
from umbra.export import Dim, draft_export, export, load, unflatten
from umbra.export.experimental import _export_forward_backward, _sticky_export
from umbra.export.pt2_archive._package import load_pt2, package_pt2


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(umbra.ones(2))
        self.register_buffer("shift", umbra.zeros(2))

    def forward(self, x):
        return x * self.weight + self.shift


def targets(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


class TestDynamicShapes:
    def test_a_hint_for_a_dimension_that_is_not_there_hints_at_nothing(self):
        program = export(Function(lambda x: x + 1), (umbra.ones(4, 2),), dynamic_shapes=({2: Dim.AUTO},))
        assert not program.range_constraints

    def test_a_name_for_a_dimension_that_is_not_there_is_refused(self):
        with pytest.raises(IndexError):
            export(Function(lambda x: x + 1), (umbra.ones(4, 2),), dynamic_shapes=({2: Dim("b")},))

    def test_dimensions_are_numbers(self):
        with pytest.raises(AssertionError, match="Expected index to be int"):
            export(Function(lambda x: x + 1), (umbra.ones(4, 2),), dynamic_shapes=({"0": Dim.AUTO},))

    def test_an_error_has_its_text_as_msg(self):
        with pytest.raises(UserError) as caught:
            export(Function(lambda x, y: x + y), (umbra.ones(4), umbra.ones(4)), dynamic_shapes=({0: Dim("d")}, {0: Dim("e")}))
        assert "Suggested fixes:" in caught.value.msg

    def test_ranges_have_ends_that_compare(self):
        program = export(Function(lambda x: x + 1), (umbra.ones(4),), dynamic_shapes=({0: Dim("b", min=2)},))
        constraint, = program.range_constraints.values()
        assert str(constraint.upper) == "int_oo" and constraint.upper > 10**30 and 7 in constraint and 1 not in constraint

    def test_a_float_read_from_data_has_a_range(self):
        program = export(Function(lambda x, y: x * y.item()), (umbra.ones(2), umbra.tensor(2.5)))
        assert [str(r) for r in program.range_constraints.values()] == ["VR[-oo, oo]"]


class TestGraph:
    def test_what_nobody_uses_stays(self):
        assert targets(export(Function(lambda x: (x.sin(), x.cos())[1]), (umbra.ones(2),))) == ["aten.sin.default", "aten.cos.default"]
        assert len(targets(export(Function(lambda x: x.max(0)[0]), (umbra.ones(2, 2),)))) == 3

    def test_what_nobody_uses_goes_with_decompositions(self):
        assert targets(export(Function(lambda x: (x.sin(), x.cos())[1]), (umbra.ones(2),)).run_decompositions()) == ["aten.cos.default"]

    def test_a_number_read_twice_is_one_node(self):
        program = export(Function(lambda x, n: x * n.item() + n.item()), (umbra.ones(2), umbra.tensor(3)))
        assert targets(program) == ["aten.item.default", "aten.mul.Tensor", "aten.add.Tensor"]
        assert program.module()(umbra.ones(2), umbra.tensor(5)).tolist() == [10.0, 10.0]

    def test_metadata_lists_what_is_known_of_the_value(self):
        node = next(n for n in export(Function(lambda x: x.sin()), (umbra.ones(2),)).graph.nodes if n.op == "call_function")
        assert "tensor_meta" in list(node.meta)

    def test_a_node_without_a_value_is_a_violation(self):
        program = export(Function(lambda x: x.sin()), (umbra.ones(2),))
        for node in program.graph.nodes:
            if node.op == "call_function":
                del node.meta["val"]
        with pytest.raises(umbra._export.verifier.SpecViolationError, match="missing val"):
            program.validate()


class TestInputs:
    def test_another_dtype_is_computed_with(self):
        module = export(Affine(), (umbra.ones(2),)).module().double()
        assert module(umbra.ones(2, dtype=umbra.float64)).dtype == umbra.float64

    def test_sizes_are_checked_whatever_the_dtype(self):
        module = export(Affine(), (umbra.ones(2),)).module()
        with pytest.raises(AssertionError, match="size"):
            module(umbra.ones(3, dtype=umbra.float64))

    def test_what_is_no_tensor_has_no_size(self):
        with pytest.raises(AttributeError, match="'int' object has no attribute 'size'"):
            export(Affine(), (umbra.ones(2),)).module()(3)

    def test_an_unflattened_program_says_what_it_expected(self):
        with pytest.raises(RuntimeError, match="to be equal to 2, but got 3"):
            unflatten(export(Affine(), (umbra.ones(2),)))(umbra.ones(3))


class TestState:
    def test_a_tensor_put_into_the_state_is_the_programs(self):
        program = export(Affine(), (umbra.ones(2),))
        program.state_dict["shift"] = umbra.full((2,), 5.0)
        assert program.module()(umbra.ones(2)).tolist() == [6.0, 6.0]
        file = io.BytesIO()
        umbra.export.save(program, file)
        file.seek(0)
        assert load(file).module()(umbra.ones(2)).tolist() == [6.0, 6.0]
        assert program.run_decompositions().module()(umbra.ones(2)).tolist() == [6.0, 6.0]

    def test_one_file_may_hold_several_programs(self):
        file = io.BytesIO()
        programs = {"one": export(Function(lambda x: x + 1), (umbra.ones(2),)), "two": export(Affine(), (umbra.ones(2),))}
        package_pt2(file, exported_programs=programs, extra_files={"note.txt": "both"})
        file.seek(0)
        contents = load_pt2(file)
        assert sorted(contents.exported_programs) == ["one", "two"] and contents.extra_files == {"note.txt": "both"}
        assert contents.exported_programs["one"].module()(umbra.ones(2)).tolist() == [2.0, 2.0]
        assert list(contents.exported_programs["two"].state_dict) == ["weight", "shift"]
        file.seek(0)
        with pytest.raises(KeyError, match="one, two"):
            load(file)


def test_a_draft_names_what_it_went_by_of_counts():
    program = draft_export(Function(lambda x: x.nonzero().sum() if x.nonzero().shape[0] > 1 else x.sum()), (umbra.tensor([1, 0, 2]),))
    assert [failure.data["expr"] for failure in program._report.failures] == ["u0 > 1"]
    with pytest.raises(RuntimeError):
        program.module()(umbra.tensor([0, 0, 5]))


@umbra.library.custom_op("drafts::without_fake", mutates_args=())
def without_fake(x: umbra.Tensor) -> umbra.Tensor:
    return x[x > 1].clone()


@umbra.library.custom_op("drafts::wrong_fake", mutates_args=())
def wrong_fake(x: umbra.Tensor) -> umbra.Tensor:
    return x.sum(0)


wrong_fake.register_fake(umbra.empty_like)


@pytest.mark.filterwarnings("ignore:1 issue")
def test_a_draft_goes_on_without_a_fake_kernel():
    x = umbra.arange(6.0).reshape(2, 3)
    program = draft_export(Function(lambda x: umbra.ops.drafts.without_fake(x) * 2), (x,))
    assert [(failure.failure_type.name, failure.data["op"]) for failure in program._report.failures] == [("MISSING_FAKE_KERNEL", "drafts.without_fake.default")]
    assert not program._report.successful() and "missing a fake kernel" in str(program._report)
    assert program.module()(x + 1).tolist() == [4.0, 6.0, 8.0, 10.0, 12.0]  # another number of elements than the example has
    with pytest.raises(RuntimeError, match="no fake impl"):
        export(Function(lambda x: umbra.ops.drafts.without_fake(x)), (x,))


@umbra.library.custom_op("drafts::scaled", mutates_args=())
def _scaled(x: umbra.Tensor, k: int) -> umbra.Tensor:
    return x * k


_scaled.register_fake(lambda x, k: umbra.empty_like(x))


@umbra.library.custom_op("drafts::add_into", mutates_args=("x",))
def _add_into(x: umbra.Tensor, y: umbra.Tensor) -> umbra.Tensor:
    x.add_(y)
    return y * 2


_add_into.register_fake(lambda x, y: umbra.empty_like(y))


@umbra.library.custom_op("drafts::a_number", mutates_args=())
def _a_number(x: umbra.Tensor) -> int:
    return int(x.sum())


@pytest.mark.filterwarnings("ignore:1 issue")
@pytest.mark.parametrize("function", [
    lambda x: x * x.shape[0],
    lambda x: x * x.sum().item(),
    lambda x: x * (x.sum() > 0).item(),
    lambda x: _scaled(x, x.shape[0] * 2),
    lambda x: _scaled(x, x.sum().to(umbra.int64).item()),
    lambda x: umbra.ops.drafts.without_fake(x).sum().item() * x,
])
def test_what_goes_along_with_a_draft_knows_its_symbolic_numbers(function):
    program = draft_export(Function(function), (umbra.ones(3),), dynamic_shapes=({0: Dim.AUTO},))
    for made in (program, program.run_decompositions()):
        assert umbra.equal(made.module()(umbra.ones(5)), function(umbra.ones(5)))


@pytest.mark.filterwarnings("ignore:1 issue")
def test_a_draft_that_calls_an_operator_without_fake_kernel_is_taken_apart():
    program = draft_export(Function(lambda x: umbra.nn.functional.silu(umbra.ops.drafts.without_fake(x))), (umbra.full((3,), 2.0),))
    table = {umbra.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    apart = program.run_decompositions(table).run_decompositions(table)
    assert umbra.ops.aten.sigmoid.default in {node.target for node in apart.graph.nodes}
    assert umbra.allclose(apart.module()(umbra.full((3,), 2.0)), program.module()(umbra.full((3,), 2.0)))


@pytest.mark.filterwarnings("ignore:1 issue")
def test_the_example_of_a_draft_is_written_once():
    def function(x):
        y = x.clone()
        _add_into(y, x)
        return y + 1 if y.sum() < 2.5 * x.sum() else y - 1
    assert umbra.equal(draft_export(Function(function), (umbra.ones(3),)).module()(umbra.ones(3)), umbra.full((3,), 3.0))


def _written(write):
    def function(x):
        y = x.clone()
        write(y)
        return y
    return function


@pytest.mark.parametrize("function", [
    lambda x: umbra.kron(x, x),
    lambda x: umbra.ops.aten._unsafe_view(x, [4, 1]) * umbra.ops.aten._unsafe_view(x, [1, 4]),
    lambda x: x[x > 0] * 2,
    _written(lambda y: umbra._foreach_add_([y], 1.0)),
    _written(lambda y: y.index_add_(0, umbra.tensor([0]), umbra.ones(1))),
    lambda x: umbra.tensor([1.0, 2.0]).add_(x[:2]),
    lambda x: umbra.tensor([1.0, 2.0]).mul_(3) + x[:2],
])
def test_what_goes_along_with_a_draft_is_what_the_module_computes(function):
    x = umbra.arange(4.0)
    program = draft_export(Function(function), (x,))
    last = next(node for node in program.graph.nodes if node.op == "output").args[0][0]
    assert umbra.equal(last.meta["val"].real_tensor, function(x))


@pytest.mark.parametrize("function", [
    lambda x: umbra.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
    lambda x: umbra._higher_order_ops.map(lambda row: row.sin(), x),
    lambda x: umbra._higher_order_ops.scan(lambda carry, row: (carry + row, carry * row), x.new_zeros(3), x)[1],
])
def test_what_an_operator_of_functions_gives_is_not_known_of_the_example(function):
    program = draft_export(Function(function), (umbra.ones(2, 3),))
    last = next(node for node in program.graph.nodes if node.op == "output").args[0][0]
    assert last.meta["val"].real_tensor is None


def test_a_draft_refuses_an_operator_without_fake_kernel_that_gives_a_number():
    with pytest.raises(RuntimeError, match=r"we don't support operators that return non-Tensors\. Got drafts::a_number\(Tensor x\) -> SymInt"):
        draft_export(Function(lambda x: x * _a_number(x)), (umbra.ones(3),))


@pytest.mark.filterwarnings("ignore:1 issue")
def test_a_draft_finds_a_fake_kernel_that_is_wrong():
    program = draft_export(Function(lambda x: umbra.ops.drafts.wrong_fake(x) * 2), (umbra.ones(2, 3),))
    failure, = program._report.failures
    assert failure.failure_type.name == "MISMATCHED_FAKE_KERNEL" and failure.data["reason"] == "mismatch between fake value 2 and real value 3 "


class Shared(umbra.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = umbra.nn.Linear(2, 2)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x)) + self.second(x)


def test_a_module_of_two_names_goes_by_the_one_it_is_reached_by():
    model = Shared()
    program = export(model, (umbra.ones(1, 2),))
    stacks = [list(node.meta["nn_module_stack"])[-1] for node in program.graph.nodes if node.target == umbra.ops.aten.linear.default]
    assert stacks == ["L__self__first", "L__self__second", "L__self__second@1"]
    unflattened = umbra.export.unflatten(program)
    assert umbra.equal(unflattened(umbra.ones(1, 2)), model(umbra.ones(1, 2)))


class TestConditionsOnSeveralSizes:
    def test_they_are_checked_when_the_program_is_called(self):
        shapes = ({0: Dim("a"), 1: Dim("b")},)
        program = export(Function(lambda x: x.view(-1, 2)), (umbra.ones(3, 4),), dynamic_shapes=shapes)
        assert program.module()(umbra.ones(3, 6)).shape == (9, 2)
        with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[1\] \* x.size\(\)\[0\] % 2 == 0"):
            program.module()(umbra.ones(3, 5))

    def test_of_two_that_must_be_equal_the_later_is_to_be_changed(self):
        with pytest.raises(umbra._dynamo.exc.UserError, match=r"values of b = L\['x'\].size\(\)\[1\] and a = L\['x'\].size\(\)\[0\] must always be equal(.*\n)*  b = a"):
            export(Function(lambda x: x + x.t()), (umbra.ones(3, 3),), dynamic_shapes=({0: Dim("a"), 1: Dim("b")},))


def test_a_constant_is_compared_as_python_compares_it():
    module = export(Scaled(), (umbra.ones(2), 3)).module()
    assert module(umbra.ones(2), 3.0).tolist() == [3.0, 3.0]
    with pytest.raises(AssertionError, match="Guard failed: n == 3"):
        module(umbra.ones(2), 4)


class Scaled(umbra.nn.Module):
    def forward(self, x, n):
        return x * n


class TestAssertionsOfDecomposedPrograms:
    @staticmethod
    def check(function, example, refused):
        program = export(Function(function), (example,), dynamic_shapes=({0: Dim.AUTO},) if example.dim() else None)
        for decomposed in (program.run_decompositions(), program.run_decompositions().run_decompositions()):
            assert umbra.equal(decomposed.module()(example), function(example))
            with pytest.raises(RuntimeError, match="Runtime assertion failed"):
                decomposed.module()(refused)

    def test_on_a_count_of_an_input_they_stay(self):
        def count(x):
            places = x.nonzero()
            umbra._check(places.shape[0] >= 2)
            return places * 2
        self.check(count, umbra.tensor([1, 0, 2]), umbra.tensor([1, 0, 0]))

    def test_on_a_number_that_is_an_input_they_stay(self):
        def number(x):
            n = x.item()
            umbra._check(n <= 5)
            return umbra.ones(2) * n
        self.check(number, umbra.tensor(3), umbra.tensor(7))


def test_a_number_of_repetitions_that_the_run_tells_is_asserted_to_be_one():
    module = export(Function(lambda x: umbra.ones(2).repeat_interleave(x[0].item())), (umbra.tensor([2]),)).module()
    assert module(umbra.tensor([3])).shape == (6,)
    with pytest.raises(RuntimeError, match="u0 >= 0"):
        module(umbra.tensor([-1]))


def test_a_size_is_taken_where_the_example_was_one_and_named_tuples_are_tuples_of_arguments():
    import collections
    module = Function(lambda x, size: x + umbra.zeros(size))
    program = export(module, (umbra.ones(()), umbra.Size([2, 3]))).module()
    assert program(umbra.ones(()), umbra.Size([2, 3])).shape == program(umbra.ones(()), (2, 3)).shape == (2, 3)
    given = collections.namedtuple("Given", "x y")(umbra.ones(2), umbra.ones(2))
    program = export(Function(umbra.add), given)
    assert type(program.example_inputs[0]) is tuple
    assert program.module()(*given).tolist() == [2, 2]


def test_additional_inputs_that_the_program_does_not_take_are_told_of():
    def call(x, y):
        return (x + y)[:3]
    inputs = umbra.export.AdditionalInputs()
    inputs.add((umbra.ones(2), umbra.ones(2)))
    with pytest.raises(RuntimeError, match="to be >= 3, but got 2"):
        export(Function(call), (umbra.ones(4), umbra.ones(4)), dynamic_shapes=inputs)


def test_constants_are_no_parameters():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = umbra.ones(2, requires_grad=True)
            self.kept = {"weight": nn.Parameter(umbra.ones(2))}

        def forward(self, x):
            return x + self.plain + self.kept["weight"]

    program = export(Module(), (umbra.ones(2),))
    for module in (program.module(), unflatten(program)):
        assert not list(module.parameters()) and not module.state_dict()
        assert module(umbra.ones(2)).tolist() == [3, 3]
    assert not program.module().plain.requires_grad and type(program.constants["lifted_tensor_0"]) is umbra.Tensor


def test_a_constant_that_is_written_is_named():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = umbra.zeros(2)

        def forward(self, x):
            return x + self.count.add_(1)

    with pytest.raises(RuntimeError, match="Constant count is written"):
        export(Module(), (umbra.ones(2),)).run_decompositions()


@pytest.mark.parametrize("question", [umbra.is_nonzero, lambda x: x.is_nonzero(), bool], ids=["function", "method", "bool"])
def test_what_a_draft_answered_by_the_example_is_asserted(question):
    with pytest.warns(UserWarning, match="1 issue"):
        program = draft_export(Function(lambda x: x + 1 if question(x) else x - 1), (umbra.tensor(1),))
    assert program.module()(umbra.tensor(1)).item() == 2
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(umbra.tensor(0))


def test_export_beside_real_tensors_answers_by_them_and_checks_fake_kernels():
    @umbra.library.custom_op("outcomes::writes", mutates_args={})
    def writes(x: umbra.Tensor) -> umbra.Tensor:
        x.add_(1)
        return x.clone()

    writes.register_fake(lambda x: x.clone())

    @umbra.library.custom_op("outcomes::shorter", mutates_args={})
    def shorter(x: umbra.Tensor) -> umbra.Tensor:
        return x[:2].clone()

    with umbra._functorch.config.patch(fake_tensor_propagate_real_tensors=True):
        program = export(Function(lambda x: x * 2 if x.sum() > 3 else x), (umbra.ones(4),))
        assert program.module()(umbra.ones(4)).tolist() == [2, 2, 2, 2]
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            program.module()(umbra.zeros(4))
        with pytest.raises(RuntimeError, match="for argument 'x': the operator's schema"):
            export(Function(writes), (umbra.ones(4),))
        assert export(Function(shorter), (umbra.ones(4),)).module()(umbra.ones(4)).shape == (2,)
        shorter.register_fake(lambda x: x.clone())
        with pytest.raises(MetadataMismatchError, match=r"fake shape 4 and real shape 2, at output.size\(0\), for func: outcomes.shorter.default"):
            export(Function(shorter), (umbra.ones(4),))


# ---- programs that compute gradients ----

class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("calls", umbra.zeros(()))

    def forward(self, x, y):
        self.calls += 1
        result = self.layer(x)
        return ((result - y) ** 2).mean() + umbra.tensor(1.), result.detach()


def test_a_joint_program_gives_the_gradients_of_its_loss():
    model, args = Loss(), (umbra.randn(4, 3), umbra.randn(4, 2))
    joint = _export_forward_backward(export(model, args))
    kinds = [spec.kind.name for spec in joint.graph_signature.output_specs]
    assert kinds == ["BUFFER_MUTATION", "LOSS_OUTPUT", "USER_OUTPUT", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_PARAMETER"]
    tensors = {**joint.state_dict, **joint.constants}
    given = [tensors[spec.target] for spec in joint.graph_signature.input_specs if spec.target is not None]
    calls, loss, result, *gradients = joint.graph_module(*given, *args)
    expected, _ = model(*args)
    expected.backward()
    assert calls == 1 and umbra.allclose(loss, expected)
    names = [spec.target for spec in joint.graph_signature.output_specs[3:]]
    for name, gradient in zip(names, gradients):
        assert umbra.allclose(gradient, model.get_parameter(name).grad)


def test_a_joint_program_needs_one_number_as_its_loss():
    with pytest.raises(RuntimeError, match="to be a scalar"):
        _export_forward_backward(export(nn.Linear(3, 1), (umbra.ones(4, 3),)))


def test_a_sticky_function_is_exported_when_it_is_first_called():
    calls = []

    class Module(nn.Module):
        def forward(self, x):
            calls.append(x)
            return x * 2
    module = Module()
    module.forward = _sticky_export(module.forward, lambda x: {"x": {0: Dim("n")}})
    assert module(umbra.ones(2)).tolist() == [2, 2] and module(umbra.ones(3)).tolist() == [2, 2, 2]
    assert len(calls) == 1


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


class Level(enum.IntEnum):
    UP = 1
    DOWN = 2


@pytest.mark.parametrize("mode", [Mode.DOWN, Level.DOWN])
def test_a_member_of_an_enum_is_a_part_of_the_program(mode):
    """PyTorch's program takes another member of an Enum without a word."""
    class Module(nn.Module):
        def forward(self, x, mode):
            assert isinstance(mode, enum.Enum)
            return x * 2 if mode is type(mode).UP else x - 1
    x = umbra.ones(3)
    program = export(Module(), (x, mode), dynamic_shapes={"x": {0: Dim("n")}, "mode": None})
    file = io.BytesIO()
    umbra.export.save(program, file)
    file.seek(0)
    for each in (program, program.run_decompositions(), load(file), export(program.module(), (x, mode))):
        assert each.module()(x, mode).tolist() == [0, 0, 0]
        with pytest.raises(AssertionError, match="Guard failed: mode == "):
            each.module()(x, type(mode).UP)
    assert unflatten(program)(x, mode).tolist() == [0, 0, 0]
    assert [node.name for node in program.graph.nodes] == ["x", "mode", "sub", "output"]


@pytest.mark.filterwarnings("ignore:1 issue")
def test_a_draft_goes_on_without_a_fake_kernel_of_a_library():
    x = umbra.arange(5.0)
    with umbra.library._scoped_library("drafts_lib", "FRAGMENT") as library:
        library.define("large(Tensor x) -> Tensor")
        library.impl("large", lambda x: x[x > 1].clone(), "CPU")
        program = draft_export(Function(lambda x: umbra.ops.drafts_lib.large(x) + umbra.ops.drafts_lib.large(x * 1)), (x,))
        assert [(failure.failure_type.name, failure.data["op"]) for failure in program._report.failures] == [("MISSING_FAKE_KERNEL", "drafts_lib.large.default")]
        assert program.module()(x + 1).tolist() == [4.0, 6.0, 8.0, 10.0]  # another number of elements than the example has
        assert program.run_decompositions().module()(x).tolist() == [4.0, 6.0, 8.0]
        with pytest.raises(RuntimeError, match="no function for fake tensors"):  # the example's kernel has gone
            export(Function(lambda x: umbra.ops.drafts_lib.large(x)), (x,))
        library.define("count(Tensor x) -> int")
        library.impl("count", lambda x: 3, "CPU")
        with pytest.raises(RuntimeError, match="don't support operators that return non-Tensors"):
            draft_export(Function(lambda x: x * umbra.ops.drafts_lib.count(x)), (x,))


def test_a_named_dimension_that_is_an_automatic_one_has_its_range():
    for other, text in ((Dim.AUTO, "VR[2, 9]"), (Dim.AUTO(max=7), "VR[2, 7]"), (Dim("n", max=9), "VR[0, 9]")):
        shapes = {"x": {0: Dim("n", max=9)}, "y": {0: other}}
        program = export(Function(lambda x, y: x + y), (umbra.ones(4), umbra.ones(4)), dynamic_shapes=shapes)
        assert [str(found) for found in program.range_constraints.values()] == [text]
