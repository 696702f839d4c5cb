"""torch.jit.script: functions and modules compiled from their source."""
import enum
import io
from typing import Dict, List, NamedTuple, Optional, Union

import pytest

import umbra as torch
from umbra import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


class Pair(NamedTuple):
    n: int
    x: Tensor


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Counter:
    def __init__(self, start: int):
        self.count = start

    def add(self, n: int) -> int:
        self.count += n
        return self.count


def test_both_branches_are_there():
    def f(x):
        if bool(x.sum() > 0):
            return x + 1
        return x - 1

    scripted = torch.jit.script(f)
    assert scripted(torch.ones(1)).item() == 2 and scripted(-torch.ones(1)).item() == -2


def test_return_inside_a_loop():
    def first_multiple(n: int, of: int) -> int:
        for i in range(1, n):
            if i % of == 0:
                return i
        return -1

    scripted = torch.jit.script(first_multiple)
    assert [scripted(10, 4), scripted(3, 7), scripted(0, 1)] == [4, -1, -1]


def test_break_and_continue_in_nested_loops():
    def f(n: int):
        total = 0
        for i in range(n):
            if i == 2:
                continue
            for j in range(n):
                if j > i:
                    break
                total += 10 * i + j
        return total

    assert torch.jit.script(f)(5) == f(5)


def test_optional_has_to_be_checked():
    def good(x: Optional[Tensor]):
        if x is None:
            return torch.zeros(1)
        return x + 1

    def bad(x: Optional[Tensor]):
        return x + 1

    assert torch.jit.script(good)(None).item() == 0
    with pytest.raises(RuntimeError):
        torch.jit.script(bad)


def test_an_error_points_at_the_source():
    def f(x: int):
        return x + "a"

    with pytest.raises(RuntimeError, match="HERE"):
        torch.jit.script(f)


def test_containers():
    def f(xs: List[int], d: Dict[str, int]):
        ys = [x * 2 for x in xs]
        ys.append(len(d))
        for k, v in d.items():
            ys.append(v * len(k))
        return ys, sorted(xs), xs[::2], "a" in d

    assert torch.jit.script(f)([3, 1, 2], {"a": 1, "bb": 2}) == f([3, 1, 2], {"a": 1, "bb": 2})


def test_named_tuples_enums_and_classes():
    def f(p: Pair, c: Colour) -> Pair:
        counter = Counter(p.n)
        counter.add(c.value)
        return Pair(counter.count, p.x * (2 if c == Colour.RED else 3))

    scripted = torch.jit.script(f)
    out = scripted(Pair(5, torch.ones(1)), Colour.BLUE)
    assert type(out) is Pair and out.n == 7 and out.x.item() == 3


def test_what_a_program_raises():
    def f(x: int):
        if x < 0:
            raise ValueError("negative")
        assert x < 10, "too large"
        return x

    scripted = torch.jit.script(f)
    assert scripted(3) == 3
    for wrong in (-1, 11):
        with pytest.raises(torch.jit.Error):
            scripted(wrong)


