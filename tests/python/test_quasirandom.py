"""torch.quasirandom: Sobol sequences, point for point as PyTorch draws them."""
import pytest

import umbra as torch
from umbra.quasirandom import SobolEngine


def test_the_first_points_in_three_dimensions():
    expected = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625], [0.875, 0.875, 0.125]]
    assert SobolEngine(3).draw(6).tolist() == expected


def test_direction_numbers_of_far_dimensions():
    state = torch.zeros(21201, 30, dtype=torch.int64)
    torch.ops.aten._sobol_engine_initialize_state_(state, 21201)
    assert state[0, :3].tolist() == [2**29, 2**28, 2**27]
    assert state[4, :8].tolist() == [536870912, 268435456, 134217728, 738197504, 1040187392, 922746880, 511705088, 658505728]
    assert state[21200, [1, 5, 17, 29]].tolist() == [268435456, 117440512, 353554432, 254952011]
    assert int(state.sum() % 1000003) == 378815


def test_pieces_and_skips_give_the_same_points():
    whole = SobolEngine(5, scramble=True, seed=7).draw(20)
    pieces = SobolEngine(5, scramble=True, seed=7)
    assert torch.equal(torch.cat([pieces.draw(3), pieces.draw(), pieces.draw(16)]), whole)
    assert torch.equal(SobolEngine(5, scramble=True, seed=7).fast_forward(6).draw(4), whole[6:10])
    assert torch.equal(pieces.reset().draw(2), whole[:2])
    assert torch.equal(pieces.fast_forward(3).draw(2), whole[5:7])


def test_scrambled_points():
    points = SobolEngine(2, scramble=True, seed=123).draw(4, dtype=torch.float64)
    assert points.tolist() == [[0.09025132656097412, 0.5811105370521545], [0.9922997960820794, 0.2544704210013151], [0.6779509140178561, 0.8618393540382385], [0.2678810879588127, 0.03623682260513306]]


def test_powers_of_two_are_asked_for_where_balance_is_promised():
    engine = SobolEngine(2)
    assert engine.draw_base2(2).shape == (4, 2)
    assert engine.draw_base2(2).shape == (4, 2)
    with pytest.raises(ValueError, match="balance properties"):
        engine.draw_base2(2)


def test_what_is_refused():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"\[1, 21201\]"):
            SobolEngine(dimension)
    with pytest.raises(ValueError, match="non-negative"):
        SobolEngine(2).draw(0)
    state = torch.ops.aten._sobol_engine_initialize_state_
    with pytest.raises(ValueError, match="must have shape"):
        state(torch.zeros(2, 30, dtype=torch.int64), 1)
    with pytest.raises(RuntimeError, match="type Long"):
        state(torch.zeros(2, 30), 2)


def test_an_output_and_a_type():
    out = torch.zeros(0)
    assert SobolEngine(3).draw(2, out=out) is out and out.shape == (2, 3)
    assert SobolEngine(3).draw(2, dtype=torch.float64).dtype == torch.float64
    assert repr(SobolEngine(3, scramble=True, seed=1)) == "SobolEngine(dimension=3, scramble=True, seed=1)"


def test_without_a_seed_the_scramble_follows_the_global_one():
    torch.manual_seed(0)
    points = SobolEngine(2, scramble=True).draw(3)
    torch.testing.assert_close(points, torch.tensor([[0.4751, 0.5925], [0.5788, 0.0371], [0.9507, 0.8623]]), atol=1e-4, rtol=0)
    torch.testing.assert_close(torch.rand(2), torch.tensor([0.2063, 0.9716]), atol=1e-4, rtol=0)
    torch.manual_seed(0)
    SobolEngine(2, scramble=True, seed=5)
    torch.testing.assert_close(torch.rand(2), torch.tensor([0.4963, 0.7682]), atol=1e-4, rtol=0)
