"""Compiling: functions, modules and classes from their source."""
import builtins
import dataclasses
import enum
import functools
import inspect
import math
import textwrap
import types
import typing
import warnings

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._options import not_built
from umbra.jit import _annotations
from umbra.jit._annotations import marked_methods, modifier_of
from umbra.jit._script_module import RecursiveScriptModule, ScriptModule, attach, wrap_object, wrapping
from umbra.jit._source import defaults_of, has_source, init_of_dataclass, signature_of, source_of
from umbra.jit._trace import ScriptFunction, _deprecated, _warn_of_optimize
from umbra.nn.modules import container
from umbra.nn.modules.module import Module

_FUNCTION = type(umbra.relu)  # operators as functions
_classes = {}  # Python's classes to the program's types
_functions = {}  # Python's functions to compiled ones
_modules = {}  # classes of the program to the Python modules they were made of


# ---- types ----

def _simple(name):
    return _C._jit_simple_type(name)


_SIMPLE = {Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", complex: "complex", type(None): "NoneType", None: "NoneType",
           typing.Any: "Any", umbra.device: "Device", umbra.Generator: "Generator"}


def type_of_annotation(annotation):
    """The program's type of an annotation, or None where there is none."""
    if annotation in _SIMPLE if isinstance(annotation, typing.Hashable) else False:
        return _simple(_SIMPLE[annotation])
    if annotation in (umbra.dtype, umbra.layout, umbra.memory_format):
        return _simple("int")
    if annotation is umbra.Size:
        return _C._jit_list_type(_simple("int"))
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
        return _simple("Tensor")
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
        kinds = {type(v) for _, v in members}
        if len(kinds) != 1 or next(iter(kinds)) not in (int, float, str):
            raise RuntimeError(f"Could not unify type of the values of the enum {cls.__name__}: they have to be all int, float or str")
        name = _C._jit_qualified_name(cls)
        made = _C._jit_Class.make_enum(name, _simple(next(iter(kinds)).__name__), members)
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
        source, file, line = source_of(function)
        declared = _C._jit_compile(source, file, line, f"{name}.{method}", _Names(function), made.type, defaults_of(function), True)
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
        methods = {n: f for n, f in inspect.getmembers(written, inspect.isfunction) if modifier_of(f) in ("default", "export") and n not in
                   ("__repr__", "__reduce__", "__reduce_ex__")}
        for n, p in inspect.getmembers(written, lambda m: isinstance(m, property)):
            methods.update({f"__{n}_{kind}": f for kind, f in (("getter", p.fget), ("setter", p.fset)) if f is not None and modifier_of(f) == "default"})
        if dataclasses.is_dataclass(written):
            made_here = [n for n, f in methods.items() if not has_source(f)]
            methods = {n: f for n, f in methods.items() if n not in made_here or n == "__init__"}
            if "__init__" in made_here:
                methods["__init__"] = init_of_dataclass(written)
        order = (["__init__"] if has_init else []) + [n for n in methods if n != "__init__"]
        for method in order:
            is_static = isinstance(inspect.getattr_static(written, method, None), staticmethod)
            made.add_method(method, _declare(methods[method], f"{name}.{method}", None if is_static else made.type))
        for method in order:  # attributes come from __init__, so that it is the first
            _C._jit_define(made.method(method))
    except BaseException:
        del _classes[cls]
        raise
    return made.type


# ---- names ----

class _Names:
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
                return _MISSING
        names = getattr(function, "__globals__", {})
        if name in names:
            return names[name]
        return getattr(builtins, name, _MISSING) if name not in _LEFT_TO_C else _MISSING

    def name(self, name):
        found = self._find(name)
        return None if found is _MISSING else describe(found, name)

    def attribute(self, owner, name):
        try:
            found = getattr(owner, name)
        except AttributeError as error:
            if isinstance(owner, types.ModuleType) and _C._overload_names("aten::" + name):
                return "builtin", "aten::" + name
            if isinstance(error, NotImplementedError):
                raise
            return "error", f"{owner!r} has no attribute '{name}': {error}"
        return describe(found, name, owner)

    def type(self, text):
        first, *rest = text.split(".")
        found = self._find(first)
        for part in rest:
            if found is _MISSING:
                break
            found = getattr(found, part, _MISSING)
        if found is _MISSING or isinstance(found, types.ModuleType):
            return None
        return type_of_annotation(found)

    def member(self, cls, name):
        """An attribute of an object that its class does not have yet: a method that is compiled now, or a constant."""
        module = _modules.get(cls)
        return None if module is None else _member_of_module(module, cls, name)

    def setter(self, cls, name):
        """The method that an assignment to a property of a module calls, or an empty text."""
        module = _modules.get(cls)
        found = None if module is None else getattr(type(module), name, None)
        if not isinstance(found, property) or found.fset is None:
            return ""
        setter = f"__{name}_setter"
        if cls.method(setter) is None:
            cls.add_method(setter, _declare(found.fset, f"{cls.name}.{setter}", cls.type))
        return setter


