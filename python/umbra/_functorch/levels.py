"""torch._C._functorch: the wrappers that transforms make, taken apart and put together."""
import enum

from umbra import _C

TransformType = enum.Enum("TransformType", ("Torch", "Vmap", "Grad", "Jvp", "Functionalize"), module="torch._C._functorch", start=0)


def _add_batch_dim(tensor, in_dim, level):
    """A tensor that hides one dimension from what runs inside a vmap of this level."""
    return _C._add_batch_dim(tensor, in_dim, level)


def _remove_batch_dim(tensor, level, batch_size, out_dim):
    """The tensor outside a vmap of this level, with the hidden dimension at `out_dim`; one that hides none is repeated."""
    wrapper = _C._describe_wrapper(tensor)
    if wrapper is not None and wrapper[0] == "batched" and wrapper[1] == level:
        return wrapper[3] if wrapper[2] == out_dim else wrapper[3].movedim(wrapper[2], out_dim)
    sizes = list(tensor.shape)
    place = out_dim if out_dim >= 0 else out_dim + len(sizes) + 1
    return tensor.unsqueeze(place).expand(*sizes[:place], batch_size, *sizes[place:])


def _kind(tensor):
    wrapper = _C._describe_wrapper(tensor)
    return None if wrapper is None else wrapper[0]


def is_batchedtensor(tensor):
    return _kind(tensor) == "batched"


def is_gradtrackingtensor(tensor):
    return _kind(tensor) == "grad"


def is_functorch_wrapped_tensor(tensor):
    return _kind(tensor) is not None


def get_unwrapped(tensor):
    """The tensor inside a wrapper."""
    wrapper = _C._describe_wrapper(tensor)
    if wrapper is None:
        raise RuntimeError("No wrappers present!")
    return wrapper[3]


def maybe_get_level(tensor):
    """The level of a wrapper; -1 of any other tensor."""
    wrapper = _C._describe_wrapper(tensor)
    return -1 if wrapper is None else wrapper[1]


def maybe_get_bdim(tensor):
    """The dimension that a wrapper hides; -1 where it hides none."""
    wrapper = _C._describe_wrapper(tensor)
    return -1 if wrapper is None or wrapper[2] is None else wrapper[2]


_KINDS = {"vmap": TransformType.Vmap, "grad": TransformType.Grad, "jvp": TransformType.Jvp, "functionalize": TransformType.Functionalize}


class Interpreter:
    """The innermost transform, as rules of operators get it."""

    def __init__(self, level):
        self._level = level

    def key(self):
        return _KINDS[self._level.kind]

    def level(self):
        return self._level.depth

    def lower(self):
        """A scope outside of the transform."""
        return _C._OutsideLayer("Level")

    def batch_size(self):
        return self._level.size

    def randomness(self):
        return self._level.randomness


def innermost_interpreter():
    return Interpreter(_C._innermost_level())
