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
