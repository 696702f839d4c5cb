"""Compiling: types, classes, names and functions from their source."""
import builtins
import contextlib
import dataclasses
import enum
import functools
import inspect
import math
import types
import typing
import warnings

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._ops import OpOverloadPacket
from umbra.jit import _annotations
from umbra.jit._annotations import modifier_of
from umbra.jit._script_module import ScriptModule
from umbra.jit._source import defaults_of, has_source, method_of_class_method, method_of_dataclass, signature_of, source_of
from umbra.jit._trace import ScriptFunction
from umbra.nn.modules.module import Module

_FUNCTION = type(umbra.relu)  # operators as functions
_classes = {}  # Python's classes to the program's types
_functions = {}  # Python's functions to compiled ones
_modules = {}  # classes of the program to the Python modules they were made of


# ---- types ----

def simple_type(name):
    return _C._jit_simple_type(name)


_GENERICS = ("List", "Dict", "Tuple", "Optional", "Union", "Final")
_SIMPLE = {Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", complex: "complex", type(None): "NoneType", None: "NoneType",
           typing.Any: "Any", umbra.device: "Device", umbra.Generator: "Generator"}


def type_of_annotation(annotation):
    """The program's type of an annotation, or None where there is none."""
    if annotation in _SIMPLE if isinstance(annotation, typing.Hashable) else False:
        return simple_type(_SIMPLE[annotation])
    if annotation in (umbra.dtype, umbra.layout, umbra.memory_format):
        return simple_type("int")
    if annotation is umbra.Size:
        return _C._jit_list_type(simple_type("int"))
    _annotations.check_contained(annotation)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, typing.List):
        return _C._jit_list_type(type_of_annotation(args[0]))
    if origin in (dict, typing.Dict):
        return _C._jit_dict_type(type_of_annotation(args[0]), type_of_annotation(args[1]))
    if origin in (tuple, typing.Tuple):
        return _C._jit_tuple_type([type_of_annotation(a) for a in args if a != ()])
    if origin is typing.Union or origin is types.UnionType:
        return _C._jit_union_type([type_of_annotation(a) for a in args])
    if origin is typing.Final:
        return type_of_annotation(args[0])
    if origin is _annotations.Future:
        return _C._jit_future_type(type_of_annotation(args[0]))
    if isinstance(annotation, type):
        return type_of_class(annotation)
    return None


def type_of_class(cls):
    """The program's type of a class: compiled when it is first met."""
    if cls in _classes:
        return _classes[cls]
    if issubclass(cls, Tensor):
        return simple_type("Tensor")
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        hints = typing.get_type_hints(cls)
        name = _C._jit_qualified_name(cls)
        kinds = [type_of_annotation(hints.get(f, Tensor)) for f in cls._fields]
        defaults = [cls._field_defaults[f] for f in cls._fields if f in cls._field_defaults]
        _classes[cls] = _C._jit_named_tuple_type(name, list(cls._fields), kinds, defaults)
        _C._jit_register_class(name, cls)
        return _classes[cls]
    if issubclass(cls, enum.Enum):
        members = [(m.name, m.value) for m in cls]
        kinds = [type(value) for _, value in members]
        for i, kind in enumerate(kinds):
            if kind is not kinds[0]:
                raise RuntimeError(f"Could not unify type list since element {i} of type {kinds[0].__name__} did not match the types before it"
                                   f" ({kind.__name__})")
        if kinds[:1] not in ([int], [float], [str]):
            raise RuntimeError(f"Cannot create Enum with value type '{kinds[0].__name__ if kinds else 'NoneType'}', only int, float and string are supported")
        name = _C._jit_qualified_name(cls)
        made = _C._jit_Class.make_enum(name, simple_type(kinds[0].__name__), members)
        _C._jit_register_class(name, cls)
        _classes[cls] = made.type
        return made.type
    if cls.__dict__.get("_torchscript_interface"):
        return _declare_interface(cls)
    if issubclass(cls, Module) or cls.__module__ == "builtins" or issubclass(cls, BaseException):
        return None
    return _compile_class(cls)


def _declare_interface(cls):
    """The type of a class whose methods' signatures others have to have."""
    name = _C._jit_qualified_name(cls)
    made = _C._jit_Class.make_interface(name, issubclass(cls, Module))
    _classes[cls] = made.type
    for method, function in cls.__dict__.items():
        if not inspect.isfunction(function):
            continue
        source, *place = source_of(function)
        declared = _C._jit_compile(source, *place, f"{name}.{method}", Names(function), made.type, defaults_of(function), True)
        if declared.declared_result() is None:
            del _classes[cls]
            raise RuntimeError(f"the method '{method}' of the interface {cls.__name__} has no return annotation")
        made.add_method(method, declared)
    return made.type


