"""Names of torch._dynamo that code asks for. Umbra captures a program by running it: there is no bytecode analysis."""
from umbra._modules import lazy_submodules
from umbra.compiler import is_compiling  # noqa: F401

_submodule = lazy_submodules(__name__)


def __getattr__(name):
    if name == "OptimizedModule":
        from umbra._dynamo.compilation import OptimizedModule
        return OptimizedModule
    return _submodule(name)


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends that `torch.compile` takes."""
    from umbra._dynamo import compilation
    return compilation.list_backends(exclude_tags)


def register_backend(compiler_fn=None, name=None, tags=()):
    """`torch.compile` takes the function by its name, or by another one. May be used as a decorator."""
    from umbra._dynamo.backends import registry
    return registry.register_backend(compiler_fn, name, tags)


def lookup_backend(compiler_fn):
    """The function that the name of a backend stands for."""
    from umbra._dynamo.backends import registry
    return registry.lookup_backend(compiler_fn)


def reset():
    """Lets all graphs of functions that `torch.compile` made go: their next calls are captured."""
    from umbra._dynamo import compilation
    compilation.reset()


def optimize(backend="inductor", *, nopython=False, dynamic=None, disable=False, **settings):
    """A decorator that is `torch.compile` with a backend: an older name of it. `nopython` is what `fullgraph` is there."""
    from umbra._dynamo.compilation import compile
    return lambda function: compile(function, fullgraph=nopython, dynamic=dynamic, backend=backend, disable=disable, **settings)


def optimize_assert(backend, **settings):
    """The same where the whole function must be captured."""
    return optimize(backend, nopython=True, **settings)


def is_dynamo_supported():
    """Whether `torch.compile` works here: everywhere."""
    return True


def is_dynamo_compiling():
    return False


is_inductor_supported = is_dynamo_supported  # the backend of that name runs as "aot_eager"


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """The function, or module, as one that `torch.compile` does not capture: what calls it runs as it is, or is refused with `fullgraph`; so does what it
    calls, `recursive` or not."""
    from umbra._dynamo import breaks
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason, wrapping=wrapping)
    return breaks.disabled(fn, reason) if wrapping else fn


def graph_break(msg=""):
    """What calls this and is compiled runs as it is, or is refused with `fullgraph`."""
    from umbra._dynamo import breaks
    breaks.stop("Call to `torch._dynamo.graph_break()`", f"User-inserted graph break. Message: {msg or None}")


def explain(f, *extra_args, **extra_kwargs):
    """What `torch.compile` makes of a call: a function of the call's arguments that gives the graphs and why there is not one."""
    from umbra._dynamo import explanation
    explained = explanation.of(f)
    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained


from umbra._dynamo.decorators import error_on_graph_break  # noqa: E402, F401
from umbra._dynamo.decorators import mark_dynamic, mark_static, mark_static_address, mark_unbacked, maybe_mark_dynamic  # noqa: E402, F401


def allow_in_graph(fn):
    """The function, or each of several, stays itself: capture runs it, and records what it does."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn):
    """The function stays itself: capture runs it once."""
    return fn
