"""dynamic_shapes in every form, and what is said of those that do not fit."""
import collections
import dataclasses

import pytest
import umbra as torch
from export_functions import Function
from umbra._dynamo.exc import UserError
from umbra.export import AdditionalInputs, Dim, ShapesCollection, export
from umbra.export.dynamic_shapes import _IntWrapper, refine_dynamic_shapes_from_suggested_fixes


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class First(torch.nn.Module):
    def forward(self, xs):
        return xs[0] + xs[1]


def sizes(program):
    """Which dimensions of each input are symbols."""
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    return [[not isinstance(size, int) for size in value.shape] if isinstance(value, torch.Tensor) else not isinstance(value, int) for value in values]


X, Y = torch.ones(4, 3), torch.ones(4, 3)
BATCH = Dim("batch")


@pytest.mark.parametrize("shapes", [
    ({0: BATCH}, {0: BATCH}), [{0: BATCH}, {0: BATCH}], {"y": {0: BATCH}, "x": {0: BATCH}}, ((BATCH, None), (BATCH, 3)), ({0: Dim.AUTO}, {0: Dim.DYNAMIC})])
def test_forms(shapes):
    assert sizes(export(Add(), (X, Y), dynamic_shapes=shapes)) == [[True, False], [True, False]]


@pytest.mark.parametrize("shapes, error, text", [
    (({0: BATCH},), UserError, "`inputs` has 2 elements, but `dynamic_shapes` has 1 elements"),
    ({"x": {0: BATCH}}, UserError, "its top-level keys must be the arg names"),
    (((BATCH,), None), UserError, r"at `dynamic_shapes\[0\]` to have the same length"),
    (({0: "b"}, None), UserError, "but got 'b' instead"),
    ((3, None), UserError, "Unexpected input tensor shape 3"),
    (({5: BATCH}, None), IndexError, "out of range"),
    (((5, None), None), RuntimeError, r"Static shape constraint of 5 does not match input size of 4, for L\['x'\].size\(\)\[0\]"),
    ("xy", AssertionError, "expected dynamic_shapes to be dict, tuple, or list"),
    (({0: Dim("b", max=9)}, {0: Dim("b", max=8)}), UserError, "Found different definitions"),
])
def test_shapes_that_do_not_fit_the_inputs(shapes, error, text):
    with pytest.raises(error, match=text):
        export(Add(), (X, Y), dynamic_shapes=shapes)


@pytest.mark.parametrize("shapes", [({"a": {0: BATCH}},), (({0: BATCH}, {0: BATCH}),)])
def test_containers_have_to_be_of_the_inputs_type(shapes):
    with pytest.raises(UserError, match=r"`inputs\[0\]` is a <class 'list'>"):
        export(First(), ([X, Y],), dynamic_shapes=shapes)


def test_dicts_with_numbers_for_keys():
    program = export(First(), ({0: X, 1: Y},), dynamic_shapes=({0: {0: BATCH}, 1: {0: BATCH}},))
    assert sizes(program) == [[True, False], [True, False]]


def test_a_scalar_has_no_dimension():
    with pytest.raises(IndexError):
        export(Add(), (torch.tensor(1.0), Y), dynamic_shapes=({0: BATCH}, None))


def test_a_size_of_one_cannot_be_dynamic():
    with pytest.raises(ValueError, match="export 0/1 specialized due to hint of 1"):
        export(Add(), (torch.ones(1, 3), Y), dynamic_shapes=({0: Dim.DYNAMIC}, None))


def test_names_of_dimensions():
    assert str(2 * BATCH + 1) == "2*batch + 1" and str(Dim("b", min=0, max=9)) == "Dim('b', min=0, max=9)"
    with pytest.raises(AssertionError, match="valid identifier"):
        Dim("a-b")


class TestCollections:
    def test_shapes_by_tensor_and_by_int(self):
        shapes, number = ShapesCollection(), _IntWrapper(5)
        shapes[X] = {0: BATCH}
        shapes[number] = Dim.DYNAMIC
        assert sizes(export(Add(), (X, number), dynamic_shapes=shapes)) == [[True, False], True]

    def test_what_differs_between_examples_is_dynamic(self):
        examples = AdditionalInputs()
        examples.add((torch.ones(6, 3), 7))
        program = export(Add(), (X, 5), dynamic_shapes=examples)
        assert sizes(program) == [[True, False], True]
        examples.verify(program)

    def test_examples_of_other_kinds_are_refused(self):
        for other, text in (((X, "a"), "differing types"), ((X, 2.5), "differing values"), ((torch.ones(4), 1.5), "Node arity mismatch")):
            examples = AdditionalInputs()
            examples.add(other)
            with pytest.raises(ValueError, match=text):
                export(Add(), (X, 1.5), dynamic_shapes=examples)


