"""Tracing: a function or module is run once on examples, and what it calls becomes a program."""
import difflib
import functools
import inspect
import pickle
import threading
import types
import warnings

from umbra import _C
from umbra._C import Tensor
from umbra._options import not_built
from umbra.jit._annotations import marked_methods
from umbra.jit._script_module import Compiled, CompiledModule, ScriptModule, check_initialized, wrap_object
from umbra.jit._state import _enabled
from umbra.nn.modules.module import Module
from umbra.utils._contextlib import uninterrupted

_state = threading.local()


class TracerWarning(Warning):
    """What a trace cannot follow: a value that becomes a constant of the program."""

    @staticmethod
    def ignore_lib_warnings():
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class TracingCheckError(Exception):
    """A repeated trace, or the Python function itself, does something else than the trace."""

    def __init__(self, graph_diff_error, tensor_compare_error, extra_msg=None):
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += extra_msg + "\n"
        if graph_diff_error is not None:
            self.message += "ERROR: Graphs differed across invocations!\n" + _indent(graph_diff_error) + "\n"
        if tensor_compare_error is not None:
            self.message += ("ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that the tracer has"
                             " encountered untraceable code.\n" + _indent(tensor_compare_error) + "\n")
        super().__init__(self.message)


def _indent(text):
    return "\n".join("\t" + line for line in text.splitlines())


def _warn(text):
    warnings.warn(text, TracerWarning, stacklevel=_user_level())


def _user_level():
    """How far out the first frame that is not this package's stands."""
    frame, level = inspect.currentframe(), 0
    root = __file__.rpartition("/jit/")[0]
    while frame is not None and frame.f_code.co_filename.startswith(root):
        frame, level = frame.f_back, level + 1
    return level + 1


def is_tracing():
    """Whether a trace is being recorded."""
    return _C._jit_is_tracing()


def _active():
    return getattr(_state, "trace", None)


@uninterrupted
def _running(trace):
    """Records what runs inside."""
    before = _active()
    _state.trace = trace
    trace.enter()
    try:
        yield
    finally:
        trace.leave()
        _state.trace = before


@uninterrupted
def _paused():
    """Nothing inside is recorded, and numbers are plain numbers."""
    trace = _active()
    trace.leave()
    try:
        yield trace
    finally:
        trace.enter()


def _apply_function(cls, args, kwargs):
    """A custom Function in a trace: a step that only Python can repeat."""
    from umbra.autograd.function import _Call
    with _paused() as trace:
        versions = [a._version if isinstance(a, Tensor) else None for a in args]
        result = _Call(cls, args, kwargs).run()
        inplace = any(isinstance(a, Tensor) and a._version != v for a, v in zip(args, versions))
    tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    others = [None if isinstance(a, Tensor) else a for a in args]

    def again(*values):
        if inplace and trace_outplace:
            raise RuntimeError(f"inplace {cls.__name__} is not supported in a trace that was forced out of place")
        full = list(others)
        for i, value in zip(tensors, values):
            full[i] = value
        return cls.apply(*full, **kwargs)

    trace_outplace = getattr(_state, "force_outplace", False)
    trace.record_python(cls.__name__, again, *args, result, inplace)
    return result


# ---- inputs ----

