"""Types of TorchScript's values: unions, literals, comments, what is inferred; the answers are PyTorch 2.15's."""
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
import umbra as torch
from umbra import Tensor

script = torch.jit.script


def refused(function, text):
    with pytest.raises(RuntimeError) as error:
        script(function)
    assert text in str(error.value), error.value


# ---- unions ----

def test_members_of_unions_have_an_order_of_their_own():
    def f(x: Union[str, List[str], bool, List[int], None, int]) -> int:
        return 1

    assert str(script(f).graph).startswith("graph(%x") and "Union(int[], str[], int, NoneType, str, bool)" in str(script(f).graph)
    assert "Union[List[int], List[str], int, NoneType, str, bool]" in script(f).code


def test_members_that_others_cover_are_left_out():
    def f(x: Union[str, Tuple[int, int], Tuple[Optional[int], int]]) -> int:
        return 1

    def numbers(x: Union[int, float, complex, str]) -> int:
        return 1

    assert "Union[Tuple[Optional[int], int], str]" in script(f).code
    assert "Union[str, number]" in script(numbers).code


def test_an_optional_union_is_one_union():
    def f(x: Optional[Union[str, int]]) -> int:
        return 1 if x is None else 2

    assert "Union[int, NoneType, str]" in script(f).code and script(f)(None) == 1 and script(f)("a") == 2


def test_a_member_of_a_union_is_not_converted_to():
    def f(x: Union[float, int, str]):
        return x

    g = script(f)
    assert [type(g(v)) for v in (1, 1.0, "a")] == [int, float, str]

    def h(x: Union[int, str]):
        return 1

    for value, found in ((torch.ones(1), "Tensor"), (True, "bool"), (["a"], "List[str]"), (None, "NoneType"), ({"a": 1}, "Dict[str, int]")):
        with pytest.raises(RuntimeError, match=f"Expected a member of Union\\[int, str\\] but instead found type {found}".replace("[str]", "\\[str\\]")
                           .replace("Dict[", "Dict\\[")):
            script(h)(value)


def test_isinstance_outside_of_programs_knows_bars_and_wants_contained_types():
    assert torch.jit.isinstance(1, int | str) and not torch.jit.isinstance(1.0, int | str)
    assert torch.jit.isinstance([1, "a"], List[Union[int, str]])
    for bare in (List, Dict, Tuple, Optional, list, dict):
        with pytest.raises(RuntimeError, match="without .*contained type"):
            torch.jit.isinstance([1], bare)
    with pytest.raises(RuntimeError, match="must be a type or a tuple of types"):
        torch.jit.isinstance([1], [List[int]])
    with pytest.warns(UserWarning, match="inner type of a container is lost"):
        torch.jit.isinstance([], List[int])


def test_isinstance_takes_tuples_inside_tuples():
    def f(a: Optional[List[int]]):
        return isinstance(a, (int, (float,), list, str))

    assert script(f)([1]) and not script(f)(None)


# ---- literals ----

def test_literals_have_the_type_of_their_annotation_or_are_refused():
    def mixed():
        x: List[int] = [1, "a"]  # noqa
        return x

    def values():
        x: Dict[str, int] = {"a": "b"}  # noqa
        return x

    def keys():
        x: Dict[str, int] = {1: 2}  # noqa
        return x

    def ambiguous():
        x: Union[List[str], List[int]] = []
        return x

    def no_list():
        x: Union[int, str] = [1, 2]  # noqa
        return x

    def none_fits():
        x: Union[List[str], List[int]] = [1.0]  # noqa
        return x

    def not_a_list():
        x: int = []  # noqa
        return x

    def comprehension(x: List[int]):
        y: List[str] = [i for i in x]  # noqa
        return y

    refused(mixed, "List type annotation `List[int]` did not match the types of the given list elements, which were unified to Union[int, str]")
    refused(values, "Type annotation was inferred to be `Dict[str, int]`, but the type of values given by the dict literal is str")
    refused(keys, "the type of keys given by the dict literal is int")
    refused(ambiguous, "Cannot assign an empty list to a variable annotated to be type Union[List[int], List[str]]")
    refused(no_list, "Expected a Union type annotation with an inner List type, but got Union[int, str]")
    refused(none_fits, "can hold List[int] or List[str], but none of those types match the types of the given list elements, which were unified to float")
    refused(not_a_list, "Expected an annotation of type List but got int")
    refused(comprehension, "List type annotation `List[str]` did not match the types of the given list elements, which were unified to int")


def test_a_union_takes_the_list_whose_elements_fit():
    def f():
        x: Union[List[str], List[int]] = [1, 2]
        return x

    assert script(f)() == [1, 2]


