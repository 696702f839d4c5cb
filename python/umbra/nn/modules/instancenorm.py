"""Normalisation of each channel of each sample."""
import warnings

from umbra.nn import functional as F
from umbra.nn.modules.batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    _rank = 0

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        if input.dim() not in (self._rank - 1, self._rank):
            raise ValueError(f"expected {self._rank - 1}D or {self._rank}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self):
        return self._rank - 1

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if local_metadata.get("version") is None and not self.track_running_stats:
            found = [key for key in (prefix + "running_mean", prefix + "running_var") if key in state_dict]
            if found:
                names, kind = " and ".join(f'"{key}"' for key in found), type(self).__name__
                error_msgs.append(f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict is a checkpoint "
                                  f"saved before 0.4.0, this may be expected because {kind} does not track running stats by default since 0.4.0. Please "
                                  "remove these keys from state_dict. If the running stats are actually needed, instead set track_running_stats=True "
                                  f"in {kind} to enable them. See the documentation of {kind} for details.")
            for key in found:
                del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _handle_no_batch_input(self, input):
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input):
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training or not self.track_running_stats,
                               self.momentum if self.momentum is not None else 0.0, self.eps)

    def forward(self, input):
        self._check_input_dim(input)
        channels = input.dim() - self._get_no_batch_dim()
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                                 f"{input.size(channels)}.")
            warnings.warn(f"input's size at dim={channels} does not match num_features. You can silence this warning by not passing in num_features, "
                          "which is not used because affine=False", stacklevel=2)
        if input.dim() == self._get_no_batch_dim():
            return self._handle_no_batch_input(input)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of signals."""
    _rank = 3


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of images."""
    _rank = 4


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of volumes."""
    _rank = 5


class _LazyInstanceNorm(_LazyNormBase):
    def initialize_parameters(self, input):
        if self.has_uninitialized_params() and input.dim() == self._rank - 1:
            input = input.unsqueeze(0)
        super().initialize_parameters(input)


class LazyInstanceNorm1d(_LazyInstanceNorm, _InstanceNorm):
    """InstanceNorm of signals whose number of channels is that of its first input."""
    _rank, cls_to_become = InstanceNorm1d._rank, InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, _InstanceNorm):
    """InstanceNorm of images whose number of channels is that of its first input."""
    _rank, cls_to_become = InstanceNorm2d._rank, InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, _InstanceNorm):
    """InstanceNorm of volumes whose number of channels is that of its first input."""
    _rank, cls_to_become = InstanceNorm3d._rank, InstanceNorm3d
