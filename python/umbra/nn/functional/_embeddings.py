"""Rows of tables."""
import warnings
from typing import Optional, Tuple

import umbra
from umbra import Tensor
from umbra.nn.functional._publish import publish


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight`. With `max_norm` those rows are scaled first, in `weight` itself, to have no more than that norm."""
    if padding_idx is None:
        padding_idx = -1
    elif not -weight.size(0) <= padding_idx < weight.size(0):
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += weight.size(0)
    if max_norm is not None:
        input = input.contiguous()
        with umbra.no_grad():
            umbra.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return umbra.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _bags_of(input: Tensor, offsets: Optional[Tensor], per_sample_weights: Optional[Tensor]) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """Indices in one row, where each bag begins, and the weights in one row. Programs of TorchScript call it, too."""
    if input.dim() == 2:
        starts = umbra.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        return input.reshape(-1), starts, None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Rows of `weight`, summed, averaged or compared within bags: rows of a 2-D `input`, or those that `offsets` begin."""
    if weight.dtype == umbra.long and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and "
                      "should now be `embedding_bag(input, weight, ...)`.", stacklevel=3)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape as the "
                         f"input ({input.shape})")
    if not weight.dim() == 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                         f"However, found offsets of type {type(offsets)}")
    include_last_offset = include_last_offset and input.dim() == 1
    input, offsets, per_sample_weights = _bags_of(input, offsets, per_sample_weights)
    modes = ("sum", "mean", "max")
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with umbra.no_grad():
            umbra.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
                                  f"mode='{mode}'). Please open a feature request on GitHub.")
    return umbra.embedding_bag(weight, input, offsets, scale_grad_by_freq, modes.index(mode), sparse, per_sample_weights, include_last_offset,
                               padding_idx)[0]


publish(globals())
