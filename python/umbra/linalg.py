"""Linear algebra: operators of ATen's `linalg_` family under their short names, and the error they raise."""
from umbra import _C
from umbra._modules import operators_named as _operators_named

LinAlgError = _C._LinAlgError

__getattr__, __dir__ = _operators_named(__name__, "linalg_")