def _each_tensor(change, value):
    """The value in containers of its own, with each of its tensors changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_each_tensor(change, v) for v in value)
    if isinstance(value, list):
        return [_each_tensor(change, v) for v in value]
    if isinstance(value, dict):
        return {k: _each_tensor(change, v) for k, v in value.items()}
    return value


def _clone(value):
    return _each_tensor(lambda t: t.detach().clone().requires_grad_(t.requires_grad), value)


def _as_inputs(value):
    """The examples themselves: the function may know them from elsewhere. One that is given twice is two inputs, the second a view."""
    seen = set()

    def input_of(tensor):
        if id(tensor) in seen:
            return tensor.view(tensor.shape)
        seen.add(id(tensor))
        return tensor

    return _each_tensor(input_of, value)


def _annotation(value):
    if isinstance(value, tuple):
        return "Tuple[" + ", ".join(map(_annotation, value)) + "]"
    if isinstance(value, list):
        return "List[" + (_annotation(value[0]) if value else "Tensor") + "]"
    if isinstance(value, dict):
        pair = next(iter(value.items()), ("", ""))
        return f"Dict[{_annotation(pair[0])}, {_annotation(pair[1])}]"
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def _check_inputs(inputs):
    def leaves(value):
        if isinstance(value, (tuple, list)):
            return all(map(leaves, value))
        if isinstance(value, dict):
            return all(map(leaves, value.values()))
        return isinstance(value, Tensor) or "_c" in getattr(value, "__dict__", {})

    if not all(map(leaves, inputs)):
        raise RuntimeError(f"Type '{_annotation(tuple(inputs))}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples"
                           " of Tensors can be traced")


def _as_tuple(inputs):
    if isinstance(inputs, (Tensor, dict)):
        return (inputs,)
    return inputs if isinstance(inputs, tuple) else tuple(inputs)


def _positional_names(function):
    """The names of a function's parameters by position, and that of its `*args`, or None."""
    plain = getattr(function, "__func__", function)
    if type(plain) is types.FunctionType and not plain.__dict__:  # what decorators leave there may say something else
        code, skipped = plain.__code__, plain is not function
        named = code.co_argcount + code.co_kwonlyargcount
        return code.co_varnames[skipped:code.co_argcount], code.co_varnames[named] if code.co_flags & inspect.CO_VARARGS else None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return (), None
    return ([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)],
            next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None))


def _argument_names(function, count):
    """The names of a function's first parameters, as far as it says them."""
    named, rest = _positional_names(function)
    names = list(named[:count])
    missing = range(len(names), count)
    return names + [f"argument_{i + 1}" if rest is None else f"{rest}_{i - len(names)}" for i in missing]


def _function_name(function):
    name = getattr(function, "__name__", type(function).__name__)
    return "_lambda" if name == "<lambda>" else name


def _record(trace, function, inputs, keywords, strict, names, force_outplace=False):
    """Runs the function on its examples, and gives what it gave."""
    args, kwargs = _as_inputs((inputs, keywords))
    for name, value in zip(names, (*args, *kwargs.values())):
        trace.add_input(name, value)
    _state.force_outplace = force_outplace
    with _running(trace):
        result = function(*args, **kwargs)
        trace.set_output(result, strict)
    return result


# ---- functions ----

class ScriptFunction(Compiled):
    """A compiled function."""

    def __init__(self, function, original=None):
        self._function = function
        self._original = original
        self.__name__ = function.name
        self.__qualname__ = function.name
        self.__doc__ = getattr(original, "__doc__", None)
        self._torchdynamo_inline = original

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    @property
    def name(self):
        return self._function.name

    @property
    def qualified_name(self):
        return self._function.qualified_name

    def save(self, f, **kwargs):
        from umbra.jit._serialization import save
        save(self, f, **kwargs)

    save_to_buffer = ScriptModule.save_to_buffer

    def __reduce__(self):
        raise pickle.PickleError("ScriptFunction cannot be pickled")

    def __repr__(self):
        return f"<torch.jit.ScriptFunction object at {hex(id(self))}>"


def _deprecated(name, advice="`torch.compile` or `torch.export`"):
    warnings.warn(f"`torch.jit.{name}` is deprecated. Please switch to {advice}.", FutureWarning, stacklevel=3)


