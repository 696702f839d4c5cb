"""Forward mode: a tangent is carried with its value.

    with dual_level():
        x = make_dual(primal, tangent)
        unpack_dual(x.sin()).tangent
"""
from typing import NamedTuple, Optional

from umbra import _C
from umbra._C import Tensor
from umbra.utils._contextlib import _DecoratorContextManager

_levels = []


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent."""
    primal: Tensor
    tangent: Optional[Tensor]


def refuse_nesting():
    """Tangents of tangents are what `torch.func` is for."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")


def enter_dual_level():
    """Begins a level of forward mode; there is one at a time."""
    refuse_nesting()
    level = _C._enter_dual_level()
    _levels.append(level)
    return level


def exit_dual_level(*, level=None):
    """Ends the level: its tangents are gone."""
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level is currently active.")
    if level is not None and level != _levels[-1]:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _C._exit_dual_level(_levels.pop())


def _check_level(where, level):
    if level is not None and level != _levels[-1]:
        raise NotImplementedError(f"{where}(level={level}): levels other than the innermost one are not in Umbra yet")


def make_dual(tensor, tangent, *, level=None):
    """A tensor that carries a tangent at the level."""
    if not _levels:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    _check_level("make_dual", level)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor, *, level=None):
    """The tensor and its tangent at the level."""
    if not _levels:
        derivative = _C._innermost_level()  # of torch.func, which is a level of forward mode too
        if derivative is not None and derivative.kind == "jvp" and derivative.owns(tensor):
            return UnpackedDualTensor(derivative.unwrap(tensor), derivative.tangent(tensor))
        return UnpackedDualTensor(tensor, None)
    _check_level("unpack_dual", level)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level:
    """A level of forward mode for a scope: `with dual_level(): ...`."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exception):
        exit_dual_level()


_is_fwd_grad_enabled = _C._is_fwd_grad_enabled


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Whether operators follow tangents: from the call on, or for a scope."""

    def __init__(self, mode):
        self.mode, self.before = mode, _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        _C._set_fwd_grad_enabled(self.mode)

    def __exit__(self, *exception):
        _C._set_fwd_grad_enabled(self.before)

    def clone(self):
        return type(self)(self.mode)
