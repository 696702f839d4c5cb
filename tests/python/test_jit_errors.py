"""How errors of TorchScript programs read: the lines of source, the functions that were compiled or running, and what archives remember of them."""
import io
import types
import zipfile
from enum import Enum
from typing import List, NamedTuple, Optional

import pytest

import umbra as torch
from umbra import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def refused(function):
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(function)
    return str(error.value)


def lines(text):
    """The lines of an error without those that name files."""
    return [line for line in text.splitlines() if not line.startswith("  File ")]


# ---- the compiler ----

def test_two_lines_around_the_place_are_shown_as_they_are_written():
    def f(x: Tensor):
        a = x + 1
        b = a + 1
        c = b.nope(1)
        d = c + 1
        e = d + 1
        return e

    assert lines(refused(f)) == [
        "", "'Tensor' object has no attribute or method 'nope'.:",
        "        a = x + 1",
        "        b = a + 1",
        "        c = b.nope(1)",
        "            ~~~~~~ <--- HERE",
        "        d = c + 1",
        "        e = d + 1"]


def test_a_place_of_several_lines_is_marked_on_each():
    def f(x: int) -> int:
        if x > 0:
            return 1

    assert lines(refused(f))[2:] == [
        "    def f(x: int) -> int:",
        "    ~~~~~~~~~~~~~~~~~~~~~",
        "        if x > 0:",
        "        ~~~~~~~~~",
        "            return 1",
        "            ~~~~~~~~ <--- HERE"]


def inner(x: Tensor):
    return x.nope()


def test_the_functions_that_wait_for_the_one_with_the_error_are_named():
    def outer(x: Tensor):
        y = inner(x)
        return y

    text = refused(outer)
    assert "'inner' is being compiled since it was called from 'outer'\n" in text
    assert text.endswith("        y = inner(x)\n        ~~~~~~~~~~~ <--- HERE\n        return y\n")


def test_a_variable_of_one_branch_says_which_branch_lacks_it():
    def f(x: int):
        if x > 0:
            q = 1
        return q

    text = refused(f)
    assert "q is not defined in the false branch:\n" in text and "and was used here:\n" in text


def test_the_second_of_two_returns_is_the_one_that_does_not_fit():
    def f(x: int):
        if x > 0:
            return 1
        return "a"

    assert lines(refused(f))[-2] == '        return "a"'


def test_an_annotation_converts_nothing():
    def f(x: Tensor):
        y: int = x
        return y

    assert "Variable 'y' is annotated with type int but is being assigned to a value of type Tensor" in refused(f)


def test_python_values_are_refused_where_they_are_read():
    def f(x: Tensor):
        return x + len(TABLE)

    assert lines(refused(f))[-1].strip() == "~~~~~ <--- HERE"


TABLE = [1, 2]


# ---- runs ----

class Inner(nn.Module):
    def forward(self, x: Tensor):
        y = x + 1
        return y.view(7, 7)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor):
        z = self.inner(x)
        return z


ORIGINAL = [
    "    def forward(self, x: Tensor):",
    "        z = self.inner(x)",
    "            ~~~~~~~~~~ <--- HERE",
    "        return z",
    "    def forward(self, x: Tensor):",
    "        y = x + 1",
    "        return y.view(7, 7)",
    "               ~~~~~~ <--- HERE",
    "RuntimeError: shape '[7, 7]' is invalid for input of size 6"]


def failure(module, error=RuntimeError):
    with pytest.raises(error) as raised:
        module(torch.ones(2, 3))
    return str(raised.value)


def test_an_error_of_a_run_shows_every_call_from_the_outermost_on():
    text = failure(torch.jit.script(Outer()))
    assert lines(text)[:2] == ["The following operation failed in the TorchScript interpreter.", "Traceback of TorchScript (most recent call last):"]
    assert lines(text)[2:] == ORIGINAL
    assert text.count(", in forward\n") == 2


class Custom(Exception):
    pass


def test_what_a_program_raises_is_named_in_full():
    def f(x: Tensor):
        if x.size(0) > 1:
            raise Custom("too long")
        return x

    assert failure(torch.jit.script(f), torch.jit.Error).endswith(f"{Custom.__module__}.Custom: too long\n")


def test_an_assertion_says_so():
    def f(x: Tensor):
        assert x.size(0) < 2, f"{x.size(0)} rows"
        return x

    assert failure(torch.jit.script(f), torch.jit.Error).endswith("RuntimeError: AssertionError: 2 rows\n")