def _warn_of_optimize(optimize):
    if optimize is not None:
        warnings.warn("`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead", FutureWarning, stacklevel=3)


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
          _force_outplace=False, _module_class=None, _compilation_unit=None, example_kwarg_inputs=None, _store_inputs=True):
    """Runs `func` on the examples and gives the operators that it called as a compiled function or module."""
    _deprecated("trace")
    _warn_of_optimize(optimize)
    if not _enabled:
        return func
    not_built("torch.jit.trace", _compilation_unit=(_compilation_unit, None), _module_class=(_module_class, None), _store_inputs=(_store_inputs, True))
    if isinstance(func, (ScriptModule, ScriptFunction)) and not (isinstance(func, ScriptModule) and "_c" not in func.__dict__):
        warnings.warn("The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.", stacklevel=2)
        return func
    if isinstance(func, Module):
        if example_inputs is None:
            if not isinstance(example_kwarg_inputs, dict):
                raise RuntimeError("example_kwarg_inputs should be a dict")
            example_inputs = example_kwarg_inputs
        return _trace_module(func, {"forward": example_inputs}, check_trace, _wrap_checks(check_inputs), check_tolerance, strict,
                             _force_outplace, example_inputs_is_kwarg=isinstance(example_kwarg_inputs, dict))
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if func.__name__ == "forward":
            example_inputs, is_kwarg = (example_kwarg_inputs, True) if example_inputs is None else (example_inputs, False)
            return _trace_module(owner, {"forward": example_inputs}, check_trace, _wrap_checks(check_inputs), check_tolerance, strict,
                                 _force_outplace, example_inputs_is_kwarg=is_kwarg)
        raise AttributeError("trace doesn't support compiling individual module's functions.\nPlease use trace_module")
    keywords = {}
    if example_inputs is None and example_kwarg_inputs is None:
        raise TypeError("trace() needs example_inputs or example_kwarg_inputs")
    if example_inputs is None:
        if not isinstance(example_kwarg_inputs, dict):
            raise RuntimeError("example_kwarg_inputs should be a dict")
        inputs, keywords = (), _in_order(func, example_kwarg_inputs)
    else:
        inputs = _as_tuple(example_inputs)
    traced = _trace_function(func, inputs, keywords, strict, _force_outplace)
    if check_trace:
        checks = [(inputs, keywords)] if check_inputs is None else [(_as_tuple(c), {}) for c in check_inputs]
        for args, kwargs in checks:
            _check(func, traced, args, kwargs, check_tolerance, lambda a=args, k=kwargs: _trace_function(func, _clone(a), _clone(k), strict, _force_outplace),
                   lambda t: t.inlined_graph)
    return traced


