"""Integers below -2^62, which sizes cannot hold: an operator says what is wrong with one, or takes it where it means something."""
import pytest

import umbra as torch

aten = torch.ops.aten
LOW = -(2**63) + 1


def test_low_bounds_of_slices_and_diagonals_are_beyond_every_end():
    x = torch.arange(6.0).reshape(2, 3)
    assert aten.slice.Tensor(x, 0, LOW, 1).tolist() == [[0, 1, 2]]
    assert aten.slice.Tensor(x, 0, 0, LOW).shape == (0, 3)
    assert aten.triu(x, LOW).tolist() == x.tolist()
    assert aten.embedding(x, torch.tensor([1]), LOW).tolist() == [[3, 4, 5]]
    assert aten.nll_loss(torch.zeros(2, 2), torch.tensor([0, 1]), None, 1, LOW).item() == 0


@pytest.mark.parametrize(
    "error, call",
    [
        (IndexError, lambda: aten.select.int(torch.zeros(2), 0, LOW)),
        (IndexError, lambda: aten.narrow(torch.zeros(2), 0, LOW, 1)),
        (IndexError, lambda: aten.narrow(torch.zeros(2), 1, LOW, 1)),
        (IndexError, lambda: aten.select_scatter(torch.ones(2), torch.ones(()), 0, LOW)),
        (IndexError, lambda: aten.tensor_split.sections(torch.zeros(2), LOW, 1)),
        (RuntimeError, lambda: aten.tensor_split.sections(torch.zeros(2), LOW, 0)),
        (RuntimeError, lambda: aten.as_strided(torch.zeros(2), [1], [1], LOW)),
        (RuntimeError, lambda: aten.eye(LOW)),
        (RuntimeError, lambda: aten.fft_fft(torch.zeros(2), LOW)),
        (RuntimeError, lambda: aten.split.Tensor(torch.zeros(2), LOW)),
        (RuntimeError, lambda: aten.dsplit.array(torch.zeros(1, 1, 3), [LOW])),
    ],
)
def test_the_operator_says_what_is_wrong_with_a_low_number(error, call):
    with pytest.raises(error):
        call()


def test_no_roll_by_a_number_that_a_list_cannot_hold():
    with pytest.raises(RuntimeError, match="shift of -2\\^62 or less"):
        aten.roll(torch.arange(5), [LOW], [0])
    assert aten.roll(torch.arange(5), [-(2**62) + 1], [0]).tolist() == [3, 4, 0, 1, 2]


def test_low_numbers_pass_through_symbolic_programs():
    from umbra.fx.experimental.proxy_tensor import make_fx

    traced = make_fx(lambda x: aten.triu(x, LOW), tracing_mode="symbolic")(torch.ones(3, 3))
    assert torch.equal(traced(torch.ones(4, 4)), torch.ones(4, 4))
