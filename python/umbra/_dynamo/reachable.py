"""What a function that is captured may run and read, as far as that can be told from outside."""
import collections
import dis
import functools
import gc
import os
import re
import sys
import types

import umbra
from umbra._C import Tensor
from umbra._dynamo.breaks import EVERYTHING, Returned, is_own_name as _is_own
from umbra.nn import Module
from umbra.nn.modules import _hooks

_OPERATORS = {"__call__", "__getitem__", "__iter__", "__len__", "__contains__", "__enter__", "__exit__", "__add__", "__mul__", "__bool__", "__getattr__"}
_CONSTRUCTORS = {"__init__", "__post_init__"}  # of classes that functions have; what only objects' constructors name is read by nobody
_MOST = 2000  # objects that are looked into for functions
_OWN_FILES = (os.path.dirname(umbra.__file__) + os.sep, "<frozen importlib")  # of functions that are no part of the user's


class Functions:
    """The Python functions that a call of something may run, as far as that can be told: those that closures, globals, containers and objects hold, and
    methods by the names that other functions use. `more`: functions of which it is known, and names of attributes."""
    own_files, library = list(_OWN_FILES), os.path.dirname(os.__file__)
    questions = set()  # code of the library that asks for, or changes, what no guard looks at

    def __init__(self, roots, more=()):
        self.functions, self.classes, self.modules = {}, {}, []  # functions as keys, classes by their numbers
        self.names, self.seen, self.called = set(), set(), set()  # called: numbers of classes that may be
        self.texts, self.imported = set(), []  # which may be names of attributes; modules that functions import themselves
        self.caches = []  # of functools
        self.returned = [found.container for found in more if isinstance(found, Returned)]
        self.whole = EVERYTHING in more  # all attributes of objects may be looked at
        self.asks_for_types = False  # by `type(number) is int`, which symbols do not answer
        for root in (*roots, *_hooks.AROUND_CALLS):
            self._visit(root, 4)
        for found in more:
            if found is EVERYTHING or isinstance(found, Returned):
                continue
            if isinstance(found, str):
                self.texts.add(found)
            else:
                self._visit_function(found)
                self._visit_class(_class_around(found))
        known, asked = None, {}  # asked: modules, by their numbers, for these names
        while known != (len(self.functions), len(self.classes), len(self.names)):
            known = len(self.functions), len(self.classes), len(self.names)
            for cls in list(self.classes.values()):
                self._visit_methods(cls)
            for module in list(self.modules):
                for name in (self.names & vars(module).keys()) - asked.get(id(module), set()):
                    self._visit(vars(module)[name], 2)
                    asked.setdefault(id(module), set()).add(name)

    def _visit(self, value, depth):
        if isinstance(value, str) and value.replace(".", "").isidentifier():
            self.texts.update(value.split("."))
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
            self.called.add(id(value))
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
        elif isinstance(value, types.ModuleType):
            if not _is_own(value.__name__):
                self.modules.append(value)
        else:
            self._visit_class(type(value))
            for part in [] if _is_own(type(value).__module__) else [*_attributes(value).values(), *_held(value)]:
                self._visit(part, depth - 1)

    def inner_code(self):
        """The code of functions that these make when they run, and of those that take nothing from where they were made."""
        found = set()
        for function in self.functions:
            found |= _codes_in(function.__code__)
            if not function.__code__.co_freevars:
                found.add(function.__code__)
        return found

    def _visit_class(self, cls):
        if id(cls) not in self.classes and cls.__flags__ & (1 << 9) and not _is_own(cls.__module__):  # made by a class statement
            self.classes[id(cls)] = cls

    def _visit_methods(self, cls):
        called = id(cls) in self.called
        for base in cls.__mro__:
            for name, method in list(vars(base).items()):
                if name not in self.names and name not in _OPERATORS and not (called and name in _CONSTRUCTORS):
                    continue
                if isinstance(method, property):
                    method = method.fget
                method = getattr(method, "__func__", method)
                if isinstance(method, types.FunctionType):
                    self._visit_function(method)

    def _visit_function(self, function):
        if not isinstance(function, types.FunctionType) or function in self.functions or function.__code__.co_filename.startswith(_OWN_FILES):
            return
        self.functions[function] = None
        names = _names_in(function.__code__)
        self.names |= names
        if not function.__code__.co_filename.startswith((self.library + os.sep, "<frozen ")):
            self.whole |= "__dict__" in names
            self.asks_for_types |= "type" in names and _compares_types(function.__code__)
        self.texts |= _words_in(function.__code__)
        self.imported += [module for module in _imported_by(function.__code__) if module not in self.imported]
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


