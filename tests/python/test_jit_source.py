"""Programs as text: their graphs and their source, what is read back of it, and what freezing leaves; the answers are PyTorch 2.15's."""
import warnings
from typing import Dict, List, Optional, Tuple, Union

import pytest
import umbra as torch
from script_files import reloaded
from umbra import Tensor, nn

script = torch.jit.script


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
        torch.jit.freeze(script(nn.ReLU().eval()), preserved_attrs=["zz"])


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
