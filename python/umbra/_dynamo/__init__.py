"""Names of torch._dynamo that code asks for. Umbra captures a program by running it: there is no bytecode analysis."""
from umbra._modules import lazy_submodules
from umbra.compiler import is_compiling  # noqa: F401

__getattr__ = lazy_submodules(__name__)


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends that `torch.compile` takes."""
    from umbra._dynamo import optimize
    return optimize.list_backends(exclude_tags)


def reset():
    """Lets all graphs of functions that `torch.compile` made go: their next calls are captured."""
    from umbra._dynamo import optimize
    optimize.reset()


def is_dynamo_compiling():
    return False


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """What is captured runs as it is; the function stays itself."""
    return fn if fn is not None else lambda function: function


from umbra._dynamo.decorators import mark_dynamic, mark_static, mark_static_address, mark_unbacked, maybe_mark_dynamic  # noqa: E402, F401


def allow_in_graph(fn):
    """The function stays itself: capture runs it, and records what it does."""
    return fn


def assume_constant_result(fn):
    """The function stays itself: capture runs it once."""
    return fn


class OptimizedModule:
    """What torch.compile makes of a module. There are none here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.compile is not in Umbra yet")