def _compile_class(cls):
    from umbra.jit._library import CLASSES
    written = CLASSES.get(cls, cls)  # a class of this package has a form for the compiler
    has_init = written.__init__ is not object.__init__
    name = _C._jit_qualified_name(cls)
    made = _C._jit_Class.make(name, False)
    _classes[cls] = made.type
    _C._jit_register_class(name, cls)
    try:
        methods = {n: f for n, f in inspect.getmembers(written, inspect.isfunction) if modifier_of(f) in ("default", "export", "unused") and n not in
                   ("__repr__", "__reduce__", "__reduce_ex__")}
        for n, p in inspect.getmembers(written, lambda m: isinstance(m, property)):
            methods.update({f"__{n}_{kind}": f for kind, f in (("getter", p.fget), ("setter", p.fset)) if f is not None and modifier_of(f) == "default"})
        methods.update({n: method_of_class_method(cls, m.__func__) for n, m in vars(written).items() if isinstance(m, classmethod)})
        if dataclasses.is_dataclass(written):
            made_here = [n for n, f in methods.items() if not has_source(f)]
            methods.update({n: method_of_dataclass(written, n) for n in made_here})
            methods = {n: f for n, f in methods.items() if f is not None}
        order = (["__init__"] if has_init else []) + [n for n in methods if n != "__init__"]
        for method in order:
            is_static = isinstance(inspect.getattr_static(written, method, None), staticmethod)
            own = {cls.__name__: cls}  # the class has its name in its module only when it is made
            made.add_method(method, declare(methods[method], f"{name}.{method}", None if is_static else made.type, own))
        for method in order:  # attributes come from __init__, so that it is the first
            if modifier_of(methods[method]) != "unused":
                _C._jit_define(made.method(method))
    except BaseException:
        del _classes[cls]
        raise
    return made.type


# ---- names ----

_callers = []  # what names mean where programs are being made: functions of a name, the innermost last


@contextlib.contextmanager
def seen_from(names):
    """Inside, programs know the names of a frame, or what a function gives for a name (None: nothing)."""
    def of_frame(name):
        return names.f_locals.get(name, names.f_globals.get(name, MISSING))

    def of_function(name):
        found = names(name)
        return MISSING if found is None else found

    _callers.append(of_frame if isinstance(names, types.FrameType) else of_function)
    try:
        yield
    finally:
        _callers.pop()


class Names:
    """What names mean inside one function."""

    def __init__(self, function, extra=None):
        self.function = function
        self.extra = extra or {}

    def _find(self, name):
        if name in self.extra:
            return self.extra[name]
        function = inspect.unwrap(self.function) if callable(self.function) else self.function
        code = getattr(function, "__code__", None)
        if code is not None and function.__closure__ and name in code.co_freevars:
            try:
                return function.__closure__[code.co_freevars.index(name)].cell_contents
            except ValueError:
                return MISSING
        names = getattr(function, "__globals__", {})
        if name in names:
            return names[name]
        for find in reversed(_callers):
            found = find(name)
            if found is not MISSING:
                return found
        return getattr(builtins, name, MISSING) if name not in _LEFT_TO_C else MISSING

    def name(self, name):
        found = self._find(name)
        return None if found is MISSING else describe(found, name)

    def attribute(self, owner, name):
        try:
            found = getattr(owner, name)
        except AttributeError as error:
            if isinstance(owner, types.ModuleType) and _C._overload_names("aten::" + name):
                return "builtin", "aten::" + name
            if isinstance(error, NotImplementedError):
                raise
            missing = "" if "in Umbra" not in str(error) else f": {error}"
            return "error", f"object has no attribute {name}{missing}"
        return describe(found, name, owner)

    def type(self, text):
        first, *rest = text.split(".")
        found = self._find(first)
        for part in rest:
            if found is MISSING:
                break
            found = getattr(found, part, MISSING)
        if found is MISSING or isinstance(found, types.ModuleType):
            return None
        return type_of_annotation(found)

    def _at(self, path):
        first, *rest = path.split(".")
        found = self._find(first)
        for part in rest:
            found = getattr(found, part, MISSING)
        return found

    def generic(self, path):
        """The name of the generic type that an expression stands for under a name of its own (`from typing import List as L`), or an empty text."""
        found = self._at(path)
        return next((name for name in _GENERICS if found is getattr(typing, name)), "")

    def exception(self, path):
        """The full name of the class of exceptions that an expression names, or an empty text."""
        found = self._at(path)
        is_exception = isinstance(found, type) and issubclass(found, BaseException)
        return f"{found.__module__}.{found.__name__}" if is_exception else ""

    def module_instance(self, cls, path):
        """Whether the module that a class of the program was made of is one of the class that an expression names; None where it names no class of modules."""
        found = self._at(path)
        if not isinstance(found, type) or not issubclass(found, umbra.nn.Module):
            return None
        return isinstance(_modules.get(cls), found)

    def callable(self, value, count):
        """What a call of an object is left to: an operator with some of its arguments given, which takes and gives tensors. Else None."""
        if not isinstance(value, functools.partial) or not isinstance(value.func, (_FUNCTION, types.BuiltinFunctionType)):
            return None
        tensor = simple_type("Tensor")
        return _C._jit_python_method("<python_value>", value, [(f"argument_{i}", tensor) for i in range(count)], tensor)

    def member(self, cls, name):
        """An attribute of an object that its class does not have yet: a method that is compiled now, or a constant."""
        module = _modules.get(cls)
        if module is None:
            own = next((c for c, kind in _classes.items() if kind.class_() is not None and kind.class_() == cls), None)
            if own is not None and name in vars(own) and not callable(vars(own)[name]) and not isinstance(vars(own)[name], (classmethod, staticmethod)):
                return "error", (f"'{cls.name}' object has no attribute or method '{name}'. '{name}' is defined as a class attribute which currently is not"
                                 " supported. Consider converting this to an instance attribute.")
            return None
        from umbra.jit._compile_modules import member_of_module
        return member_of_module(module, cls, name)

    def setter(self, cls, name):
        """The method that an assignment to a property of a module calls, or an empty text."""
        module = _modules.get(cls)
        found = None if module is None else getattr(type(module), name, None)
        if not isinstance(found, property) or found.fset is None:
            return ""
        setter = f"__{name}_setter"
        if cls.method(setter) is None:
            cls.add_method(setter, declare(found.fset, f"{cls.name}.{setter}", cls.type))
        return setter