def _in_order(function, keywords):
    """Keyword examples in the order of the function's parameters."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    for name in keywords:
        if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
            raise NameError(f"'{name}' is not in forward() method's arguments, a traced method takes no argument by name alone")
    order = [n for n in parameters if n in keywords]
    return {n: keywords[n] for n in (*order, *(k for k in keywords if k not in order))}


def _wrap_checks(check_inputs):
    if check_inputs is None:
        return None
    return [{"forward": c} for c in check_inputs]


def _trace_function(func, inputs, keywords, strict, force_outplace):
    _check_inputs((*inputs, *keywords.values()))
    recorder = _C._jit_Trace(force_outplace)
    names = [*_argument_names(func, len(inputs)), *keywords]
    _record(recorder, func, inputs, keywords, strict, names, force_outplace=force_outplace)
    recorder.make_methods("forward")
    function = _C._create_function_from_graph(_function_name(func), recorder.graph)
    return ScriptFunction(function, func)


# ---- modules ----

class TracedModule(CompiledModule):
    """A module of a traced one."""
    _compiled_class = True

    def __init__(self, *args, **kwargs):
        raise RuntimeError("TracedModules are made by torch.jit.trace")

    def _get_name(self):
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """What torch.jit.trace gives for a module."""
    _compiled_class = True


def _build(module):
    """The object of a program for a module, those of the modules inside, and (module, object) of those whose classes have marks."""
    from umbra.jit._compile_modules import compile_exports
    for part in module.modules():
        check_initialized(part)
    made, modules, marked = _C._jit_build(module, marked_methods)
    for m, o in marked:
        compile_exports(m, o)
    return made, modules, marked


def _trace_into(module, made, modules, method, inputs, keywords, strict, force_outplace):
    function = module if method == "forward" else getattr(module, method)
    _check_inputs((*inputs, *keywords.values()))
    recorder = _C._jit_Trace(force_outplace)
    recorder.set_self(made)
    recorder.set_modules(modules)
    signature = module.forward if method == "forward" else function
    names = [*_argument_names(signature, len(inputs)), *keywords]
    _record(recorder, function, inputs, keywords, strict, names, force_outplace)
    recorder.make_methods(method)


def trace_module(mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, _force_outplace=False,
                 _module_class=None, _compilation_unit=None, example_inputs_is_kwarg=False, _store_inputs=True):
    """Traces several methods of a module; `inputs` has examples by their names."""
    _deprecated("trace_method")
    _warn_of_optimize(optimize)
    if not _enabled:
        return mod
    not_built("torch.jit.trace_module", _compilation_unit=(_compilation_unit, None), _module_class=(_module_class, None),
              _store_inputs=(_store_inputs, True))
    return _trace_module(mod, inputs, check_trace, check_inputs, check_tolerance, strict, _force_outplace, example_inputs_is_kwarg)


def _trace_module(mod, inputs, check_trace, check_inputs, check_tolerance, strict, force_outplace, example_inputs_is_kwarg=False):
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")

    def examples(method, given):
        if example_inputs_is_kwarg:
            return (), _in_order(getattr(mod, method), given)
        return _as_tuple(given), {}

    def traced_once(chosen):
        made, modules, marked = _build(mod)
        for method, given in chosen.items():
            args, kwargs = examples(method, given)
            _trace_into(mod, made, modules, method, args, kwargs, strict, force_outplace)
        return made, {o.identity(): m for m, o in marked}

    made, originals = traced_once(inputs)
    top = wrap_object(made, TopLevelTracedModule, TracedModule, originals)
    if check_trace:
        for given in ([inputs] if check_inputs is None else check_inputs):
            again, _ = traced_once(_clone(given))
            for method in given:
                args, kwargs = examples(method, given[method])
                _check(mod if method == "forward" else getattr(mod, method), functools.partial(made.call, method), args, kwargs,
                       check_tolerance, lambda m=method: functools.partial(again.call, m),
                       lambda t, m=method: (made if t.func.__self__ is made else again)._get_method(m).inlined_graph())
    return top


# ---- checking ----

def _tensors(value):
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _tensors(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in _tensors(v)]
    if isinstance(value, (int, float)):  # a trace gives a tensor for a size
        from umbra import tensor
        return [tensor(value)]
    return []


def _difference(graph, other):
    """How two graphs differ (as text), and which constants do."""
    graph_error = tensor_error = None
    if not _C._jit_same_structure(graph, other):
        lines = difflib.ndiff(graph.str(False).splitlines(True), other.str(False).splitlines(True))
        graph_error = "Graph diff:\n" + _indent("".join(lines)) + "\n"
        for a, b in zip(graph.nodes(), other.nodes()):
            if a.kind() != b.kind():
                graph_error += "First diverging operator:\n" + _indent(f"Node diff:\n- {a.kind()}\n+ {b.kind()}") + "\n"
                break
    for a, b in zip(graph.nodes(), other.nodes()):
        if a.kind() != b.kind():
            break
        if a.kind() == "prim::Constant" and a.hasAttribute("value") and b.hasAttribute("value"):
            x, y = a.ival("value"), b.ival("value")
            if isinstance(x, Tensor) and isinstance(y, Tensor) and (x.shape != y.shape or not bool((x == y).all())):
                tensor_error = f"Node:\n{_indent(a.sourceRange())}\nCompare:\n{_indent(str(x))}\n{_indent(str(y))}"
                break
    return graph_error, tensor_error


_RANDOM = ("aten::dropout", "aten::_fused_dropout", "aten::_standard_gamma", "aten::bernoulli", "aten::multinomial", "aten::native_dropout",
           "aten::normal", "aten::poisson", "aten::binomial", "aten::rrelu", "aten::rrelu_with_noise", "aten::rand", "aten::rand_like",
           "aten::randint", "aten::randint_like", "aten::randn", "aten::randn_like", "aten::randperm")


def _is_random(node):
    if node.kind() == "aten::dropout":
        train = list(node.inputs())[2].toIValue()
        return train is not False
    return node.kind() in _RANDOM


def _check(func, traced, args, kwargs, tolerance, retrace, graph_of):
    again = retrace()

    def diagnosis():
        return _difference(graph_of(traced), graph_of(again))

    def outputs(f, what):
        try:
            return _tensors(f(*_clone(args), **_clone(kwargs)))
        except Exception as error:
            graph_error, tensor_error = diagnosis()
            raise TracingCheckError(graph_error, tensor_error,
                                    f"Encountered an exception while running the {what} with test inputs.\nException:\n{_indent(str(error))}") from error

    warned = []

    def warn_of_randomness():
        random = [n for n in graph_of(traced).nodes() if _is_random(n)]
        if warned or not random:
            return
        warned.append(True)
        nodes = "\n".join(_indent(n.kind()) for n in random)
        warnings.warn("Trace had nondeterministic nodes. Did you forget to call .eval() on your model? Nodes:\n" + nodes
                      + "\nThis may cause errors in trace checking. To disable trace checking, pass check_trace=False to torch.jit.trace()",
                      TracerWarning, stacklevel=5)

    def same(xs, ys, what):
        ok = True
        for i, (x, y) in enumerate(zip(xs, ys)):
            problem = _mismatch(x, y, tolerance)
            if problem:
                warn_of_randomness()
                warnings.warn(f"Output nr {i + 1}. of the traced function does not match the corresponding output of the {what}. "
                              f"Detailed error:\n{problem}", TracerWarning, stacklevel=5)
                ok = False
        return ok

    from_trace = outputs(traced, "trace")
    if same(from_trace, outputs(func, "Python function"), "Python function"):
        same(from_trace, outputs(again, "repeated trace"), "repeated trace")
    graph_error, tensor_error = diagnosis()
    if graph_error is not None or tensor_error is not None:
        raise TracingCheckError(graph_error, tensor_error)


def _mismatch(x, y, tolerance):
    """What tells two results apart, or None."""
    if x.shape != y.shape:
        return f"The values for attribute 'shape' do not match: {x.shape} != {y.shape}."
    a, b = x.detach().double() if not x.is_complex() else x.detach(), y.detach().double() if not y.is_complex() else y.detach()
    close = (a == b) | ((a - b).abs() <= tolerance * b.abs() + 1e-5) | ((a != a) & (b != b))
    if bool(close.all()):
        return None
    wrong = int((~close).sum())
    greatest = float((a - b).abs().max()) if a.numel() else 0.0
    return f"Tensor-likes are not close!\n\nMismatched elements: {wrong} / {a.numel()}\nGreatest absolute difference: {greatest}"


# ---- graphs with all state as inputs ----

def _get_trace_graph(f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False, _return_inputs_states=False):
    """The graph of a call in which parameters and buffers are inputs too: (graph, outputs[, inputs])."""
    not_built("torch.jit._get_trace_graph", _return_inputs_states=(_return_inputs_states, False))
    kwargs = kwargs or {}
    args = args if isinstance(args, tuple) else (args,)
    inputs = _clone(args)
    state = []
    if isinstance(f, Module):
        seen = set()
        for tensor in (*f.parameters(), *f.buffers()):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                state.append(tensor)
    recorder = _C._jit_Trace(_force_outplace)
    flat = [*_tensors(inputs), *state]
    kept = [_clone(t) for t in flat]
    for tensor in flat:
        recorder.add_input("", tensor)
    _state.force_outplace = _force_outplace
    with _running(recorder):
        result = f(*inputs, **kwargs)
        recorder.set_output(result, strict)
    recorder.make_methods("forward")
    return (recorder.graph, result, tuple(kept)) if return_inputs else (recorder.graph, result)
