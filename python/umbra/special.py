"""Operators of ATen's `special_` family under their short names."""
from umbra import _modules

_modules.add_operators(__name__, _modules.torch_names()["torch.special"], "special_")
