"""The older names of torch.amp for CUDA."""
from umbra.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd  # noqa: F401
from umbra.cuda.amp.common import amp_definitely_not_available  # noqa: F401
from umbra.cuda.amp.grad_scaler import GradScaler  # noqa: F401

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
