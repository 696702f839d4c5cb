"""autocast on the CPU, under its older name."""
import warnings

import umbra
from umbra.amp import autocast_mode


class autocast(autocast_mode.autocast):
    """`torch.autocast("cpu", ...)`."""

    def __init__(self, enabled=True, dtype=umbra.bfloat16, cache_enabled=True):
        warnings.warn("`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.", FutureWarning,
                      stacklevel=2)
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
