"""Operators of ATen's `fft_` family under their short names."""
from umbra import _modules

_modules.add_operators(__name__, _modules.torch_names()["torch.fft"], "fft_")
