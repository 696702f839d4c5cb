"""Activations."""
import warnings

import umbra
from umbra.nn.functional._publish import publish


def _activation(name, text):
    plain = getattr(umbra, name)

    def apply(input, inplace=False):
        return getattr(umbra, name + "_")(input) if inplace else plain(input)
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = text
    return apply


relu = _activation("relu", "x where it is positive, 0 elsewhere.")
relu6 = _activation("relu6", "x between 0 and 6, those elsewhere.")
silu = _activation("silu", "x * sigmoid(x).")
mish = _activation("mish", "x * tanh(softplus(x)).")
hardswish = _activation("hardswish", "x * relu6(x + 3) / 6.")
hardsigmoid = _activation("hardsigmoid", "relu6(x + 3) / 6.")


def elu(input, alpha=1.0, inplace=False):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return umbra.elu_(input, alpha) if inplace else umbra.elu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where it is positive, negative_slope * x elsewhere."""
    return umbra.leaky_relu_(input, negative_slope) if inplace else umbra.leaky_relu(input, negative_slope)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x, clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return umbra.hardtanh_(input, min_val, max_val) if inplace else umbra.hardtanh(input, min_val, max_val)


def threshold(input, threshold, value, inplace=False):
    """x where it is above the threshold, value elsewhere."""
    return umbra.threshold_(input, threshold, value) if inplace else umbra.threshold(input, threshold, value)


def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input):
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def glu(input, dim=-1):
    """The first half of a dimension times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return umbra.glu(input, dim)


def _implicit_dim(name, rank, stacklevel):
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.", stacklevel=stacklevel)
    return 0 if rank in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) over its sum along a dimension."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, computed as a whole."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -x."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky relu with slopes that are drawn anew for each element while training."""
    return umbra.rrelu_(input, lower, upper, training) if inplace else umbra.rrelu(input, lower, upper, training)


def logsigmoid(input, *, out=None):
    """The logarithm of sigmoid, computed as a whole."""
    return umbra.log_sigmoid(input) if out is None else umbra.log_sigmoid(input, out=out)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return umbra.celu_(input, alpha) if inplace else umbra.celu(input, alpha)


def selu(input, inplace=False):
    """elu with the scale and alpha that keep mean and variance."""
    return umbra.selu_(input) if inplace else umbra.selu(input)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; with `hard` it is one-hot, and its gradient that of the soft one."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    gumbels = -umbra.empty_like(logits, memory_format=umbra.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = umbra.zeros_like(logits, memory_format=umbra.contiguous_format).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft


publish(globals())
