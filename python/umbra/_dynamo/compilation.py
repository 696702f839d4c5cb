"""torch.compile: a function or module captured by running it, and guarded by what it read.

There is no analysis of bytecode. The function runs once on tensors without data; the graphs of its forward and backward go to the backend. Calls of another
kind (types, layouts, sizes, values of plain arguments, flags and numbers that the function reads from modules, closures and globals) are captured anew.
A function that changes what it reads (counters, lists), prints, or calls what is not to be captured runs as it is.
"""
import collections
import functools
import os
import threading
import types
import warnings
import weakref

from umbra import _C
from umbra._C import ConstraintViolationError, DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode, Tensor
from umbra._dynamo import breaks, config, inductor
from umbra._dynamo.backends.registry import get_default_backend, graphs_of, list_backends
from umbra._dynamo.decorators import marked_sizes
from umbra._dynamo.exc import (
    BackendCompilerFailed, FailOnRecompileLimitHit, RecompileError, TorchDynamoException, Unsupported, observed, operator_refusal,
    refused_without_data)
from umbra._dynamo.reachable import Caches, Functions
from umbra._functorch import objects
from umbra._functorch.aot_autograd import ChangesArguments, _compile, _compile_module, _in_graph, _names_of, is_finite_float, is_known, read_among
from umbra._library.custom_ops import NoFakeKernel
from umbra._options import not_built
from umbra.compiler import _calling_compiled, _capturing, _stance, _tracer, is_compiling
from umbra.nn import Module
from umbra.nn.modules import _hooks
from umbra.nn.parameter import Parameter, UninitializedTensorMixin
from umbra.overrides import has_torch_function_unary
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted
from umbra.utils._device import DeviceContext
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None, disable=False, recompile_limit=None,
            isolate_recompiles=False, dynamic_shapes=None):
    """`model` captured at its calls and run by a backend: a function of (graph module, example inputs), "eager", "aot_eager", or "inductor" (the default,
    unless `torch.compiler.set_default_backend` names another), which here runs graphs operator by operator as "aot_eager" does, whatever its `mode` and
    `options` say. `dynamic`: sizes are symbols from the start (True), never (False), or from the second size on. Where capture meets a decision by data the
    function runs as it is, unless `fullgraph` asks for an error."""
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
    backend = backend or get_default_backend()
    if backend == "inductor":
        inductor.check(mode, options)
        passed = {}
    else:
        passed = {**({"mode": mode} if mode not in (None, "default") else {}), **({"options": options} if options is not None else {})}
    return _compiled(model, (graphs_of(backend, **passed), fullgraph, dynamic, recompile_limit))


def _compiled(model, settings):
    if isinstance(model, Module):
        return OptimizedModule(model, settings)
    call = _Optimized(model, *settings).call
    return functools.update_wrapper(call, model) if hasattr(model, "__name__") else call


def compile_in_place(module, *args, **kwargs):
    """Makes a module's own calls those of `compile(module)`."""
    compiled, inside = compile(module, *args, **kwargs), threading.local()

    def call(*args, **kwargs):
        if getattr(inside, "running", False):  # the compiled module calls the module
            return module._call_impl(*args, **kwargs)
        inside.running = True
        try:
            return compiled(*args, **kwargs)
        finally:
            inside.running = False
    module.__dict__["_compiled_call_impl"] = call


def optimized(model, backend):
    """The captures of a function or module, for whoever looks into them."""
    return _Optimized(model, graphs_of(backend), False, None, None)


_FIRST = "the first call of a module without sizes"
_MOST_SIGNALS = 8  # captures that handlers of signals end before a call runs as it is
_MOST_UNFORESEEN = 500  # functions and names that captures of one function turn out to use
_OWN_ATTRIBUTES = ("_orig_mod", "forward", "training")  # of an OptimizedModule