MISSING = object()
_LEFT_TO_C = {"len", "range", "enumerate", "zip", "print", "abs", "min", "max", "sum", "sorted", "any", "all", "round", "isinstance", "getattr",
              "hasattr", "reversed", "ord", "chr", "divmod", "pow", "list", "dict", "tuple", "int", "float", "bool", "str", "complex", "super", "iter", "next",
              "map", "filter", "id", "hash", "hex", "oct", "bin", "slice"}
_SPECIAL = {}


def _fill_special():
    import umbra.jit as jit
    for function, name in ((_annotations.is_scripting, "is_scripting"), (jit.is_tracing, "is_tracing"), (umbra._C._get_tracing_state, "is_tracing"),
                           (umbra.compiler.is_compiling, "is_compiling"),
                           (_annotations.annotate, "annotate"), (_annotations.fork, "fork"), (_annotations.wait, "wait"), (umbra.tensor, "aten::tensor"),
                           (umbra.as_tensor, "aten::as_tensor"), (umbra.is_grad_enabled, "aten::is_grad_enabled"), (warnings.warn, "aten::warn"),
                           (umbra.manual_seed, "aten::manual_seed"), (umbra.set_grad_enabled, "aten::set_grad_enabled"), (umbra.get_autocast_dtype, "aten::get_autocast_dtype"),
                           (_annotations.isinstance, "isinstance"), (_annotations._unwrap_optional, "aten::_unwrap_optional"),
                           (umbra._assert, "aten::_assert")):
        _SPECIAL[function] = name
    for name in dir(math):
        if callable(getattr(math, name)):
            _SPECIAL[getattr(math, name)] = f"aten::{name}"


