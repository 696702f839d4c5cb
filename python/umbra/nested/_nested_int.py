"""The size of a ragged dimension: another one for every set of offsets, printed `j1`."""
import itertools

_numbers = itertools.count(1)


class NestedInt:
    """Equal only to itself: tensors have the same ragged size where they share their offsets."""

    def __init__(self):
        self._number = next(_numbers)

    def __repr__(self):
        return f"j{self._number}"

    def __hash__(self):
        return hash((NestedInt, self._number))

    def __eq__(self, other):
        return self is other


class NestedSize(tuple):
    """Sizes, one of which is a NestedInt."""

    def __repr__(self):
        return f"torch.Size([{', '.join(map(repr, self))}])"

    __str__ = __repr__


def ragged_size(offsets):
    """The NestedInt of these offsets, kept with them."""
    if not hasattr(offsets, "_ragged_size"):
        offsets._ragged_size = NestedInt()
    return offsets._ragged_size
