"""What the compiler of torch.jit.script makes of Python's language; the answers are PyTorch 2.15's."""
import warnings
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


# ---- freezing ----

def test_attributes_that_methods_set_stay_when_frozen():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(1))
            self.n = 0
            self.k = 4

        def forward(self, x: Tensor):
            self.n += 1
            return x * self.w * self.k + self.n

    s = script(M().eval())
    f = torch.jit.freeze(s)
    assert (f(torch.ones(1)).item(), f(torch.ones(1)).item(), s.n, f.n) == (5, 6, 0, 2)
    assert not hasattr(f, "k") and not hasattr(f, "w") and not list(f.parameters())


def test_branches_on_constants_are_folded_when_frozen():
    f = torch.jit.freeze(script(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Dropout(0.1)).eval()))
    assert [n.kind() for n in f.graph.nodes() if n.kind() != "prim::Constant"] == ["aten::linear", "aten::relu", "aten::dropout"] or \
        [n.kind() for n in f.graph.nodes() if n.kind() != "prim::Constant"] == ["aten::linear", "aten::relu"]
    with pytest.raises(RuntimeError):
        torch.jit.freeze(script(AddOne().eval()), preserved_attrs=["zz"])


# ---- text ----

def test_source_is_written_as_expressions():
    def f(x: Tensor, n: int, s: str = "q"):
        y = x + n
        if n > 2:
            y = y * 2
        return torch.relu(y), [n, 2], {"a": 1.5}

    assert script(f).code == (
        'def f(x: Tensor,\n    n: int,\n    s: str="q") -> Tuple[Tensor, List[int], Dict[str, float]]:\n  y = torch.add(x, n)\n'
        '  if torch.gt(n, 2):\n    y0 = torch.mul(y, 2)\n  else:\n    y0 = y\n  return (torch.relu(y0), [n, 2], {"a": 1.5})\n')


def test_the_text_of_a_graph_is_read_back():
    def f(x: Tensor, xs: List[int], n: Optional[int]):
        total = 0
        for i in xs:
            total += i
        if n is not None and n > 2:
            x = x * total
        while bool(x.sum() < 10):
            x = x + 1.5
        return x.relu(), {"a": total}, "text\n"

    text = str(script(f).graph)
    assert str(torch._C.parse_ir(text)) == text
    for bad in ("", "graph(", "graph(%x : Tensor):\n  return (%y)\n", "graph(%x : Nope):\n  return (%x)\n", text[:100]):
        with pytest.raises(ValueError):
            torch._C.parse_ir(bad)


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


# ---- programs as source ----

def test_calls_stand_where_they_are_read_and_long_lines_come_apart():
    two = torch.jit.trace(nn.Sequential(nn.ReLU(), nn.Tanh()), torch.ones(2), check_trace=False)
    assert "return (_1).forward((_0).forward(input, ), )\n" in two.code
    three = torch.jit.trace(nn.Sequential(nn.ReLU(), nn.Tanh(), nn.ReLU()), torch.ones(2), check_trace=False)
    assert "_3 = (_2).forward((_1).forward((_0).forward(input, ), ), )\n  return _3\n" in three.code

    def chained(x, n: int):
        return torch.relu(x) * n + 1

    assert "_0 = torch.add(torch.mul(torch.relu(x), n), 1)\n  return _0\n" in torch.jit.script(chained).code

    def written_first(x, y):
        return torch.cat([torch.sin(x).add_(y), torch.sin(torch.cos(torch.tan(torch.exp(x) + 1)))]), x

    assert ("_0 = torch.add_(torch.sin(x), y)\n  _1 = torch.cos(torch.tan(torch.add(torch.exp(x), 1)))\n"
            "  return (torch.cat([_0, torch.sin(_1)]), x)\n") in torch.jit.script(written_first).code


def test_an_operator_with_arguments_given_is_called_in_python():
    import functools
    added = functools.partial(torch.add, alpha=2)

    def f(x):
        return added(x, x)

    assert script(f)(torch.ones(1)).item() == 3
    with pytest.raises(RuntimeError, match="Could not export Python function call"):
        script(f).save_to_buffer()


