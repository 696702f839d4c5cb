"""Compiling modules: their attributes, and the methods that their programs have."""
import enum
import inspect
import re
import types
import typing
import warnings

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.fx.graph_module import GraphModule
from umbra.jit import _annotations
from umbra.jit._annotations import marked_methods, modifier_of
from umbra.jit._compile import MISSING, Names, _classes, _modules, declare, describe, python_function, seen_from, simple_type, type_of_annotation, type_of_class, with_signature
from umbra.jit._hooks import declare_hooks
from umbra.jit._script_module import RecursiveScriptModule, ScriptMethod, attach, check_initialized, left_to_python, methods_for_python, wrap_object, wrapping
from umbra.jit._source import defaults_of, has_source, signature_of, source_of
from umbra.jit._trace import ScriptFunction
from umbra.nn.modules import container
from umbra.nn.modules.module import Module

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
        names = Names(type(module).forward if inspect.isfunction(getattr(type(module), "forward", None)) else None)
        try:
            return type_of_annotation(eval(hints[name], {**vars(typing), **getattr(names.function, "__globals__", {}), "Tensor": Tensor}))
        except Exception:  # noqa: BLE001 - an annotation that is no type of a program
            return None
    if isinstance(value, _annotations.Attribute):
        return type_of_annotation(value.type)
    if isinstance(value, (bool, int, float, str, complex, Tensor, umbra.device)) or value is None:
        return _C._jit_type_of(value)
    if isinstance(value, (umbra.dtype, umbra.layout, umbra.memory_format)):
        return simple_type("int")
    if isinstance(value, enum.Enum) or type(value) in _classes:
        return type_of_class(type(value))
    if _is_plain_object(value):
        try:
            return type_of_class(type(value))
        except (RuntimeError, OSError, NotImplementedError):
            return None
    if isinstance(value, tuple) or isinstance(value, (list, dict)) and value:
        try:
            return _C._jit_type_of(value)
        except RuntimeError:
            return _type_of_parts(value, module)
    return None


def _type_of_parts(value, module):
    """The type of a container with objects in it, whose classes are compiled; None where the parts have no type, or several."""
    def types_of(parts):
        kinds = [_attribute_type("", part, {}, module) for part in parts]
        return None if any(kind is None for kind in kinds) else kinds

    def common(parts):
        kinds = types_of(parts)
        return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else None

    if isinstance(value, tuple):
        kinds = types_of(value)
        return None if kinds is None else _C._jit_tuple_type(kinds)
    if isinstance(value, list):
        element = common(value)
        return element and _C._jit_list_type(element)
    key, element = common(value), common(value.values())
    return key and element and _C._jit_dict_type(key, element)


def _why_no_type(value):
    """Why programs cannot have a value of Python's."""
    if isinstance(value, Module):
        return "Cannot infer concrete type of torch.nn.Module"
    if isinstance(value, list):
        if not value:
            return "List trace inputs must have elements"
        reason = next((f"Could not infer type of list element: {_why_no_type(v)}" for v in value if not _has_type(v)), None)
        return reason or _error_of_type(value)
    if isinstance(value, dict):
        reason = next((_why_no_type(v) for pair in value.items() for v in pair if not _has_type(v)), None)
        return reason or ("Dictionary inputs must have entries" if not value else _error_of_type(value))
    if isinstance(value, tuple):
        return next((_why_no_type(v) for v in value if not _has_type(v)), "")
    return ("Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced functions, but instead got"
            f" value of type {type(value).__name__}.")


def _error_of_type(value):
    try:
        _C._jit_type_of(value)
    except RuntimeError as error:
        return str(error)
    return ""


def _has_type(value):
    try:
        return _C._jit_type_of(value) is not None
    except (RuntimeError, TypeError):
        return False


def _is_plain_object(value):
    """Whether a value is of a class that was written for programs: of the user's own, with nothing above it."""
    cls = type(value)
    return len(cls.__mro__) == 2 and not cls.__module__.startswith(("umbra", "builtins")) and not callable(value) and cls.__init__ is not object.__init__


