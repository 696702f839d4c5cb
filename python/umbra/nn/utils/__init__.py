"""Helpers around modules."""
from umbra._modules import lazy_submodules
from umbra.nn.utils.clip_grad import (  # noqa: F401
    clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm, parameters_to_vector, vector_to_parameters)

__getattr__ = lazy_submodules(__name__)
