"""autocast on CUDA, under its older name."""
import functools
import warnings

import umbra
from umbra.amp import autocast_mode


class autocast(autocast_mode.autocast):
    """`torch.autocast("cuda", ...)`."""

    def __init__(self, enabled=True, dtype=umbra.float16, cache_enabled=True):
        warnings.warn("`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.", FutureWarning,
                      stacklevel=2)
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


custom_fwd = functools.partial(autocast_mode.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(autocast_mode.custom_bwd, device_type="cuda")