def test_modules_with_control_flow_survive_a_file():
    class Repeat(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
            self.scale = 3.0

        def forward(self, x, n: int):
            for _ in range(n):
                for layer in self.layers:
                    x = layer(x) * self.scale
                if bool(x.sum() > 100):
                    break
            return x

    model = Repeat()
    scripted = torch.jit.script(model)
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    buffer.seek(0)
    loaded = torch.jit.load(buffer)
    x = torch.ones(1, 2)
    for n in (0, 1, 4):
        assert torch.allclose(scripted(x, n), model(x, n)) and torch.allclose(loaded(x, n), model(x, n))


def test_traced_and_scripted_call_each_other():
    def clamp(x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            if bool(x.sum() > 4):
                x = x / 2
        return x

    inner = torch.jit.script(clamp)
    traced = torch.jit.trace(lambda x: inner(x * 2, 3), torch.ones(2))
    assert traced(torch.full((2,), 100.0)).tolist() == [25.0, 25.0] and traced(torch.zeros(2)).tolist() == [0.0, 0.0]


def test_sizes_spelt_out_with_options():
    def f(n: int):
        return torch.zeros(n, 3, dtype=torch.float64), torch.einsum("i,j->ij", torch.ones(n), torch.ones(2))

    made, product = torch.jit.script(f)(2)
    assert made.shape == (2, 3) and made.dtype == torch.float64 and product.shape == (2, 2)


def test_no_grad_is_taken_back_however_the_program_ends():
    def f(x, fails: bool):
        with torch.no_grad():
            y = x * 2
            if fails:
                raise ValueError("no")
        return y, x * 3

    scripted = torch.jit.script(f)
    x = torch.ones(1, requires_grad=True)
    inside, outside = scripted(x, False)
    assert not inside.requires_grad and outside.requires_grad
    with pytest.raises(torch.jit.Error):
        scripted(x, True)
    assert torch.is_grad_enabled()


def test_tolist_needs_the_type_that_the_tensor_has():
    def f(x) -> List[List[float]]:
        out: List[List[float]] = x.tolist()
        return out

    scripted = torch.jit.script(f)
    assert scripted(torch.ones(1, 2)) == [[1.0, 1.0]]
    with pytest.raises(RuntimeError, match="dimension"):
        scripted(torch.ones(2))
    with pytest.raises(RuntimeError, match="element type"):
        scripted(torch.ones(1, 1, dtype=torch.int64))


def test_properties_of_modules():
    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        @property
        def double(self):
            return self.weight * 2

        def forward(self, x):
            return x + self.double

    assert torch.jit.script(Doubled())(torch.zeros(2)).tolist() == [2.0, 2.0]


def test_two_variables_of_one_name_in_comprehensions():
    def f(xs: List[int]):
        a = [x * 2 for x in xs]
        b = [x + 1 for x in a]
        x = len(b)
        return a, b, x

    assert torch.jit.script(f)([1, 2]) == ([2, 4], [3, 5], 2)


def test_nested_loops_with_breaks_survive_a_file():
    class Nested(nn.Module):
        def forward(self, n: int):
            total = 0
            for i in range(n):
                if i == 4:
                    break
                for j in range(n):
                    if j > i:
                        break
                    total += 10 * i + j
            return total

    scripted = torch.jit.script(Nested())
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    buffer.seek(0)
    loaded = torch.jit.load(buffer)
    assert [loaded(n) for n in range(7)] == [Nested()(n) for n in range(7)]


def test_what_isinstance_told_is_forgotten_behind_the_branches():
    def f(x: Union[int, str, None]):
        size = 0
        if isinstance(x, int):
            size = x
        elif isinstance(x, str):
            size = len(x)
        if x is None:
            size = -1
        return size

    scripted = torch.jit.script(f)
    assert [scripted(3), scripted("ab"), scripted(None)] == [3, 2, -1]


def test_types_are_not_widened_in_silence():
    def none_then_tensor(x):
        y = None
        if bool(x.sum() > 0):
            y = x
        return y

    def int_as_float(x: int) -> float:
        return x

    for bad in (none_then_tensor, int_as_float):
        with pytest.raises(RuntimeError):
            torch.jit.script(bad)


def test_dataclasses_are_classes_of_scripts():
    import dataclasses

    @dataclasses.dataclass
    class Weighted:
        x: Tensor
        n: int = 3
        weight: Optional[Tensor] = None

        def __post_init__(self):
            self.n = self.n + 1

        def total(self) -> Tensor:
            return self.x.sum() * self.n

    @torch.jit.script
    def f(x: Tensor):
        return Weighted(x).total() + Weighted(x, 1, x).total()
    assert f(torch.ones(2)).item() == 12


def test_a_script_computes_with_sizes_that_a_capture_leaves_open():
    def numbers(x):
        n: int = x.size(0)
        return x.view(max(n, 2), -1) * (-n) + abs(n), divmod(n, 2)[1], min(n, 3), n > 2, n == 3, -n

    compiled = torch.compile(torch.jit.script(numbers), backend="aot_eager", dynamic=True)
    for n in (3, 4, 5):
        found, expected = compiled(torch.ones(n, 4)), numbers(torch.ones(n, 4))
        assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:] and type(found[2]) is int


def test_errors_of_calls_count_a_modules_self():
    module = torch.jit.script(torch.nn.Linear(2, 1))
    with pytest.raises(RuntimeError, match=r"forward\(\) expected at most 2 argument\(s\) but received 3 argument\(s\)"):
        module(torch.ones(1, 2), 3)
    with pytest.raises(RuntimeError, match="Position: 1"):
        module("text")


def is_traced():
    return torch._C._get_tracing_state()


def test_scripts_ask_for_a_trace_by_its_state():
    def choose(x):
        return x + 1 if is_traced() else x * 2
    scripted = torch.jit.script(choose)
    assert scripted(torch.ones(1)).item() == 2
    assert torch.jit.trace(lambda x: scripted(x), torch.ones(1))(torch.ones(1)).item() == 2  # a script is compiled as it is without a trace


def test_operators_of_users_libraries_are_called_by_scripts():
    library = torch.library.Library("script_library", "FRAGMENT")
    library.define("times(Tensor x, int n=2, *, float shift=0.5) -> Tensor")
    library.impl("times", lambda x, n=2, *, shift=0.5: x * n + shift, "CompositeExplicitAutograd")
    library.define("parts(Tensor[] xs, Tensor? y=None) -> (Tensor, int)")
    library.impl("parts", lambda xs, y=None: (sum(xs) if y is None else sum(xs) - y, len(xs)), "CPU")
    library.define("chosen.number(Tensor x, int n) -> Tensor")
    library.define("chosen.text(Tensor x, str n) -> Tensor")
    library.impl("chosen.number", lambda x, n: x * n, "CPU")
    library.impl("chosen.text", lambda x, n: x - len(n), "CPU")
    bound = torch.ops.script_library.times

    def function(x):
        y, count = torch.ops.script_library.parts([x, x], x)
        return torch.ops.script_library.times(x, 3, shift=1.0), bound(y), count, torch.ops.script_library.chosen(x, 5), torch.ops.script_library.chosen(x, "ab")
    scripted = torch.jit.script(function)
    assert [n.kind() for n in scripted.graph.nodes() if n.kind().startswith("script_library")] == [
        "script_library::parts", "script_library::times", "script_library::times", "script_library::chosen", "script_library::chosen"]
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    for run in (scripted, torch.jit.load(file)):
        a, b, count, c, d = run(torch.ones(1))
        assert [float(t) for t in (a, b, c, d)] == [4.0, 2.5, 5.0, -1.0] and count == 2
