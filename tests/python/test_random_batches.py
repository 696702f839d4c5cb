"""Random numbers under vmap: which are drawn, for each kind of randomness, wherever the batch lies."""
import pytest

import umbra as torch
from umbra.func import functionalize, grad, jvp, vmap
from umbra.nn import functional as F

IN_PLACE = {
    "normal_": lambda t: t.normal_(1, 2),
    "uniform_": lambda t: t.uniform_(),
    "exponential_": lambda t: t.exponential_(),
    "random_": lambda t: t.random_(3, 17),
    "bernoulli_": lambda t: t.bernoulli_(0.3),
    "bernoulli_ of tensors": lambda t: t.bernoulli_(torch.full((5,), 0.4)),
}
OF_ELEMENTS = {
    "bernoulli": torch.bernoulli,
    "bernoulli of a number": lambda t: torch.bernoulli(t, 0.3),
    "normal": lambda t: torch.normal(t, torch.ones(5)),
    "poisson": torch.poisson,
    "binomial": lambda t: torch.binomial(torch.full_like(t, 9.0), t),
    "gamma": lambda t: torch._standard_gamma(t + 0.5),
    "dirichlet": lambda t: torch._sample_dirichlet(t + 0.5),
}


def seeded(function, *inputs):
    torch.manual_seed(7)
    return function(*inputs)


def values(shape=(4, 3, 5)):
    torch.manual_seed(1)
    return torch.rand(shape)


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("dim", [0, 1])
def test_numbers_that_differ_are_drawn_right_into_the_batch(name, dim):
    into, beside = values(), values()
    drawn = seeded(vmap(IN_PLACE[name], in_dims=dim, randomness="different"), into)
    assert drawn.equal(seeded(IN_PLACE[name], beside.movedim(dim, 0)))
    assert into.equal(beside)


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("dim", [0, 1])
def test_the_same_numbers_are_drawn_for_one_element_and_copied(name, dim):
    one = seeded(IN_PLACE[name], torch.empty((3, 5) if dim == 0 else (4, 5)))
    drawn = seeded(vmap(IN_PLACE[name], in_dims=dim, randomness="same"), values())
    assert all(row.equal(one) for row in drawn)


@pytest.mark.parametrize("name", OF_ELEMENTS)
@pytest.mark.parametrize("dim", [0, 1])
def test_numbers_of_tensors_are_drawn_for_the_whole_batch(name, dim):
    f, x = OF_ELEMENTS[name], values()
    assert seeded(vmap(f, in_dims=dim, randomness="different"), x).equal(seeded(f, x.movedim(dim, 0)))
    with pytest.raises(RuntimeError, match="does not currently support same randomness with a batched tensor input"):
        vmap(f, in_dims=dim, randomness="same")(x)
    nested = vmap(vmap(f, in_dims=0, randomness="different"), in_dims=dim, randomness="different")
    assert seeded(nested, x).equal(seeded(f, x.movedim(dim, 0)))


def test_choices_of_a_batch_of_rows_are_those_of_all_rows():
    x = values() + 0.1
    f = lambda t: torch.multinomial(t, 3)
    assert seeded(vmap(f, in_dims=1, randomness="different"), x).equal(seeded(f, x.movedim(1, 0).reshape(12, 5)).view(3, 4, 3))
    assert seeded(vmap(f, in_dims=1, randomness="different"), x[0].t()).equal(seeded(f, x[0]))


def test_dropout_draws_apart_from_its_input_under_every_transform():
    x = torch.ones(5, 3).t()
    drop = lambda t: F.dropout(t, 0.5, True)
    noise = seeded(torch.bernoulli, torch.ones(3, 5), 0.5) * 2
    assert seeded(jvp, drop, (x,), (x,))[0].equal(noise) and seeded(functionalize(drop), x).equal(noise)
    assert seeded(grad(lambda t: drop(t).sum()), x).equal(noise)
    same = seeded(vmap(drop, randomness="same"), torch.ones(2, 3, 5))
    assert same[0].equal(noise) and same[1].equal(noise)
    drawn = seeded(torch.bernoulli, torch.ones(2, 3, 5), 0.5) * 2
    for dims, t in ((0, torch.ones(2, 3, 5)), (2, torch.ones(3, 5, 2))):
        assert seeded(vmap(drop, in_dims=dims, randomness="different"), t).equal(drawn)
    unbatched = vmap(lambda _, t: drop(t), in_dims=(0, None), randomness="different")
    assert seeded(unbatched, torch.ones(2), torch.ones(3, 5)).equal(drawn)


def test_channels_are_dropped_together():
    x = torch.ones(4, 2, 3, 2, 6)
    out = seeded(vmap(lambda t: F.dropout2d(t, 0.5, True), randomness="different"), x)
    assert set(out.sum((-1, -2)).flatten().tolist()) == {0.0, 24.0}
    assert out[..., 0, 0].equal(seeded(torch.bernoulli, torch.ones(4, 2, 3), 0.5) * 2)


def test_dropout_that_does_not_train_draws_nothing():
    x = values()
    out, kept = vmap(lambda t: torch.native_dropout(t, 0.5, False))(x)
    assert out.equal(x) and bool(kept.all())
    assert vmap(lambda t: F.rrelu(t, training=False))(x).equal(x)


def test_native_dropout_keeps_the_same_for_all():
    x = values()
    out, kept = seeded(vmap(lambda t: torch.native_dropout(t, 0.5, True), randomness="same"), x)
    mask = seeded(lambda: torch.empty(3, 5, dtype=torch.bool).bernoulli_(0.5))
    assert kept.equal(mask.expand(4, 3, 5)) and out.equal(x * mask * 2)


@pytest.mark.parametrize("call, text", [
    (lambda t: torch.randn(3, out=torch.empty(3)), "calling out variants of random operations"),
    (lambda t: torch.bernoulli(t, out=torch.empty(3, 5)), "calling out variants of random operations"),
    (lambda t: torch.multinomial(t, 2, out=torch.empty(0, dtype=torch.long)), "calling out variants of random operations"),
    (lambda t: F.rrelu(t, training=True), "we do not yet support aten::rrelu. Please file an issue"),
])
@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_what_vmap_refuses_of_random_operators(call, text, randomness):
    with pytest.raises(RuntimeError, match=text):
        vmap(call, randomness=randomness)(values())


def test_probabilities_of_a_batch_cannot_be_written_to_one_tensor():
    with pytest.raises(RuntimeError, match="more elements than `self`"):
        vmap(lambda p: torch.zeros(3, 5).bernoulli_(p), randomness="different")(values())
    with pytest.raises(RuntimeError, match="does not currently support same randomness"):
        vmap(lambda p: torch.zeros(3, 5).bernoulli_(p), randomness="same")(values())


def test_arguments_of_distributions_are_checked_for_the_whole_batch():
    low, high = torch.zeros(3), torch.ones(3)
    sample = vmap(lambda a, b: torch.distributions.Uniform(a, b).sample((2,)), randomness="different")
    assert sample(low, high).shape == (3, 2)
    assert not vmap(torch._is_all_true)(torch.tensor([[True, True], [True, False]])).any()
    assert vmap(torch._is_any_true)(torch.tensor([[False, False], [True, False]])).all()


def test_what_is_made_like_a_batch_lies_as_it_does():
    x = values((2, 3, 4))
    f = lambda make: vmap(lambda t: make(t, memory_format=torch.contiguous_format), in_dims=1)(x).stride()
    assert f(torch.zeros_like) == (4, 12, 1) and f(torch.clone) == (8, 4, 1)
