"""What the compiler of torch.jit.script makes of Python's language; the answers are PyTorch 2.15's."""
import types
from typing import Any, List, Optional, Tuple

import pytest
import umbra as torch
from script_files import reloaded
from umbra import Tensor, nn

script = torch.jit.script


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
