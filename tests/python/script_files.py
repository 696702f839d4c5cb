"""Programs of TorchScript through a file, for the tests that look at what comes back."""
import io

import umbra as torch


def saved(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return buffer


def reloaded(module):
    return torch.jit.load(saved(module))