def describe(value, name, owner=None):
    """What the compiler makes of an object of Python's."""
    if not _SPECIAL:
        _fill_special()
    if value is math:
        return "namespace", "math"
    if isinstance(value, types.ModuleType):
        return "python", value
    if isinstance(value, ScriptFunction):
        return "function", value._function
    if isinstance(value, _FUNCTION):
        return "builtin", "aten::" + value.__name__
    if isinstance(value, OpOverloadPacket):
        return "builtin", value._qualified_op_name
    try:
        if value in _SPECIAL:
            return "builtin", _SPECIAL[value]
    except TypeError:
        pass
    if value is umbra.device:
        return "builtin", "aten::device"
    if value is umbra.enable_grad or value is umbra.inference_mode:
        return "error", (f"\nUnknown builtin op: aten::{value.__name__}.\nCould not find any similar ops to aten::{value.__name__}. This op may not exist or"
                         " may not be currently supported in TorchScript.\n")
    if isinstance(value, (umbra.dtype, umbra.layout, umbra.memory_format)):
        return "constant", value
    if isinstance(value, type):
        if value in _LEFT_TYPES:
            return None
        found = type_of_annotation(value)
        return ("type", found) if found is not None else ("python", value)
    if isinstance(value, enum.Enum):
        return "typed", (type_of_class(type(value)), value)
    if isinstance(value, ScriptModule) and "_c" in value.__dict__:
        return "error", ("Cannot call a ScriptModule that is not a submodule of the caller. Could not get the qualified name of the module"
                         f" '{name}'")
    if isinstance(value, (types.FunctionType, types.MethodType)) or callable(value) and hasattr(value, "__wrapped__"):
        overloads = _annotations.overloads_of(value)
        if overloads:
            return "overloads", _compile_overloads(value, overloads)
        operator = _operator_of(value)
        return operator if operator is not None else ("function", compile_function(value))
    if isinstance(value, types.BuiltinFunctionType) and _C._overload_names("aten::" + name):
        return "builtin", "aten::" + name
    if isinstance(value, types.BuiltinFunctionType):
        return "error", f"Python builtin {value!r} is currently not supported in Torchscript"
    if isinstance(value, (bool, int, float, str)) and isinstance(owner, types.ModuleType):
        return "constant", value
    if callable(value) and _C._overload_names("aten::" + name):
        return "builtin", "aten::" + name
    if isinstance(value, (bool, int, float, str, Tensor, list, dict, tuple)):
        return "error", (f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it is a closed over global variable? If so,"
                         " please consider passing it in as an argument or use a local variable instead.")
    return "python", value


_LEFT_TYPES = {int, float, bool, str, complex, list, dict, tuple, range, enumerate, zip, map, filter, reversed, super, slice}


def _operator_of(function):
    """Functions of this package that stand for an operator of the same arguments, or have a form for the compiler."""
    from umbra.jit._library import FUNCTIONS
    if function in FUNCTIONS:
        return _library_form(FUNCTIONS[function])
    module = getattr(function, "__module__", "") or ""
    if not module.startswith("umbra.") or module.startswith("umbra.nn"):
        return None
    return ("builtin", "aten::" + function.__name__) if _C._overload_names("aten::" + function.__name__) else None


def _library_form(form):
    from umbra.jit._library import Choice
    if isinstance(form, str):
        return "builtin", form
    if isinstance(form, Choice):
        return "choice", (form.argument, form.place, form.default, _library_form(form.if_true), _library_form(form.if_false))
    if isinstance(form, tuple):
        return "overloads", [compile_function(f) for f in form]
    return "function", compile_function(form)


# ---- functions ----

def declare(function, name, self_type, extra=None):
    """A function with its signature; its body is compiled when it is first needed."""
    plain = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
    source, *place = source_of(plain)
    names = Names(plain, extra)
    defaults = defaults_of(plain)
    modifier = modifier_of(function)
    if modifier in ("ignore", "unused"):
        declared = _C._jit_compile(signature_of(source), *place, name, names, self_type, defaults, True)
        return python_function(function, declared, name, modifier)
    return _C._jit_compile(source, *place, name, names, self_type, defaults)


def python_function(function, declared, name, modifier):
    """A function that programs leave to Python, or that must not be called."""
    if modifier == "unused":
        return _C._jit_unused_function(declared, "This Python function is annotated to be ignored and cannot be run")
    return _C._jit_python_method(name, function, declared.parameters(), declared.declared_result() or simple_type("Tensor"))


def compile_function(function):
    """The compiled form of a Python function."""
    plain = inspect.unwrap(function)
    if plain in _functions:
        return _functions[plain]
    name = f"__torch__.{plain.__name__}"
    made = _functions[plain] = declare(function, name, None)
    return made


def _compile_overloads(function, overloads):
    """The compiled forms of a function, one for each signature that was declared for it."""
    plain = inspect.unwrap(function)
    if (plain, "overloads") not in _functions:
        _functions[plain, "overloads"] = [with_signature(plain, signature, f"__torch__.{plain.__name__}__{i}", None)
                                          for i, signature in enumerate(overloads)]
    return _functions[plain, "overloads"]


def with_signature(function, signature, name, self_type, extra=None):
    """A function whose types are those of another signature."""
    source, *place = source_of(signature)
    types_of = _C._jit_compile(source, *place, name, Names(signature), self_type, defaults_of(signature), True)
    made = declare(function, name, self_type, extra)
    if len(made.parameters()) != len(types_of.parameters()):
        raise RuntimeError(f"Overload parameters have different length than those of {function.__name__}")
    for i, (_, kind) in enumerate(types_of.parameters()):
        if i > 0 or self_type is None:
            made.set_parameter_type(i, kind)
    if types_of.declared_result() is not None:
        made.set_result(types_of.declared_result())
    for parameter, default in defaults_of(signature).items():
        made.set_default(parameter, default)
    return made
