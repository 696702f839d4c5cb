"""torch.compile: a function or module captured by running it, and guarded by what it read.

There is no analysis of bytecode. The function runs once on tensors without data; the graphs of its forward and backward go to the backend. Calls of another
kind (types, layouts, sizes, values of plain arguments, flags and numbers that the function reads from modules, closures and globals) are captured anew.
What the function does besides computing (prints, counters) happens when it is captured.
"""
import functools
import types
import warnings

from umbra import _C
from umbra._C import DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode, Tensor
from umbra._dynamo.exc import InvalidBackend, Unsupported
from umbra._functorch.aot_autograd import _compile, _compile_module
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from umbra._options import not_built
from umbra.compiler import _capturing
from umbra.nn import Module
from umbra.utils import _pytree as pytree

RECOMPILE_LIMIT = 8  # kinds of calls that one function is captured for


def _interpret(module, _):
    return module.forward


# How the forward and backward graphs are made to run, and how the joint graph is cut.
_BACKENDS = {
    "eager": (_interpret, default_partition),
    "aot_eager": (_interpret, min_cut_rematerialization_partition),
    "aot_eager_default_partitioner": (_interpret, default_partition),
}


def list_backends(exclude_tags=("debug", "experimental")):
    """The names that `compile` takes as its backend; all are for looking at graphs, and tagged "debug"."""
    return [] if "debug" in (exclude_tags or ()) else sorted(_BACKENDS)


def _backend(backend):
    if callable(backend):
        return backend, default_partition
    if backend in (None, "inductor", "cudagraphs", "openxla", "tvm", "onnxrt"):
        raise NotImplementedError(f"torch.compile: the backend {backend or 'inductor'!r} is not in Umbra; take \"eager\", \"aot_eager\" or a function of "
                                  "(graph module, example inputs)")
    if backend not in _BACKENDS:
        raise InvalidBackend(f"Invalid backend: {backend!r}. See `torch._dynamo.list_backends()` for available backends.")
    return _BACKENDS[backend]


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None, disable=False, recompile_limit=None,
            isolate_recompiles=False, dynamic_shapes=None):
    """`model` captured at its calls and run by a backend: a function of (graph module, example inputs), "eager" or "aot_eager". `dynamic`: sizes are symbols
    from the start (True), never (False), or from the second size on. Where capture meets a decision by data the function runs as it is, unless
    `fullgraph` asks for an error."""
    not_built("torch.compile", isolate_recompiles=(isolate_recompiles, False), dynamic_shapes=(dynamic_shapes, None), name=(name, None))
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    settings = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode, "options": options, "disable": disable,
                "recompile_limit": recompile_limit}
    if model is None:
        return lambda function: compile(function, **settings)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    chosen, partition = _backend(backend)
    if options is not None or mode not in (None, "default"):
        if not callable(backend):
            raise NotImplementedError(f"torch.compile: mode={mode!r}, options={options!r} have no meaning for the backend {backend!r}")
        chosen = functools.partial(chosen, **({"mode": mode} if mode is not None else {}), **({"options": options} if options is not None else {}))
    call = _Optimized(model, chosen, partition, fullgraph, dynamic, recompile_limit or RECOMPILE_LIMIT)
    if isinstance(model, Module):
        return OptimizedModule(model, call)
    return functools.wraps(model)(lambda *args, **kwargs: call(*args, **kwargs)) if hasattr(model, "__name__") else call


