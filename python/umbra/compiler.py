"""Questions that captured code asks about its capture."""
import dataclasses
import functools
import os
import threading

from umbra import _C
from umbra._options import not_built


class _State(threading.local):
    """What a thread does: each captures for itself."""

    compiling = exporting = fx_tracing = False
    called_compiled = 0  # calls of functions of `torch.compile`, captured or not, that go on


_state = _State()


def is_compiling():
    """True while a program is being captured by export or compile."""
    return _state.compiling


def is_exporting():
    """True while a program is being exported."""
    return _state.exporting


def is_dynamo_compiling():
    """True while `torch.compile` captures a function; export does not count."""
    return _state.compiling and not _state.exporting


def _in_compiled_call():
    """Whether what runs belongs to a compiled function, if only to one that runs as it is."""
    return _state.compiling or _state.called_compiled > 0


def _calling_compiled():
    """For calls of functions of `torch.compile`: _in_compiled_call() holds inside."""
    return _C._While(_state, {"called_compiled": _state.called_compiled + 1})


def _capturing(exporting=False):
    """For the functions that capture: is_compiling() holds inside."""
    return _C._While(_state, {"compiling": True, "exporting": exporting})


def _fx_tracing():
    """For make_fx and symbolic tracing: compiled functions are refused inside."""
    return _C._While(_state, {"fx_tracing": True})


def _is_fx_tracing():
    """Whether make_fx or symbolic tracing runs on this thread."""
    return _state.fx_tracing


def _tracer():
    """What traces the program on this thread, as messages say it; None where nothing does that refuses compiled functions."""
    if _is_fx_tracing():
        return "symbolically trace"
    return "torch.jit.trace" if _C._jit_is_tracing() else None


def disable(fn=None, recursive=True, *, reason=None):
    """A function that `torch.compile` does not capture: see `umbra._dynamo.disable`."""
    from umbra._dynamo import disable as disabled
    return disabled(fn, recursive, reason=reason)


def compile(*args, **kwargs):
    """See umbra.compile."""
    from umbra._dynamo.compilation import compile as optimize
    return optimize(*args, **kwargs)


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends that `torch.compile` takes."""
    from umbra._dynamo.compilation import list_backends as backends
    return backends(exclude_tags)


def get_default_backend():
    """The backend of `compile` where none is named: "inductor", unless `set_default_backend` names another."""
    from umbra._dynamo.backends import registry
    return registry.get_default_backend()


def set_default_backend(backend):
    """Names the backend of `compile` where none is named, by its name or as a function; None: "inductor" again."""
    from umbra._dynamo.backends import registry
    registry.set_default_backend(backend)


def wrap_numpy(fn):
    """A function of NumPy's arrays as one of tensors. What it computes is no part of graphs: a compiled function that calls it runs as it is."""
    import numpy
    from umbra.utils import _pytree as pytree

    @functools.wraps(fn)
    def call(*args, **kwargs):
        args, kwargs = pytree.tree_map_only(_C.Tensor, lambda t: t.numpy(), (args, kwargs))
        return pytree.tree_map_only(numpy.ndarray, _as_tensor, fn(*args, **kwargs))
    return call


def _as_tensor(array):
    import umbra
    return umbra.as_tensor(array)


_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")
_current = ["default"]


def _stance():
    return _current[0]


class set_stance:
    """What calls of compiled functions do from now on, inside of a `with`, or inside of a function that it decorates: "default"; "force_eager": they run as
    they are; "eager_on_recompile": they do so where nothing that is compiled fits; "fail_on_recompile": that is an error; "eager_then_compile": the first call
    of a function runs as it is."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance != "default" and force_backend is not None:
            raise RuntimeError("non-default stance cannot have force_backend set")
        not_built("torch.compiler.set_stance", force_backend=(force_backend, None))
        self.skip_guard_eval_unsafe = skip_guard_eval_unsafe  # or not: guards are cheap, and evaluated whatever was said
        if stance not in _STANCES:
            raise NotImplementedError(f"torch.compiler.set_stance: {stance!r} is not in Umbra; there are {', '.join(map(repr, _STANCES))}")
        self.stance, self.before = stance, _stance()
        _set_stance(stance)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _set_stance(self.before)

    def __call__(self, function):
        _set_stance(self.before)

        @functools.wraps(function)
        def call(*args, **kwargs):
            with set_stance(self.stance):
                return function(*args, **kwargs)
        return call


def _set_stance(stance):
    _current[0] = stance
    _C._calls_ask_python(stance == "force_eager")


@dataclasses.dataclass(frozen=True)
class DiskCacheInfo:
    """What this process did with the cache on disk."""
    hits: int
    misses: int
    stored: int      # files written
    damaged: int     # files that were not what they should be; they are replaced
    bypassed: dict   # captures that are not kept, by the reason, and how often


def cache_directory():
    """The folder where compiled graphs are kept for other processes; None where they are not."""
    return _C._cache_directory() or None


def set_cache_directory(directory):
    """Keeps compiled graphs in a folder, which several processes may share; None: nowhere. A process starts with what UMBRA_CACHE_DIR names."""
    _C._set_cache_directory("" if directory is None else os.fspath(directory))


def disk_cache_info():
    """Hits, misses and files of the cache on disk, in this process."""
    return DiskCacheInfo(**_C._disk_cache_info())


def allow_in_graph(fn):
    """The function, or each of several, stays itself: capture runs it, and records what it does."""
    from umbra._dynamo import allow_in_graph as allow
    return allow(fn)


def nonstrict_trace(traceable_fn):
    """A function that is captured by running it, whatever it does in Python: every function is."""
    if not callable(traceable_fn):
        raise AssertionError("nonstrict_trace expects a callable")
    return traceable_fn


def assume_constant_result(fn):
    """What is captured runs as it is: the result that the function gives at capture is the program's."""
    return fn


def cudagraph_mark_step_begin():
    """Says where a step of training begins, to who records work of an accelerator: there is none here."""


def reset():
    """Lets all graphs of functions that `compile` made go: their next calls are captured."""
    from umbra._dynamo.compilation import reset as reset_all
    reset_all()


@dataclasses.dataclass(frozen=True)
class GraphCacheInfo:
    """What became of the calls of a compiled function."""
    hits: int        # found graphs
    misses: int      # were captured
    evictions: int   # graphs that made place for others
    size: int        # graphs that are kept
    limit: int       # how many kinds of calls are captured or kept
    reasons: dict    # why calls were captured: the condition that they broke (with the user's line where it is known), and how often


def cache_info(compiled):
    """Hits and misses of a function or module that `compile`, `aot_function` or `aot_module` made, and why it was captured anew.

        f = torch.compile(lambda x: x * 2, backend="eager")
        f(torch.ones(2)); f(torch.ones(2)); f(torch.ones(3))
        torch.compiler.cache_info(f)    # hits=1, misses=2, reasons={"first call": 1, "tensor 'x' size mismatch at index 0. ...": 1}
    """
    call = compiled.__dict__.get("forward", compiled) if hasattr(compiled, "__dict__") else compiled
    owner = getattr(call, "_compiled", None)
    if owner is None or not hasattr(owner, "info"):
        raise TypeError(f"cache_info takes a compiled function or module, not {type(compiled).__name__}")
    total, reasons = owner.info()
    return GraphCacheInfo(**total, reasons=dict(reasons))


def nested_compile_region(fn=None):
    """A function whose calls a compiler may compile once and use again."""
    from umbra._higher_order_ops.invoke_subgraph import mark_compile_region
    return mark_compile_region(fn)