def test_a_variable_that_may_be_none_takes_an_empty_list():
    def f(x: int, y: Optional[List[int]] = None):
        if y is None:
            y = []
        y.append(x)
        return y

    assert script(f)(1) == [1] and script(f)(2, [0]) == [0, 2]


def test_numbers_in_source_have_all_their_digits():
    def f(x: Tensor, eps: float = 1e-5):
        return x * 0.1 + 3.0 + float("inf")

    assert "1.0000000000000001e-05" in str(script(f).schema)
    assert "torch.add(torch.mul(x, 0.10000000000000001), 3.)" in script(f).code and ", inf)" in script(f).code


def test_graphs_of_fx_are_scripted():
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    x = torch.randn(3, 2)
    assert torch.equal(script(graph)(x), graph(x)) and torch.equal(reloaded(script(graph))(x), graph(x))


def test_what_a_branch_that_returns_does_not_define_is_defined_behind_it():
    def f(x: int) -> int:
        if x:
            if x == 2:
                return 1
            else:
                if x == 3:
                    return 2
                else:
                    a = 2
                    b = 3
        else:
            a = 4
            b = 1
        return a + b

    def g(n: int):
        total = 0
        for i in range(n):
            if i == 1:
                continue
            else:
                part = i * 2
            total += part
        return total

    assert [script(f)(i) for i in range(4)] == [f(i) for i in range(4)] and script(g)(4) == g(4)


def test_results_of_branches_that_nobody_reads_are_left_out():
    def f(x: int):
        if x > 3:
            return 1
        y = x * 2
        z = y + 1  # noqa
        return y

    def g(x: int):
        if x > 3:
            a, b = 1, 2
        else:
            a, b = 3, 4
        return a

    assert script(f).code == "def f(x: int) -> int:\n  if torch.gt(x, 3):\n    _0 = 1\n  else:\n    _0 = torch.mul(x, 2)\n  return _0\n"
    assert "b" not in script(g).code.replace("def", "") and script(g)(4) == 1 and script(g)(1) == 3


def test_source_assigns_the_results_of_a_block_at_once():
    def branch(x: int):
        if x > 3:
            a, b = 1, 2
        else:
            a, b = 3, 4
        return a + b

    def typed(x: int, y: Optional[int]):
        if x > 3:
            y = 5
        return y

    def loop(x: int):
        q, r = 0, 1
        for i in range(x):
            q += i
            q, r = r, q
        return q * 10 + r

    assert "    a, b = 1, 2\n  else:\n    a, b = 3, 4\n" in script(branch).code
    assert "    y0 : Optional[int] = 5\n  else:\n    y0 = y\n" in script(typed).code
    assert "    q, r = r, torch.add(q, i)\n" in script(loop).code and script(loop)(5) == loop(5)

    class Loop(nn.Module):
        def forward(self, x: int):
            return loop(x)

    assert reloaded(script(Loop()))(5) == loop(5)


def test_what_a_percent_sign_formats_is_one_value_in_source():
    def f(n: int):
        return "%d %s" % (n, "a")

    assert 'torch.percentFormat("%d %s", (n, "a"))' in script(f).code and script(f)(3) == "3 a"


class InPythonAlone(nn.Module):
    def __init__(self, flag):
        super().__init__()
        self.flag = flag

    def forward(self, x: Tensor) -> Tensor:
        if self.flag and not torch.jit.is_scripting():
            x = no_program_can_do_this(x)
        return x if self.flag or torch.jit.is_scripting() else no_program_can_do_this(x)


def no_program_can_do_this(x):
    return x.numpy(*(), **{})


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_that_no_program_takes_is_not_compiled_whatever_a_flag_says(flag):
    scripted = script(InPythonAlone(flag))
    assert scripted(torch.ones(1)).item() == 1 and "if" not in scripted.code


class Two(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(2, 2), nn.ReLU())


def test_a_class_of_sequential_is_called_as_one():
    for module in (Two(), nn.Sequential(Two(), Two())):
        assert torch.equal(script(module)(torch.ones(1, 2)), module(torch.ones(1, 2)))


class Weighted(nn.Conv1d):
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]):
        return torch.conv1d(input, weight * 2, bias)


