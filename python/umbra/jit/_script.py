"""`torch.jit.script`: what users call, and what it takes."""
import ast
import enum
import functools
import inspect
import math
import sys
import textwrap

import umbra
from umbra import _C
from umbra._options import not_built
from umbra.jit._compile import Names, _functions, compile_function, declare, seen_from, type_of_class
from umbra.jit._compile_modules import script_module
from umbra.jit._script_module import ScriptModule, ScriptObject
from umbra.jit._state import _enabled
from umbra.jit._trace import ScriptFunction, _deprecated, _warn_of_optimize
from umbra.nn.modules.module import Module


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compiles a function, a module, or a class from its source; of an object of a class, a compiled one."""
    _deprecated("script")
    not_built("torch.jit.script", example_inputs=(example_inputs, None))
    _warn_of_optimize(optimize)
    if not _enabled:
        return obj
    with seen_from(_rcb if _rcb is not None else sys._getframe(1 + _frames_up)):
        return _script(obj)


def _script(obj):
    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        return script_module(obj)
    if isinstance(obj, type):
        if issubclass(obj, Module):
            raise RuntimeError(f"Type '{obj}' cannot be compiled since it inherits from nn.Module, pass an instance instead")
        if not issubclass(obj, enum.Enum):
            if len(obj.mro()) > 2 and not obj.__dict__.get("_torchscript_interface") and not hasattr(obj, "_fields"):
                raise RuntimeError("TorchScript classes does not support inheritance yet. Please directly inherit from 'object'.")
            type_of_class(obj)
        return obj
    if inspect.isfunction(obj) or inspect.ismethod(obj):
        if inspect.ismethod(obj) and isinstance(obj.__self__, Module):
            raise RuntimeError("a method of a module is compiled with its module: pass the module to torch.jit.script")
        plain = inspect.unwrap(obj)
        if plain.__name__ == "<lambda>":
            raise RuntimeError(f"Expected a single top-level function: {plain.__code__.co_filename}:{plain.__code__.co_firstlineno}")
        function = declare(obj, f"__torch__.{plain.__name__}", None)
        before = _functions.get(plain)
        _functions[plain] = function
        try:
            _C._jit_define(function)
        except BaseException:
            _functions.pop(plain, None)
            raise
        if before is not None:
            _functions[plain] = before
        return ScriptFunction(function, obj)
    if isinstance(obj, (list, dict)):
        return _C.ScriptList(obj) if isinstance(obj, list) else _C.ScriptDict(obj)
    if type(obj).__module__ == "builtins" or callable(obj):
        raise TypeError(f"{type(obj)} is a built-in class")
    return _script_object(obj)


def _script_object(obj):
    """A compiled object with the attributes of an object of Python's."""
    made = type_of_class(type(obj)).class_().new()
    for name in made.class_().attribute_names():
        made.setattr(name, getattr(obj, name))
    return ScriptObject(made)


def script_if_tracing(fn):
    """Compiles a function when it is first called while a trace is recorded."""
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if not _C._jit_is_tracing():
            return fn(*args, **kwargs)
        return ScriptFunction(compile_function(fn), fn)(*args, **kwargs)

    wrapper.__original_fn = fn
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


TEXT_NAMES = {"torch": umbra, "math": math}  # what a text knows wherever it is written


def functions_of_text(text, full_name, self_type, known):
    """The functions of a text by name, to be compiled when they are needed; `known` are names beside those of the caller."""
    text = textwrap.dedent(text)
    names = Names(None, known)
    return {node.name: _C._jit_compile(ast.get_source_segment(text, node), "<string>", node.lineno, 0, full_name(node.name), names, self_type, _defaults(node.args))
            for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _defaults(arguments):
    """The defaults of parameters that are written in a text, by name."""
    plain = arguments.posonlyargs + arguments.args
    pairs = [*zip(plain[len(plain) - len(arguments.defaults):], arguments.defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return {name.arg: ast.literal_eval(value) for name, value in pairs if value is not None}


class CompilationUnit:
    """Functions compiled from a text."""

    def __init__(self, lang=None, _frames_up=0):
        self._found = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang, rcb=None, _frames_up=0):
        """Compiles the functions of a text; other names are those that the caller knows."""
        with seen_from(rcb if rcb is not None else sys._getframe(1 + _frames_up)):
            known = {**TEXT_NAMES, **self._found}
            made = {name: ScriptFunction(f) for name, f in functions_of_text(lang, str, None, known).items()}
            known.update(made)  # functions may call those that come after them
            self._found.update(made)
            for found in made.values():
                _C._jit_define(found._function)

    def __getattr__(self, name):
        found = self.__dict__["_found"].get(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return found
