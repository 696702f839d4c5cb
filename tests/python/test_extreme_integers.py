"""Integers at the ends of 64 bits, which sizes cannot be, pass to operators that take them and are refused by name where they are sizes."""
import pytest

import umbra as torch

LEAST, MOST = -2 ** 63, 2 ** 63 - 1


def test_random_integers_over_the_whole_range():
    def drawn(low, high):
        return torch.randint(low, high, (3,), generator=torch.Generator().manual_seed(1)).tolist()
    assert drawn(LEAST, MOST) == [-1530673954295414549, 4064269471072392264, -9221262077785750647]  # PyTorch's
    assert drawn(LEAST, 0) == [-1530673954295414549, -5159102565782383544, -9221262077785750647]
    with pytest.raises(RuntimeError):
        torch.randint(LEAST, LEAST, (3,))


def test_ranges_and_slices():
    assert torch.arange(LEAST, LEAST + 3).tolist() == [LEAST, LEAST + 1, LEAST + 2]
    assert torch.arange(3)[LEAST:].tolist() == [0, 1, 2]
    assert torch.tensor([1, 2]).clamp(LEAST, 1).tolist() == [1, 1]


@pytest.mark.parametrize("call, error", [
    (lambda x: x.topk(LEAST), RuntimeError),
    (lambda x: x.narrow(0, 0, LEAST), RuntimeError),
    (lambda x: x.as_strided((2,), (1,), LEAST), RuntimeError),
    (lambda x: x.view(LEAST), RuntimeError),
    (lambda x: x.expand(LEAST), RuntimeError),
    (lambda x: x[LEAST], IndexError),
    (lambda x: torch.eye(LEAST), RuntimeError),
    (lambda x: torch.zeros(LEAST), RuntimeError),
])
def test_sizes_and_offsets_are_refused(call, error):
    with pytest.raises(error, match="out of range|negative|for dimension|offset|greater or equal"):
        call(torch.ones(3))


def test_operands_beyond_64_bits():
    x = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((2,), MOST + 1)
    for wrong in (2 ** 64, LEAST - 1):
        with pytest.raises(OverflowError):
            x + wrong
    with pytest.raises(ValueError, match="Overflow"):
        x[0] = 2 ** 64
    assert torch.nn.functional.pad(torch.zeros(1), (1, 0), value=2 ** 63).tolist() == [2.0 ** 63, 0]  # a float, where one is asked for


BEYOND = 2 ** 63 + 5  # what an int64 does not hold, and a uint64 does


def wrapped(n):
    return (n + 2 ** 63) % 2 ** 64 - 2 ** 63


@pytest.mark.parametrize("call", [
    lambda x, n: x + n, lambda x, n: n - x, lambda x, n: x * n, lambda x, n: x ^ n, lambda x, n: x & n, lambda x, n: n | x,
    lambda x, n: torch.ops.aten.mul.Scalar(x, n) if isinstance(x, torch.Tensor) else x * n])
@pytest.mark.parametrize("number", [BEYOND, 2 ** 64 - 1, 0x9E3779B97F4A7C15])
def test_operands_from_2_to_the_63_give_their_bits_to_integers(call, number):
    x = torch.tensor([0, 3, -7])
    assert call(x, number).tolist() == [wrapped(call(n, number)) for n in x.tolist()]
    assert torch.vmap(lambda row: call(row, number))(x[None]).tolist() == [call(x, number).tolist()]
    assert torch.compile(lambda t: call(t, number))(x).tolist() == call(x, number).tolist()


def test_operands_from_2_to_the_63_beside_other_types():
    assert (torch.tensor([3], dtype=torch.uint8) ^ BEYOND).tolist() == [6]
    assert (torch.tensor([0.5]) * 2 ** 63).tolist() == [2.0 ** 62]
    assert torch.rand(2).clamp(0, 2 ** 64 - 1).max() < 1
    with pytest.raises(RuntimeError, match="attempted to promote Bool and UInt64"):
        torch.tensor([True]) + BEYOND
    with pytest.raises(RuntimeError, match="int64_t without overflow"):
        torch.zeros(2, dtype=torch.int64).fill_(BEYOND)


def test_numbers_from_2_to_the_63_in_tensors_of_uint64():
    most = 2 ** 64 - 1
    x = torch.full((2,), most, dtype=torch.uint64)
    x[0] = BEYOND
    assert x.tolist() == [BEYOND, most] and [n.item() for n in x] == [BEYOND, most]
    assert (x == most).tolist() == [False, True] and (x & BEYOND).tolist() == [BEYOND, BEYOND]
    assert x.fill_(1e19).tolist() == [10 ** 19, 10 ** 19] and int(x[0]) == 10 ** 19 and float(x[0]) == 1e19
    assert torch.where(torch.tensor([True, False]), most, x).tolist() == [most, 10 ** 19]
    with pytest.raises(OverflowError):
        x[0] = -1


def test_a_number_of_uint64_stays_itself_as_an_operand():
    number = torch.tensor(BEYOND, dtype=torch.uint64).item()
    assert (torch.tensor([1]) + number).tolist() == [wrapped(BEYOND + 1)]
    assert torch.result_type(torch.tensor([1]), number) == torch.int64 and torch.result_type(number, number) == torch.uint64