def _build_module(module, objects):
    """The object of a program for a module, with its attributes and those of the modules inside; methods come after."""
    if id(module) in objects:
        return objects[id(module)][0]
    if "_c" in module.__dict__:
        return module._c
    check_initialized(module)
    attributes = _Attributes(module)
    attributes.add_tensors()
    attributes.add_plain()
    attributes.add_children(objects)
    made = attributes.cls.new()
    for name, value in attributes.values:
        made.setattr(name, value)
    objects[id(module)] = (made, module)
    _modules[attributes.cls] = module
    if marked_methods(type(module)):
        left_to_python[attributes.cls] = methods_for_python(module)
    return made


class _Attributes:
    """The class of a module's object, as its attributes are added, and the values that they have."""

    def __init__(self, module):
        self.module, self.hints, self.values = module, _own_attributes(module), []
        self.cls = _C._jit_Class.make(_C._jit_qualified_name(type(module)), True)
        if isinstance(module, (container.ModuleList, container.Sequential, container.ModuleDict, container.ParameterList, container.ParameterDict)):
            self.cls.set_container()

    def _add(self, name, kind, value, **is_what):
        self.cls.add_attribute(name, kind, **is_what)
        self.values.append((name, value))

    def add_tensors(self):
        for is_what, tensors in (("is_parameter", self.module._parameters), ("is_buffer", self.module._buffers)):
            for name, tensor in tensors.items():
                declared = _attribute_type(name, tensor, self.hints, self.module)
                if tensor is None and (declared is None or declared.kind() == "TensorType"):
                    declared = simple_type("NoneType")
                self._add(name, declared if tensor is None or declared.kind() == "OptionalType" else simple_type("Tensor"), tensor,
                          **({is_what: True} if tensor is not None else {}))

    def add_plain(self):
        from umbra.jit._library import constants_of, extra_attributes
        module, constants = self.module, constants_of(self.module)
        final = {n for n, h in self.hints.items() if h is typing.Final or typing.get_origin(h) is typing.Final}
        self._add("training", simple_type("bool"), module.training)
        self._add("_is_full_backward_hook", _C._jit_optional_type(simple_type("bool")), None)
        for name, value in {**module.__dict__, **extra_attributes(module)}.items():
            if name in _SKIPPED or name.startswith("_") and name in _HIDDEN or self.cls.attribute_type(name) is not None:
                continue
            if isinstance(value, ScriptFunction) or callable(value):
                continue
            if name in constants or name in final:
                self._add_constant(name, value)
                continue
            kind = _attribute_type(name, value, self.hints, module)
            if kind is not None:
                self._add(name, kind, value.value if isinstance(value, _annotations.Attribute) else value)
        for name in constants:
            if name not in module.__dict__ and hasattr(type(module), name):
                self._add_constant(name, getattr(module, name))

    def _add_constant(self, name, value):
        try:
            self.cls.add_constant(name, value)
        except RuntimeError:  # no program has such a constant
            pass

    def add_children(self, objects):
        for name, child in self.module._modules.items():
            if child is None:
                self._add(name, simple_type("NoneType"), None)
                continue
            inner = _build_module(child, objects)
            interface = _interface_of(self.module, self.hints.get(name))
            if interface is not None:
                _check_interface(name, interface, inner, child)
            self._add(name, interface if interface is not None else inner.class_().type, inner)


def _check_interface(name, interface, inner, child):
    _compile_methods({id(child): (inner, child)} if "_c" not in child.__dict__ else {})
    if not inner.class_().type.isSubtypeOf(interface):
        raise RuntimeError(f"Could not cast attribute '{name}' to type {interface}: Object of type {inner.qualified_name()} is not compatible with"
                           f" interface {interface}")


