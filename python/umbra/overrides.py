"""`__torch_function__`: seeing calls of functions and methods before they are made."""
import contextlib
import functools
import inspect
import warnings

from umbra import _C
from umbra._C import DisableTorchFunction, DisableTorchFunctionSubclass  # noqa: F401


class TorchFunctionMode:
    """Sees every function and method call while it is entered.

        class Log(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                print(func.__name__)
                return func(*args, **(kwargs or {}))
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *exception):
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args):
    """Whether one of the arguments has a handler, or a mode listens."""
    return _C._has_torch_function(*relevant_args)


def has_torch_function_unary(tensor):
    """Whether the argument has a handler, or a mode listens."""
    return _C._has_torch_function(tensor)


def has_torch_function_variadic(*tensors):
    """Whether one of the tensors has a handler, or a mode listens."""
    return _C._has_torch_function(*tensors)


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Inside a `__torch_dispatch__`: what is called here is differentiated again, as it was where the handler's operator was called."""
    with _C._RestorePythonTLSSnapshot():
        yield


def is_tensor_like(inp):
    """Whether this is a tensor, or an object that says itself what functions of tensors do with it (`__torch_function__`)."""
    return type(inp) is _C.Tensor or hasattr(type(inp), "__torch_function__")


def _overloaded(arguments):
    """One argument of each class that has a handler, a subclass's before its base's. Plain tensors are of such a class too."""
    found = []
    for value in arguments if _C._is_torch_function_enabled() else ():
        cls = type(value)
        if getattr(cls, "__torch_function__", _C._disabled_torch_function_impl) is _C._disabled_torch_function_impl:
            if isinstance(value, (list, tuple)):
                found += [inner for inner in _overloaded(value) if all(type(inner) is not type(other) for other in found)]
        elif all(cls is not type(other) for other in found):
            found.insert(next((i for i, other in enumerate(found) if issubclass(cls, type(other))), len(found)), value)
    return found


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """The result that a mode, or the first of the arguments with a `__torch_function__` to give one, has for this call of a function."""
    overloaded = _overloaded(relevant_args)
    types = tuple(map(type, overloaded))
    for mode in reversed(_C._torch_function_modes()):
        _C._pop_torch_function_mode()
        try:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        finally:
            _C._push_torch_function_mode(mode)
        if result is not NotImplemented:
            return result
        break
    for value in overloaded:
        handler = value.__torch_function__
        if getattr(handler, "__self__", None) is value:
            warnings.warn("Defining your `__torch_function__ as a plain method is deprecated and will be an error in future, please define it as a classmethod.",
                          DeprecationWarning, stacklevel=2)
        result = handler(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for '{public_api.__module__.replace('umbra', 'torch', 1)}.{public_api.__name__}' on types that implement "
                    f"__torch_function__: {list(types)}")


def redispatch_function(func, types, args, kwargs):
    """Calls a function from a handler without coming back to it for this call: what the function calls comes to handlers again. In a mode's handler,
    within `with self:`. `types` are those that the handler was given."""
    return _C._skip_one_hop_torch_function(func, tuple(args), kwargs)


def wrap_torch_function(dispatcher):
    """Makes a function one that objects with a `__torch_function__` can take over; `dispatcher` names those among its arguments."""
    def decorator(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)
        return wrapped
    return decorator


_heard = set()  # functions written in Python that tell handlers of their calls


def heard(function):
    """Notes that a function tells handlers of its calls itself."""
    _heard.add(function)
    return function


