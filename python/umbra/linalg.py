"""Linear algebra: operators of ATen's `linalg_` family under their short names, and the error they raise."""
from umbra import _C, _modules

LinAlgError = _C._LinAlgError

_modules.add_operators(__name__, _modules.torch_names()["torch.linalg"], "linalg_")
