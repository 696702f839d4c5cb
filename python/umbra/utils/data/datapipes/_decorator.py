"""What is written over classes of pipes and over functions that take them."""
import functools
import inspect
import typing

from umbra.utils.data.datapipes._typing import _DataPipeMeta
from umbra.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """Makes a class of pipes a method of all pipes of its kind.

        @functional_datapipe("double")
        class Doubler(IterDataPipe): ...

        pipe.double()
    """

    def __init__(self, name, enable_df_api_tracing=False):
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls):
        kind = getattr(cls, "__self__", cls)
        if isinstance(kind, non_deterministic):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


_determinism = False


class guaranteed_datapipes_determinism:
    """Where pipes that are not deterministic cannot be made."""

    def __init__(self):
        global _determinism
        self.prev, _determinism = _determinism, True

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        global _determinism
        _determinism = self.prev


class non_deterministic:
    """Marks a class of pipes as not deterministic: always, or where a function of its arguments says so."""

    cls = None

    def __init__(self, arg):
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found")
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            if _determinism:
                raise TypeError(f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can turn off "
                                "determinism for this DataPipe if that is acceptable for your application")
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args, **kwargs):
        """Makes the pipe, if its arguments are allowed here."""
        varies = self.deterministic_fn(*args, **kwargs)
        if not isinstance(varies, bool):
            raise TypeError(f"deterministic_fn of `non_deterministic` decorator is required to return a boolean value, but {type(varies)} is found")
        if _determinism and varies:
            raise TypeError(f"{self.cls.__name__} is non-deterministic with the inputs, but you set 'guaranteed_datapipes_determinism'. You can turn "
                            "off determinism for this DataPipe if that is acceptable for your application")
        return self.cls(*args, **kwargs)


def argument_validation(f):
    """Checks that what is annotated as a pipe is one. Of the types of samples nothing is known."""
    signature, hints = inspect.signature(f), typing.get_type_hints(f)

    @functools.wraps(f)
    def checked(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if isinstance(hints.get(name), _DataPipeMeta) and not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as an IterDataPipe, but found {type(value)}")
        return f(*args, **kwargs)

    return checked


_runtime_validation_enabled = True


class runtime_validation_disabled:
    """Where `runtime_validation` checks nothing."""

    def __init__(self):
        global _runtime_validation_enabled
        self.prev, _runtime_validation_enabled = _runtime_validation_enabled, False

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        global _runtime_validation_enabled
        _runtime_validation_enabled = self.prev


def runtime_validation(f):
    """Checks samples against the type of a pipe, its attribute `type`, which pipes have only where their class says one."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def checked(self):
        if not _runtime_validation_enabled:
            yield from f(self)
            return
        for sample in f(self):
            if not self.type.issubtype_of_instance(sample):
                raise RuntimeError(f"Expected an instance as subtype of {self.type}, but found {sample}({type(sample)})")
            yield sample

    return checked