_MISSING = object()
_LEFT_TO_C = {"len", "range", "enumerate", "zip", "print", "abs", "min", "max", "sum", "sorted", "any", "all", "round", "isinstance", "getattr",
              "hasattr", "reversed", "ord", "chr", "divmod", "pow", "list", "dict", "tuple", "int", "float", "bool", "str", "complex", "super", "iter", "next",
              "map", "filter", "id", "hash", "hex", "oct", "bin"}
_SPECIAL = {}


def _fill_special():
    import umbra.jit as jit
    for function, name in ((_annotations.is_scripting, "is_scripting"), (jit.is_tracing, "is_tracing"), (_annotations.annotate, "annotate"),
                           (_annotations.fork, "fork"), (_annotations.wait, "wait"), (umbra.tensor, "aten::tensor"),
                           (umbra.as_tensor, "aten::as_tensor"), (umbra.is_grad_enabled, "aten::is_grad_enabled"), (warnings.warn, "aten::warn"),
                           (umbra.manual_seed, "aten::manual_seed"), (umbra.set_grad_enabled, "aten::set_grad_enabled"),
                           (_annotations.isinstance, "isinstance")):
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
    try:
        if value in _SPECIAL:
            return "builtin", _SPECIAL[value]
    except TypeError:
        pass
    if value is umbra.device:
        return "builtin", "aten::device"
    if value is umbra.enable_grad:
        return "error", ("\nUnknown builtin op: aten::enable_grad.\nCould not find any similar ops to aten::enable_grad. This op may not exist or may not be"
                         " currently supported in TorchScript.\n")
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


_LEFT_TYPES = {int, float, bool, str, complex, list, dict, tuple, range, enumerate, zip, map, filter, reversed, super}


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

def _declare(function, name, self_type, extra=None):
    """A function with its signature; its body is compiled when it is first needed."""
    plain = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
    source, file, line = source_of(plain)
    names = _Names(plain, extra)
    defaults = defaults_of(plain)
    modifier = modifier_of(function)
    if modifier in ("ignore", "unused"):
        declared = _C._jit_compile(signature_of(source), file, line, name, names, self_type, defaults, True)
        return _python_function(function, declared, name, modifier)
    return _C._jit_compile(source, file, line, name, names, self_type, defaults)


def _python_function(function, declared, name, modifier, bound=None):
    """A function that programs leave to Python, or that must not be called."""
    if modifier == "unused":
        return _C._jit_unused_function(declared, f"Unsupported: '{name.rpartition('.')[2]}' is marked with torch.jit.unused and was called from a program")
    parameters = declared.parameters()

    def call(*args):
        return function(*((bound, *args[1:]) if bound is not None else args))

    return _C._jit_python_method(name, call, parameters, declared.declared_result() or _simple("Tensor"))


def compile_function(function):
    """The compiled form of a Python function."""
    plain = inspect.unwrap(function)
    if plain in _functions:
        return _functions[plain]
    name = f"__torch__.{plain.__name__}"
    made = _functions[plain] = _declare(function, name, None)
    return made


def _compile_overloads(function, overloads):
    """The compiled forms of a function, one for each signature that was declared for it."""
    plain = inspect.unwrap(function)
    if (plain, "overloads") not in _functions:
        _functions[plain, "overloads"] = [_with_signature(plain, signature, f"__torch__.{plain.__name__}__{i}", None)
                                          for i, signature in enumerate(overloads)]
    return _functions[plain, "overloads"]


def _with_signature(function, signature, name, self_type, extra=None):
    """A function whose types are those of another signature."""
    source, file, line = source_of(signature)
    types_of = _C._jit_compile(source, file, line, name, _Names(signature), self_type, defaults_of(signature), True)
    made = _declare(function, name, self_type, extra)
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


# ---- modules ----

