"""What a captured function must not do, since a graph does not do it again: calls of functions that are not to be captured, and prints."""
import builtins
import contextlib
import functools
import threading

from umbra._dynamo.exc import Unsupported
from umbra.nn import Module

_state = threading.local()  # `capturing`: whether torch.compile captures a function on this thread
_print = builtins.print
_lock = threading.Lock()
_captures = 0  # under way, on all threads


class NotCaptured(Unsupported):
    """What is captured has to run as it is."""


NotCaptured.__name__ = NotCaptured.__qualname__ = "Unsupported"  # as which users see it


def stop(what, why):
    """Ends the capture that is under way on this thread, if there is one."""
    if getattr(_state, "capturing", False):
        _state.stopped = NotCaptured(f"{what}\n  Explanation: {why}")
        raise _state.stopped


@contextlib.contextmanager
def watched():
    """While a function is captured: it must not print, or call what is not to be captured."""
    global _captures
    before, _state.capturing, _state.stopped = getattr(_state, "capturing", False), True, None
    with _lock:
        _captures += 1
        if builtins.print is _print:
            builtins.print = _refusing_print
    try:
        yield
        if _state.stopped is not None:  # and the function went on
            raise _state.stopped
    finally:
        _state.capturing = before
        with _lock:
            _captures -= 1
            if _captures == 0 and builtins.print is _refusing_print:
                builtins.print = _print


def _refusing_print(*args, **kwargs):
    stop("Failed to trace builtin operator `print`", "a graph would print when it is captured, and never again")
    _print(*args, **kwargs)


def disabled(target, reason=None):
    """A function, or module, whose calls stop a capture."""
    if isinstance(target, type):
        target.__init__ = disabled(target.__init__, reason)
        return target
    if isinstance(target, Module):
        target.forward = disabled(target.forward, reason)
        return target
    name = getattr(target, "__name__", type(target).__name__)

    @functools.wraps(target)
    def call(*args, **kwargs):
        stop("Skip calling `torch.compiler.disable()`d function", f"{name} is not to be captured" + (f": {reason}" if reason else ""))
        return target(*args, **kwargs)
    call._torchdynamo_disable = True
    return call
