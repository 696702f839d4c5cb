"""Operators of ATen's `special_` family under their short names."""
from umbra import _modules

_modules.add_operators(__name__, _modules.torch_names()["torch.special"], "special_")
__getattr__ = _modules.only_missing_names(__name__)
