"""The older names of torch.amp for the CPU."""
from umbra.cpu.amp.autocast_mode import autocast  # noqa: F401
from umbra.cpu.amp.grad_scaler import GradScaler  # noqa: F401
