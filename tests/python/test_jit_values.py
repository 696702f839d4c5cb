"""Numbers, texts, containers and indices in TorchScript programs, and what they do in place; the answers are PyTorch 2.15's."""
from enum import Enum
from typing import Dict, List, NamedTuple, Tuple, Union

import pytest
import umbra as torch
from jit_refusals import refused
from script_files import reloaded
from umbra import Tensor, nn

script = torch.jit.script

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


# ---- values ----

class Shape(NamedTuple):
    w: int
    h: int = 4


class Mode(Enum):
    A = "a"
    B = "b"


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


def test_floats_are_divided_by_zero_and_integers_are_not():
    def f(x: float, n: int):
        return 1.0 / x, n / 0, x // x != x // x, 5.0 % x != 5.0 % x

    assert torch.jit.script(f)(0.0, -1) == (float("inf"), float("-inf"), True, True)
    with pytest.raises(RuntimeError, match="0.0 cannot be raised to a negative power"):
        torch.jit.script(inverse)(0)


def inverse(n: int):
    return n ** -1


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


def test_lists_as_indices_are_places():
    def f(x: Tensor, places: List[int]):
        return x[[True, False]], x[[1.5]], x[places]

    first, second, third = torch.jit.script(f)(torch.tensor([5.0, 6.0]), [1, 1])
    assert first.tolist() == [6.0, 5.0] and second.tolist() == [6.0] and third.tolist() == [6.0, 6.0]


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
