"""A layer and the batch normalisation behind it as one layer, for inference."""
import copy

import umbra
from umbra.nn.parameter import Parameter


def _scaled(weight, bias, mean, variance, eps, scale, shift, shape):
    bias_type = weight.dtype if bias is None else bias.dtype
    bias = umbra.zeros_like(mean) if bias is None else bias
    scale = umbra.ones_like(mean) if scale is None else scale
    shift = umbra.zeros_like(mean) if shift is None else shift
    inverse = umbra.rsqrt(variance + eps)
    fused_weight = weight * (scale * inverse).reshape(shape)
    fused_bias = (bias - mean) * inverse * scale + shift
    return fused_weight.to(weight.dtype), fused_bias.to(bias_type)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and bias of a convolution that does what the two do."""
    shape = [1, -1] if transpose else [-1, 1]
    weight, bias = _scaled(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + [1] * (conv_w.dim() - 2))
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_w.requires_grad if conv_b is None else conv_b.requires_grad)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what the two do in evaluation mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of a linear layer that does what the two do."""
    weight, bias = _scaled(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_w.requires_grad if linear_b is None else linear_b.requires_grad)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that does what the two do in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused
