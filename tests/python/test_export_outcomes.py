"""What export and its programs do at the edges: specifications that do not fit, inputs of other types, changed state, files of several programs."""
import io

import pytest

import umbra
from umbra import nn
from umbra._dynamo.exc import UserError
from umbra.export import Dim, draft_export, export, load, unflatten
from umbra.export.pt2_archive._package import load_pt2, package_pt2


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Pair(Function):
    def forward(self, x, y):
        return self.function(x, y)


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
            export(Pair(lambda x, y: x + y), (umbra.ones(4), umbra.ones(4)), dynamic_shapes=({0: Dim("d")}, {0: Dim("e")}))
        assert "Suggested fixes:" in caught.value.msg

    def test_ranges_have_ends_that_compare(self):
        program = export(Function(lambda x: x + 1), (umbra.ones(4),), dynamic_shapes=({0: Dim("b", min=2)},))
        constraint, = program.range_constraints.values()
        assert str(constraint.upper) == "int_oo" and constraint.upper > 10**30 and 7 in constraint and 1 not in constraint

    def test_a_float_read_from_data_has_a_range(self):
        program = export(Pair(lambda x, y: x * y.item()), (umbra.ones(2), umbra.tensor(2.5)))
        assert [str(r) for r in program.range_constraints.values()] == ["VR[-oo, oo]"]


class TestGraph:
    def test_what_nobody_uses_stays(self):
        assert targets(export(Function(lambda x: (x.sin(), x.cos())[1]), (umbra.ones(2),))) == ["aten.sin.default", "aten.cos.default"]
        assert len(targets(export(Function(lambda x: x.max(0)[0]), (umbra.ones(2, 2),)))) == 3

    def test_what_nobody_uses_goes_with_decompositions(self):
        assert targets(export(Function(lambda x: (x.sin(), x.cos())[1]), (umbra.ones(2),)).run_decompositions()) == ["aten.cos.default"]

    def test_a_number_read_twice_is_one_node(self):
        program = export(Pair(lambda x, n: x * n.item() + n.item()), (umbra.ones(2), umbra.tensor(3)))
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
        with pytest.raises(ValueError, match="one, two"):
            load(file)


def test_a_draft_names_what_it_went_by_of_counts():
    program = draft_export(Function(lambda x: x.nonzero().sum() if x.nonzero().shape[0] > 1 else x.sum()), (umbra.tensor([1, 0, 2]),))
    assert [failure.data["expr"] for failure in program._report.failures] == ["u0 > 1"]
    with pytest.raises(RuntimeError):
        program.module()(umbra.tensor([0, 0, 5]))
