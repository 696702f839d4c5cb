"""Functions of umbra.nn.functional as the compiler can read them: activations, norms, distances."""
from typing import List, Optional

import umbra as torch
from umbra import Tensor
from umbra._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3
from umbra.nn.functional._embeddings import _bags_of


# ---- activations ----

def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.clamp_(input, 0, 6) if inplace else torch.relu6(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.silu_(input) if inplace else torch.silu(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardswish_(input) if inplace else torch.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardsigmoid_(input) if inplace else torch.hardsigmoid(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return torch.leaky_relu_(input, negative_slope) if inplace else torch.leaky_relu(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.elu_(input, alpha) if inplace else torch.elu(input, alpha)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.hardtanh_(input, min_val, max_val) if inplace else torch.hardtanh(input, min_val, max_val)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    return torch.gelu(input, approximate=approximate)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    return torch.group_norm(input, num_groups, weight, bias, eps, True)


def adaptive_avg_pool1d(input: Tensor, output_size: BroadcastingList1[int]) -> Tensor:
    return torch.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    return torch.adaptive_avg_pool3d(input, output_size)


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch.ops.aten.pad(input, pad, mode, value)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    length = torch.norm(input, p, [dim], True).clamp_min(eps).expand_as(input)
    return input / length


def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = (1, 1), padding: BroadcastingList2[int] = (0, 0),
           stride: BroadcastingList2[int] = (1, 1)) -> Tensor:
    return torch.im2col(input, kernel_size, dilation, padding, stride)


def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = (1, 1),
         padding: BroadcastingList2[int] = (0, 0), stride: BroadcastingList2[int] = (1, 1)) -> Tensor:
    return torch.col2im(input, output_size, kernel_size, dilation, padding, stride)


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None,
                  bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


# ---- functions of one tensor ----

def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.mish_(input) if inplace else torch.mish(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return torch.glu(input, dim)


def logsigmoid(input: Tensor) -> Tensor:
    return torch.log_sigmoid(input)


def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)


def tanhshrink(input: Tensor) -> Tensor:
    return input - torch.tanh(input)


def softsign(input: Tensor) -> Tensor:
    return input / (torch.abs(input) + 1)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return torch.threshold_(input, threshold, value) if inplace else torch.threshold(input, threshold, value)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    return torch.rrelu_(input, lower, upper, training) if inplace else torch.rrelu(input, lower, upper, training)


def _softmax_dim(dim: Optional[int], rank: int) -> int:
    if dim is not None:
        return dim
    return 0 if rank == 0 or rank == 1 or rank == 3 else 1


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(input, _softmax_dim(dim, input.dim()), dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(-input, _softmax_dim(dim, input.dim()), dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.log_softmax(input, _softmax_dim(dim, input.dim()), dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    gumbels = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return torch.alpha_dropout_(input, p, training) if inplace else torch.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return torch.feature_alpha_dropout_(input, p, training) if inplace else torch.feature_alpha_dropout(input, p, training)


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


# ---- norms, distances and rows of tables ----

def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    rank = input.dim()
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {rank} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if rank == 3:
        padded = torch.ops.aten.pad(squares.unsqueeze(1), [0, 0, size // 2, (size - 1) // 2])
        mean = torch.avg_pool2d(padded, [size, 1], [1, 1]).squeeze(1)
    else:
        sizes = input.size()
        padded = torch.ops.aten.pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), [0, 0, 0, 0, size // 2, (size - 1) // 2])
        mean = torch.avg_pool3d(padded, [size, 1, 1], [1, 1, 1]).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    padding = -1
    if padding_idx is not None:
        assert -weight.size(0) <= padding_idx and padding_idx < weight.size(0), "Padding_idx must be within num_embeddings"
        padding = padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx
    if max_norm is not None:
        input = input.contiguous()
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    return torch.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
                  include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError("embedding_bag: If per_sample_weights is not None, then it must have the same shape as the input")
    if input.dim() == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.")
    include_last_offset = include_last_offset and input.dim() == 1
    input, starts, per_sample_weights = _bags_of(input, offsets, per_sample_weights)
    kind = 0
    if mode == "mean":
        kind = 1
    elif mode == "max":
        kind = 2
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    elif mode != "sum":
        raise ValueError("mode has to be one of sum, mean or max")
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{mode}').")
    return torch.embedding_bag(weight, input, starts, scale_grad_by_freq, kind, sparse, per_sample_weights, include_last_offset, padding_idx)[0]
