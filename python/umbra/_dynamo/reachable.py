"""What a function that is captured may run and read, as far as that can be told from outside."""
import collections
import collections.abc
import contextvars
import functools
import io
import types

from umbra._C import Tensor
from umbra._dynamo import breaks
from umbra.nn import Module

_MOST = 2000  # objects that are looked into for functions
_OPERATORS = ("__call__", "__getitem__", "__iter__", "__len__", "__contains__", "__enter__", "__exit__", "__add__", "__mul__", "__bool__", "__getattr__")


def _is_own(name):
    return isinstance(name, str) and name.split(".")[0] in ("umbra", "torch")


class Functions:
    """The Python functions that a call of something may run, as far as that can be told: those that closures, globals, containers and objects hold, and
    methods by the names that other functions use."""

    def __init__(self, roots):
        self.functions, self.classes, self.modules, self.names, self.seen = [], [], [], set(_OPERATORS), set()
        self.caches, self.hidden = [], []  # of functools; objects whose state nobody can look at
        for root in roots:
            self._visit(root, 4)
        known = None
        while known != (len(self.functions), len(self.classes), len(self.names)):
            known = len(self.functions), len(self.classes), len(self.names)
            for cls in list(self.classes):
                self._visit_methods(cls)
            for module in list(self.modules):
                for name in self.names & vars(module).keys():
                    if not callable(vars(module)[name]):
                        self._visit(vars(module)[name], 2)

    def _visit(self, value, depth):
        if depth == 0 or id(value) in self.seen or len(self.seen) > _MOST or isinstance(value, (Tensor, str, bytes, int, float, type(None))):
            return
        self.seen.add(id(value))
        if isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._visit(value.__func__, depth)
            self._visit(value.__self__, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self._visit(part, depth)
        elif isinstance(value, Module):
            for part in value.modules():
                self._visit_function(type(part).forward)
                self._visit_class(type(part))
                for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks):
                    for hook in list(hooks.values()):
                        self._visit(hook, 4)
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, dict):
            for part in list(value.values()):
                self._visit(part, depth - 1)
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            for part in list(value):
                self._visit(part, depth - 1)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.caches.append(value)
            self._visit(value.__wrapped__, depth)
        elif isinstance(value, contextvars.ContextVar) or _is_plain_iterator(value):
            self.hidden.append(value)
        elif isinstance(value, types.ModuleType):
            if not _is_own(value.__name__):
                self.modules.append(value)
        else:
            self._visit_class(type(value))
            for part in list(getattr(value, "__dict__", {}).values()):
                self._visit(part, depth - 1)

    def refuse_hidden_state(self):
        """Stops a capture of what reads objects that do not tell when they change: generators and their like, which a capture would use up."""
        for value in self.hidden:
            breaks.stop(f"use of an object of the class {type(value).__name__}", "nobody can tell whether it is still what it was")

    def _visit_class(self, cls):
        if cls not in self.classes and cls.__flags__ & (1 << 9) and not _is_own(cls.__module__):  # made by a class statement
            self.classes.append(cls)

    def _visit_methods(self, cls):
        for base in cls.__mro__:
            for name in self.names & vars(base).keys():
                method = vars(base)[name]
                if isinstance(method, property):
                    method = method.fget
                method = getattr(method, "__func__", method)
                if isinstance(method, types.FunctionType):
                    self._visit_function(method)

    def _visit_function(self, function):
        if function in self.functions or not isinstance(function, types.FunctionType) or _is_own(function.__module__):
            return
        self.functions.append(function)
        names = _names_in(function.__code__)
        self.names |= names
        for name in names:
            if name in function.__globals__:
                self._visit(function.__globals__[name], 3)
        for cell in function.__closure__ or ():
            try:
                self._visit(cell.cell_contents, 4)
            except ValueError:  # nothing is in it
                pass
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._visit(default, 3)


def _is_plain_iterator(value):
    """Whether it is an iterator that was not written in Python, whose place nobody can see: a generator, `itertools.count()`."""
    return isinstance(value, collections.abc.Iterator) and not isinstance(value, io.IOBase) and not type(value).__flags__ & (1 << 9)


class Caches:
    """The caches of functions: what a capture puts into them is of no use to others, and is taken out again. `filled` says that there was something."""

    def __init__(self, caches):
        self.caches, self.filled = caches, None

    def __enter__(self):
        self.misses = [cache.cache_info().misses for cache in self.caches]
        return self

    def __exit__(self, *exception):
        for cache, before in zip(self.caches, self.misses):
            if cache.cache_info().misses != before:
                cache.cache_clear()
                self.filled = f"the cache of {cache.__wrapped__.__name__}"


def _names_in(code):
    """The names that code uses, functions inside of it included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names
