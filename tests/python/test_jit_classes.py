"""Classes, enums and named tuples of TorchScript programs, as values and as what Python gets back."""
from enum import Enum
from typing import List, NamedTuple

import pytest
import umbra as torch
from jit_refusals import refused
from script_files import reloaded
from umbra import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


# ---- classes, enums, named tuples ----

class Colour(Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: Tensor
    n: int = 3


@torch.jit.script
class Counter:
    def __init__(self, n: int):
        self.n = n
        self.seen: List[int] = []

    @property
    def double(self) -> int:
        return self.n * 2

    def bump(self) -> int:
        self.n += 1
        return self.n


def test_objects_come_out_as_those_of_their_class():
    @torch.jit.script
    def make(n: int):
        return Counter(n)

    made = make(3)
    assert isinstance(made, Counter) and made.n == 3 and made.double == 6


class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter(4)

    def forward(self, x: Tensor):
        return x + self.counter.bump()


def test_a_module_holds_objects_of_compiled_classes():
    for module in (torch.jit.script(Holds()), reloaded(torch.jit.script(Holds()))):
        assert module(torch.zeros(1)).item() == 5 and module(torch.zeros(1)).item() == 6


def test_members_of_enums_as_text_and_wrong_arguments():
    @torch.jit.script
    def f(c: Colour):
        return str(c), f"{[c]}"

    assert f(Colour.RED) == ("Enum<Colour.RED>", "[Enum<Colour.RED>]")
    with pytest.raises(RuntimeError, match="Expected a value of type 'Enum<.*Colour>' for argument 'c' but instead found type 'int'"):
        f(1)


def test_fields_that_a_named_tuple_has_not():
    def f(t: Tensor):
        return Point(t).z

    assert "Point' object has no attribute or method 'z'." in refused(f)


def test_classes_do_not_inherit():
    class Base:
        pass

    class Derived(Base):
        def __init__(self):
            self.a = 1

    with pytest.raises(RuntimeError, match="does not support inheritance"):
        torch.jit.script(Derived)


@torch.jit.script
class Shelf:
    def __init__(self, first: int):
        self.items: List[int] = [first, 2]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> int:
        return self.items[i]

    def __delitem__(self, i: int):
        del self.items[i]

    def __int__(self) -> int:
        return self.items[0]

    @property
    def last(self) -> int:
        return self.items[-1]

    @torch.jit.unused
    def secret(self) -> int:
        return [i for i in self.items if i > 1][0]


def test_objects_say_what_operators_do_with_them():
    @torch.jit.script
    def f():
        shelf = Shelf(7)
        number = int(shelf)
        del shelf[0]
        return number, len(shelf), shelf[0]

    assert f() == (7, 1, 2)


def test_an_object_of_pythons_becomes_one_of_a_compiled_class():
    shelf = torch.jit.script(Shelf(5))
    assert len(shelf) == 2 and shelf[0] == 5 and int(shelf) == 5 and shelf.last == 2


def test_an_attribute_is_assigned_what_is_of_its_type_and_exists_from_the_beginning():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x: Tensor):
            self.n = x.sum()
            return self.n

    class Sometimes:
        def __init__(self, x: int):
            if x > 0:
                self.a = 1

    assert "Wrong type for attribute assignment. Expected int but got Tensor" in refused(Counts())
    assert "assignment cannot be in a control-flow block" in refused(Sometimes)


# ---- order, interfaces ----

@torch.jit.script
class Ordered:
    def __init__(self, key: int):
        self.key = key

    def __lt__(self, other: "Ordered") -> bool:
        return self.key < other.key


def test_objects_are_sorted_by_their_own_order():
    def f():
        xs = [Ordered(3), Ordered(1), Ordered(2)]
        xs.sort()
        return [x.key for x in xs], [x.key for x in sorted([Ordered(5), Ordered(4)])]

    assert torch.jit.script(f)() == ([1, 2, 3], [4, 5])


@torch.jit.interface
class Counts:
    def bump(self) -> int:
        pass


def test_an_object_of_pythons_stands_for_an_interface_that_its_class_has():
    @torch.jit.script
    def twice(counter: Counts) -> int:
        return counter.bump() + counter.bump()

    assert twice(Counter(1)) == 5


@torch.jit.interface
class Maps(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


def test_a_module_behind_an_interface_is_called_like_any_other():
    class AddsOne(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    class Doubles(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    class Applies(nn.Module):
        inner: Maps

        def __init__(self):
            super().__init__()
            self.inner = AddsOne()

        def forward(self, x):
            return self.inner(x)

    program = torch.jit.script(Applies())
    assert program(torch.tensor(3.0)) == 4
    program.inner = torch.jit.script(Doubles())
    assert program(torch.tensor(3.0)) == 6 and reloaded(program)(torch.tensor(3.0)) == 6
