"""Automatic mixed precision: autocast, and the scaling of losses that goes with short floating types."""
from umbra.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available  # noqa: F401
from umbra.amp.grad_scaler import GradScaler  # noqa: F401

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
