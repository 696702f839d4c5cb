"""Functions and modules of this package as the compiler can read them: their own source is written for Python."""
from typing import Any, List, Optional, Tuple

import umbra as torch
from umbra import Tensor, nn
from umbra._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3
from umbra.autograd.profiler import record_function
from umbra.nn import functional as F


# ---- functions ----

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


def softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.log_softmax(input, dim, dtype)


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


def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def interpolate(input: Tensor, size: Optional[BroadcastingList1[int]] = None, scale_factor: Optional[BroadcastingList1[float]] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    if antialias or recompute_scale_factor is not None:
        raise NotImplementedError("torch.jit.script: interpolate(antialias, recompute_scale_factor) is not in Umbra yet")
    corners = False if align_corners is None else align_corners
    dims = input.dim() - 2
    if size is not None and len(size) == 1:
        size = size * dims
    if scale_factor is not None and len(scale_factor) == 1:
        scale_factor = scale_factor * dims
    if dims == 1 and mode == "nearest":
        return torch.upsample_nearest1d(input, size, scale_factor)
    if dims == 2 and mode == "nearest":
        return torch.upsample_nearest2d(input, size, scale_factor)
    if dims == 3 and mode == "nearest":
        return torch.upsample_nearest3d(input, size, scale_factor)
    if dims == 1 and mode == "linear":
        return torch.upsample_linear1d(input, size, corners, scale_factor)
    if dims == 2 and mode == "bilinear":
        return torch.upsample_bilinear2d(input, size, corners, scale_factor)
    if dims == 2 and mode == "bicubic":
        return torch.upsample_bicubic2d(input, size, corners, scale_factor)
    if dims == 3 and mode == "trilinear":
        return torch.upsample_trilinear3d(input, size, corners, scale_factor)
    raise NotImplementedError(f"torch.jit.script: interpolate in mode {mode} is not in Umbra yet")


def adaptive_avg_pool1d(input: Tensor, output_size: BroadcastingList1[int]) -> Tensor:
    return torch.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    return torch.adaptive_avg_pool3d(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    _no_indices(return_indices)
    return torch.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    _no_indices(return_indices)
    return torch.adaptive_max_pool2d(input, output_size)[0]


def _no_indices(return_indices: bool) -> None:
    if return_indices:
        raise NotImplementedError("torch.jit.script: pooling with return_indices=True is not in Umbra yet")


def max_pool1d(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = (0,),
               dilation: BroadcastingList1[int] = (1,), ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    _no_indices(return_indices)
    steps = kernel_size if stride is None else stride
    return torch.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = (0, 0),
               dilation: BroadcastingList2[int] = (1, 1), ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    _no_indices(return_indices)
    steps = kernel_size if stride is None else stride
    return torch.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = (0, 0, 0),
               dilation: BroadcastingList3[int] = (1, 1, 1), ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    _no_indices(return_indices)
    steps = kernel_size if stride is None else stride
    return torch.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    if max_norm is not None:
        raise NotImplementedError(f"torch.jit.script: embedding(max_norm={max_norm}, norm_type={norm_type}) is not in Umbra yet")
    padding = -1
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx
    return torch.embedding(weight, input, padding, scale_grad_by_freq, sparse)


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


def softmin(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(-input, dim, dtype)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    return torch.softplus(input, beta, threshold)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return torch.threshold_(input, threshold, value) if inplace else torch.threshold(input, threshold, value)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)


# ---- losses ----

def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.l1_loss(input, target, _reduction_of(size_average, reduce, reduction))


def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.mse_loss(input, target, _reduction_of(size_average, reduce, reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    return torch.smooth_l1_loss(input, target, _reduction_of(size_average, reduce, reduction), beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    return torch.huber_loss(input, target, _reduction(reduction), delta)


def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    if reduction == "batchmean":
        return torch.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return torch.kl_div(input, target, _reduction_of(size_average, reduce, reduction), log_target=log_target)


def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
             reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.nll_loss_nd(input, target, weight, _reduction_of(size_average, reduce, reduction), ignore_index)


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
                  reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    return torch.cross_entropy_loss(input, target, weight, _reduction_of(size_average, reduce, reduction), ignore_index, label_smoothing)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                         reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.binary_cross_entropy(input, target, weight, _reduction_of(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                                     reduce: Optional[bool] = None, reduction: str = "mean", pos_weight: Optional[Tensor] = None) -> Tensor:
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction_of(size_average, reduce, reduction))


def _reduction_of(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> int:
    if size_average is not None or reduce is not None:
        raise NotImplementedError("torch.jit.script: size_average and reduce of a loss are deprecated and not in Umbra")
    return _reduction(reduction)


# ---- modules: their forward, by the attributes they have ----

class _Sequential:
    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class _Conv1d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _Conv2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _Conv3d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _ReLU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.relu_(input) if self.inplace else torch.relu(input)


class _ReLU6:
    def forward(self, input: Tensor) -> Tensor:
        return torch.clamp_(input, 0, 6) if self.inplace else torch.relu6(input)


class _SiLU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.silu_(input) if self.inplace else torch.silu(input)


class _Hardswish:
    def forward(self, input: Tensor) -> Tensor:
        return torch.hardswish_(input) if self.inplace else torch.hardswish(input)


class _Hardsigmoid:
    def forward(self, input: Tensor) -> Tensor:
        return torch.hardsigmoid_(input) if self.inplace else torch.hardsigmoid(input)


class _LeakyReLU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.leaky_relu_(input, self.negative_slope) if self.inplace else torch.leaky_relu(input, self.negative_slope)


class _GELU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.gelu(input, approximate=self.approximate)


class _Sigmoid:
    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class _Tanh:
    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class _Softmax:
    def forward(self, input: Tensor) -> Tensor:
        return torch.softmax(input, self.dim)


class _LogSoftmax:
    def forward(self, input: Tensor) -> Tensor:
        return torch.log_softmax(input, self.dim)


class _Dropout:
    def forward(self, input: Tensor) -> Tensor:
        return torch.dropout_(input, self.p, self.training) if self.inplace else torch.dropout(input, self.p, self.training)


class _BatchNorm:
    def forward(self, input: Tensor) -> Tensor:
        factor = 0.0
        momentum = self.momentum
        if momentum is not None:
            factor = momentum
        tracked = self.num_batches_tracked
        if self.training and self.track_running_stats:
            if tracked is not None:
                tracked.add_(1)
                if momentum is None:
                    factor = 1.0 / float(tracked)
        mean = self.running_mean
        by_batch = self.training or mean is None
        return torch.batch_norm(input, self.weight, self.bias, mean, self.running_var, by_batch, factor, self.eps, True)


class _LayerNorm:
    def forward(self, input: Tensor) -> Tensor:
        return torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, True)


class _GroupNorm:
    def forward(self, input: Tensor) -> Tensor:
        return torch.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, True)


class _MaxPool2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class _AvgPool2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class _AdaptiveAvgPool2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.adaptive_avg_pool2d(input, self.output_size)


class _Flatten:
    def forward(self, input: Tensor) -> Tensor:
        return torch.flatten(input, self.start_dim, self.end_dim)


class _Embedding:
    def forward(self, input: Tensor) -> Tensor:
        return torch.embedding(self.weight, input, -1 if self.padding_idx is None else self.padding_idx, self.scale_grad_by_freq, self.sparse)


class _Hardtanh:
    def forward(self, input: Tensor) -> Tensor:
        return torch.hardtanh_(input, self.min_val, self.max_val) if self.inplace else torch.hardtanh(input, self.min_val, self.max_val)


class _ELU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.elu_(input, self.alpha) if self.inplace else torch.elu(input, self.alpha)


class _CELU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.celu_(input, self.alpha) if self.inplace else torch.celu(input, self.alpha)


class _SELU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.selu_(input) if self.inplace else torch.selu(input)


class _Mish:
    def forward(self, input: Tensor) -> Tensor:
        return torch.mish_(input) if self.inplace else torch.mish(input)


class _Softplus:
    def forward(self, input: Tensor) -> Tensor:
        return torch.softplus(input, self.beta, self.threshold)


class _Softshrink:
    def forward(self, input: Tensor) -> Tensor:
        return torch.softshrink(input, self.lambd)


class _Hardshrink:
    def forward(self, input: Tensor) -> Tensor:
        return torch.hardshrink(input, self.lambd)


class _GLU:
    def forward(self, input: Tensor) -> Tensor:
        return torch.glu(input, self.dim)


class _LogSigmoid:
    def forward(self, input: Tensor) -> Tensor:
        return torch.log_sigmoid(input)


class _Softsign:
    def forward(self, input: Tensor) -> Tensor:
        return input / (torch.abs(input) + 1)


class _Tanhshrink:
    def forward(self, input: Tensor) -> Tensor:
        return input - torch.tanh(input)


class _InstanceNorm:
    def forward(self, input: Tensor) -> Tensor:
        mean = self.running_mean
        momentum = self.momentum
        return torch.instance_norm(input, self.weight, self.bias, mean, self.running_var, self.training or mean is None,
                                   0.0 if momentum is None else momentum, self.eps, True)


class _TransformerEncoderLayer:
    def forward(self, src: Tensor, src_mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None, is_causal: bool = False) -> Tensor:
        if self.norm_first:
            x = self.norm1(src)
            src = src + self.dropout1(self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, True, is_causal)[0])
            return src + self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(self.norm2(src))))))
        src = self.norm1(src + self.dropout1(self.self_attn(src, src, src, src_key_padding_mask, False, src_mask, True, is_causal)[0]))
        return self.norm2(src + self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(src))))))


