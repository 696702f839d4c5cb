"""The forward of layers of umbra.nn as the compiler can read it, by the attributes that the layers have. Others have source that it can read as it is."""
from typing import Optional

import umbra as torch
from umbra import Tensor
from umbra.nn import functional as F


class _Sequential:
    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class _Conv1d:
    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            input = torch.ops.aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            return torch.conv1d(input, self.weight, self.bias, self.stride, [0], self.dilation, self.groups)
        return torch.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _Conv2d:
    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            input = torch.ops.aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            return torch.conv2d(input, self.weight, self.bias, self.stride, [0, 0], self.dilation, self.groups)
        return torch.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _Conv3d:
    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            input = torch.ops.aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            return torch.conv3d(input, self.weight, self.bias, self.stride, [0, 0, 0], self.dilation, self.groups)
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


class _AvgPool2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class _Flatten:
    def forward(self, input: Tensor) -> Tensor:
        return torch.flatten(input, self.start_dim, self.end_dim)


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


class _ConvTranspose1d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _ConvTranspose2d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _ConvTranspose3d:
    def forward(self, input: Tensor) -> Tensor:
        return torch.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _RReLU:
    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class _Softmax:
    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class _Softmin:
    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class _LogSoftmax:
    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class _Dropout:
    def forward(self, input: Tensor) -> Tensor:
        return torch.dropout_(input, self.p, self.training) if self.inplace else torch.dropout(input, self.p, self.training)


class _EmbeddingBag:
    def forward(self, input: Tensor, offsets: Optional[Tensor] = None, per_sample_weights: Optional[Tensor] = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
                               self.include_last_offset, self.padding_idx)
