"""Special functions, orthogonal polynomials, windows, sequences."""
import math

import pytest

import umbra as torch

D = torch.float64


def test_chebyshev_polynomials_are_cosines_of_multiples():
    angle = torch.linspace(0.1, 3.0, 7, dtype=D)
    x = angle.cos()
    for n in (0, 1, 5, 20):
        torch.testing.assert_close(torch.special.chebyshev_polynomial_t(x, n), (n * angle).cos())
        torch.testing.assert_close(torch.special.chebyshev_polynomial_u(x, n), ((n + 1) * angle).sin() / angle.sin())
        torch.testing.assert_close(torch.special.shifted_chebyshev_polynomial_t((x + 1) / 2, n), (n * angle).cos())


def test_polynomials_take_a_number_for_either_argument():
    x, n = torch.tensor([0.5, 2.0], dtype=D), torch.tensor([0, 1, 2, 3])
    assert torch.special.hermite_polynomial_h(0.5, n).tolist() == [1.0, 1.0, -1.0, -5.0]
    assert torch.special.legendre_polynomial_p(x, 2).tolist() == [-0.125, 5.5]
    assert torch.special.laguerre_polynomial_l(x, torch.tensor([1, -1])).tolist() == [0.5, 0.0]


def test_polynomials_have_no_derivative():
    x = torch.tensor([0.5], requires_grad=True)
    assert not torch.special.legendre_polynomial_p(x, 3).requires_grad


@pytest.mark.parametrize("name", ["bessel_j0", "ndtri", "erfcx", "zeta", "hermite_polynomial_h"])
def test_narrow_types_are_refused_where_pytorch_refuses_them(name):
    x = torch.tensor([0.5], dtype=torch.half)
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        getattr(torch.special, name)(*([x, x] if name in ("zeta", "hermite_polynomial_h") else [x]))


def test_derivatives_that_are_not_there_say_so():
    a, x = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0])
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented"):
        torch.igamma(a, x).sum().backward()
    with pytest.raises(NotImplementedError, match="the derivative for 'zeta' is not implemented"):
        torch.special.zeta(a, x).sum().backward()


def test_the_normal_distribution_is_inverted_to_the_last_places():
    values = {5e-324: -38.467405617144344, 1e-300: -37.0470962993612, 1e-40: -13.31092137142517, 3e-31: -11.5678021395283, 1e-30: -11.464024688443615,
              1e-10: -6.361340902404057, 0.0016: -2.9478425521849063, 0.0017: -2.929049748937626, 0.0018: -2.9112377262430056,
              0.1: -1.2815515655446004, 0.4: -0.2533471031357997, 0.4999: -0.00025066283008800747, 0.5: 0.0, 0.75: 0.6744897501960817,
              0.99: 2.3263478740408408, 0.9984: 2.9478425521848974, 0.999999: 4.753424308817087, 1 - 2**-53: 8.209536151601387,
              0.0: -float("inf"), 1.0: float("inf")}
    p, wanted = torch.tensor(list(values), dtype=D), torch.tensor(list(values.values()), dtype=D)
    torch.testing.assert_close(torch.special.ndtri(p), wanted, rtol=6e-16, atol=0)
    for one, value in values.items():
        torch.testing.assert_close(torch.special.ndtri(torch.tensor(one, dtype=D)), torch.tensor(value, dtype=D), rtol=6e-16, atol=0)
    torch.testing.assert_close(torch.special.ndtri(p[6:11].float()), wanted[6:11].float(), rtol=2e-6, atol=0)
    assert torch.special.ndtri(torch.tensor([-0.1, 1.1, float("nan"), float("inf"), -float("inf")], dtype=D)).isnan().all()


@pytest.mark.parametrize("function", ["lgamma", "digamma", "erfinv", "i0", "special.i0e", "special.i1", "special.i1e", "special.erfcx",
                                      "special.ndtri", "special.log_ndtr", "special.bessel_j0", "special.bessel_j1", "special.bessel_y0",
                                      "special.bessel_y1", "special.modified_bessel_i1", "special.modified_bessel_k0",
                                      "special.modified_bessel_k1"])
def test_gradients_are_slopes(function):
    f = torch
    for part in function.split("."):
        f = getattr(f, part)
    x, h = torch.tensor([0.2, 0.7], dtype=D), 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    torch.testing.assert_close(torch.func.vjp(f, x)[1](torch.ones(2, dtype=D))[0], slope, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(torch.func.jvp(f, (x,), (torch.ones(2, dtype=D),))[1], slope, rtol=1e-6, atol=1e-6)


def test_polygamma_in_place_keeps_its_input_for_the_gradient():
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    y = x.clone().polygamma_(1)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.polygamma(2, x.detach()))


def test_linspace_meets_both_ends():
    assert torch.linspace(-7.9, 9.9, 6, dtype=torch.int64).tolist() == [-7, -3, 0, 2, 5, 9]
    assert torch.linspace(torch.tensor(1.0), 2, 3).tolist() == [1.0, 1.5, 2.0]
    assert torch.linspace(0, 1j, 3).dtype == torch.complex64
    assert torch.logspace(0, 3, 4, base=-2).tolist() == [1.0, -2.0, 4.0, -8.0]
    assert torch.linspace(3, 5, 1).tolist() == [3.0] and torch.linspace(3, 5, 0).numel() == 0
    with pytest.raises(RuntimeError, match="0-dimensional start and end tensors"):
        torch.linspace(torch.ones(2), 3, 4)


def test_out_of_a_factory_keeps_its_type_and_takes_the_size():
    out = torch.empty(0, dtype=torch.long)
    assert torch.arange(0, 3.5, out=out) is out and out.tolist() == [0, 1, 2, 3]
    strided = torch.zeros(6)
    torch.ones(3, out=strided[::2])
    assert strided.tolist() == [1, 0, 1, 0, 1, 0]


def test_windows_are_symmetric_or_one_period():
    for name in ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"):
        window = getattr(torch, name)
        symmetric = window(7, periodic=False, dtype=D)
        torch.testing.assert_close(symmetric, symmetric.flip(0))
        torch.testing.assert_close(window(6, dtype=D), symmetric[:6])
        assert window(1).tolist() == [1.0] and window(0).numel() == 0
    torch.testing.assert_close(torch.signal.windows.hann(7, dtype=D), torch.hann_window(7, periodic=False, dtype=D))
    torch.testing.assert_close(torch.signal.windows.kaiser(6, sym=False, dtype=D), torch.kaiser_window(6, dtype=D))
    with pytest.raises(ValueError, match="float32 or float64"):
        torch.signal.windows.cosine(3, dtype=torch.half)


def test_quantiles_lie_between_elements():
    x = torch.tensor([[1.0, 4.0, 2.0], [float("nan"), 0.0, 8.0]])
    assert torch.quantile(x[0], 0.5).item() == 2.0 and torch.quantile(x[0], 0.25).item() == 1.5
    assert math.isnan(torch.quantile(x, 0.5, dim=1)[1]) and torch.nanquantile(x, 0.5, dim=1).tolist() == [2.0, 4.0]
    assert torch.quantile(x[0], torch.tensor([0.0, 1.0]), interpolation="nearest").tolist() == [1.0, 4.0]
    with pytest.raises(RuntimeError, match=r"in the range \[0, 1\]"):
        torch.quantile(x, 1.5)


def test_neighbours_are_those_of_the_type():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, D):
        one = torch.ones((), dtype=dtype)
        assert torch.nextafter(one, one * 2) - one == torch.finfo(dtype).eps
        assert torch.nextafter(one * 0, -one) < 0
    mantissa, exponent = torch.frexp(torch.tensor([1.5, -3.0, 0.0]))
    assert mantissa.tolist() == [0.75, -0.75, 0.0] and exponent.tolist() == [1, 2, 0]
