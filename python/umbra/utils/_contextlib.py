"""Context managers that are decorators too, of functions and of generators: what runs inside the function runs inside the context.

    class scaled(_DecoratorContextManager):
        def __enter__(self): ...
        def __exit__(self, *error): ...

    @scaled()
    def step(): ...
"""
import contextlib
import functools
import inspect

from umbra import _C


def whole(cls):
    """A class of contexts that are never entered or left by half: handlers of signals, which may raise anything anywhere in Python, run inside or after."""
    cls.__enter__, cls.__exit__ = _C._entering(cls.__enter__), _C._leaving(cls.__exit__)
    return cls


@whole
class _Whole(contextlib._GeneratorContextManager):
    pass


def uninterrupted(function):
    """`contextlib.contextmanager` for what is to be a `whole`."""
    @functools.wraps(function)
    def make(*args, **kwargs):
        return _Whole(function, args, kwargs)
    return make


def _wrap_generator(make_context, function):
    """A generator that is inside a context of its own whenever it runs, and outside while it waits."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        resume, argument = generator.send, None
        while True:
            try:
                with make_context():
                    value = resume(argument)
            except StopIteration as end:
                return end.value
            try:
                argument = yield value
                resume = generator.send
            except GeneratorExit:
                with make_context():
                    generator.close()
                raise
            except BaseException as error:
                argument, resume = error, generator.throw
    return wrapper


def context_decorator(ctx, func):
    """`func` inside a context: `ctx` is a context manager, used again for each call, or a function that makes one."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), making it ambiguous which interface to use. "
                             "If you intended to pass a context manager factory, rewrite your call as context_decorator(lambda: ctx()); if you intended to pass "
                             "a context manager directly, rewrite your call as context_decorator(lambda: ctx)")
    make_context = ctx if callable(ctx) else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have the context manager applied; "
                           "additionally, decorating a class at definition-site will prevent use of the identifier as a conventional type.  To specify which "
                           "methods to decorate, decorate each of them individually.")
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(make_context, func)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        with make_context():
            return func(*args, **kwargs)
    return wrapper


class _DecoratorContextManager:
    """To be derived from: `__enter__` and `__exit__` are the user's."""

    def __call__(self, orig_func):
        return context_decorator(self.clone, orig_func)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        """Another one for a call; classes whose constructor takes arguments write their own."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Decorates without parentheses as well: `@scaled`."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
