"""torch.use_deterministic_algorithms: what is filled, and what is refused as PyTorch refuses it."""
import contextlib

import pytest

import umbra as torch


@contextlib.contextmanager
def deterministic(**options):
    torch.use_deterministic_algorithms(True, **options)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def test_memory_that_a_tensor_grows_by_is_filled():
    with deterministic():
        grown = torch.ones(2).resize_(5)
        assert grown[:2].tolist() == [1.0, 1.0] and grown[2:].isnan().all()
        assert torch.ones(2, dtype=torch.int32).resize_(3).tolist() == [1, 1, 2 ** 31 - 1]
        assert torch.zeros(1, dtype=torch.bool).resize_as_(torch.empty(3)).tolist() == [False, True, True]


def test_what_pytorch_does_not_call_deterministic_is_refused():
    index = torch.tensor([0])
    with deterministic():
        with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
            torch.ones(3).put_(index, torch.ones(1))
        with pytest.raises(RuntimeError, match="max_unpooling2d_forward_out does not have a deterministic implementation"):
            torch.nn.functional.max_unpool1d(torch.ones(1, 1, 2), torch.tensor([[[0, 2]]]), 2)
        assert torch.ones(3).put_(index, torch.ones(1), accumulate=True).tolist() == [2.0, 1.0, 1.0]
    with deterministic(warn_only=True), pytest.warns(UserWarning, match="put_ does not have a deterministic implementation"):
        torch.ones(3).put_(index, torch.ones(1))


def test_switches_are_bools():
    with pytest.raises(TypeError, match="argument 'mode' .position 1. must be bool, not int"):
        torch.use_deterministic_algorithms(1)
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(True, warn_only=3)