class OptimizedModule(Module):
    """A module whose calls are captured; everything else is the module's own."""

    def __init__(self, mod, call):
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_call"] = call

    def forward(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __getattr__(self, name):
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:
            raise AttributeError(name)
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    @property
    def training(self):
        return self._orig_mod.training

    @training.setter
    def training(self, mode):
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._orig_mod.training = mode


class _Optimized:
    """The captures of one function, and which of them a call takes."""

    def __init__(self, model, backend, partition, fullgraph, dynamic, limit):
        self.model, self.fullgraph, self.dynamic, self.limit = model, fullgraph, dynamic, limit
        self.backend, self.partition = backend, partition
        self.compilations = 0
        self.gave_up = False
        self.first_sizes = {}
        self.reads = None if isinstance(model, Module) else _Reads(model)
        self.static, self.moving = (self._captures(moving) for moving in (False, True))

    def _captures(self, moving):
        options = {"partition_fn": self.partition, "decompositions": None, "inference_compiler": None, "dynamic": moving}
        if isinstance(self.model, Module):
            return _compile_module(self.model, self._forward, _interpret, **options)
        return _compile(self.model, self._forward, _interpret, fixed_inputs=0, keep_writes=False, context=self.reads, **options)

    def _forward(self, module, inputs):
        self.compilations += 1
        return self.backend(module, inputs)

    def __call__(self, *args, **kwargs):
        if self.gave_up or _C._level_count():  # inside a transform the function is part of what is transformed
            return self.model(*args, **kwargs)
        if self.compilations > self.limit:
            return self._give_up(f"captured {self.compilations} times, which is more than recompile_limit ({self.limit})", args, kwargs)
        captures = self.moving if self._moves(args, kwargs) else self.static
        try:
            with _capturing():
                return captures(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode) as error:
            if self.fullgraph:
                raise Unsupported(f"Data-dependent branching\n  {error}") from error
            return self._give_up(f"not captured, since data decide what it does: {error}", args, kwargs)

    def _give_up(self, why, args, kwargs):
        self.gave_up = True
        warnings.warn(f"torch.compile: {getattr(self.model, '__name__', type(self.model).__name__)} runs as it is: {why}", stacklevel=3)
        return self.model(*args, **kwargs)

    def _moves(self, args, kwargs):
        """Whether sizes are symbols: automatically so from the second size on."""
        if self.dynamic is not None:
            return self.dynamic
        leaves, spec = pytree.tree_flatten((args, kwargs))
        kind = (spec, tuple((leaf.dtype, leaf.dim()) if isinstance(leaf, Tensor) else type(leaf) for leaf in leaves))
        sizes = tuple(tuple(leaf.shape) for leaf in leaves if isinstance(leaf, Tensor))
        return self.first_sizes.setdefault(kind, sizes) != sizes


_PLAIN = (bool, int, float, str, bytes, type(None))


class _Reads:
    """What a function decides by beside its arguments, as far as it can be found: plain values and modules' flags among the names that it, and the functions
    it calls, take from closures, globals and their owners."""

    def __init__(self, function):
        self.functions = list(_functions(function, set()))
        self.owners = [f.__self__ for f in [function] if hasattr(f, "__self__")]

    def __call__(self):
        found, seen = [], set()
        for owner in self.owners:
            _note(owner, found, seen, 2)
        for function in self.functions:
            for cell in function.__closure__ or ():
                try:
                    _note(cell.cell_contents, found, seen, 2)
                except ValueError:  # not filled yet
                    found.append("empty")
            for name in function.__code__.co_names:
                if name in function.__globals__:
                    _note(function.__globals__[name], found, seen, 2)
            for value in function.__defaults__ or ():
                _note(value, found, seen, 1)
        return tuple(found)


def _functions(function, seen):
    """The function and the Python functions that it calls by name."""
    function = getattr(function, "__func__", function)
    if isinstance(function, functools.partial):
        yield from _functions(function.func, seen)
    if not isinstance(function, types.FunctionType) or function in seen or function.__module__.split(".")[0] in ("umbra", "torch"):
        return
    seen.add(function)
    yield function
    for name in function.__code__.co_names:
        if isinstance(function.__globals__.get(name), types.FunctionType):
            yield from _functions(function.__globals__[name], seen)
    for cell in function.__closure__ or ():
        try:
            yield from _functions(cell.cell_contents, seen)
        except ValueError:
            pass


def _note(value, found, seen, depth):
    if isinstance(value, _PLAIN):
        found.append((type(value), value))
    elif id(value) in seen or depth == 0:
        return
    elif isinstance(value, Module):
        seen.add(id(value))
        for part in value.modules():
            found.append(tuple((name, item) for name, item in vars(part).items() if isinstance(item, _PLAIN)))
    elif isinstance(value, (list, tuple, set, frozenset)):
        seen.add(id(value))
        found.append(len(value))
        for item in value:
            _note(item, found, seen, depth - 1)
    elif isinstance(value, dict):
        seen.add(id(value))
        for key, item in value.items():
            found.append(key if isinstance(key, _PLAIN) else type(key))
            _note(item, found, seen, depth - 1)
    elif not isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Tensor)) and hasattr(value, "__dict__"):
        seen.add(id(value))
        _note(vars(value), found, seen, depth)


__all__ = ["OptimizedModule", "compile", "list_backends"]
