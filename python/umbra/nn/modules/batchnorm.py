"""Batch normalisation with running statistics."""
import umbra
from umbra.nn import functional as F
from umbra.nn.modules.lazy import LazyModuleMixin
from umbra.nn.modules.module import Module
from umbra.nn.modules.utils import own_constructors
from umbra.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter


class _NormBase(Module):
    """What batch and instance norms share: an affine map and running statistics."""
    _version = 2

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, start, wanted in (("weight", umbra.ones, affine), ("bias", umbra.zeros, affine and bias)):
            self.register_parameter(name, Parameter(start(num_features, device=device, dtype=dtype)) if wanted else None)
        for name, start in (("running_mean", umbra.zeros), ("running_var", umbra.ones)):
            self.register_buffer(name, start(num_features, device=device, dtype=dtype) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", umbra.tensor(0, dtype=umbra.long, device=device) if track_running_stats else None)

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.affine:
            with umbra.no_grad():
                self.weight.fill_(1)
                if self.bias is not None:
                    self.bias.zero_()

    def _check_input_dim(self, input):
        raise NotImplementedError

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version, key = local_metadata.get("version"), prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:  # such files do not count batches
            count = self.num_batches_tracked
            state_dict[key] = umbra.tensor(0, dtype=umbra.long) if count is None or count.is_meta else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_NormBase):
    _ranks = ()

    def _check_input_dim(self, input):
        if input.dim() not in self._ranks:
            raise ValueError(f"expected {'D or '.join(str(r) for r in self._ranks)}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        from_batch = self.training or (self.running_mean is None and self.running_var is None)
        use_running = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if use_running else None, self.running_var if use_running else None, self.weight,
                            self.bias, from_batch, factor, self.eps)


own_constructors(_BatchNorm)


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of signals by the mean and variance of the batch, or by running ones in evaluation."""
    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of images by the mean and variance of the batch, or by running ones in evaluation."""
    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of volumes by the mean and variance of the batch, or by running ones in evaluation."""
    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of several processes; of one, it is BatchNorm."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None, dtype=None,
                 *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input):
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input):
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        if self.training and umbra.distributed.is_initialized() and input.device.type == "cpu":
            raise ValueError("SyncBatchNorm expected input tensor to be on GPU or XPU or privateuseone")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with a SyncBatchNorm in the place of each BatchNorm."""
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
            return made
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


# ---- normalisations whose features are those of their first input ----

class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True):
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = umbra.tensor(0, dtype=umbra.long, device=device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            tensor = getattr(self, name)
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm of signals whose number of channels is that of its first input."""
    _ranks, cls_to_become = BatchNorm1d._ranks, BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm of images whose number of channels is that of its first input."""
    _ranks, cls_to_become = BatchNorm2d._ranks, BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm of volumes whose number of channels is that of its first input."""
    _ranks, cls_to_become = BatchNorm3d._ranks, BatchNorm3d
