"""How weights start out. Same seed, same numbers as torch."""
import math
import warnings

import umbra
from umbra.overrides import overridable


def calculate_gain(nonlinearity, param=None):
    """The factor that keeps variance through a nonlinearity."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


@overridable
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fills with draws from [a, b]."""
    return _no_grad_uniform_(tensor, a, b, generator)


@overridable
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fills with draws of a normal distribution."""
    return _no_grad_normal_(tensor, mean, std, generator)


def _no_grad_uniform_(tensor, a, b, generator=None):
    with umbra.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    with umbra.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor, val):
    with umbra.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    return _no_grad_fill_(tensor, 0)


def _redraw_outside(tensor, mean, std, a, b, generator):
    """Normal numbers; those beyond the bounds are drawn again until none is."""
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    drawn = tensor.normal_(mean, std, generator=generator)
    while (outside := (drawn < low) | (drawn > high)).any():
        drawn = umbra.where(outside, umbra.empty_like(drawn).normal_(mean, std, generator=generator), drawn)
    return drawn


def _reject_between(tensor, mean, std, a, b, generator):
    """Uniform numbers between the bounds, each kept with the probability that its density has in relation to the highest one."""
    highest = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    drawn, rejected = tensor, None
    candidates, chance = umbra.empty_like(tensor), umbra.empty_like(tensor)
    while rejected is None or rejected.any():
        candidates.uniform_(a, b, generator=generator)
        drawn = candidates.clone() if rejected is None else umbra.where(rejected, candidates, drawn)
        log_density = candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(highest)
        refused = chance.uniform_(generator=generator).log_().gt(log_density)
        rejected = refused if rejected is None else umbra.where(rejected, refused, rejected)
    return drawn


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal numbers between a and b."""
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    def cdf(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.", stacklevel=3)
    with umbra.no_grad():
        inside = cdf((b - mean) / std) - cdf((a - mean) / std)
        draw = _redraw_outside if inside > 0.3 else _reject_between
        return tensor.copy_(draw(tensor, mean, std, a, b, generator))


@overridable
def constant_(tensor, val):
    """Fills with a number."""
    with umbra.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fills with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fills with zeros."""
    with umbra.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Fills a matrix with the identity."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with umbra.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform draws whose variance is two over the sum of inputs and outputs."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal draws whose variance is two over the sum of inputs and outputs."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


@overridable
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform draws that keep variance through rectifiers."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal draws that keep variance through rectifiers."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0, calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode)), generator)


def orthogonal_(tensor, gain: float = 1, generator=None):
    """A matrix with orthogonal rows or columns, the first dimension against all others."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
    drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q, r = umbra.linalg.qr(drawn.t() if rows < columns else drawn)
    q = q * umbra.diag(r, 0).sign()  # without a preferred direction
    with umbra.no_grad():
        tensor.view(rows, columns).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal numbers, and zeros for a share of each column."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with umbra.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[umbra.randperm(rows)[:zeros], column] = 0
    return tensor


def dirac_(tensor, groups=1):
    """Convolutions that give as many of their channels back as they can."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    share = tensor.size(0) // groups
    center = tuple(size // 2 for size in tensor.shape[2:])
    with umbra.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(share, tensor.size(1))):
                tensor[(group * share + channel, channel) + center] = 1
    return tensor


def _older_name(function):
    """A function under the name it had before it said that it writes in place."""
    name = function.__name__[:-1]

    def older(*args, **kwargs):
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{function.__name__}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)
    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"The older name of `{function.__name__}`. {function.__doc__}"
    return older


uniform, normal, constant, eye, dirac, xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, sparse = map(
    _older_name, (uniform_, normal_, constant_, eye_, dirac_, xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_, orthogonal_,
                  sparse_))
