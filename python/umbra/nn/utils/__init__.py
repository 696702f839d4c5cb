"""Helpers around modules."""
from umbra._modules import lazy_submodules
from umbra.nn.utils.clip_grad import (  # noqa: F401
    clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm, parameters_to_vector, vector_to_parameters)
from umbra.nn.utils.clip_grad import clip_grad_norm  # noqa: F401
from umbra.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights  # noqa: F401
from umbra.nn.utils.init import skip_init  # noqa: F401
from umbra.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format  # noqa: F401
from umbra.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm  # noqa: F401
from umbra.nn.utils.weight_norm import remove_weight_norm, weight_norm  # noqa: F401

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "convert_conv2d_weight_memory_format",
           "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
           "get_total_norm", "parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init",
           "spectral_norm", "stateless", "vector_to_parameters", "weight_norm"]

__getattr__ = lazy_submodules(__name__)
