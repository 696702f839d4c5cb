"""torch.distributions: densities that belong to their samples, transforms that invert, divergences."""
import math

import pytest

import umbra as torch
import umbra.distributions as D

T = torch.tensor
CONTINUOUS = {
    "Normal": lambda: D.Normal(T([0.0, 1.0]), T([1.0, 2.0])), "Gamma": lambda: D.Gamma(T([2.0, 0.7]), T([1.0, 3.0])),
    "Beta": lambda: D.Beta(T([2.0, 1.5]), T([3.0, 1.2])), "Exponential": lambda: D.Exponential(T([1.0, 0.3])),
    "Uniform": lambda: D.Uniform(T([0.0, 1.0]), T([2.0, 1.5])), "Laplace": lambda: D.Laplace(T([0.0, 1.0]), T([1.0, 2.0])),
    "Gumbel": lambda: D.Gumbel(T([0.0, 1.0]), T([1.0, 2.0])), "LogNormal": lambda: D.LogNormal(T([0.0, 0.3]), T([0.5, 0.2])),
    "Weibull": lambda: D.Weibull(T([1.0, 2.0]), T([1.5, 2.5])), "HalfNormal": lambda: D.HalfNormal(T([1.0, 2.0])),
    "Kumaraswamy": lambda: D.Kumaraswamy(T([2.0, 1.5]), T([3.0, 1.2])), "Pareto": lambda: D.Pareto(T([1.0, 2.0]), T([5.0, 6.0])),
    "StudentT": lambda: D.StudentT(T([6.0, 9.0]), T([0.0, 1.0]), T([1.0, 2.0])), "InverseGamma": lambda: D.InverseGamma(T([6.0]), T([2.0])),
    "FisherSnedecor": lambda: D.FisherSnedecor(T([6.0]), T([12.0])), "GeneralizedPareto": lambda: D.GeneralizedPareto(T([0.0]), T([1.0]), T([0.1])),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_mean_and_variance_are_those_of_samples(name):
    torch.manual_seed(0)
    d = CONTINUOUS[name]()
    samples = d.sample((40000,))
    torch.testing.assert_close(samples.mean(0), d.mean, rtol=0.05, atol=0.03)
    torch.testing.assert_close(samples.var(0), d.variance, rtol=0.25, atol=0.05)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_entropy_is_the_mean_of_minus_the_log_density(name):
    torch.manual_seed(0)
    d = CONTINUOUS[name]()
    try:
        entropy = d.entropy()
    except NotImplementedError:
        pytest.skip("has no entropy, as in PyTorch")
    torch.testing.assert_close(-d.log_prob(d.sample((40000,))).mean(0), entropy, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("name", ["Normal", "Exponential", "Uniform", "Laplace", "Gumbel", "LogNormal", "Weibull", "HalfNormal", "Pareto"])
def test_quantiles_invert_the_cumulative_function_whose_slope_is_the_density(name):
    d = CONTINUOUS[name]()
    p = T([0.3, 0.8])
    x = d.icdf(p).double().requires_grad_()
    torch.testing.assert_close(d.cdf(x).float(), p)
    (slope,) = torch.autograd.grad(d.cdf(x).sum(), x)
    torch.testing.assert_close(slope, d.log_prob(x.detach()).exp().to(slope), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("d", [D.Poisson(T(3.0)), D.Geometric(T(0.3)), D.Binomial(9, T(0.3)), D.Categorical(T([0.2, 0.3, 0.5]))])
def test_probabilities_of_whole_numbers_add_up_to_one(d):
    last = {D.Binomial: 9, D.Categorical: 2}.get(type(d), 80)
    torch.testing.assert_close(d.log_prob(torch.arange(last + 1.0)).exp().sum(), T(1.0))


def test_samples_carry_gradients_to_parameters():
    torch.manual_seed(0)
    a = T([0.5, 2.0, 30.0], requires_grad=True)
    (g,) = torch.autograd.grad(D.Gamma(a, 1.0).rsample((20000,)).mean(0).sum(), a)
    torch.testing.assert_close(g, torch.ones(3), rtol=0.05, atol=0.05)  # the mean is the shape
    b = T([1.0, 2.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad(D.Dirichlet(b).rsample((20000,)).mean(0)[0], b)
    torch.testing.assert_close(g, T([5.0, -1.0, -1.0]) / 36, rtol=0.1, atol=0.005)


def test_what_is_no_parameter_or_value_is_refused():
    for make in (lambda: D.Normal(T([0.0]), T([-1.0])), lambda: D.Bernoulli(0.5, 0.5), lambda: D.Uniform(1.0, 0.0), lambda: D.Categorical(T(1.0)),
                 lambda: D.Normal(0.0, 1.0).log_prob(T(math.nan)), lambda: D.Poisson(T(1.0)).log_prob(T(0.5)),
                 lambda: D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))):
        with pytest.raises(ValueError):
            make()
    assert D.Normal(T([0.0]), T([-1.0]), validate_args=False).mean == 0


def test_transforms_invert_and_know_their_jacobians():
    x = T([-1.0, 0.3, 2.0], dtype=torch.float64, requires_grad=True)
    for f in (D.ExpTransform(), D.SigmoidTransform(), D.TanhTransform(), D.SoftplusTransform(), D.AffineTransform(1.0, -3.0),
              D.ComposeTransform([D.ExpTransform(), D.PowerTransform(T(2.0))]), D.ExpTransform().inv.inv):
        y = f(x)
        torch.testing.assert_close(f.inv(y), x)
        (slope,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(f.log_abs_det_jacobian(x, y), slope.abs().log())
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)


def test_registries_lead_from_real_numbers_into_constraints():
    c = D.constraints
    for constraint in (c.positive, c.unit_interval, c.interval(-2.0, 3.0), c.greater_than(1.0), c.less_than(1.0)):
        for registry in (D.biject_to, D.transform_to):
            assert constraint.check(registry(constraint)(T([-3.0, 0.0, 4.0]))).all()
    assert c.simplex.check(D.transform_to(c.simplex)(T([0.3, -1.0, 2.0])))
    with pytest.raises(NotImplementedError):
        D.biject_to(c.boolean)


def test_divergence_is_found_by_the_closest_classes():
    class Mine(D.Normal):
        pass
    n, m = D.Normal(0.0, 1.0), Mine(0.0, 1.0)
    assert D.kl_divergence(m, n) == 0
    D.register_kl(Mine, Mine)(lambda p, q: T(42.0))
    assert D.kl_divergence(m, m) == 42 and D.kl_divergence(m, n) == 0
    with pytest.raises(NotImplementedError):
        D.kl_divergence(n, D.Poisson(1.0))


def test_divergences_are_means_of_log_ratios():
    torch.manual_seed(0)
    pairs = [(D.Normal(0.0, 1.0), D.Laplace(0.5, 2.0)), (D.Gamma(2.0, 1.0), D.Exponential(0.7)), (D.Beta(2.0, 3.0), D.Normal(0.3, 1.0)),
             (D.Exponential(2.0), D.Gumbel(0.0, 1.0)), (D.Uniform(0.1, 0.8), D.Beta(2.0, 2.0)), (D.Pareto(1.0, 5.0), D.Gamma(2.0, 1.0)),
             (D.Laplace(0.0, 1.0), D.Normal(1.0, 2.0)), (D.Gumbel(0.0, 1.0), D.Normal(1.0, 2.0))]
    for p, q in pairs:
        x = p.sample((60000,))
        torch.testing.assert_close((p.log_prob(x) - q.log_prob(x)).mean(), D.kl_divergence(p, q), rtol=0.05, atol=0.02)
    assert D.kl_divergence(D.Normal(0.0, 1.0), D.Gamma(1.0, 1.0)) == math.inf


def test_batches_expand_and_become_events():
    d = D.Independent(D.Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,)) and d.log_prob(torch.zeros(2, 3)).shape == (2,)
    assert d.expand((4, 2)).sample((5,)).shape == (5, 4, 2, 3)
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"


def test_mixtures_weigh_their_components():
    mix = D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])), D.Normal(T([0.0, 5.0]), T([1.0, 0.5])))
    torch.testing.assert_close(mix.mean, T(3.5))
    torch.testing.assert_close(mix.variance, T(0.3 * (1 + 3.5**2) + 0.7 * (0.25 + 1.5**2)))
    torch.testing.assert_close(mix.cdf(T(2.5)), T(0.3 * 0.99379), rtol=1e-4, atol=1e-5)


def test_moments_that_do_not_exist():
    heavy = D.GeneralizedPareto(T([0.0, 0.0]), T([1.0, 1.0]), T([0.7, 1.5]))
    assert heavy.variance.isnan().all() and heavy.mean.isnan().tolist() == [False, True]


def test_messages_of_shapes_and_old_names():
    with pytest.warns(FutureWarning, match="`sample_n\\(n\\)` will be deprecated"):
        D.Normal(0.0, 1.0).sample_n(2)
    with pytest.raises(RuntimeError, match="dimension of length 3 at -1! Mismatching argument at index 1 had torch.Size\\(\\[3\\]\\)"):
        torch.broadcast_shapes((2,), torch.Size([3]))
    with pytest.raises(ValueError, match="negative length"):
        torch.broadcast_shapes((-1,))
    with pytest.raises(RuntimeError, match="Input shapes should be"):
        torch.broadcast_shapes(torch.ones(2))
    with pytest.raises(RuntimeError, match="expanded size of the tensor \\(5\\) must match the existing size \\(2\\) at non-singleton dimension 1"):
        torch.ones(3, 2).expand(7, 5)


def test_gamma_draws_from_a_generator():
    gamma = D.Gamma(torch.tensor([2.0]), torch.tensor([1.0]))
    draws = [gamma.sample((3,), generator=torch.Generator().manual_seed(1)) for _ in range(2)] + [gamma.rsample((3,), torch.Generator().manual_seed(1))]
    assert torch.equal(draws[0], draws[1]) and torch.equal(draws[0], draws[2])


def test_names_of_types_and_functions():
    class Thing:
        def method(self):
            pass
    own = f"{__name__}.test_names_of_types_and_functions.<locals>.Thing"
    assert torch.typename(Thing) == torch.typename(Thing()) == own and torch.typename(Thing().method) == own + ".method"
    assert torch.typename(len) == "len" and torch.typename(3) == "int" and torch.typename(list) == "list" and torch.typename(torch.ones(1)) == "torch.FloatTensor"
    assert torch.typename(torch.log_).endswith(".log_") and torch.typename(torch.nn.functional.relu).endswith("nn.functional.relu")
    assert torch.typename(torch.Tensor.add_).endswith("Tensor.add_")
