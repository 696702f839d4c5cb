"""Normalisation."""
import math

import umbra
from umbra.compiler import is_exporting
from umbra.nn.functional._images import pad
from umbra.nn.functional._publish import publish


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalised over the last dimensions."""
    return umbra.layer_norm(input, normalized_shape, weight, bias, eps, not is_exporting())


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Groups of channels of each sample, normalised."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    count = input.numel()
    may_be_one = type(count) is not int or count < 2 * num_groups  # only so few elements can be one for each group
    if may_be_one or num_groups == 0:
        _check_several([input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]])
    return umbra.group_norm(input, num_groups, weight, bias, eps, not is_exporting())


def _check_several(size):
    """Statistics of a single value are no statistics."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divided by the root mean square over the last dimensions."""
    return umbra.rms_norm(input, normalized_shape, weight, eps)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Channels normalised by the batch's statistics in training, else by the running ones."""
    if training:
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        _check_several(input.size())
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    # Exported programs are not for one device: PyTorch switches cuDNN off while it exports.
    cudnn_enabled = not is_exporting()
    return umbra.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Divided by its norm along a dimension."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / length if out is None else umbra.div(input, length, out=out)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Channels of each sample, normalised."""
    if use_input_stats:
        count = math.prod(input.shape[2:])
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return umbra.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
                               not is_exporting())


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Each element over a power of the mean square of its neighbours in other channels."""
    rank = input.dim()
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {rank} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if rank == 3:
        padded = pad(squares.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2))
        mean = umbra.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        padded = pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = umbra._C._nn.avg_pool3d(padded, [size, 1, 1], [1]).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


publish(globals())