def overridable(function):
    """A function written in Python, of which the arguments' classes and the modes hear first, as of an operator's.

    They hear of it as of PyTorch's functions: what has no default as positional arguments, the rest by name."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return _overridable_with_any_arguments(function)
    # Written out with the function's own parameters: a call makes no tuple and no dict of them.
    names = ", ".join(p.name for p in parameters)
    heading = ", ".join(p.name if p.default is p.empty else p.name + "=None" for p in parameters)
    passed = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.name}" for p in parameters)
    scope = {"_overridden": _C._has_torch_function, "_offer": handle_torch_function, "_function": function}
    exec(compile(f"def _call({heading}):\n"
                 f"    if _overridden({names}):\n"
                 f"        return _offer(_call, ({names},), {passed})\n"
                 f"    return _function({names})\n", __file__, "exec"), scope)  # its frames are this package's
    call = functools.wraps(function)(scope["_call"])
    call.__defaults__ = function.__defaults__
    return heard(call)


def heard_by_modes(function):
    """A function that makes a tensor of data: modes hear of it, classes among the data do not."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        if _C._is_torch_function_mode_enabled():
            return handle_torch_function(call, (), *args, **kwargs)
        return function(*args, **kwargs)
    return call


def _overridable_with_any_arguments(function):
    overridden = _C._has_torch_function

    @heard
    @functools.wraps(function)
    def call(*args, **kwargs):
        if overridden(*args) if not kwargs else overridden(*args, *kwargs.values()):
            return handle_torch_function(call, (*args, *kwargs.values()), *args, **kwargs)
        return function(*args, **kwargs) if kwargs else function(*args)
    return call


@functools.cache
def _tensor_methods():
    return frozenset(id(inspect.getattr_static(_C.Tensor, name)) for name in dir(_C.Tensor))


def is_tensor_method_or_property(func):
    """Whether a function that a handler was given is a method of Tensor, or reads or writes one of its attributes."""
    return getattr(func, "__name__", "") == "__get__" or id(func) in _tensor_methods()


def _places():
    """Where the functions of which handlers hear stand."""
    import umbra
    return [("torch", umbra), ("torch.functional", umbra.functional), ("torch.nn.functional", umbra.nn.functional), ("torch.nn.init", umbra.nn.init),
            ("torch.Tensor", _C.Tensor), ("torch.linalg", umbra.linalg), ("torch.fft", umbra.fft), ("torch.foreach", umbra.foreach),
            ("torch.special", umbra.special)]


def get_overridable_functions():
    """By place, the functions of which handlers hear. A read of an attribute stands for itself."""
    from umbra._overridable import overridable_functions
    return overridable_functions()


def get_ignored_functions():
    """The public functions of which handlers do not hear."""
    from umbra._overridable import ignored_functions
    return ignored_functions()


def get_testing_overrides():
    """For each function of which handlers hear, one with the same parameters that gives -1."""
    from umbra._overridable import testing_overrides
    return testing_overrides()


def _names_of_functions():
    import umbra
    places = (umbra, umbra.functional, umbra.nn.functional, umbra.linalg, umbra.fft, umbra.special)
    return _names_in_places(tuple(len(vars(place)) for place in places))  # modules make some of their functions when these are first asked for


@functools.lru_cache(maxsize=1)
def _names_in_places(_):
    names = {}
    for path, place in _places():  # what is in several places is known by the last
        found = {}
        for name in dir(place):
            value = inspect.getattr_static(place, name, None)  # none: loaded on demand
            if callable(value):
                found.setdefault(id(value), f"{path}.{name}")
            elif place is _C.Tensor and hasattr(value, "__get__"):
                found[hash(value.__get__)] = f"{path}.{name}.__get__"
        names.update(found)
    return names


def resolve_name(f):
    """The name under which people know a function of the package, or None: `resolve_name(torch.add)` is "torch.add"."""
    import umbra
    if isinstance(f, (umbra._ops.OpOverload, umbra._ops.OpOverloadPacket)):
        return str(f)
    key = hash(f) if getattr(f, "__name__", "") == "__get__" else id(f)
    return _names_of_functions().get(key)


@functools.lru_cache(maxsize=1)
def get_default_nowrap_functions():
    """The reads of attributes whose tensors `Tensor.__torch_function__` does not make ones of the class."""
    return {getattr(_C.Tensor, name).__get__ for name in ("_base", "grad", "_grad")}