class _LSTM:
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        batched = input.dim() == 3
        along = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(along)
        directions = 2 if self.bidirectional else 1
        if hx is None:
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            rows = self.num_layers * directions
            hidden = torch.zeros([rows, input.size(along), width], dtype=input.dtype, device=input.device)
            cell = torch.zeros([rows, input.size(along), self.hidden_size], dtype=input.dtype, device=input.device)
        else:
            hidden, cell = hx
            if not batched:
                hidden = hidden.unsqueeze(1)
                cell = cell.unsqueeze(1)
        out, last, last_cell = torch.lstm(input, [hidden, cell], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                                          self.batch_first)
        if not batched:
            return out.squeeze(along), (last.squeeze(1), last_cell.squeeze(1))
        return out, (last, last_cell)


class _GRU:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 3
        along = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(along)
        directions = 2 if self.bidirectional else 1
        if hx is None:
            hidden = torch.zeros([self.num_layers * directions, input.size(along), self.hidden_size], dtype=input.dtype, device=input.device)
        else:
            hidden = hx if batched else hx.unsqueeze(1)
        out, last = torch.gru(input, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        if not batched:
            return out.squeeze(along), last.squeeze(1)
        return out, last


class _LSTMCell:
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
            hidden, cell = zeros, zeros
        else:
            hidden, cell = hx
            if not batched:
                hidden = hidden.unsqueeze(0)
                cell = cell.unsqueeze(0)
        hidden, cell = torch.lstm_cell(input, [hidden, cell], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not batched:
            return hidden.squeeze(0), cell.squeeze(0)
        return hidden, cell


class _GRUCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hidden = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        else:
            hidden = hx if batched else hx.unsqueeze(0)
        hidden = torch.gru_cell(input, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return hidden if batched else hidden.squeeze(0)


class _ConvTranspose1d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _ConvTranspose2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _ConvTranspose3d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _MultiheadAttention:
    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
                attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        batched = query.dim() == 3
        if not batched:
            query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        elif self.batch_first:
            query, key, value = query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)
        length, batch, width = query.shape
        heads, per_head = self.num_heads, width // self.num_heads
        weight = self.in_proj_weight
        bias = self.in_proj_bias
        parts = torch.chunk(weight, 3)
        if bias is None:
            q, k, v = torch.linear(query, parts[0]), torch.linear(key, parts[1]), torch.linear(value, parts[2])
        else:
            biases = torch.chunk(bias, 3)
            q, k, v = torch.linear(query, parts[0], biases[0]), torch.linear(key, parts[1], biases[1]), torch.linear(value, parts[2], biases[2])
        q = q.reshape(length, batch * heads, per_head).transpose(0, 1)
        k = k.reshape(key.size(0), batch * heads, per_head).transpose(0, 1)
        v = v.reshape(value.size(0), batch * heads, per_head).transpose(0, 1)
        mask = attn_mask
        if mask is not None:
            if mask.dtype == torch.bool:
                mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(mask, float("-inf"))
            if mask.dim() == 2:
                mask = mask.unsqueeze(0)
        if key_padding_mask is not None:
            hidden = key_padding_mask if batched else key_padding_mask.unsqueeze(0)
            if hidden.dtype == torch.bool:
                hidden = torch.zeros_like(hidden, dtype=q.dtype).masked_fill_(hidden, float("-inf"))
            hidden = hidden.reshape(batch, 1, 1, key.size(0)).expand(-1, heads, -1, -1).reshape(batch * heads, 1, key.size(0))
            mask = hidden if mask is None else mask + hidden
        scores = torch.bmm(q * (1.0 / float(per_head) ** 0.5), k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        weights = torch.softmax(scores, -1)
        dropped = torch.dropout(weights, self.dropout, True) if self.training and self.dropout > 0.0 else weights
        out = torch.bmm(dropped, v).transpose(0, 1).reshape(length * batch, width)
        out = torch.linear(out, self.out_proj.weight, self.out_proj.bias).reshape(length, batch, width)
        if not batched:
            out = out.squeeze(1)
        elif self.batch_first:
            out = out.transpose(1, 0)
        if not need_weights:
            return out, None
        weights = weights.reshape(batch, heads, length, key.size(0))
        if average_attn_weights:
            weights = weights.mean(1)
        return out, weights if batched else weights.squeeze(0)


# ---- classes, by the names that archives have for them ----

class _NoGrad:
    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)


class _RecordFunction:
    def __init__(self, name: str, args: Optional[str] = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        return None


CLASSES = {torch.no_grad: _NoGrad, record_function: _RecordFunction}

FORWARDS = {getattr(nn, name.lstrip("_")): cls.forward for name, cls in list(globals().items())
            if name.startswith("_") and isinstance(cls, type) and "forward" in cls.__dict__ and hasattr(nn, name.lstrip("_"))}
for _dims in (1, 2, 3):
    FORWARDS[getattr(nn, f"BatchNorm{_dims}d")] = _BatchNorm.forward
    FORWARDS[getattr(nn, f"InstanceNorm{_dims}d")] = _InstanceNorm.forward

FUNCTIONS = {getattr(F, name): value for name, value in list(globals().items())
             if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == __name__ and hasattr(F, name)}


def extra_attributes(module):
    """What a module's form reads and the module does not keep in its dict."""
    return {"_flat_weights": list(module._flat_weights)} if isinstance(module, nn.RNNBase) else {}


def check_module(module):
    """An error for a module whose options its form here does not carry."""
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)) and module.padding_mode != "zeros":
        raise NotImplementedError(f"torch.jit.script: padding_mode={module.padding_mode!r} of a convolution is not in Umbra yet")
    if isinstance(module, nn.MaxPool2d) and getattr(module, "return_indices", False):
        raise NotImplementedError("torch.jit.script: MaxPool2d(return_indices=True) is not in Umbra yet")
    if isinstance(module, nn.MultiheadAttention) and (module.in_proj_weight is None or module.bias_k is not None or module.add_zero_attn):
        raise NotImplementedError("torch.jit.script: MultiheadAttention with kdim, vdim, add_bias_kv or add_zero_attn is not in Umbra yet")
    if isinstance(module, nn.Embedding) and module.max_norm is not None:
        raise NotImplementedError("torch.jit.script: Embedding(max_norm=...) is not in Umbra yet")