def test_a_layer_with_a_method_of_its_own_is_not_taken_for_the_layer():
    layer = Weighted(1, 1, 1)
    assert torch.equal(script(layer)(torch.ones(1, 1, 2)), layer(torch.ones(1, 1, 2)))


@pytest.mark.parametrize("function, expected", [
    (lambda x: x[(Ellipsis, slice(None, 1, None))], [[0], [3]]), (lambda x: x[slice(1, None, None)], [[3, 4, 5]]),
    (lambda x: x[(slice(None, None, None), slice(None, None, 2))], [[0, 2], [3, 5]])])
def test_bounds_of_a_slice_that_is_called_may_be_none(function, expected):
    graph = torch.fx.symbolic_trace(function)  # whose code calls `slice`
    assert script(graph)(torch.arange(6).reshape(2, 3)).tolist() == expected


class Recipe:
    def __init__(self, sizes: List[int], factor: int):
        self.sizes = sizes
        self.factor = factor

    def total(self) -> int:
        return sum(self.sizes) * self.factor


class Cook(nn.Module):
    def __init__(self):
        super().__init__()
        self.by_rank = {1: Recipe([1], 2), 2: Recipe([4], 5)}
        self.all = [Recipe([1], 1)]
        self.pair = (Recipe([2], 2), 3)
        self.none = ()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.by_rank[x.dim()].total() + self.all[0].factor + self.pair[0].total() + more(self.none)


def more(pairs: List[Tuple[str, int]]) -> int:
    return len(pairs)


def test_objects_inside_of_containers_are_attributes():
    assert reloaded(script(Cook()))(torch.ones(1, 1)).item() == 25


def test_a_contraction_takes_a_tensor_to_write_to_or_none():
    def contract(a: Tensor, b: Tensor, out: Optional[Tensor]):
        return torch.tensordot(a, b, ([1], [0]), out=None), torch.tensordot(a, b, 1, out=out), torch.tensordot(a, b, dims=[[1], [0]], out=out)

    a, b, out = torch.rand(2, 3), torch.rand(3, 2), torch.zeros(2, 2)
    assert all(torch.allclose(part, a @ b) for part in script(contract)(a, b, None))
    script(contract)(a, b, out)
    assert torch.allclose(out, a @ b)


def test_fields_of_formatted_texts_end_outside_of_brackets_and_texts():
    def f(name: str, sizes: Dict[str, int]):
        return f"a{name[-3:]}b{sizes['x:}']}c{name != 'a!'}"

    assert script(f)("amax", {"x:}": 2}) == "amaxb2cTrue"


@pytest.mark.parametrize("field, refused", [("x:3", "formatting"), ("x!r", "conversion"), ("x!r:3", "conversion"), ("[x][0]:3", "formatting")])
def test_formats_and_conversions_are_refused(field, refused):
    with pytest.raises(torch.jit.frontend.NotSupportedError, match=f"Don't support {refused}"):
        torch.jit.CompilationUnit(f"def f(x: int):\n    return f'{{{field}}}'\n")


def test_a_warning_says_how_far_up_it_belongs():
    def f(x: int):
        if not torch.compiler.is_compiling():
            warnings.warn(f"{x}", stacklevel=2)
        return x

    with pytest.warns(UserWarning, match="^3$"):
        script(f)(3)


class Boxed:
    def __init__(self, size: int):
        self.size = size

    def content(self) -> Tensor:
        return torch.zeros(self.size)


def test_what_a_branch_that_returns_knew_about_a_variable_does_not_bind_the_rest():
    def f(x: Union[Tensor, Boxed], twice: bool):
        if isinstance(x, Boxed):
            inner = x.content()
            return inner if twice else inner + 1
        if twice:
            x = x * 2
            return x + 1
        return x

    def first(x: Union[Tensor, Boxed], n: int):
        for i in range(n):
            if isinstance(x, Boxed):
                return x.content()
            x = x + i
        return torch.ones(1)

    def call(x: Tensor, size: int):
        return f(x, True), f(x, False), f(Boxed(size), False), first(x, size), first(Boxed(size), size)

    got = [part.tolist() for part in script(call)(torch.ones(1), 2)]
    assert got == [[3], [1], [1, 1], [1], [0, 0]]