def _interface_of(module, hint):
    """The interface that an annotation of a module's attribute names, or None."""
    if isinstance(hint, str):
        forward = getattr(type(module), "forward", None)
        hint = getattr(forward, "__globals__", {}).get(hint)
    is_interface = isinstance(hint, type) and hint.__dict__.get("_torchscript_interface")
    return type_of_class(hint) if is_interface else None


_HIDDEN = {"_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks", "_hooks_with_kwargs", "_hooks_always_called",
           "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_is_full_backward_hook"}


# What a class may have in another way without its forward being another.
_BESIDE_FORWARD = {"__init__", "__module__", "__doc__", "__annotations__", "__dict__", "__weakref__", "__constants__", "__static_attributes__",
                   "__firstlineno__", "__repr__", "extra_repr", "reset_parameters", "_get_name"}


def _library_form(module):
    """What is read in the place of a forward that a layer of umbra.nn has, or a class that adds nothing that it calls."""
    from umbra.jit._library import FORWARDS
    added = set()
    for cls in type(module).__mro__:
        if cls in FORWARDS:
            return None if any(hasattr(cls, name) for name in added) else FORWARDS[cls]
        if "forward" in vars(cls):
            return None
        added |= set(vars(cls)) - _BESIDE_FORWARD
    return None


def _declare_method(module, cls, name):
    """Gives a class the method of its module, to be compiled when it is needed."""
    function = getattr(type(module), name, None)
    own = module.__dict__.get(name)
    if own is not None and isinstance(own, types.MethodType):
        function = own.__func__
    elif name == "forward" and isinstance(module, GraphModule):
        function = module._forward_function()
    if not isinstance(function, types.FunctionType):
        return False
    form = _library_form(module) if name == "forward" else None
    if isinstance(form, tuple):
        names = [f"{name}__{i}" for i in range(len(form))]
        for own, part in zip(names, form):
            cls.add_method(own, declare(part, f"{cls.name}.{own}", cls.type))
        cls.add_overloads(name, names)
        return True
    function = form or function
    full = f"{cls.name}.{name}"
    overloads = _annotations.overloads_of(function)
    if overloads:
        names = [f"{name}__{i}" for i in range(len(overloads))]
        for own, signature in zip(names, overloads):
            cls.add_method(own, with_signature(function, signature, f"{cls.name}.{own}", cls.type, {"__class__": type(module)}))
        cls.add_overloads(name, names)
        return True
    if modifier_of(function) in ("ignore", "unused"):
        source, *place = source_of(inspect.unwrap(function))
        declared = _C._jit_compile(signature_of(source), *place, full, Names(inspect.unwrap(function)), cls.type, defaults_of(function), True)
        cls.add_method(name, python_function(function, declared, full, modifier_of(function)))
        return True
    extra = {"__class__": type(module)}
    declared = declare(function, full, cls.type, extra)
    if name == "__setstate__" and len(declared.parameters()) == 2 and not function.__annotations__:
        # What __getstate__ gives is what it takes.
        if cls.method("__getstate__") is None:
            _declare_method(module, cls, "__getstate__")
        declared.set_parameter_type(1, cls.method("__getstate__").result())
    cls.add_method(name, declared)
    return True


def member_of_module(module, cls, name):
    if isinstance(getattr(type(module), name, None), property):
        getter = f"__{name}_getter"
        function = getattr(type(module), name).fget
        if modifier_of(function) in ("ignore", "unused"):
            return "error", f"the property '{name}' of {type(module).__name__} is marked as unused"
        if cls.method(getter) is None:
            cls.add_method(getter, declare(function, f"{cls.name}.{getter}", cls.type))
        return "method", getter
    if name in module.__dict__ and not isinstance(module.__dict__[name], types.MethodType):
        value = module.__dict__[name]
        described = describe(value, getattr(value, "__name__", name)) if callable(value) else None
        if described is not None and described[0] in ("function", "builtin", "overloads", "type"):
            return described
        return "error", (f"Module '{type(module).__name__}' has no attribute '{name}' (This attribute exists on the Python module, but we failed to convert "
                         f"Python type: '{type(value).__name__}' to a TorchScript type. {_why_no_type(value)}. Its type was inferred; try adding a type "
                         "annotation for the attribute.)")
    if isinstance(inspect.getattr_static(type(module), name, None), staticmethod):
        return describe(getattr(type(module), name), name)
    if _declare_method(module, cls, name):
        return "method", name
    value = getattr(type(module), name, MISSING)
    if isinstance(value, (bool, int, float, str)) and type(module).__module__.startswith("umbra.nn."):
        return "constant", value  # of a class of the user's it would have to be in __constants__
    return None