def test_values_of_a_dict_may_be_of_several_types_but_its_keys_of_one():
    def f():
        return {"a": 1, "b": "c"}

    def g():
        return {"a": 1, 2: 3}

    assert script(f)() == {"a": 1, "b": "c"}
    refused(g, "Dict keys must contain only a single type. Expected: str but found int instead")


# ---- parameters and results ----

def test_comments_may_stand_with_each_parameter():
    def f(x,  # type: int
          y   # type: float
          ):
        # type: (...) -> float
        return x + y

    assert script(f)(1, 2.0) == 3.0


def test_a_comment_may_leave_the_result_out():
    def f(x, y):
        # type: (int, bool)
        return x + 1 if y else x

    assert script(f)(1, True) == 2


def test_a_path_without_a_return_gives_none_unless_a_result_is_declared():
    def f(x: int):
        if x > 0:
            return 1

    def loop(x: int):
        for i in range(x):
            if i == 2:
                return i

    def declared(x: int) -> Optional[int]:
        if x > 0:
            return 1

    assert script(f)(1) == 1 and script(f)(-1) is None and "int?" in str(script(f).schema)
    assert script(loop)(5) == 2 and script(loop)(1) is None
    refused(declared, "does not return along all paths")


def test_errors_say_that_a_type_was_inferred():
    def f(x):
        return x

    def g():
        return f(1)

    with pytest.raises(RuntimeError, match=r"'Tensor \(inferred\)' for argument 'x'.*\nInferred 'x' to be of type 'Tensor'"):
        script(f)("a")
    refused(g, "Expected a value of type 'Tensor (inferred)' for argument 'x' but instead found type 'int'")


def test_an_error_of_a_return_marks_the_statement():
    def f(x: int) -> str:
        return x  # noqa

    refused(f, "        return x  # noqa\n        ~~~~~~~~ <--- HERE")


# ---- parts of values ----

def test_slices_are_objects_that_index():
    def f(x: List[int], y: Tensor, z: Tuple[int, int, int], w: str):
        a = slice(1)
        b = slice(1, 3)
        return x[a], x[b], x[slice(None, None, 2)], y[slice(0, 1), b], z[slice(0, 2)], w[b], y[..., slice(1, 2)].shape

    lists = script(f)([1, 2, 3, 4], torch.arange(12).view(3, 4), (1, 2, 3), "abcd")
    assert lists[:3] == ([1], [2, 3], [1, 3]) and lists[3].tolist() == [[1, 2]] and lists[4:] == ((1, 2), "bc", [3, 1])

    def keyword(x: List[int]):
        return x[slice(1, stop=2)]  # noqa

    def as_value(x: List[int]):
        return slice(1, 2)

    refused(keyword, "Slice does not accept any keyword arguments")
    refused(as_value, "Python slice value cannot be used as a value")


def test_tuples_of_one_type_are_indexed_at_run_time():
    def f(x: Tuple[int, int], i: int):
        return x[i]

    def g(x: Tuple[int, str], i: int):
        return x[i]

    assert script(f)((4, 5), 1) == 5
    refused(g, "Cannot index into a Tuple[int, str] with a non-integer literal")


def test_values_have_hashes():
    def f(x: int, z: str, b: bool, y: Tuple[int, str]):
        return hash(x), hash(b), hash(z) == hash("a"), hash(y) == hash((5, "a")), hash(None) == hash(None)

    assert script(f)(5, "a", True, (5, "a")) == (5, 1, True, True, True)

    def g(x: List[int]):
        return hash(x)

    with pytest.raises(RuntimeError, match="unhashable type: 'List\\[int\\]'"):
        script(g)([1])


class Pair(NamedTuple):
    a: int


def test_getattr_may_have_a_default():
    def f(x: Pair):
        return getattr(x, "a"), getattr(x, "zz", 7), hasattr(x, "a")

    def g(x: Tuple[int, int]):
        return getattr(x, "a", 1)

    assert script(f)(Pair(1)) == (1, 7, True)
    refused(g, "but got a normal Tuple Tuple[int, int]")


def test_several_things_are_deleted_at_once():
    def f(x: List[int], y: Dict[str, int], z: int):
        del x[0], y["a"], z
        return x, y

    def g(x: int):
        if x > 0:
            del x
        return x

    def h(x: List[int]):
        del x[0:1]
        return x

    assert script(f)([1, 2], {"a": 1}, 3) == ([2], {})
    refused(g, "undefined value x")
    refused(h, "del statements only support deletion at a single index")