def test_an_assertion_may_be_a_call():
    def f(x: Tensor):
        torch._assert(x.size(0) < 2, f"{x.size(0)} rows")
        torch._assert(message="none", condition=(x > 0).all())
        return x

    scripted = torch.jit.script(f)
    assert scripted(torch.ones(1)).tolist() == [1]
    assert failure(scripted, torch.jit.Error).endswith("RuntimeError: AssertionError: 2 rows\n")
    with pytest.raises(torch.jit.Error, match="AssertionError: none"):
        scripted(torch.zeros(1))


def test_prints_go_where_pythons_go(capsys):
    def f(x: int):
        print(x, [1.5], "a")
        return x

    torch.jit.script(f)(3)
    assert capsys.readouterr().out == "3 [1.5] a\n"


# ---- archives ----

def saved(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return buffer


def test_an_archive_remembers_the_lines_that_it_was_written_from():
    for module in (torch.jit.load(saved(torch.jit.script(Outer()))), torch.jit.load(saved(torch.jit.load(saved(torch.jit.script(Outer())))))):
        serialized, original = failure(module).split("\nTraceback of TorchScript, original code (most recent call last):\n")
        assert "Traceback of TorchScript, serialized code (most recent call last):\n  File \"code/__torch__/" in serialized
        assert lines(original) == ORIGINAL


def test_a_trace_remembers_the_lines_that_were_running():
    traced = torch.jit.load(saved(torch.jit.trace(lambda x: x.view(2, 2), torch.ones(4))))
    assert "test_jit_errors.py(" in failure(traced) and "): <lambda>\n" in failure(traced)


def test_broken_debug_information_is_none():
    source = zipfile.ZipFile(saved(torch.jit.script(Outer())))
    broken = io.BytesIO()
    with zipfile.ZipFile(broken, "w") as target:
        for name in source.namelist():
            target.writestr(name, b"\x80\x02cos\nsystem\n." if name.endswith(".debug_pkl") else source.read(name))
    broken.seek(0)
    text = failure(torch.jit.load(broken))
    assert "original code" not in text and text.endswith("RuntimeError: shape '[7, 7]' is invalid for input of size 6\n")


# ---- modules that the run chooses ----

@torch.jit.interface
class Block(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Added(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 5


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Added(), Scaled()])
        self.named = nn.ModuleDict({"added": Added(), "scaled": Scaled()})

    def forward(self, x: Tensor, i: int, name: str) -> Tensor:
        by_number: Block = self.blocks[i]
        by_name: Block = self.named[name]
        return by_number.forward(x) + by_name.forward(x)


def test_a_module_is_chosen_when_the_program_runs():
    for module in (torch.jit.script(Chosen()), torch.jit.load(saved(torch.jit.script(Chosen())))):
        assert module(torch.ones(1), 0, "scaled").item() == 7 and module(torch.ones(1), 1, "scaled").item() == 10
        with pytest.raises(RuntimeError, match="does not have a field with name '5'"):
            module(torch.ones(1), 5, "scaled")


def test_modules_are_chosen_only_through_an_interface_that_all_of_them_have():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Added(), Scaled()])

        def forward(self, x: Tensor, i: int) -> Tensor:
            return self.blocks[i](x)

    class Other(nn.Module):
        def forward(self, x: int) -> int:
            return x

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Added(), Other()])

        def forward(self, x: Tensor, i: int) -> Tensor:
            block: Block = self.blocks[i]
            return block.forward(x)

    assert "Expected integer literal for index but got a variable or non-integer" in refused(Plain())
    assert "Attribute 1 is not of annotated type" in refused(Mixed())


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
    for module in (torch.jit.script(Holds()), torch.jit.load(saved(torch.jit.script(Holds())))):
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


def test_an_exception_that_nobody_knows_is_refused():
    def f(x: int):
        if x > 0:
            raise NobodyKnows("a")  # noqa: F821
        return x

    assert "undefined value NobodyKnows" in refused(f)


def test_programs_know_the_names_of_where_they_are_made():
    class Local:
        def __init__(self, n: int):
            self.n = n

    torch.jit.script(Local)

    @torch.jit.script
    class Keeps:
        def __init__(self, n: int):
            self.kept: Optional[Local] = None

        def keep(self, local: Local) -> int:
            self.kept = local
            return local.n

    unit = torch.jit.CompilationUnit("def f(n: int) -> int:\n    return Keeps(n).keep(Local(n)) + 1\n")
    assert unit.f(3) == 4


# ---- writes in place ----

def test_operators_with_an_equals_sign_write_tensors_but_for_bits_and_powers():
    def f(x: Tensor):
        y = x
        y %= 3
        y <<= 2
        y |= torch.tensor([1, 1])
        y **= 2
        return y

    x = torch.tensor([4, 5])
    assert torch.jit.script(f)(x).tolist() == [25, 81] and x.tolist() == [4, 8]


