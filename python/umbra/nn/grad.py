"""Gradients of convolutions, for the input or the weight alone."""
import umbra
from umbra.nn.modules.utils import _pair, _single, _triple


def _convolution_gradient(per_dim, grad_output, input, weight, stride, padding, dilation, groups, of_input):
    zeros = per_dim(0)
    gradients = umbra.ops.aten.convolution_backward(
        grad_output, input, weight, None, per_dim(stride), per_dim(padding), per_dim(dilation), False, zeros, groups, (of_input, not of_input, False))
    return gradients[0 if of_input else 1]


def _of_input(name, per_dim):
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """The gradient for an input of this size."""
        input = grad_output.new_empty(1).expand(input_size)  # only its size counts
        return _convolution_gradient(per_dim, grad_output, input, weight, stride, padding, dilation, groups, True)
    gradient.__name__ = gradient.__qualname__ = name
    return gradient


def _of_weight(name, per_dim):
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """The gradient for a weight of this size."""
        weight = grad_output.new_empty(1).expand(weight_size)  # only its size counts
        return _convolution_gradient(per_dim, grad_output, input, weight, stride, padding, dilation, groups, False)
    gradient.__name__ = gradient.__qualname__ = name
    return gradient


conv1d_input, conv1d_weight = _of_input("conv1d_input", _single), _of_weight("conv1d_weight", _single)
conv2d_input, conv2d_weight = _of_input("conv2d_input", _pair), _of_weight("conv2d_weight", _pair)
conv3d_input, conv3d_weight = _of_input("conv3d_input", _triple), _of_weight("conv3d_weight", _triple)
