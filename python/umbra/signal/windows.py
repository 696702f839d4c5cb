"""Windows of M elements, symmetric or one period of what repeats."""
from collections.abc import Iterable
from math import pi, sqrt

import umbra

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def _options(name, M, dtype, layout, device, requires_grad):
    """How the window is made; an error where it cannot be."""
    dtype = dtype if dtype is not None else umbra.get_default_dtype()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not umbra.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (umbra.float32, umbra.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}


def _length(M, sym):
    """Of the symmetric window that this is part of, less one."""
    return M - 1 if sym else M


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    """exp(-|n - center| / tau)."""
    options = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return umbra.empty((0,), **options)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    return umbra.exp(-umbra.abs(umbra.linspace(-center / tau, (-center + (M - 1)) / tau, M, **options)))


def cosine(M, *, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    """Half a period of the sine."""
    options = _options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return umbra.empty((0,), **options)
    step = pi / (M + 1 if not sym and M > 1 else M)
    return umbra.sin(umbra.linspace(0.5 * step, (0.5 + (M - 1)) * step, M, **options))


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    """exp(-n² / (2 std²)) around the middle."""
    options = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return umbra.empty((0,), **options)
    start, step = -(M if not sym and M > 1 else M - 1) / 2.0, 1 / (std * sqrt(2))
    return umbra.exp(-(umbra.linspace(start * step, (start + (M - 1)) * step, M, **options) ** 2))


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    """The Bessel function I0 over half a circle."""
    options = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return umbra.empty((0,), **options)
    if M == 1:
        return umbra.ones((1,), **options)
    beta = umbra.tensor(beta, dtype=options["dtype"], device=device)
    end = umbra.minimum(beta, -beta + (M - 1) * (2.0 * beta / _length(M, sym)))
    k = umbra.linspace(start=-beta, end=end, steps=M, **options)
    return umbra.i0(umbra.sqrt(beta * beta - umbra.pow(k, 2))) / umbra.i0(beta)


def hamming(M, *, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(M, *, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    """A triangle."""
    options = _options("bartlett", M, dtype, layout, device, requires_grad)
    if M == 0:
        return umbra.empty((0,), **options)
    if M == 1:
        return umbra.ones((1,), **options)
    return 1 - umbra.abs(umbra.linspace(-1, -1 + (M - 1) * (2 / _length(M, sym)), M, **options))


def general_cosine(M, *, a, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    """A sum of cosines of one, two, ... periods, with weights of alternating signs."""
    options = _options("general_cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return umbra.empty((0,), **options)
    if M == 1:
        return umbra.ones((1,), **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    k = umbra.linspace(0, (M - 1) * (2 * pi / _length(M, sym)), M, **options)
    weights = umbra.tensor([(-1) ** i * w for i, w in enumerate(a)], dtype=options["dtype"], device=device, requires_grad=requires_grad)
    i = umbra.arange(weights.shape[0], dtype=weights.dtype, device=weights.device)
    return (weights.unsqueeze(-1) * umbra.cos(i.unsqueeze(-1) * k)).sum(0)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=umbra.strided, device=None, requires_grad=False):
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)
