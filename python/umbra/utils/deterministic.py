"""What deterministic algorithms do besides: `fill_uninitialized_memory`, whether torch.empty and its like fill what they make with nan or the largest integer."""
import sys
import types

from umbra import _C


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        return _C._fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _C._set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
