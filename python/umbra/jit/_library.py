"""Functions and modules of this package as the compiler can read them: their own source is written for Python."""
from typing import List, Optional

import umbra as torch
from umbra import Tensor, nn
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


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return torch.mse_loss(input, target, _reduction(reduction))


def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def interpolate(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None) -> Tensor:
    corners = False if align_corners is None else align_corners
    if input.dim() == 3 and mode == "nearest":
        return torch.upsample_nearest1d(input, size, scale_factor)
    if input.dim() == 4 and mode == "nearest":
        return torch.upsample_nearest2d(input, size, scale_factor)
    if input.dim() == 5 and mode == "nearest":
        return torch.upsample_nearest3d(input, size, scale_factor)
    if input.dim() == 3 and mode == "linear":
        return torch.upsample_linear1d(input, size, corners, scale_factor)
    if input.dim() == 4 and mode == "bilinear":
        return torch.upsample_bilinear2d(input, size, corners, scale_factor)
    if input.dim() == 4 and mode == "bicubic":
        return torch.upsample_bicubic2d(input, size, corners, scale_factor)
    if input.dim() == 5 and mode == "trilinear":
        return torch.upsample_trilinear3d(input, size, corners, scale_factor)
    raise NotImplementedError(f"torch.jit.script: interpolate in mode {mode} is not in Umbra yet")


def adaptive_avg_pool2d(input: Tensor, output_size: List[int]) -> Tensor:
    return torch.adaptive_avg_pool2d(input, output_size)


def max_pool2d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0, 0], dilation: List[int] = [1, 1],
               ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if return_indices:
        raise NotImplementedError("torch.jit.script: max_pool2d(return_indices=True) is not in Umbra yet")
    steps = kernel_size if stride is None else stride
    return torch.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def embedding(input: Tensor, weight: Tensor) -> Tensor:
    return torch.embedding(weight, input)


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


FORWARDS = {getattr(nn, name.lstrip("_")): cls.forward for name, cls in list(globals().items())
            if name.startswith("_") and isinstance(cls, type) and "forward" in cls.__dict__ and hasattr(nn, name.lstrip("_"))}
for _dims in (1, 2, 3):
    FORWARDS[getattr(nn, f"BatchNorm{_dims}d")] = _BatchNorm.forward

FUNCTIONS = {getattr(F, name): value for name, value in list(globals().items())
             if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == __name__ and hasattr(F, name)}


def check_module(module):
    """An error for a module whose options its form here does not carry."""
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)) and module.padding_mode != "zeros":
        raise NotImplementedError(f"torch.jit.script: padding_mode={module.padding_mode!r} of a convolution is not in Umbra yet")
    if isinstance(module, nn.MaxPool2d) and getattr(module, "return_indices", False):
        raise NotImplementedError("torch.jit.script: MaxPool2d(return_indices=True) is not in Umbra yet")
    if isinstance(module, nn.Embedding) and module.max_norm is not None:
        raise NotImplementedError("torch.jit.script: Embedding(max_norm=...) is not in Umbra yet")