def test_tensors_are_not_looked_for_in_lists():
    def f(x: Tensor, xs: List[Tensor]):
        return x in xs

    refused(f)


def test_lists_find_tensors_by_their_values():
    def f(xs: List[Tensor], x: Tensor):
        found = xs.index(x), xs.count(x)
        xs.remove(x)
        return found, len(xs)

    assert torch.jit.script(f)([torch.zeros(1), torch.ones(1)], torch.ones(1)) == ((1, 1), 1)


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


def test_floats_are_divided_by_zero_and_integers_are_not():
    def f(x: float, n: int):
        return 1.0 / x, n / 0, x // x != x // x, 5.0 % x != 5.0 % x

    assert torch.jit.script(f)(0.0, -1) == (float("inf"), float("-inf"), True, True)
    with pytest.raises(RuntimeError, match="0.0 cannot be raised to a negative power"):
        torch.jit.script(inverse)(0)


def inverse(n: int):
    return n ** -1


def test_a_dict_of_modules_is_looped_over_by_its_names():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})

        def forward(self, x: Tensor):
            names: List[str] = []
            for name in self.parts:
                names.append(name)
            return names

    assert torch.jit.script(Named())(torch.ones(1)) == ["a", "b"]


def test_defaults_that_calls_would_share_are_refused():
    def f(x: Optional[List[int]] = None, y: List[int] = [1]):  # noqa: B006
        return y

    assert "Mutable default parameters are not supported" in refused(f)


# ---- frozen modules ----

class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.seen = [1]

    def forward(self, x: Tensor):
        self.total.add_(x)
        self.seen.append(2)
        return self.total.sum(), len(self.seen)


def test_a_frozen_module_keeps_what_its_methods_change():
    frozen = torch.jit.freeze(torch.jit.script(Remembers().eval()))
    results = [frozen(torch.ones(2)) for _ in range(2)]
    assert [(total.item(), count) for total, count in results] == [(2.0, 2), (4.0, 3)]
    assert [name for name, _ in frozen.named_buffers()] == ["total"]


def test_a_frozen_module_computes_what_follows_from_its_parameters():
    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor):
            return x + self.weight * 2

    frozen = torch.jit.freeze(torch.jit.script(Doubled().eval()))
    assert [n.kind() for n in frozen.graph.nodes() if n.kind() != "prim::Constant"] == ["aten::add"]
    assert frozen(torch.zeros(2)).tolist() == [2.0, 2.0]


class Through(nn.Module):
    block: Block

    def __init__(self):
        super().__init__()
        self.block = Scaled()
        self.inner = Remembers()

    def forward(self, x: Tensor):
        return self.block.forward(x)


def test_modules_behind_interfaces_are_frozen_as_what_they_are():
    frozen = torch.jit.freeze(torch.jit.script(Through().eval()))
    assert frozen(torch.ones(1)).item() == 5
    assert "prim::CallMethod" not in [n.kind() for n in frozen.graph.nodes()]


def test_attributes_of_modules_inside_are_kept_by_their_paths():
    frozen = torch.jit.freeze(torch.jit.script(Through().eval()), ["inner.total"])
    assert [name for name, _ in frozen.named_buffers()] == ["inner.total"]
    with pytest.raises(RuntimeError, match="Unknown name: inner.nothing"):
        torch.jit.freeze(torch.jit.script(Through().eval()), ["inner.nothing"])


@torch.jit.interface
class Counts:
    def bump(self) -> int:
        pass


def test_an_object_of_pythons_stands_for_an_interface_that_its_class_has():
    @torch.jit.script
    def twice(counter: Counts) -> int:
        return counter.bump() + counter.bump()

    assert twice(Counter(1)) == 5


def test_a_method_that_an_object_has_of_its_own_is_the_one_that_python_calls():
    class Says(nn.Module):
        @torch.jit.ignore
        def word(self) -> str:
            return "old"

        def forward(self, x: Tensor):
            return x

    says = Says()

    @torch.jit.ignore
    def word(self) -> str:
        return "new"

    says.word = types.MethodType(word, says)
    assert torch.jit.script(says).word() == "new"


def test_lists_as_indices_are_places():
    def f(x: Tensor, places: List[int]):
        return x[[True, False]], x[[1.5]], x[places]

    first, second, third = torch.jit.script(f)(torch.tensor([5.0, 6.0]), [1, 1])
    assert first.tolist() == [6.0, 5.0] and second.tolist() == [6.0] and third.tolist() == [6.0, 6.0]