# ---- texts ----

def test_tensors_are_printed_with_their_numbers():
    def f(x: Tensor):
        return str(x)

    g = script(f)
    assert g(torch.ones(1)) == " 1\n[ CPUFloatType{1} ]"
    assert g(torch.tensor(2)) == "2\n[ CPULongType{} ]"
    assert g(torch.arange(6).view(2, 3)) == " 0  1  2\n 3  4  5\n[ CPULongType{2,3} ]"
    assert g(torch.tensor([1.5, 1e6])) == " 1.5000e+00\n 1.0000e+06\n[ CPUFloatType{2} ]"
    assert g(torch.zeros(2, 2, 2)) == "(1,.,.) = \n 0  0\n  0  0\n\n(2,.,.) = \n 0  0\n  0  0\n[ CPUFloatType{2,2,2} ]"
    assert g(torch.empty(0, 3)) == "[ CPUFloatType{0,3} ]"


def test_braces_that_stand_for_themselves_are_not_known():
    def f(x: int):
        return "{} {{}}".format(x)

    with pytest.raises(RuntimeError, match="Too few arguments for format string"):
        script(f)(1)

    def g(x: int):
        return f"{{x}} {x}"

    assert script(g)(1) == "{x} 1"


def test_percent_formats_check_what_they_get():
    def f(x: int, y: float):
        return "%d %e %E %f %c %i %%" % (x, y, y, 1e100, "a", x)

    assert script(f)(65, 2.5) == "65 2.500000e+00 2.500000E+00 %f a 65 %%" % 1e100

    def number(w: str):
        return "%d" % w

    def letter(w: str):
        return "%c" % w

    with pytest.raises(RuntimeError, match="%d requires a number for formatting, but got String"):
        script(number)("a")
    with pytest.raises(RuntimeError, match="%c requires an int or char for formatting, but got String"):
        script(letter)("abc")


def test_a_tensor_is_true_or_false_only_if_it_has_one_element():
    def f(x: Tensor):
        return 1 if x else 0

    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        script(f)(torch.ones(2))


def test_zip_of_what_is_unrolled_and_what_is_not_is_refused():
    def f(x: Tuple[int, str], y: List[int]):
        for a, b in zip(x, y):
            print(a, b)

    refused(f, "Can not iterate over a module list or tuple with a value that does not have a statically determinable length")


def test_tensors_change_their_type_by_a_method():
    def f(x: Tensor):
        return x.type(torch.int)

    assert script(f)(torch.ones(1)).dtype == torch.int32


def test_any_takes_texts_and_devices_take_keywords():
    def f(x: List[str]):
        return any(x), torch.device(type="cpu"), torch.device("cuda", 1)

    assert script(f)(["", "a"]) == (True, torch.device("cpu"), torch.device("cuda", 1))


def test_print_takes_no_keywords():
    def f(x: int):
        print(x, flush=True)

    refused(f, "print doesn't accept any keyword arguments")


def test_where_as_a_method_takes_the_condition_first():
    def f(x: Tensor, y: Tensor):
        return x.where(x > 0, y), x[Ellipsis, 0]

    assert script(f)(torch.tensor([-1.0, 2.0]), torch.zeros(2))[0].tolist() == [0, 2]


def test_a_range_is_a_list_for_a_program_and_bare_containers_are_none():
    def f(x: List[int]):
        return x[1:]

    assert script(f)(range(3)) == [1, 2]

    def g(x):
        return torch.jit.isinstance(x, List)

    refused(g, "Attempted to use List without a contained type")


# ---- generic types under names of their own ----

def test_generic_types_are_known_by_what_they_are():
    from typing import Dict as D, List as L, Optional as O, Tuple as T

    @script
    def f(x: L[Tensor], y: O[Tensor], d: D[str, Tensor]) -> T[Tensor, L[Tensor]]:
        return x[0] + d["a"], x

    assert str(f.schema) == "f(Tensor[] x, Tensor? y, Dict(str, Tensor) d) -> ((Tensor, Tensor[]))"
    assert f([torch.ones(1)], None, {"a": torch.ones(1)})[0].tolist() == [2]


def test_traced_graphs_with_annotations_are_scripted():
    class Two(torch.nn.Module):
        def forward(self, x: List[Tensor]) -> Tuple[Tensor, Tensor]:
            return x[0] * 2, x[1] + 1

    traced = torch.fx.symbolic_trace(Two())
    assert "typing_Tuple[" in traced.code
    assert [t.tolist() for t in script(traced)([torch.ones(1), torch.ones(1)])] == [[2], [2]]
