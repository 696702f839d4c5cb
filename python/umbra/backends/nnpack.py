"""NNPACK is not part of this build; its switch is kept."""
import contextlib

_enabled = True


def is_available():
    return False


def set_flags(_enabled):
    """Sets the switch and gives what it was."""
    before = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (before,)


@contextlib.contextmanager
def flags(enabled=False):
    """A region with the switch set."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