_SKIPPED = {"training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "dump_patches", "call_super_init"}


def _own_attributes(module):
    hints = {}
    for cls in reversed(type(module).__mro__):
        hints.update(cls.__dict__.get("__annotations__", {}))
    return hints


def _attribute_type(name, value, hints, module):
    """The type of a module's attribute, or None where programs cannot have it."""
    if name in hints and not isinstance(hints[name], str):
        try:
            found = type_of_annotation(hints[name])
        except RuntimeError:
            found = None
        if found is not None:
            return found
    elif name in hints:
        names = _Names(type(module).forward if inspect.isfunction(getattr(type(module), "forward", None)) else None)
        try:
            return type_of_annotation(eval(hints[name], {**vars(typing), **getattr(names.function, "__globals__", {}), "Tensor": Tensor}))
        except Exception:  # noqa: BLE001 - an annotation that is no type of a program
            return None
    if isinstance(value, _annotations.Attribute):
        return type_of_annotation(value.type)
    if isinstance(value, (bool, int, float, str, complex, Tensor, umbra.device)) or value is None:
        return _C._jit_type_of(value)
    if isinstance(value, (umbra.dtype, umbra.layout, umbra.memory_format)):
        return _simple("int")
    if isinstance(value, enum.Enum):
        return type_of_class(type(value))
    if isinstance(value, (list, tuple, dict)) and value:
        try:
            return _C._jit_type_of(value)
        except RuntimeError:
            return None
    return None


def _build_module(module, objects):
    """The object of a program for a module, with its attributes and those of the modules inside; methods come after."""
    from umbra.jit._library import constants_of, extra_attributes
    if id(module) in objects:
        return objects[id(module)][0]
    if "_c" in module.__dict__:
        return module._c
    if module._backward_hooks or getattr(module, "_backward_pre_hooks", None):
        raise ValueError("Modules that have backward hooks assigned can't be compiled: " + str(module))
    cls = _C._jit_Class.make(_C._jit_qualified_name(type(module)), True)
    if isinstance(module, (container.ModuleList, container.Sequential, container.ModuleDict, container.ParameterList)):
        cls.set_container()
    values, constants = [], constants_of(module)
    hints = _own_attributes(module)
    final = {n for n, h in hints.items() if h is typing.Final or typing.get_origin(h) is typing.Final}
    for kind, tensors in (("is_parameter", module._parameters), ("is_buffer", module._buffers)):
        for name, tensor in tensors.items():
            declared = _attribute_type(name, tensor, hints, module)
            if tensor is None and (declared is None or declared.kind() == "TensorType"):
                declared = _simple("NoneType")
            cls.add_attribute(name, declared if tensor is None or declared.kind() == "OptionalType" else _simple("Tensor"),
                              **({kind: True} if tensor is not None else {}))
            values.append((name, tensor))
    cls.add_attribute("training", _simple("bool"))
    cls.add_attribute("_is_full_backward_hook", _C._jit_optional_type(_simple("bool")))
    values += [("training", module.training), ("_is_full_backward_hook", None)]
    for name, value in {**module.__dict__, **extra_attributes(module)}.items():
        if name in _SKIPPED or name.startswith("_") and name in _HIDDEN or cls.attribute_type(name) is not None:
            continue
        if isinstance(value, ScriptFunction) or callable(value):
            continue
        if name in constants or name in final:
            try:
                cls.add_constant(name, value)
            except RuntimeError:
                pass
            continue
        kind = _attribute_type(name, value, hints, module)
        if kind is not None:
            cls.add_attribute(name, kind)
            values.append((name, value.value if isinstance(value, _annotations.Attribute) else value))
    for name in constants:
        if name not in module.__dict__ and hasattr(type(module), name):
            try:
                cls.add_constant(name, getattr(module, name))
            except RuntimeError:
                pass
    for name, child in module._modules.items():
        if child is None:
            cls.add_attribute(name, _simple("NoneType"))
            values.append((name, None))
            continue
        inner = _build_module(child, objects)
        interface = _interface_of(module, hints.get(name))
        if interface is not None:
            _compile_methods({id(child): (inner, child)} if "_c" not in child.__dict__ else {})
            if not inner.class_().type.isSubtypeOf(interface):
                raise RuntimeError(f"Could not cast attribute '{name}' to type {interface}: Object of type {inner.qualified_name()} is not compatible with"
                                   f" interface {interface}")
        cls.add_attribute(name, interface if interface is not None else inner.class_().type)
        values.append((name, inner))
    made = cls.new()
    for name, value in values:
        made.setattr(name, value)
    objects[id(module)] = (made, module)
    _modules[cls] = module
    return made


def _interface_of(module, hint):
    """The interface that an annotation of a module's attribute names, or None."""
    if isinstance(hint, str):
        forward = getattr(type(module), "forward", None)
        hint = getattr(forward, "__globals__", {}).get(hint)
    is_interface = isinstance(hint, type) and hint.__dict__.get("_torchscript_interface")
    return type_of_class(hint) if is_interface else None


_HIDDEN = {"_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks", "_hooks_with_kwargs", "_hooks_always_called",
           "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_is_full_backward_hook"}


def _declare_method(module, cls, name):
    """Gives a class the method of its module, to be compiled when it is needed."""
    function = getattr(type(module), name, None)
    own = module.__dict__.get(name)
    if own is not None and isinstance(own, types.MethodType):
        function = own.__func__
    if not isinstance(function, types.FunctionType):
        return False
    from umbra.jit._library import FORWARDS
    form = FORWARDS.get(type(module)) if name == "forward" else None
    if isinstance(form, tuple):
        names = [f"{name}__{i}" for i in range(len(form))]
        for own, part in zip(names, form):
            cls.add_method(own, _declare(part, f"{cls.name}.{own}", cls.type))
        cls.add_overloads(name, names)
        return True
    function = form or function
    full = f"{cls.name}.{name}"
    overloads = _annotations.overloads_of(function)
    if overloads:
        names = [f"{name}__{i}" for i in range(len(overloads))]
        for own, signature in zip(names, overloads):
            cls.add_method(own, _with_signature(function, signature, f"{cls.name}.{own}", cls.type, {"__class__": type(module)}))
        cls.add_overloads(name, names)
        return True
    if modifier_of(function) in ("ignore", "unused"):
        source, file, line = source_of(inspect.unwrap(function))
        declared = _C._jit_compile(signature_of(source), file, line, full, _Names(inspect.unwrap(function)), cls.type, defaults_of(function), True)
        cls.add_method(name, _python_function(function, declared, full, modifier_of(function), module))
        return True
    extra = {"__class__": type(module)}
    declared = _declare(function, full, cls.type, extra)
    if name == "__setstate__" and len(declared.parameters()) == 2 and not function.__annotations__:
        # What __getstate__ gives is what it takes.
        if cls.method("__getstate__") is None:
            _declare_method(module, cls, "__getstate__")
        declared.set_parameter_type(1, cls.method("__getstate__").result())
    cls.add_method(name, declared)
    return True


def _member_of_module(module, cls, name):
    if isinstance(getattr(type(module), name, None), property):
        getter = f"__{name}_getter"
        function = getattr(type(module), name).fget
        if modifier_of(function) in ("ignore", "unused"):
            return "error", f"the property '{name}' of {type(module).__name__} is marked as unused"
        if cls.method(getter) is None:
            cls.add_method(getter, _declare(function, f"{cls.name}.{getter}", cls.type))
        return "method", getter
    if name in module.__dict__ and not isinstance(module.__dict__[name], types.MethodType):
        value = module.__dict__[name]
        described = describe(value, getattr(value, "__name__", name)) if callable(value) else None
        if described is not None and described[0] in ("function", "builtin", "overloads", "type"):
            return described
        return "error", (f"Module '{type(module).__name__}' has no attribute '{name}' (This attribute exists on the Python module, but we failed to convert "
                         f"Python type: '{type(value).__name__}' to a TorchScript type.)")
    if isinstance(inspect.getattr_static(type(module), name, None), staticmethod):
        return describe(getattr(type(module), name), name)
    if _declare_method(module, cls, name):
        return "method", name
    value = getattr(type(module), name, _MISSING)
    if isinstance(value, (bool, int, float, str)) and type(module).__module__.startswith("umbra.nn."):
        return "constant", value  # of a class of the user's it would have to be in __constants__
    return None


def _compile_methods(objects):
    declared = []
    for made, module in objects.values():
        cls = made.class_()
        forward = getattr(type(module), "forward", None)
        names = []
        if isinstance(forward, types.FunctionType) and forward is not Module.forward and modifier_of(forward) in ("default", "export"):
            names.append("forward")
        names += [n for n, f in marked_methods(type(module)).items() if modifier_of(f) == "export" and n not in names]
        for name in names:
            if cls.method(name) is None and not cls.has_overloads(name) and _declare_method(module, cls, name) and not cls.has_overloads(name):
                declared.append(cls.method(name))
        declared += _declare_hooks(module, cls)
    for function in declared:
        _C._jit_define(function)


def _declare_hooks(module, cls):
    """Gives a class the hooks of its module as methods, which calls of the module run."""
    declared, names = [], []
    for what, hooks in (("Pre-hook", module._forward_pre_hooks), ("Hook", module._forward_hooks)):
        names.append([])
        for hook in hooks.values():
            name = getattr(hook, "__name__", type(hook).__name__)
            if not isinstance(hook, types.FunctionType):
                raise RuntimeError(f"{what} '{name}' on module '{type(module).__name__}' is not a function, so it cannot be compiled")
            if "return" not in hook.__annotations__:
                raise RuntimeError(f"{what} '{name}' on module '{type(module).__name__}' is missing a return annotation. Return annotations are required, please"
                                   " add one.")
            if cls.method(name) is None:
                cls.add_method(name, _declare(hook, f"{cls.name}.{name}", cls.type))
                declared.append(cls.method(name))
            names[-1].append(name)
    cls.set_hooks(*names)
    return declared


def _script_module(module):
    objects = {}
    made = _build_module(module, objects)
    _compile_methods(objects)
    originals = {o.identity(): m for o, m in objects.values() if marked_methods(type(m))}
    return wrap_object(made, RecursiveScriptModule, RecursiveScriptModule, originals)


def compile_exports(module, made):
    """Compiles what a module that is traced marks with torch.jit.export."""
    exported = [n for n, f in marked_methods(type(module)).items() if modifier_of(f) == "export"]
    if not exported:
        return
    cls = made.class_()
    hints = _own_attributes(module)
    for name, value in module.__dict__.items():
        if name in _SKIPPED or name in _HIDDEN or cls.attribute_type(name) is not None or callable(value):
            continue
        kind = _attribute_type(name, value, hints, module)
        if kind is not None:
            cls.add_attribute(name, kind)
            made.setattr(name, value)
    _modules[cls] = module
    for name in exported:
        if cls.method(name) is None and _declare_method(module, cls, name):
            _C._jit_define(cls.method(name))


def script_method(fn):
    """Marks a method of a ScriptModule's class that is compiled when the module is made."""
    fn._torchscript_modifier = "export"
    return fn


def compile_script_module(module):
    """Makes a module whose class marks its methods a compiled one, in place."""
    objects = {}
    made = _build_module(module, objects)
    cls = made.class_()
    names = [n for n, f in marked_methods(type(module)).items() if modifier_of(f) == "export"]
    for name in names:
        _declare_method(module, cls, name)
    for name in names:
        _C._jit_define(cls.method(name))
    _compile_methods({k: v for k, v in objects.items() if v[1] is not module})
    children = {child._c.identity(): child for child in module._modules.values() if child is not None and "_c" in child.__dict__}
    for name in list(module.__dict__):
        if made.hasattr(name):
            module.__dict__.pop(name)
    with wrapping(children):
        attach(module, made)


# ---- the front door ----

def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compiles a function, a module, or a class from its source."""
    _deprecated("script")
    not_built("torch.jit.script", _rcb=(_rcb, None), example_inputs=(example_inputs, None), _frames_up=(_frames_up, 0))
    _warn_of_optimize(optimize)
    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        return _script_module(obj)
    if isinstance(obj, type):
        if issubclass(obj, Module):
            raise RuntimeError(f"Type '{obj}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead")
        if not issubclass(obj, enum.Enum):
            type_of_class(obj)
        return obj
    if inspect.isfunction(obj) or inspect.ismethod(obj):
        if inspect.ismethod(obj) and isinstance(obj.__self__, Module):
            raise RuntimeError("a method of a module is compiled with its module: pass the module to torch.jit.script")
        plain = inspect.unwrap(obj)
        function = _declare(obj, f"__torch__.{plain.__name__}", None)
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
        raise NotImplementedError(f"torch.jit.script of a {type(obj).__name__} is not in Umbra yet")
    raise TypeError(f"module, class, method, function, traceback, frame, or code object was expected, got {type(obj).__name__}")


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


class CompilationUnit:
    """Functions compiled from a text."""

    def __init__(self, lang=None, _frames_up=0):
        self._found = {}
        not_built("torch.jit.CompilationUnit", _frames_up=(_frames_up, 0))
        if lang is not None:
            self.define(lang)

    def define(self, lang, rcb=None, _frames_up=0):
        not_built("torch.jit.CompilationUnit.define", rcb=(rcb, None), _frames_up=(_frames_up, 0))
        text = textwrap.dedent(lang)
        import ast
        known = {"torch": umbra, "math": math, **self._found}  # functions may call those that come after them
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                source = ast.get_source_segment(text, node)
                function = _C._jit_compile(source, "<string>", node.lineno, node.name, _Names(None, known), None, {})
                known[node.name] = self._found[node.name] = ScriptFunction(function)
        for found in self._found.values():
            _C._jit_define(found._function)

    def __getattr__(self, name):
        found = self.__dict__["_found"].get(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return found
