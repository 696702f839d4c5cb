"""Switching differentiation on and off: as a context, or as a decorator."""
import functools
import inspect
import threading
import warnings
from typing import Any

from umbra import _C
from umbra._C import is_grad_enabled, is_inference_mode_enabled  # noqa: F401
from umbra._options import checked_bool


class _Context:
    """A context manager that also decorates functions, generators and, without parentheses, stands for itself."""

    def __call__(self, function):
        if inspect.isclass(function):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To "
                          "preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
                          FutureWarning, stacklevel=2)
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)
        return wrapped

    def _wrap_generator(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            resume = functools.partial(generator.send, None)
            while True:
                try:
                    with self.clone():
                        value = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    resume = functools.partial(generator.send, (yield value))
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:  # thrown in from outside: the function sees it, in its own mode
                    resume = functools.partial(generator.throw, error)
        return wrapped

    def clone(self):
        return type(self)()


class _SetGrad(_Context):
    _enabled = True

    __enter__, __exit__ = _C._switching_gradients("_enabled", "_before"), _C._switching_gradients("_before")


class no_grad(_SetGrad):
    """Nothing inside is recorded.

        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     (2 * x).requires_grad
        False
    """
    _enabled = False

    def __new__(cls, function=None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)


class enable_grad(_SetGrad):
    """Recording inside `no_grad`."""
    _enabled = True

    def __new__(cls, function=None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)


class _recording(_SetGrad):
    """Either of both, inside alone."""

    def __init__(self, enabled):
        self._enabled = enabled

    def clone(self):
        return _recording(self._enabled)


class set_grad_enabled(_Context):
    """Takes effect at once; as a context it is put back at the end."""

    def __init__(self, mode):
        self.mode = checked_bool("set_grad_enabled", "enabled", mode)
        self.prev = _C.is_grad_enabled()
        _C._set_grad_enabled(self.mode)

    def __repr__(self):
        return f"{self.__class__.__module__}.{self.__class__.__qualname__}(mode={self.mode})"

    def __call__(self, function):
        _C._set_grad_enabled(self.prev)
        return super().__call__(function)

    __enter__, __exit__ = _C._switching_gradients("mode"), _C._switching_gradients("prev")

    def clone(self):
        return set_grad_enabled(self.mode)


_backward = threading.local()


class set_multithreading_enabled(_Context):
    """Whether accelerators have threads of their own in a backward pass. Umbra's passes run on the thread that calls them; it is remembered alone."""

    def __init__(self, mode):
        self.mode = mode
        self.prev = is_multithreading_enabled()
        _backward.multithreading = mode

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _backward.multithreading = self.prev

    def clone(self):
        return set_multithreading_enabled(self.mode)


def is_multithreading_enabled():
    """What set_multithreading_enabled has set on this thread."""
    return getattr(_backward, "multithreading", True)


class inference_mode(_Context):
    """Like no_grad, and tensors made inside can never be recorded."""

    def __new__(cls, mode=True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.__init__()
        return self(mode)

    def __init__(self, mode=True):
        self.mode = mode
        self._guards = []

    def __enter__(self):
        self._guards.append(_C._InferenceMode(self.mode))

    def __exit__(self, *exception):
        self._guards.pop()

    def clone(self):
        return inference_mode(self.mode)
