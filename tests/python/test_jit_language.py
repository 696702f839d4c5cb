"""What the compiler of torch.jit.script makes of Python's language; the answers are PyTorch 2.15's."""
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
import umbra as torch
from script_files import reloaded
from umbra import Tensor, nn

script = torch.jit.script


class Shape(NamedTuple):
    w: int
    h: int = 4


class Mode(Enum):
    A = "a"
    B = "b"


# ---- interfaces, overloads ----

@torch.jit.interface
class Op(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class AddOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Other(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Uses(nn.Module):
    op: Op

    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x: Tensor) -> Tensor:
        return self.op.forward(x) + 1


def test_a_module_behind_an_interface_can_be_replaced():
    s = script(Uses(Double()))
    assert s(torch.ones(1)).item() == 3
    s.op = script(AddOne())
    assert s(torch.ones(1)).item() == 3 and reloaded(s)(torch.zeros(1)).item() == 2
    with pytest.raises(RuntimeError, match="not compatible with interface"):
        script(Uses(Other()))


@torch.jit.interface
class Runner:
    def run(self, x: int) -> int:
        pass


class RunA:
    def __init__(self, k: int):
        self.k = k

    def run(self, x: int) -> int:
        return x + self.k


class RunB:
    def __init__(self):
        pass

    def run(self, x: int) -> int:
        return x * 10


def test_objects_of_different_classes_behind_one_interface():
    def f(flag: bool) -> int:
        r: Runner = RunA(3)
        if flag:
            r = RunB()
        return r.run(2)

    assert script(f)(False) == 5 and script(f)(True) == 20


@torch.jit._overload
def twice(x: int) -> int:
    ...


@torch.jit._overload
def twice(x: str) -> str:
    ...


def twice(x):
    return x + x


class Several(nn.Module):
    @torch.jit._overload_method
    def forward(self, x: Tensor) -> Tensor:
        pass

    @torch.jit._overload_method
    def forward(self, x: List[Tensor]) -> Tensor:
        pass

    def forward(self, x):
        if isinstance(x, Tensor):
            return x + 1
        return x[0] * 2


class UsesSeveral(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Several()

    def forward(self, x: Tensor):
        return self.m(x) + self.m([x, x])


def test_overloads_are_chosen_by_types():
    def f(a: int, b: str):
        return twice(a), twice(b)

    assert script(f)(2, "q") == (4, "qq")
    s = script(UsesSeveral())
    assert s(torch.ones(1)).item() == 4 and reloaded(s)(torch.ones(1)).item() == 4


# ---- with ----

class Entered:
    def __init__(self, start: int):
        self.count = start

    def __enter__(self) -> int:
        self.count += 1
        return self.count

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.count -= 10


def test_with_enters_and_leaves_objects():
    def f(x: int) -> Tuple[int, int, int]:
        c = Entered(3)
        with c as n:
            y = x + n
        return y, n, c.count

    def g(x: int):
        with Entered(0) as n, Entered(100) as m:
            return x * n + m

    assert script(f)(1) == (5, 4, -6)
    assert script(g)(5) == 106


def test_no_grad_ends_when_a_program_raises():
    def f(x: Tensor, k: int):
        with torch.no_grad():
            y = x * 2
            if k > 0:
                raise ValueError("stop")
        return y.requires_grad, (x * 2).requires_grad

    s = script(f)
    assert s(torch.ones(1, requires_grad=True), 0) == (False, True)
    with pytest.raises(torch.jit.Error):
        s(torch.ones(1), 1)
    assert torch.is_grad_enabled()


def test_a_module_with_no_grad_is_saved():
    class M(nn.Module):
        def forward(self, x: Tensor):
            with torch.no_grad():
                y = x * 2
            with torch.autograd.profiler.record_function("name"):
                y = y + 1
            return y

    assert reloaded(script(M()))(torch.ones(1)).item() == 3


# ---- indexing ----

def test_none_behind_an_ellipsis():
    def f(x: Tensor):
        return x[..., None], x[..., None, 0], x[None, ..., 1:], x[0, ..., None], x[..., None, :]

    x = torch.arange(12.0).reshape(2, 2, 3)
    for a, b in zip(script(f)(x), f(x)):
        assert a.shape == b.shape and bool((a == b).all())


def test_tensors_behind_an_ellipsis_are_refused_as_in_torch():
    def f(x: Tensor, i: Tensor):
        return x[..., i]

    with pytest.raises(RuntimeError, match="Ellipses followed by tensor indexing is currently not supported"):
        script(f)


# ---- values ----

def test_numbers_and_containers_as_text():
    def f(x: float):
        return str(x), f"{x}", str([x]), str(["a"]), str({"a": x}), str((x, 1)), str(0.1)

    assert script(f)(3.0) == ("3.", "3.", "[3.]", "[a]", "{a: 3.}", "(3., 1)", "0.10000000000000001")


def test_truth_of_containers_and_of_numbers_in_arithmetic():
    def f(xs: List[int], s: str, b: bool):
        return 1 if xs else 0, not s, b + 1, b * 2.5, b < 2

    assert script(f)([], "", True) == (0, True, 2, 2.5, True)
    assert script(f)([1], "a", False) == (1, False, 1, 0.0, True)


def test_arguments_are_cast_as_pybind_casts_them():
    def i(a: int):
        return a

    def b(a: bool):
        return a

    def t(a: Tuple[int, float]):
        return a

    assert script(i)(True) == 1 and script(b)(2) is True and script(t)([1, 2]) == (1, 2.0)


def test_methods_of_text():
    def f(s: str):
        return s.rfind("n"), s.title(), s.swapcase(), s.center(9, "*"), s.zfill(8), s.partition("n"), s.rsplit("a", 1), s.index("n"), s.find("a", 2)

    assert script(f)("banana") == (4, "Banana", "BANANA", "*banana**", "00banana", ("ba", "n", "ana"), ["banan", ""], 2, 3)


def test_popitem_takes_the_first():
    def f(d: Dict[str, int]):
        return d.popitem(), d

    assert script(f)({"a": 1, "b": 2}) == (("a", 1), {"b": 2})


def test_dicts_from_pairs_and_keywords():
    def f():
        return dict([("a", 1)]), dict(a=1, b=2)

    assert script(f)() == ({"a": 1}, {"a": 1, "b": 2})


def test_named_tuples_have_defaults_and_operators_named_results():
    def f(x: Tensor):
        m = x.max(dim=0)
        return Shape(3), Shape(w=1, h=2).h, m.values, m.indices

    shape, h, values, indices = script(f)(torch.tensor([1.0, 5.0]))
    assert shape == (3, 4) and h == 2 and values.item() == 5 and indices.item() == 1


def test_enums_are_looped_over_and_saved():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.mode = Mode.B

        def forward(self, x: Tensor):
            names: List[str] = []
            for m in Mode:
                names.append(m.value)
            return (x if self.mode == Mode.A else x + 1), names

    s = script(M())
    y, names = reloaded(s)(torch.ones(1))
    assert y.item() == 2 and names == ["a", "b"]


def test_lists_are_narrowed_in_a_union():
    def f(x: Union[int, str, List[int]]) -> str:
        if isinstance(x, int):
            return "i"
        if isinstance(x, list):
            return "l" + str(len(x))
        return x

    assert [script(f)(v) for v in (1, "z", [1, 2])] == ["i", "z", "l2"]


def test_identity_of_lists():
    def f():
        a = [1]
        b = a
        return a is b, a is not [1]

    assert script(f)() == (True, True)


def test_types_in_comments():
    def f(x, n):
        # type: (Tensor, int) -> Tensor
        return x * n

    assert script(f)(torch.ones(1), 3).item() == 3


# ---- modules ----

def test_hooks_are_compiled_and_run_around_forward():
    def hook(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
        return output * 10

    def pre(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
        return (input[0] * 3,)

    m = AddOne()
    m.register_forward_hook(hook)
    m.register_forward_pre_hook(pre)
    s = script(nn.Sequential(m))
    assert script(m)(torch.ones(1)).item() == 40 and s(torch.ones(1)).item() == 40 and reloaded(s)(torch.ones(1)).item() == 40
    n = AddOne()
    n.register_forward_hook(lambda module, args, out: out)
    with pytest.raises(RuntimeError, match="Expected a single top-level function"):
        script(n)


def test_properties_are_read_and_set():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = 3

        @property
        def double(self) -> int:
            return self.a * 2

        @double.setter
        def double(self, v: int):
            self.a = v // 2

        def forward(self):
            before = self.double
            self.double = 20
            return before, self.a

    assert script(M())() == (6, 10)


def test_parameter_lists_are_looped_over():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ps = nn.ParameterList([nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1) * 2)])

        def forward(self, x: Tensor):
            for p in self.ps:
                x = x * p + 1
            return x

    assert script(M())(torch.ones(1)).item() == 5


def test_functions_as_attributes():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = torch.relu

        def forward(self, x: Tensor):
            return self.act(x)

    assert script(M())(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


def test_constants_cannot_be_set():
    class M(nn.Module):
        k: torch.jit.Final[int]

        def __init__(self):
            super().__init__()
            self.k = 3

        def forward(self, x: Tensor):
            return x * self.k

    with pytest.raises(RuntimeError):
        script(M()).k = 5


def test_unused_functions_raise_a_script_error_and_can_be_saved():
    class M(nn.Module):
        @torch.jit.unused
        def helper(self, x: Tensor) -> Tensor:
            return x

        def forward(self, x: Tensor, b: bool):
            if b:
                return self.helper(x)
            return x + 1

    s = reloaded(script(M()))
    assert s(torch.ones(1), False).item() == 2
    with pytest.raises(torch.jit.Error):
        s(torch.ones(1), True)


def test_ignored_methods_cannot_be_saved():
    class M(nn.Module):
        @torch.jit.ignore
        def helper(self, x: Tensor) -> Tensor:
            return x * 7

        def forward(self, x: Tensor):
            return self.helper(x)

    s = script(M())
    assert s(torch.ones(1)).item() == 7
    with pytest.raises(RuntimeError, match="Could not export Python function call"):
        reloaded(s)


# ---- what PyTorch refuses ----

def no_keyword_defaults(x, *, k: int = 2):
    return x


def no_comprehension_ifs(xs: List[int]):
    return [x for x in xs if x > 1]


def no_floor_division_in_place(n: int):
    n //= 2
    return n


def no_imports(x):
    import math
    return x


def no_recursion(n: int) -> int:
    return n if n < 2 else no_recursion(n - 1)


def no_unpacking_of_tensors(x):
    a, b = x
    return a


def no_enable_grad(x):
    with torch.enable_grad():
        return x


@pytest.mark.parametrize("function", [no_keyword_defaults, no_comprehension_ifs, no_floor_division_in_place, no_imports, no_recursion,
                                      no_unpacking_of_tensors, no_enable_grad])
def test_what_torch_refuses_is_refused(function):
    with pytest.raises(Exception) as error:
        script(function)
    assert type(error.value).__name__ in ("RuntimeError", "NotSupportedError", "UnsupportedNodeError")


def test_unknown_methods_are_named():
    def f(x: Tensor):
        return x.nothing_here()

    with pytest.raises(RuntimeError, match="'Tensor' object has no attribute or method 'nothing_here'"):
        script(f)


# ---- which function is meant, and what it is given ----

@torch.jit._overload
def shifted(x: int) -> int: ...


@torch.jit._overload
def shifted(x: Tensor) -> Tensor: ...


def shifted(x):
    return x + 1


def test_an_overload_that_needs_no_conversion_is_preferred():
    def both(n: int, x: Tensor):
        return shifted(n), shifted(x)

    number, tensor = torch.jit.script(both)(3, torch.ones(2))
    assert number == 4 and tensor.tolist() == [2.0, 2.0]


def test_an_optional_truth_value_is_what_an_operator_takes_for_one():
    def spectrum(x, onesided: Optional[bool] = None):
        return torch.ops.aten.stft(x, 4, None, None, None, False, onesided, True, None)

    assert torch.jit.script(spectrum)(torch.ones(8)).shape == (3, 5)


def test_tensors_one_by_one_are_a_list_of_tensors():
    def joined(x, y):
        return torch.block_diag(x, y)

    assert torch.jit.script(joined)(torch.ones(1, 2), torch.ones(2, 1)).shape == (3, 3)


# ---- values ----

class Stock:
    def __init__(self, count: int):
        self.count = count

    def __bool__(self) -> bool:
        return self.count > 0


def test_an_object_says_whether_it_is_true():
    def empty(n: int):
        return 1 if Stock(n) else 0

    assert torch.jit.script(empty)(3) == 1 and torch.jit.script(empty)(0) == 0


def test_the_starred_target_may_stand_anywhere():
    def parts(n: int):
        first, *middle, last = (n, 2, 3, 4)
        return first, middle, last

    assert torch.jit.script(parts)(1) == (1, (2, 3), 4)


def test_characters_by_their_numbers():
    def text(n: int):
        return "\u00e9 \x41 \U0001f600" + str(n)

    assert torch.jit.script(text)(1) == "\u00e9 A \U0001f6001"


def test_gradients_inside_a_program():
    def slope(x):
        y = x.clone().requires_grad_(True)
        (y * y).sum().backward()
        return y.grad

    assert torch.jit.script(slope)(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_only_objects_are_asked_for_attributes():
    def asked(x):
        return hasattr(x, "anything")

    with pytest.raises(RuntimeError, match="must be an object or NamedTuple"):
        torch.jit.script(asked)


def test_an_error_of_a_run_shows_the_line():
    def reshaped(x):
        return x.view(7)

    with pytest.raises(RuntimeError, match=r"return x\.view\(7\)\n +~~~~~~ <--- HERE"):
        torch.jit.script(reshaped)(torch.ones(2))


# ---- modules ----

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})

    def forward(self, x):
        return self.layers["a"](x), "a" in self.layers, "c" in self.layers


def test_a_dict_of_modules_knows_its_names_in_programs_and_out_of_them():
    compiled = torch.jit.script(Named())
    assert compiled(torch.ones(1))[1:] == (True, False)
    assert len(compiled.layers) == 2 and "b" in compiled.layers and list(compiled.layers) == ["a", "b"]
    assert repr(compiled.layers.a) == "RecursiveScriptModule(original_name=ReLU)"


class LeftToPython(nn.Module):
    @torch.jit.ignore
    def counted(self, x) -> Tensor:
        return x + len({1, 2}) * [n for n in range(3) if n][0]

    def forward(self, x):
        return self.counted(x)


def test_what_is_left_to_python_may_be_any_python():
    assert torch.jit.script(LeftToPython())(torch.zeros(1)).item() == 2.0


class OfTheClass(nn.Module):
    SCALE = 7

    def forward(self, x):
        return x * self.SCALE


def test_a_number_of_the_class_has_to_be_a_constant():
    with pytest.raises(RuntimeError, match="SCALE"):
        torch.jit.script(OfTheClass())