class OptimizedModule(Module):
    """A module whose calls are captured; everything else is the module's own."""
    _stands_for_another = True

    def __init__(self, mod, settings):
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_settings"] = settings
        self.__dict__["forward"] = _Optimized(mod, *settings).call

    def __reduce__(self):
        """A copy is compiled for the copied module."""
        return OptimizedModule, (self._orig_mod, self._settings)

    @property
    def dynamo_ctx(self):
        """Compiles another function or module as this one was: lightning does so with a module's steps."""
        return functools.partial(_compiled, settings=self._settings)

    def __getattr__(self, name):
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:
            raise AttributeError(name)
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    def __setattr__(self, name, value):
        """The module's attributes are the wrapped one's."""
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is None or name in _OWN_ATTRIBUTES:
            super().__setattr__(name, value)
        else:
            setattr(module, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self):
        return len(self._orig_mod)

    def __bool__(self):
        return bool(self._orig_mod)

    @property
    def training(self):
        return self._orig_mod.training

    @training.setter
    def training(self, mode):
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._orig_mod.training = mode


_ALL = weakref.WeakSet()  # of what compile has made, to be reset


def reset():
    """Lets all graphs of all compiled functions go: their next calls are captured."""
    for optimized in list(_ALL):
        optimized.reset()


class CannotCapture(Exception):
    """A function fails on tensors without data."""


class _Attempt:
    """One run of a function that is to be captured."""
    changed = None  # what it changed besides its results, if anything
    error = None    # with which it ended; another one is that of a signal's handler, which ran after it


@uninterrupted
def _running(attempt, functions, captures, before, marked, whole):
    """What is changed around a function while it is captured. In the end what it changed itself is as it was, too, and nothing is kept of a capture that came
    to nothing."""
    captures.added = None
    try:
        with _capturing(), breaks.watched(functions, before, marked, whole), Caches(functions.caches) as caches:
            yield
        attempt.changed = before.broken() or caches.filled
        if attempt.changed is not None:
            captures.reset()
            before.restore()
    except BaseException as error:
        attempt.changed, attempt.error = before.broken(), error
        captures.forget()
        before.restore()
        raise


def _one_at_a_time():
    """Threads capture one after the other. A forked child has none that it would have to wait for."""
    global _capture_lock
    _capture_lock = threading.RLock()


_one_at_a_time()
os.register_at_fork(after_in_child=_one_at_a_time)


class _AsksFloats(Exception):
    """A function that is captured for any float asks for its value."""


class _Backend:
    """A backend whose calls are counted."""

    def __init__(self, backend):
        self.backend, self.calls, self.error = backend, 0, None

    def __call__(self, module, inputs):
        return self._compiled(self.backend, module, inputs)

    def instead(self, backend):
        """Another backend's calls counted with these."""
        return functools.partial(self._compiled, backend)

    def _compiled(self, backend, module, inputs):
        self.calls += 1
        try:
            with breaks.paused():
                compiled = backend(module, inputs)
            assert callable(compiled), "compiler_fn did not return callable"
            return compiled
        except Exception as error:
            if breaks.is_of_handler(error):
                self.error = error
                raise
            self.error = BackendCompilerFailed(backend, error)
            raise self.error from error


