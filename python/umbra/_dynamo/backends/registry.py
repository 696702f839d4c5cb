"""Backends of torch.compile by name."""
import functools
import typing

from umbra._dynamo.backends.common import AotAutograd
from umbra._dynamo.exc import InvalidBackend
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition


class Graphs(typing.NamedTuple):
    """How the graphs of a captured function are made to run, and how the joint graph is cut."""
    forward: typing.Callable
    backward: typing.Callable
    partition: typing.Callable
    inference: typing.Optional[typing.Callable] = None
    decompositions: typing.Optional[dict] = None
    keep_writes: bool = False


def interpret(module, _):
    return module.forward


# The backends here run graphs operator by operator.
_OWN = {
    "eager": default_partition,
    "aot_eager": min_cut_rematerialization_partition,
    "aot_eager_default_partitioner": default_partition,
    "inductor": min_cut_rematerialization_partition,
}
_ELSEWHERE = ("cudagraphs", "openxla", "tvm", "onnxrt")
_registered = {}  # of users: name to (backend, tags)
_default = ["inductor"]


def get_default_backend():
    """The backend of `torch.compile` where none is named."""
    return _default[0]


def set_default_backend(backend):
    """Names another one, by its name or as a function; None: "inductor" again."""
    _default[0] = "inductor" if backend is None else backend


def register_backend(compiler_fn=None, name=None, tags=()):
    """`torch.compile` takes the function by its name, or by another one. May be used as a decorator."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    if name in _registered or name in _OWN:
        raise AssertionError(f"duplicate name: {name}")
    _registered[name] = compiler_fn, tuple(tags)
    return compiler_fn


register_debug_backend = functools.partial(register_backend, tags=("debug",))
register_experimental_backend = functools.partial(register_backend, tags=("experimental",))


def list_backends(exclude_tags=("debug", "experimental")):
    """The names that `compile` takes as its backend; of ours all but "inductor" are for looking at graphs, and tagged "debug"."""
    excluded = set(exclude_tags or ())
    own = [name for name in _OWN if name == "inductor" or "debug" not in excluded]
    return sorted(own + [name for name, (_, tags) in _registered.items() if not excluded & set(tags)])


def lookup_backend(compiler_fn):
    """The function that a name stands for."""
    if callable(compiler_fn):
        return compiler_fn
    if compiler_fn in _registered:
        return _registered[compiler_fn][0]
    if compiler_fn in _ELSEWHERE:
        raise NotImplementedError(f"torch.compile: the backend {compiler_fn!r} is not in Umbra; take the default, \"eager\", \"aot_eager\" or a function of "
                                  "(graph module, example inputs)")
    if compiler_fn not in _OWN:
        raise InvalidBackend(f"Invalid backend: {compiler_fn!r}. See `torch._dynamo.list_backends()` for available backends.")
    return interpret


def graphs_of(backend, **options):
    """How a backend, a name or a function, makes graphs run. `options` go to a function of users'."""
    function = lookup_backend(backend)
    if isinstance(function, AotAutograd):
        of = function.kwargs
        return Graphs(of["fw_compiler"], of.get("bw_compiler") or of["fw_compiler"], of.get("partition_fn", default_partition),
                      of.get("inference_compiler"), function.decompositions, of.get("keep_inference_input_mutations", False))
    if function is not interpret:
        return Graphs(functools.partial(function, **options) if options else function, interpret, default_partition)
    if options:
        raise NotImplementedError(f"torch.compile: mode={options.get('mode')!r}, options={options.get('options')!r} have no meaning for the backend {backend!r}")
    return Graphs(interpret, interpret, _OWN[backend])