def test_suggested_fixes_are_taken_over():
    shapes = ({0: Dim("p")}, {0: Dim("q")})
    with pytest.raises(UserError) as caught:
        export(Add(), (X, Y), dynamic_shapes=shapes)
    program = export(Add(), (X, Y), dynamic_shapes=refine_dynamic_shapes_from_suggested_fixes(str(caught.value), shapes))
    assert sizes(program) == [[True, False], [True, False]]


def test_a_size_that_was_said_to_vary_must_not_become_a_number():
    def marked(*sizes):
        x = torch.ones(*sizes)
        torch._dynamo.mark_dynamic(x, 0)
        return x
    with pytest.raises(torch.fx.experimental.symbolic_shapes.ConstraintViolationError, match=r"You marked L\['x'\].size\(\)\[0\] as dynamic but"):
        torch.compile(lambda x: x * 2 if x.shape[0] == 3 else x, backend="eager")(marked(3))
    for function in (lambda x: x * x.shape[0] if x.shape[0] > 2 else x, lambda x: x * int(x.shape[0])):
        assert torch.compile(function, backend="eager")(marked(3)).tolist() == [3, 3, 3]


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor


class Sum(torch.nn.Module):
    def forward(self, pair):
        return pair.a.sum() + pair.b


torch.export.register_dataclass(Pair, serialized_type_name="test_dynamic_shapes.Pair")


def test_a_container_has_shapes_for_what_is_in_it():
    for value, shapes in (([X, Y], None), ({0: X, 1: Y}, None), ([X, Y], Dim.AUTO)):
        with pytest.raises(UserError, match=r"`inputs\[0\]` is a <class '\w+'>, but `dynamic_shapes\[0\]` is not"):
            export(First(), (value,), dynamic_shapes=(shapes,))
    assert sizes(export(First(), (collections.OrderedDict([(0, X), (1, Y)]),), dynamic_shapes=({0: None, 1: None},))) == [[False, False]] * 2
    with pytest.raises(UserError, match=r"`inputs\[0\]` has 2 elements, but `dynamic_shapes\[0\]` has 1 elements"):
        export(First(), ({0: X, 1: Y},), dynamic_shapes=({0: None},))


@pytest.mark.parametrize("shapes", [None, {"a": None, "b": {0: BATCH}}, Pair(None, {0: BATCH}), (None, {0: BATCH}), [None]])
def test_registered_classes_have_lists_of_shapes(shapes):
    assert sizes(export(Sum(), (Pair(X, Y),), dynamic_shapes=([None, {0: BATCH}],))) == [[False, False], [True, False]]
    with pytest.raises(ValueError, match="Node (type|arity) mismatch"):
        export(Sum(), (Pair(X, Y),), dynamic_shapes=(shapes,))


def test_collections_reach_into_registered_classes():
    shapes, examples = ShapesCollection(), AdditionalInputs()
    shapes[Y] = {0: BATCH}
    examples.add((Pair(X, torch.ones(7, 3)),))
    for given in (shapes, examples):
        assert sizes(export(Sum(), (Pair(X, Y),), dynamic_shapes=given)) == [[False, False], [True, False]]


def test_derived_sizes_are_not_negative():
    with pytest.raises(AssertionError, match="Expected derived min value of batch - 1 to be >= 0"):
        export(Add(), (X, Y), dynamic_shapes=({0: BATCH - 1}, {0: BATCH - 1}))
    least = Dim("least", min=1)
    assert sizes(export(Add(), (X, Y), dynamic_shapes=({0: least - 1}, {0: least - 1}))) == [[True, False]] * 2


def test_the_name_that_export_had_before():
    with pytest.warns(FutureWarning, match="deprecated"):
        constraint = torch.export.dynamic_dim(X, 0)
    assert (2 <= constraint).min == 2 and (constraint < 9).max == 8 and constraint.serializable_spec["dim"] == 0
    for tensor, index, text in ((torch.tensor(1), 0, "0-dimension"), (X, 2, r"in the range \[0:1\]"), (4, 0, "Expected tensor")):
        with pytest.warns(FutureWarning), pytest.raises(UserError, match=text):
            torch.export.dynamic_dim(tensor, index)


