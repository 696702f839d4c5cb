"""What a program decides because the example's sizes are two or more: at sizes of 0 and 1 it answers as eager code does, or refuses them."""
import math

import pytest

import umbra
from umbra import nn
from umbra.export import Dim, export

QUESTIONS = """
n > abs(2 - n)
n / 2 > 0.9
n / 2 >= 1
not n / 2 < 1
umbra.sym_sqrt(n) > 1.2
1 % n == 1
1 // n == 0
math.floor(n / 2) > 0
math.trunc(n / 2) >= 1
math.ceil(n / 2) * 2 > 1
int(1 / n) == 0
max(n, 1.5) == n
max(n - 2, 0) == n - 2
min(n - 2, 0) == 0
umbra.sym_max(n, 2) == n
umbra.sym_min(n, 2) == 2
umbra.sym_not(n > 1)
n * 0.5 > 0.9
n + 0.5 > 2
umbra.sym_float(n) >= 2.0
umbra.sym_int(n / 2) >= 1
umbra.sym_ite(n > 1, n, 7) == n
(n - 2) % n == n - 2
(n + 1) // n == 1
(n > 1) & (m > 1)
n * m >= n + m
sorted([2, n])[0] == 2
all(s > 1 for s in x.shape)
x.diagonal().shape[0] > 1
x.t().is_contiguous()
x[:, :1].is_contiguous()
x.squeeze().dim() == 2
""".strip().splitlines()


class Asking(nn.Module):
    def __init__(self, question):
        super().__init__()
        self.question = compile(question, "<question>", "eval")

    def forward(self, x):
        n, m = x.shape
        return x + 1 if eval(self.question, {"n": n, "m": m, "x": x, "umbra": umbra, "math": math}) else x * 2


def result(function, x):
    try:
        return function(x).tolist()
    except (RuntimeError, ValueError, IndexError, AssertionError, ZeroDivisionError):
        return "refused"


@pytest.mark.parametrize("example", [(5, 3), (2, 2)])
@pytest.mark.parametrize("question", QUESTIONS)
def test_sizes_of_zero_and_one_are_answered_as_eager_code_does_or_refused(question, example):
    model = Asking(question)
    sizes = {0: Dim.AUTO, 1: Dim.AUTO}
    program = export(model, (umbra.ones(*example),), dynamic_shapes=(sizes,)).module()
    for rows in (0, 1, 2, 3):
        for columns in (0, 1, 2, 3):
            x = umbra.arange(float(rows * columns)).view(rows, columns)
            answer = result(program, x)
            assert answer in ("refused", result(model, x)), (rows, columns)
    assert result(program, umbra.ones(*example)) == result(model, umbra.ones(*example))


def test_what_holds_for_all_sizes_refuses_none():
    class Plain(nn.Module):
        def forward(self, x):
            return x.reshape(-1) * 2 if x.shape[0] * 2 >= x.shape[0] else x
    program = export(Plain(), (umbra.ones(3, 4),), dynamic_shapes=({0: Dim("n", min=0, max=9)},)).module()
    assert [program(umbra.ones(n, 4)).shape[0] for n in (0, 1, 2, 9)] == [0, 4, 8, 36]


LENGTHS = """
x[:, -min(n, 3):].shape[1]
x[:, :-min(n, 3)].shape[1]
x[-max(n - 1, 1):].shape[0]
umbra.cat([x.flatten(), x[x > 3]])[:1].shape[0]
umbra.cat([x.flatten(), x[x > 3]])[-2:].shape[0]
umbra.cat([x.flatten(), x[x > 3]]).unsqueeze(1).diagonal().shape[0]
x[x > 1][:n].shape[0]
x[x[:, 0] > 1][:, -n:].shape[1]
max(x[x > 3].shape[0] + n - 1, 0)
""".strip().splitlines()


class Measuring(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.length = compile(length, "<length>", "eval")

    def forward(self, x):
        return umbra.ones(()) * eval(self.length, {"n": x.shape[0], "x": x, "umbra": umbra})


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_at_sizes_of_zero_and_one_are_those_of_eager_code_or_refused(length):
    model = Measuring(length)
    program = export(model, (umbra.arange(15.0).view(5, 3),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    for rows in (0, 1, 2, 3, 5):
        for columns in (0, 1, 2, 3):
            x = umbra.arange(float(rows * columns)).view(rows, columns)
            assert result(program, x) in ("refused", result(model, x)), (rows, columns)
