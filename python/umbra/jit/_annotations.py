"""Marks for the compiler, which do nothing while Python runs."""
import builtins
import types
import typing
import warnings
import weakref

Final = typing.Final
T = typing.TypeVar("T")


class _Modifier:
    DEFAULT, EXPORT, IGNORE, UNUSED = "default", "export", "ignore", "unused"


def _mark(fn, modifier):
    fn._torchscript_modifier = modifier
    return fn


def modifier_of(fn):
    """What a function's marks say: "default", "export", "ignore" or "unused"."""
    return getattr(fn, "_torchscript_modifier", _Modifier.DEFAULT)


_marked = weakref.WeakKeyDictionary()  # classes to their methods that have a mark


def marked_methods(cls):
    """The methods of a class and its bases that have a mark: {name: function}. Classes are taken to be finished."""
    found = _marked.get(cls)
    if found is None:
        members = {n: f for base in reversed(cls.__mro__) for n, f in base.__dict__.items()}
        plain = {n: getattr(f, "__func__", f) for n, f in members.items() if builtins.isinstance(f, (types.FunctionType, staticmethod))}
        found = _marked[cls] = {n: f for n, f in sorted(plain.items()) if modifier_of(f) != _Modifier.DEFAULT}
    return found


def export(fn):
    """Marks a method that is compiled although forward does not call it."""
    return _mark(fn, _Modifier.EXPORT)


def unused(fn):
    """Marks a function that is not compiled: calling it from a program raises."""
    if builtins.isinstance(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                _mark(part, _Modifier.UNUSED)
        return fn
    return _mark(fn, _Modifier.UNUSED)


def ignore(drop=False, **kwargs):
    """Marks a function that programs leave to Python."""
    if callable(drop):
        return _mark(drop, _Modifier.IGNORE)
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    drop_on_export = kwargs.pop("drop_on_export", None)
    if kwargs:
        raise TypeError(f"ignore() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if drop_on_export:
        warnings.warn("ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on compilation. Use "
                      "torch.jit.unused now. {}", category=FutureWarning, stacklevel=2)
        drop = True

    def decorate(fn):
        return _mark(fn, _Modifier.UNUSED if drop else _Modifier.IGNORE)

    return decorate


def interface(obj):
    """A class whose methods' signatures others have to have. In Python it is the class itself."""
    if not builtins.isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    obj._torchscript_interface = True
    return obj


_overloads = {}  # signatures by the qualified name of their function


def _signature_key(fn):
    return f"{fn.__module__}.{fn.__qualname__}"


def _overload(func):
    """Declares a signature of the function of that name which is defined after it; programs choose among them."""
    _overloads.setdefault(_signature_key(func), []).append(func)
    return func


_overload_method = _overload


def overloads_of(fn):
    """The signatures that were declared for a function."""
    found = _overloads.get(_signature_key(fn), []) if hasattr(fn, "__qualname__") else []
    return [f for f in found if f is not fn]


def is_scripting():
    """False while Python runs; programs take it for True."""
    return False


def annotate(the_type, the_value):
    """The value; in programs, of this type."""
    return the_value


def _unwrap_optional(x):
    """The value, which must not be None; in programs, of the type without None."""
    assert x is not None, "Unwrapping null optional"
    return x


class Attribute(typing.NamedTuple):
    """A value and the type that it has in programs."""
    value: typing.Any
    type: typing.Any


def isinstance(obj, target_type):
    """Whether a value is of a type, containers by their elements too."""
    if builtins.isinstance(target_type, list):
        raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
    if builtins.isinstance(obj, (list, dict, tuple)) and not obj:
        warnings.warn("The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] would become list and"
                      " therefore falsely return True for List[float] or List[str].", stacklevel=2)
    return _is_instance(obj, target_type)


def check_contained(target):
    """Containers have to say what they hold."""
    if any(target is bare for bare in (list, typing.List, dict, typing.Dict, tuple, typing.Tuple, typing.Optional)):
        name = getattr(target, "__name__", None) or str(target).removeprefix("typing.")
        several = name in ("Dict", "dict")
        raise RuntimeError(f"Attempted to use {name} without {'contained types' if several else 'a contained type'}. Please add"
                           f"{'' if several else ' a'} contained type, e.g. {name}[int{', int' if several else ''}]")


def _is_instance(obj, target):
    if builtins.isinstance(target, tuple):
        return any(_is_instance(obj, t) for t in target)
    check_contained(target)
    origin, args = typing.get_origin(target), typing.get_args(target)
    if origin is None:
        return builtins.isinstance(obj, target)
    if origin in (typing.Union, types.UnionType):
        return any(_is_instance(obj, t) if t is not type(None) else obj is None for t in args)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(_is_instance(o, args[0]) for o in obj)
    if origin is tuple:
        return len(obj) == len(args) and all(map(_is_instance, obj, args))
    if origin is dict:
        return all(_is_instance(k, args[0]) and _is_instance(v, args[1]) for k, v in obj.items())
    return True


class Future(typing.Generic[T]):
    """The result of `fork`, which has run already."""

    def __init__(self, value=None):
        self._value = value

    def wait(self):
        return self._value

    def done(self):
        return True

    def value(self):
        return self._value


def fork(func, *args, **kwargs):
    """Runs a function, at once; `wait` gives its result."""
    return Future(func(*args, **kwargs))


def wait(future):
    """The result of a fork."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()