def _compile_methods(objects):
    declared = {}
    for key, (made, module) in objects.items():
        cls = made.class_()
        forward = getattr(type(module), "forward", None)
        names = []
        if isinstance(forward, types.FunctionType) and forward is not Module.forward and modifier_of(forward) in ("default", "export"):
            names.append("forward")
        names += [n for n, f in marked_methods(type(module)).items() if modifier_of(f) == "export" and n not in names]
        declared[key] = [cls.method(name) for name in names if cls.method(name) is None and not cls.has_overloads(name) and
                         _declare_method(module, cls, name) and not cls.has_overloads(name)]
    for key, (made, module) in objects.items():  # a module's modules come before it
        for function in declared[key]:
            _C._jit_define(function)
        for function in declare_hooks(module, made.class_()):
            _C._jit_define(function)


_EMPTY = re.compile(r"(?:^|;)\s*self\.(\w+)\s*:\s*(?:(?:List|list)\[.*\]\s*=\s*\[\s*\]|(?:Dict|dict)\[.*\]\s*=\s*\{\s*\}|Optional\[.*\]\s*=\s*None)\s*(?=[;#]|$)",
                    re.MULTILINE)


def _warn_of_annotations(cls):
    """Annotations in __init__ are not seen by programs: what is empty there has no type of its own."""
    if not isinstance(cls.__init__, types.FunctionType) or not has_source(cls.__init__) or cls.__module__.startswith("umbra."):
        return
    try:
        source = source_of(cls.__init__)[0]
    except OSError:
        return
    for name in _EMPTY.findall(source):
        if name not in cls.__dict__.get("__annotations__", {}):
            warnings.warn("The TorchScript type system doesn't support instance-level annotations on empty non-base types in `__init__`. Instead,"
                          " either 1) use a type annotation in the class body, or 2) wrap the type in `torch.jit.Attribute`.", stacklevel=4)


def script_module(module):
    objects = {}
    made = _build_module(module, objects)
    for cls in {type(m) for _, m in objects.values()}:
        _warn_of_annotations(cls)
    _compile_methods(objects)
    originals = {o.identity(): m for o, m in objects.values() if marked_methods(type(m)) or o.class_().is_container()}
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


def define_methods(made, text, frame):
    """Gives the class of an object the methods of a text, whose other names are those that the frame knows."""
    from umbra.jit._script import TEXT_NAMES, functions_of_text
    cls = made.class_()
    with seen_from(frame):
        declared = functions_of_text(text, lambda name: f"{cls.name}.{name}", cls.type, TEXT_NAMES)
        for name, function in declared.items():
            cls.add_method(name, function)
        for function in declared.values():
            _C._jit_define(function)


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
    _compile_methods({k: v for k, v in objects.items() if v[1] is not module})
    for name in names:
        _C._jit_define(cls.method(name))
    for text, frame in module.__dict__.pop("_defined", ()):
        define_methods(made, text, frame)
    children = {child._c.identity(): child for child in module._modules.values() if child is not None and "_c" in child.__dict__}
    for name in list(module.__dict__):
        if made.hasattr(name):
            module.__dict__.pop(name)
    with wrapping(children):
        attach(module, made)
    module.__dict__.update({name: ScriptMethod(made, name) for name in names})  # before what the class has
