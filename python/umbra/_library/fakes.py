"""Which operator's fake function runs, for what `get_ctx()` gives it and for what it is told where that cannot be."""
import functools
import threading

_running = threading.local()


def running():
    """The name of the operator whose fake function runs, or None."""
    return getattr(_running, "name", None)


def named(name, function):
    """A fake function that says, while it runs, whose it is."""
    @functools.wraps(function)
    def run(*args, **kwargs):
        before, _running.name = running(), name
        try:
            return function(*args, **kwargs)
        finally:
            _running.name = before
    return run


def overload_text(name):
    """`space::name` as an overload writes itself."""
    space, _, rest = name.partition("::")
    return f"{space}.{rest}" if "." in rest else f"{space}.{rest}.default"
