"""Programs of TorchScript through a file, for the tests that look at what comes back."""
import io

import umbra as torch


def reloaded(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)
