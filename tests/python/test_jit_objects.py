"""Objects of scripts: what classes say of operators, and containers that Python and programs share."""
import dataclasses
from typing import Dict, List

import pytest

import umbra as torch

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@dataclasses.dataclass(order=True)
class Version:
    major: int
    minor: int = 0
    note: str = dataclasses.field(default="", compare=False)


class Plain:
    def __init__(self, n: int):
        self.n = n


@torch.jit.script
class Ordered:
    def __init__(self, n: int):
        self.n = n

    def __eq__(self, other: "Ordered") -> bool:
        return self.n == other.n

    def __lt__(self, other: "Ordered") -> bool:
        return self.n < other.n


def compare_versions(a: int, b: int):
    x, y = Version(1, a), Version(1, b, "other")
    return x == y, x < y, x <= y, x > y, x >= y


@pytest.mark.parametrize("a, b", [(1, 2), (2, 2), (3, 2)])
def test_dataclasses_compare_their_fields_in_order(a, b):
    assert torch.jit.script(compare_versions)(a, b) == compare_versions(a, b)


def test_a_class_may_name_itself():
    def f(n: int):
        return Ordered(n) == Ordered(1), Ordered(n) < Ordered(3)
    assert torch.jit.script(f)(1) == (True, True)


def equal_objects(n: int):
    return Plain(n) == Plain(n)


def text_of_object(n: int):
    return str(Plain(n))


def unequal_dataclasses(n: int):
    return Version(n) != Version(n)


@pytest.mark.parametrize("function, method", [(equal_objects, "__eq__"), (text_of_object, "__str__"), (unequal_dataclasses, "__ne__")])
def test_what_a_class_does_not_say_is_refused(function, method):
    with pytest.raises(RuntimeError, match=f"object has no attribute or method '{method}'. Did you forget to initialize an attribute"):
        torch.jit.script(function)


def append_four(x: List[int]):
    x.append(4)
    return x


def set_z(x: Dict[str, int]):
    x["z"] = 26


def test_programs_write_to_the_lists_that_they_share():
    shared, plain = torch.jit.script([1, 2, 3]), [1]
    result = torch.jit.script(append_four)(shared)
    torch.jit.script(append_four)(plain)
    assert type(shared).__name__ == "ScriptList" and list(shared) == [1, 2, 3, 4] and plain == [1]
    assert type(result) is list and result == [1, 2, 3, 4]


def test_shared_lists_have_the_methods_of_lists():
    shared = torch.jit.script([3, 1, 2])
    assert (shared.count(3), shared.pop(), len(shared), shared[0], shared[-1], shared[0:1]) == (1, 2, 2, 3, 1, [3])
    shared.insert(0, 9)
    shared.extend([4, 5])
    shared.remove(9)
    shared[0] = 7
    del shared[1]
    assert repr(shared) == "[7, 4, 5]" and 4 in shared and 3 not in shared
    shared.clear()
    assert not shared and not torch.jit.script([])


def test_shared_lists_keep_the_type_of_their_elements():
    shared = torch.jit.script([1, 2])
    with pytest.raises(TypeError, match="list.append\\(\\): argument is of the wrong type"):
        shared.append("a")
    with pytest.raises(TypeError, match="list.__setitem__\\(\\): value is of the wrong type"):
        shared[0] = "a"
    with pytest.raises(IndexError, match="list index out of range"):
        shared[5]
    with pytest.raises(ValueError, match="x not in list"):
        shared.remove(77)
    with pytest.raises(RuntimeError, match="Unable to infer type of list: .* Found int and str"):
        torch.jit.script([1, "a"])
    with pytest.raises(RuntimeError, match="Expected a value of type 'List\\[int\\]'"):
        torch.jit.script(append_four)(torch.jit.script(["a"]))


def test_programs_write_to_the_dicts_that_they_share():
    shared = torch.jit.script({"a": 1})
    torch.jit.script(set_z)(shared)
    assert repr(shared) == "{a: 1, z: 26}" and shared["z"] == 26 and "a" in shared and len(shared) == 2
    del shared["a"]
    assert list(shared) == ["z"] and list(shared.keys()) == ["z"] and list(shared.items()) == [("z", 26)]
    with pytest.raises(TypeError, match="dict value is of the wrong type"):
        shared["x"] = "y"
    with pytest.raises(KeyError):
        shared["q"]


class Made:
    def __init__(self, n: int):
        self.n = n

    @classmethod
    def make(cls, n: int = 2):
        return cls(n + 1)


def test_class_methods_are_called_on_objects():
    def f(n: int):
        return Made(n).make(5).n, Made(n).make().n

    assert torch.jit.script(f)(1) == (6, 3)