class _Optimized:
    """The captures of one function, and which of them a call takes. `call` is what users have; calls whose graphs are not known come to `run`."""

    def __init__(self, model, graphs, fullgraph, dynamic, limit):
        self.model, self.fullgraph, self.dynamic, self.limit = model, fullgraph, dynamic, limit
        self.graphs, self.backend = graphs, _Backend(graphs.forward)
        self.owners = [] if isinstance(model, types.FunctionType) else [getattr(model, "__self__", model)]
        self.attempts = 0  # captures that were begun
        self.called, self.functions = [], None  # what captures turned out to call; all that the one under way may call
        self.call = _C._CompiledCall(self.run)
        self.call._compiled = self
        self.static, self.moving = (self._captures(moving) for moving in (False, True))
        self.reset()
        _ALL.add(self)

    def reset(self):
        self.backend.calls = 0
        self.gave_up, self.why_not = False, None
        self.effects = self.prepared = 0  # calls that changed what they read; captures that the next lookup finds, which is no hit
        self.at_limit = self.has_run = self.asks_data = False
        self.first_numbers, self.first_floats = {}, {}
        self.moving.takes_floats = self.fixes_floats = False
        self.reasons = collections.Counter()
        self.static.reset()
        self.moving.reset()

    def info(self):
        """What became of the calls; see `umbra.compiler.cache_info`."""
        total, reasons = self.static.info()
        more, more_reasons = self.moving.info()
        total = {name: total[name] + more[name] for name in total}
        reasons.update({why: count for why, count in more_reasons.items() if why != "first call"})
        reasons.update(self.reasons)
        total["hits"] -= self.prepared
        total["limit"] = self._limit()
        return total, reasons

    def _captures(self, moving):
        graphs = self.graphs
        inference = None if graphs.inference is None else self.backend.instead(graphs.inference)
        options = {"partition_fn": graphs.partition, "decompositions": graphs.decompositions, "inference_compiler": inference, "dynamic": moving,
                   "reads": self._reads, "tensors": breaks.Tensors, "call": self.call}
        if isinstance(self.model, Module):
            return _compile_module(self.model, self.backend, graphs.backward, keep_inference_input_mutations=graphs.keep_writes, **options)
        return _compile(self.model, self.backend, graphs.backward, fixed_inputs=0, keep_writes=graphs.keep_writes, **options)

    def _foresee(self, watched):
        self.functions = Functions([self.model, *self.owners, *watched], self.called)

    def _foresee_once(self, leaves):
        if self.functions is None:
            with _capture_lock:
                self._foresee([leaf for leaf in leaves if not is_known(leaf)])

    def _reads(self, watched, restorable=False):
        found = self.functions
        owners = [*self.owners, *watched, *found.imported, *_hooks.AROUND_CALLS]
        return _C._Reads(found.functions, owners, found.texts, restorable=restorable, whole=found.whole, returned=found.returned)

    def _limit(self):
        if self.limit is not None:
            return self.limit
        return config.recompile_limit if config.recompile_limit != config._DEFAULT_LIMIT else config.cache_size_limit

    def run(self, *args, **kwargs):
        with _calling_compiled():
            return self._run(*args, **kwargs)

    def _run(self, *args, **kwargs):
        """A call whose graphs are not known to C++. Beyond the limit nothing more is captured: the function runs as it is, and calls that have graphs
        go on with them."""
        if (tracer := _tracer()) is not None and config.error_on_nested_fx_trace:
            raise RuntimeError(f"Detected that you are using FX to {tracer} a dynamo-optimized function. This is not supported at the moment.")
        # Inside a transform, or a program that is captured, the function is part of that.
        stance = _stance()
        if stance == "force_eager" or self.gave_up or _C._is_tracing() or is_compiling():
            return self.model(*args, **kwargs)
        leaves, spec = pytree.tree_flatten(objects.opened((args, kwargs))[0])
        if (why := self._why_uncaptured(leaves)) is not None:
            return self._as_it_is(why, args, kwargs)
        attempts, captures = self.attempts, self.moving if self._moves(leaves, spec) else self.static
        with _capturing():
            known = None if self._asked_for_attributes(captures, leaves) else captures.run_known(*args, **kwargs)
        if known is not None:
            return known[0]
        if _C._dispatch_modes():  # what a mode makes of the calls would be taken for the function's own
            return self._as_it_is("a call under a dispatch mode", args, kwargs)
        if stance == "fail_on_recompile":
            raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile'. {self._place()}")
        if stance == "eager_on_recompile" or stance == "eager_then_compile" and not self.has_run:
            self.has_run = True
            return self.model(*args, **kwargs)
        if self.backend.calls >= self._limit():
            self._reach_limit(captures.why_not(*args, **kwargs))
            return self.model(*args, **kwargs)
        if config.error_on_recompile and self.backend.calls > 0:
            raise RecompileError(f"Recompiling function {self._name()}\n    triggered by the following guard failure(s):\n"
                                 f"    - {captures.why_not(*args, **kwargs)}")
        if captures is self.moving and not self.moving.entries:
            self.reasons[self.static.why_not(*args, **kwargs)] += 1
        with _capture_lock:
            if self.attempts != attempts:  # another thread may have captured the same meanwhile
                goes_on = functools.partial(self._run, *args, **kwargs)
            else:
                self.attempts += 1
                goes_on = self._captured(captures, args, kwargs)
        return goes_on()

    def _why_uncaptured(self, leaves):
        """What keeps a call from being captured, if anything, for as long as it is there. Modules that get their sizes by their first call just run."""
        if _C._level_count():
            return "a call inside a transform"
        if any(not isinstance(mode, DeviceContext) for mode in _C._torch_function_modes()):  # sees each call, and none of those made here
            return "a call under a function mode"
        state = [*self.model.parameters(), *self.model.buffers()] if isinstance(self.model, Module) else []
        if any(isinstance(tensor, UninitializedTensorMixin) for tensor in state):
            return _FIRST
        return "a tensor whose class has a __torch_function__" if any(map(_takes_calls, (*state, *leaves))) else None

    def _as_it_is(self, why, args, kwargs):
        if self.fullgraph and why is not _FIRST:
            raise Unsupported(f"{why}\n  Explanation: it runs as it is, which fullgraph does not allow")
        return self.model(*args, **kwargs)

    def _asked_for_attributes(self, captures, leaves):
        """The arguments that have attributes which the function may ask for, and which their stand-ins would not have."""
        found = [leaf for leaf in leaves if type(leaf) in (Tensor, Parameter) and _C._has_own_attributes(leaf) and not captures.is_outer(leaf)]
        if found:
            self._foresee_once(leaves)
        return [leaf for leaf in found if not vars(leaf).keys().isdisjoint(self.functions.names | self.functions.texts)]

    def _captured(self, captures, args, kwargs):
        """Captures a call, again for each function that it turns out to call: what these read is watched before they run. Gives what the call then does."""
        signalled = 0
        while True:
            given, opened = objects.opened((args, kwargs), captures.is_outer)
            leaves = pytree.tree_leaves(given)
            watched = [leaf for leaf in leaves if captures.is_outer(leaf) or not is_known(leaf)] + list({type(found): None for found in opened})
            marked = self._marked(*given, leaves, captures) if captures is self.moving else {}
            self._foresee(watched)
            before = self._reads(watched, restorable=True)
            outer = read_among(before, [leaf for leaf in leaves if not captures.is_outer(leaf)], opened) + self._asked_for_attributes(captures, leaves)
            if outer:  # given as what they are
                captures.outer.update({id(found): found for found in outer})
                continue
            try:
                why = self._capture_with_floats(captures, before, marked, leaves, args, kwargs)
            except _AsksFloats:
                return functools.partial(self._run, *args, **kwargs)
            except breaks.Signalled:
                signalled += 1
                if signalled < _MOST_SIGNALS:
                    continue
                return functools.partial(self._give_up_for_signals, args, kwargs)
            except breaks.NotForeseen as error:
                if error.found in self.called or len(self.called) > _MOST_UNFORESEEN:
                    if self.fullgraph:
                        raise
                    return functools.partial(self._give_up, str(error).splitlines()[0], args, kwargs)
                self.called.append(error.found)
                continue
            except breaks.NotCaptured as error:
                captures.reset()  # a function that caught the error went on
                if self.fullgraph or getattr(error, "_ends_call", False):
                    raise
                return functools.partial(self._give_up, str(error).splitlines()[0], args, kwargs)
            except (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode, _C.NeedsSymbols) as error:
                if captures is self.static and self._takes_symbols_for(error):
                    captures.reset()
                    self.asks_data = True
                    return functools.partial(self._run, *args, **kwargs)
                if self.fullgraph or getattr(error, "_ends_call", False):
                    raise Unsupported(f"Data-dependent branching\n  {error}") from error
                return functools.partial(self._give_up, f"data decide what it does: {str(error).splitlines()[0]}", args, kwargs)
            except CannotCapture as error:
                return functools.partial(self._give_up, str(error), args, kwargs)
            except BackendCompilerFailed as error:
                if not config.suppress_errors:
                    raise
                captures.reset()
                return functools.partial(self._give_up, f"the backend failed: {error}", args, kwargs)
            break
        if why is not None:
            return functools.partial(self._run_with_effects, why, args, kwargs)
        self.prepared += 1
        return functools.partial(self._run_new, captures, args, kwargs)

    def _run_new(self, captures, args, kwargs):
        with _capturing():
            return captures.run(*args, **kwargs)

    def _capture_with_floats(self, captures, before, marked, leaves, args, kwargs):
        """The same as `_capture`; where the function asks for the value of a float that is a symbol, each value is captured for itself from then on."""
        attempt = _Attempt()
        try:
            return self._capture(attempt, captures, before, marked, args, kwargs)
        except breaks.NotForeseen:
            raise
        except Exception as error:
            if attempt.error is None or not captures.takes_floats or error is self.backend.error or not any(map(is_finite_float, leaves)):
                raise
        finally:
            attempt.error = None  # it knows this frame
        captures.reset()
        self.fixes_floats, captures.takes_floats = True, False
        raise _AsksFloats

    def _capture(self, attempt, captures, before, marked, args, kwargs):
        """Captures a call; gives what it changed besides its results, if anything."""
        try:
            with _running(attempt, self.functions, captures, before, marked, self.fullgraph):
                if before.hidden:
                    breaks.stop(f"use of an object of the class {before.hidden}", "nobody can tell whether it is still what it was")
                captures.prepare(*args, **kwargs)
            return attempt.changed
        except ChangesArguments:
            return "what it is given"
        except breaks.Changed as error:
            return str(error)
        except ConstraintViolationError:
            captures.reset()
            raise
        except NoFakeKernel as error:
            raise refused_without_data(error) from None
        except (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode, _C.NeedsSymbols):
            raise
        except Exception as error:  # what cannot be done fails as it is, too
            if error is not attempt.error:
                attempt.error = None
                raise
            if error is self.backend.error or isinstance(error, TorchDynamoException):
                raise
            if self.fullgraph:
                if (refusal := operator_refusal(error)) is not error:
                    raise refusal from None
                raise observed(error)
            if attempt.changed is None:
                raise CannotCapture(f"{type(error).__name__}: {error}") from error
            return attempt.changed

    def _takes_symbols_for(self, error):
        """Whether a number or a size that only data tell is to be a symbol: captures whose sizes are symbols have them too. What an operator that takes
        functions tells always is."""
        allowed = {DataDependentOutputException: config.capture_scalar_outputs, DynamicOutputShapeException: config.capture_dynamic_output_shape_ops,
                   _C.NeedsSymbols: True}
        return type(error) in allowed and (self.fullgraph or allowed[type(error)])

    def _give_up(self, why, args, kwargs):
        try:
            result = self.model(*args, **kwargs)
        except RuntimeError as error:  # with data as without
            raise operator_refusal(error) from None
        self.gave_up, self.why_not = True, why
        self._warn(f"not captured, since {why}")
        return result

    def _give_up_for_signals(self, args, kwargs):
        self.gave_up, self.why_not = True, "a signal came whenever it was captured"
        self._warn(f"not captured, since {self.why_not}")
        return self.model(*args, **kwargs)

    def _run_with_effects(self, why, args, kwargs):
        """A call of a function that changes what it reads (a counter, a list): that happened while it was captured, and is put back; then it runs as it is.
        What happens once (something that it keeps for later calls) may be captured without it the next time."""
        self.effects += 1
        if self.effects > 2:
            self.gave_up = True
            self._warn(f"not captured, since it changes what it reads: {why}")
        return self.model(*args, **kwargs)

    def _reach_limit(self, why):
        if not self.at_limit:
            self.at_limit = True
            self._warn(f"calls of new kinds are no longer captured, since it was captured {self.backend.calls} times, which is the recompile_limit "
                       f"({self._limit()}). Last reason: {why}")
        for setting, is_set in (("fullgraph=True", self.fullgraph), ("fail_on_recompile_limit_hit", config.fail_on_recompile_limit_hit)):
            if is_set:
                raise FailOnRecompileLimitHit(f"Hard failure due to {setting}")

    def _marked(self, args, kwargs, leaves, captures):
        """The sizes that are not to become numbers (`mark_dynamic`): {place among the last inputs: (name, dimensions)}."""
        marks = {}
        names = _names_of(self.model.forward if isinstance(self.model, Module) else self.model, args, kwargs)
        inputs = [(name, leaf) for name, leaf in zip(names, leaves) if _in_graph(leaf) and not captures.is_outer(leaf)]
        for i, (name, leaf) in enumerate(inputs):
            dims = [dim for dim, mark in marked_sizes(leaf).items() if mark[0] == "DYNAMIC"] if isinstance(leaf, Tensor) else []
            if dims:
                marks[i - len(inputs)] = name, dims
        return marks

    def _place(self):
        code = getattr(self.model.forward if isinstance(self.model, Module) else self.model, "__code__", None)
        return "" if code is None else f"filename: '{code.co_filename}', function name: '{code.co_name}', line number: {code.co_firstlineno}"

    def _name(self):
        code = getattr(self.model, "__code__", None)
        name = getattr(self.model, "__name__", type(self.model).__name__)
        return name if code is None else f"{name} in {code.co_filename}:{code.co_firstlineno}"

    def _warn(self, why):
        warnings.warn(f"torch.compile: {self._name()} runs as it is: {why}", stacklevel=5)

    def _moves(self, leaves, spec):
        """Whether sizes and integers are symbols: automatically so from the second ones on, and where data tell some of them."""
        kind = (spec, tuple((leaf.dtype, leaf.dim()) if isinstance(leaf, Tensor) else type(leaf) for leaf in leaves))
        if self.dynamic is False and not self.asks_data:
            return False
        if any(_is_marked(leaf) for leaf in leaves):
            return True
        if self._asks_for_types(leaves):
            return self.asks_data
        if self.asks_data or self.dynamic:
            self._float_moves(kind, leaves)
            return True
        if not config.automatic_dynamic_shapes:
            return False
        numbers = tuple(tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf for leaf in leaves
                        if isinstance(leaf, Tensor) or type(leaf) is int)
        moves = self.first_numbers.setdefault(kind, numbers) != numbers
        return self._float_moves(kind, leaves) or moves

    def _asks_for_types(self, leaves):
        self._foresee_once(leaves)
        return self.functions.asks_for_types

    def _float_moves(self, kind, leaves):
        """Whether a float is another one than it was; such floats are tensors for the graphs, where the function lets them."""
        floats = tuple(leaf for leaf in leaves if is_finite_float(leaf))
        moves = not self.fixes_floats and self.first_floats.setdefault(kind, floats) != floats
        self.moving.takes_floats |= moves
        return moves


def _takes_calls(leaf):
    """Whether a tensor's class has a `__torch_function__`, which decides what results are. Wrappers are taken apart instead."""
    return isinstance(leaf, Tensor) and type(leaf) is not Tensor and has_torch_function_unary(leaf) and not is_traceable_wrapper_subclass(leaf)


def _is_marked(leaf):
    """Whether a size of a tensor was said to be a symbol: `mark_dynamic`, `mark_unbacked`."""
    if not isinstance(leaf, Tensor):
        return False
    return hasattr(leaf, "_dynamo_unbacked_indices") or any(mark[0] != "STATIC" for mark in marked_sizes(leaf).values())


__all__ = ["OptimizedModule", "compile", "list_backends", "reset"]