class Sum3(torch.nn.Module):
    def forward(self, x, y, z):
        return x + y + z


def violation(module, *given):
    """What export says of tensors whose dimensions are Dims of these ranges."""
    shapes = tuple({0: dim} for dim in given)
    with pytest.raises(UserError) as raised:
        export(module, tuple(torch.ones(8) for _ in given), dynamic_shapes=shapes)
    return str(raised.value).split("\n\n")[0].splitlines(), str(raised.value), shapes


def test_equal_dimensions_go_by_the_name_of_the_first():
    lines, text, shapes = violation(Sum3(), Dim("n", max=100), Dim("m", min=3), Dim("k", max=60))
    assert lines[0].startswith("Constraints violated (k, m, n)!") and lines[1:3] == [
        "  - The values of m = L['y'].size()[0] and n = L['x'].size()[0] must always be equal.",
        "  - The values of k = L['z'].size()[0] and n = L['x'].size()[0] must always be equal."]
    assert lines[-4:] == ["Suggested fixes:", "  n = Dim('n', min=3, max=60)", "  m = n", "  k = n"]
    refined = refine_dynamic_shapes_from_suggested_fixes(text, shapes)
    assert str(export(Sum3(), tuple(torch.ones(8) for _ in range(3)), dynamic_shapes=refined).range_constraints).endswith("VR[3, 60]}")


@pytest.mark.parametrize("modulus, remainder, fixes", [
    (2, 0, ["  _n = Dim('_n', min=1, max=50)", "  n = 2*_n"]), (4, 0, ["  _n = Dim('_n', min=1, max=25)", "  n = 4*_n"]),
    (7, 1, ["  _n = Dim('_n', max=15)", "  n = 7*_n - 6"])])
def test_remainders_suggest_a_dimension_to_derive_from(modulus, remainder, fixes):
    class Branch(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] % modulus == remainder else x
    lines, text, shapes = violation(Branch(), Dim("n", max=100))
    assert lines[-2:] == fixes
    program = export(Branch(), (torch.ones(8),), dynamic_shapes=refine_dynamic_shapes_from_suggested_fixes(text, shapes))
    assert program.module()(torch.ones(modulus * 3 + remainder)).shape == (modulus * 3 + remainder,)


@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC], ids=["auto", "dynamic"])
def test_bounds_of_hints_count_for_the_program_and_not_for_its_example(hint):
    program = export(Function(lambda x: x * 2), (torch.ones(4),), dynamic_shapes=({0: hint(max=3)},))
    assert [str(r) for r in program.range_constraints.values()] == ["VR[2, 3]"]
    assert program.module()(torch.ones(3)).shape == (3,)
    with pytest.raises(AssertionError, match="<= 3"):
        program.module()(torch.ones(4))


def test_bounds_of_hints_that_contradict_the_program_are_named():
    class Model(torch.nn.Module):
        def forward(self, x, n):
            assert x.shape[0] <= 32 and n >= 128
            return x * n

    with pytest.raises(ValueError) as error:
        export(Model(), (torch.ones(16), 256), dynamic_shapes=((Dim.DYNAMIC(min=33),), Dim.DYNAMIC(max=127)))
    assert str(error.value).split("\n")[1:3] == [
        "- Received user-specified min/max range of [33, None], conflicting with the inferred min/max range of [2, 32], for inputs['x'].shape[0].",
        "- Received user-specified min/max range of [None, 127], conflicting with the inferred min/max range of [128, int_oo], for inputs['n']."]
    with pytest.raises(ValueError, match=r"\[6, 8\], conflicting with the inferred min/max range of \[4, 4\]"):
        export(Function(lambda x: x), (torch.ones(4),), dynamic_shapes=((Dim.STATIC(min=6, max=8),),))
    with pytest.raises(ValueError, match="tracing inferred a static shape of 32"):
        export(Model(), (torch.ones(32), 256), dynamic_shapes=((Dim.DYNAMIC(min=32),), Dim.AUTO))


def test_a_derived_dim_is_a_function_of_its_root():
    derived = 2 * Dim("d", min=2, max=8) + 1
    assert (derived.fn(3), derived.min, derived.max) == (7, 5, 17)
