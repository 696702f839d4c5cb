"""Gradients kept within bounds, and parameters as one vector."""
import math
import types
import warnings

import umbra
from umbra._C import Tensor


def _list(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _norm(tensor, order):
    """The vector norm of all elements."""
    sizes = tensor.abs()
    if order == math.inf:
        return sizes.max()
    if order == 0:
        return (sizes != 0).sum().to(sizes.dtype)
    if order == 1:
        return sizes.sum()
    return sizes.square().sum().sqrt() if order == 2 else sizes.pow(order).sum().pow(1.0 / order)


@umbra.no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of the norms of the tensors."""
    order, tensors = float(norm_type), _list(tensors)
    if not tensors:
        return umbra.tensor(0.0)
    device = tensors[0].device
    total = _norm(umbra.stack([_norm(tensor, order).to(device) for tensor in tensors]), order)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
                           "this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`")
    return total


@umbra.no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients, whose norm is `total_norm`, in place so that it is no more than `max_norm`."""
    factor = umbra.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for parameter in _list(parameters):
        if parameter.grad is not None:
            parameter.grad.mul_(factor.to(parameter.grad.device))


@umbra.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients together so that their norm is no more than `max_norm`; gives the norm they had."""
    generated = isinstance(parameters, types.GeneratorType)
    parameters = _list(parameters)
    if generated and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    total = get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


@umbra.no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps each element of the gradients to [-clip_value, clip_value]."""
    for parameter in _list(parameters):
        if parameter.grad is not None:
            parameter.grad.clamp_(min=-float(clip_value), max=float(clip_value))


def parameters_to_vector(parameters):
    """All parameters one after the other."""
    return umbra.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    """Gives each parameter its part of the vector as data."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The older name of clip_grad_norm_."""
    import warnings
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
