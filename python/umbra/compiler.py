"""Questions that captured code asks about its capture."""
import contextlib
import threading

_state = threading.local()  # each thread captures for itself


def is_compiling():
    """True while a program is being captured by export or compile."""
    return getattr(_state, "compiling", False)


def is_exporting():
    return getattr(_state, "exporting", False)


def is_dynamo_compiling():
    return False


@contextlib.contextmanager
def _capturing(exporting=False):
    """For the functions that capture: is_compiling() holds inside."""
    before = is_compiling(), is_exporting()
    _state.compiling, _state.exporting = True, exporting
    try:
        yield
    finally:
        _state.compiling, _state.exporting = before


def disable(fn=None, recursive=True, *, reason=None):
    """What is captured runs as it is; the function stays itself."""
    return fn if fn is not None else lambda function: function


def compile(*args, **kwargs):
    """See umbra.compile."""
    from umbra._dynamo.optimize import compile as optimize
    return optimize(*args, **kwargs)


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends that `torch.compile` takes."""
    from umbra._dynamo.optimize import list_backends as backends
    return backends(exclude_tags)


def allow_in_graph(fn):
    return fn


def assume_constant_result(fn):
    """What is captured runs as it is: the result that the function gives at capture is the program's."""
    return fn


def reset():
    """Nothing is kept between captures."""


def nested_compile_region(fn=None):
    """A function whose calls a compiler may compile once and use again."""
    from umbra._higher_order_ops.invoke_subgraph import mark_compile_region
    return mark_compile_region(fn)
