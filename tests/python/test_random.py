"""Random numbers: PyTorch's, to the last bit, from the same seed."""
import gzip
import json

import pytest
import random_numbers

import umbra as torch


@pytest.fixture(scope="module")
def checksums():
    return random_numbers.checksums(torch)


def test_every_operator_and_initialiser_draws_pytorchs_numbers(checksums):
    with gzip.open(random_numbers.EXPECTED) as file:
        expected = json.load(file)
    assert set(checksums) == set(expected)
    assert [name for name in expected if checksums[name] != expected[name]] == []


def test_a_state_goes_to_another_generator():
    torch.manual_seed(3)
    torch.empty(3).normal_()  # leaves half a draw behind
    g = torch.Generator()
    g.set_state(torch.get_rng_state())
    assert torch.equal(torch.empty(5).normal_(), torch.empty(5).normal_(generator=g))
    h = g.clone_state()
    assert torch.equal(torch.rand(4, generator=g), torch.rand(4, generator=h))


def test_states_that_are_none_are_refused():
    with pytest.raises(RuntimeError, match="RNG state size to be 3"):
        torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        torch.set_rng_state(torch.zeros(5056, dtype=torch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        torch.set_rng_state(torch.zeros(5056))


def test_ranges_have_to_fit_the_type():
    with pytest.raises(RuntimeError, match="to - 1 is out of bounds for unsigned char"):
        torch.randint(0, 300, (3,), dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="from is out of bounds for c10::Half"):
        torch.empty(3, dtype=torch.half).random_(65519, 65521)
    with pytest.raises(RuntimeError, match="'from' to be less than 'to'"):
        torch.randint(5, 3, (3,))
    with pytest.raises(NotImplementedError, match="random_kernel_cpu"):
        torch.empty(3, dtype=torch.uint16).random_()


def test_distributions_refuse_parameters_that_make_none():
    with pytest.raises(RuntimeError, match="lambda > 0.0"):
        torch.empty(3).exponential_(-1)
    with pytest.raises(RuntimeError, match="must be a floating point"):
        torch.empty(3, dtype=torch.long).exponential_()
    with pytest.raises(RuntimeError, match="rate to be non-negative"):
        torch.poisson(torch.tensor([-1.0]))
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.multinomial(torch.zeros(2), 1)
    with pytest.raises(RuntimeError, match="all elements of std >= 0.0"):
        torch.normal(torch.ones(3), torch.tensor(-1.0))


def test_random_is_a_module_and_its_operator_is_hidden():
    assert torch.random.initial_seed() == torch.initial_seed()


def test_out_is_drawn_into_in_the_order_of_its_memory():
    torch.manual_seed(0)
    out = torch.rand(5, 7, out=torch.empty(7, 5).t())
    torch.manual_seed(0)
    assert torch.equal(out, torch.rand(7, 5).t())


def test_rrelu_keeps_its_slopes_for_the_gradient():
    x = torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    noise = torch.zeros(3)
    torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, True).sum().backward()
    assert noise[1] == 1 and (noise[[0, 2]] < 0.3).all() and torch.equal(x.grad, noise)


def test_a_permutation_that_its_type_cannot_number_is_refused():
    with pytest.raises(RuntimeError, match=r"n cannot be greater than 2\^24\+1 for Float type"):
        torch.randperm(2**24 + 2, dtype=torch.float32)