def _class_around(function):
    """The class that a method stands in; where one of them runs others will."""
    found = function.__globals__
    for name in function.__qualname__.split(".")[:-1]:
        found = found.get(name) if isinstance(found, dict) else vars(found).get(name)
        if not isinstance(found, type):
            return object
    return found if isinstance(found, type) else object


def _attributes(value):
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def _held(value):
    """What an object holds besides its attributes: those of slots, the names of `operator.attrgetter`."""
    return [part for part in gc.get_referents(value) if not isinstance(part, (type, types.ModuleType))]


def _add_questions():
    fill = type(umbra.utils.deterministic).fill_uninitialized_memory
    Functions.questions.add(umbra.random.fork_rng.__wrapped__.__code__)
    for function in (fill.fget, fill.fset, umbra.get_float32_matmul_precision, umbra.set_float32_matmul_precision, umbra.initial_seed,
                     umbra.get_rng_state, umbra.set_rng_state, umbra.get_num_interop_threads, umbra.is_warn_always_enabled, umbra.set_warn_always, Tensor.is_shared):
        Functions.questions.add(function.__code__)


_add_questions()


_once_per_code = functools.lru_cache(maxsize=5000)  # captures that begin again look at the same functions


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


@_once_per_code
def _names_in(code):
    """The names that code uses, as names or as texts, functions inside of it included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, str) and constant.isidentifier():
            names.add(constant)
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


_WORD = re.compile(r"[^\W\d]\w*")


@_once_per_code
def _words_in(code):
    """The names in texts that code uses: of `attrgetter("a.b")`, of formats (`"{0.name}"`), of classes that are matched."""
    words = set()
    for i, constant in enumerate(code.co_consts):
        texts = constant if isinstance(constant, tuple) else (constant,)
        for text in texts:
            if isinstance(text, str) and (i > 0 or code.co_name == "<lambda>") and ("{" in text or text.replace(".", "").isidentifier()):
                words.update(_WORD.findall(text))
        if isinstance(constant, types.CodeType):
            words |= _words_in(constant)
    return words


@_once_per_code
def _compares_types(code):
    """Whether code has both `type` and a class of numbers."""
    used = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return "type" in used and not used.isdisjoint({"int", "float", "bool"}) or any(map(_compares_types, _codes_of(code)))


def _codes_of(code):
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _codes_in(code):
    """The code of functions inside of a function."""
    found = {constant for constant in code.co_consts if isinstance(constant, types.CodeType)}
    return found.union(*map(_codes_in, found))


_IMPORT = bytes([dis.opmap["IMPORT_NAME"]])


def _imported_by(code):
    """The modules that code imports, of those that are loaded and are the user's."""
    if _IMPORT not in code.co_code:
        return []
    return [sys.modules[name] for name in code.co_names if name in sys.modules and not _is_own(name)]


def put_contents(memory, contents):
    """Writes back what an array or bytes held."""
    if type(contents) is tuple:  # of numpy's
        data, dtype, shape = contents
        if memory.shape != shape:
            memory.shape = shape
        memory[...] = type(memory)(shape, dtype, data)
    elif isinstance(memory, bytearray):
        memory[:] = contents
    elif hasattr(memory, "frombytes"):
        del memory[:]
        memory.frombytes(contents)
    else:
        memory.cast("B")[:] = contents
