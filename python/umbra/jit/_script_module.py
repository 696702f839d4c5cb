"""Modules whose methods are programs: what tracing, scripting and loading give."""
import collections.abc
import sys
import weakref

from umbra import _C
from umbra._functions import typename
from umbra.jit._annotations import marked_methods, modifier_of
from umbra.nn.modules._hooks import call_with_hooks
from umbra.nn.modules.module import Module
from umbra.nn.parameter import Parameter, is_lazy
from umbra.utils._contextlib import uninterrupted

left_to_python = {}  # classes of programs to the methods that programs leave to Python
_faces = weakref.WeakValueDictionary()  # by identity, the modules of Python's that stand for objects of programs whose classes mark methods
_wrapped = {}  # while a module is put together: the Python object of each object of the program


class _Slots(collections.abc.MutableMapping):
    """The tensors of one kind that an object of a program holds, as a module's dict of them."""

    def __init__(self, c, is_kind):
        self._c, self._is_kind = c, is_kind
        self._kept = {}  # so that a tensor is the same object whenever it is asked for

    def _names(self):
        return [n for n in self._c.class_().attribute_names() if self._is_kind(self._c.class_(), n)]

    def __getitem__(self, name):
        if not isinstance(name, str) or not self._c.hasattr(name) or not self._is_kind(self._c.class_(), name):
            raise KeyError(name)
        value = self._kept[name] = self._c.getattr(name)
        return value

    def __setitem__(self, name, value):
        if not self._c.hasattr(name):
            raise RuntimeError(f"Can't add a new parameter after ScriptModule construction. Tried to add '{name}")
        self._c.setattr(name, value)

    def __delitem__(self, name):
        raise RuntimeError("cannot delete methods or parameters of a script module")

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def __contains__(self, name):
        return name in self._names()

    def copy(self):
        return dict(self)


class _Children(collections.abc.MutableMapping):
    """The modules that a module of a program holds, as a module's dict of them; each is made when it is first asked for."""

    def __init__(self, c, kind, originals):
        self._c, self._kind, self._originals = c, kind, originals
        self._names = c.class_().module_names()
        self._made = {}

    def __getitem__(self, name):
        found = self._made.get(name)
        if found is None:
            if name not in self._names:
                raise KeyError(name)
            child = self._c.object(name)
            found = _wrapped.get(child.identity())
            if found is None:
                found = wrap_object(child, self._kind, self._kind, self._originals)
            self._made[name] = found
        return found

    def __setitem__(self, name, value):
        if name not in self._names or not isinstance(value, ScriptModule) or "_c" not in value.__dict__:
            raise RuntimeError(f"Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module '{name}': {value}")
        _set_attribute(self._c, name, value._c)
        self._made[name] = value

    def __delitem__(self, name):
        raise RuntimeError("cannot delete methods or parameters of a script module")

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __contains__(self, name):
        return name in self._names

    def copy(self):
        return dict(self)


def _set_attribute(c, name, value):
    try:
        c.setattr(name, value)
    except RuntimeError as error:
        raise RuntimeError(f"Could not cast attribute '{name}' to type {c.class_().attribute_type(name)}: {error}") from None


class Compiled:
    """What compiled functions and methods show of their program, which is in `_function`."""

    @property
    def graph(self):
        return self._function.graph

    @property
    def inlined_graph(self):
        return self._function.inlined_graph()

    @property
    def schema(self):
        return self._function.schema

    @property
    def code(self):
        return self._function.code

    @property
    def code_with_constants(self):
        """The text of the program, and the tensors that it names in `CONSTANTS`."""
        return self._function.code_with_constants()

    def graph_for(self, *args, **kwargs):
        self(*args, **kwargs)
        return self.inlined_graph


class ScriptMethod(Compiled):
    """A method of a compiled module, bound to it."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name
        self._function = owner._get_method(name)

    def __call__(self, *args, **kwargs):
        return _call(self.owner, self.name, args, kwargs)


class ScriptModule(Module):
    """Base of compiled modules. A class of the user's derives from it and marks methods with `script_method`."""

    def __init__(self):
        super().__init__()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("_compiled_class"):
            return
        own = cls.__init__

        def init_then_compile(self, *args, **kwargs):
            own(self, *args, **kwargs)
            if type(self) is cls and "_c" not in self.__dict__:
                from umbra.jit._compile_modules import compile_script_module
                compile_script_module(self)

        init_then_compile.__wrapped__ = own
        cls.__init__ = init_then_compile

    _compiled_class = True

    def __getattr__(self, name):
        c = self.__dict__.get("_c")
        if c is None:
            return super().__getattr__(name)
        modules = self.__dict__.get("_modules", {})
        if name in modules:
            return modules[name]
        if c.hasattr(name):
            return c.getattr(name)
        if c._has_method(name):
            method = ScriptMethod(c, name)
            return method
        if name in self.__dict__.get("_python_only", {}):
            return self.__dict__["_python_only"][name]
        if c.class_().has_constant(name):
            return c.class_().constant(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        c = self.__dict__.get("_c")
        if c is None:
            return super().__setattr__(name, value)
        if c.class_().has_constant(name):
            raise RuntimeError(f"Can't set constant '{name}' which has value:{c.class_().constant(name)}")
        modules = self.__dict__.get("_modules", {})
        if name in modules or isinstance(value, Module):
            modules[name] = value
        elif c.hasattr(name):
            _set_attribute(c, name, value)
        elif isinstance(value, Parameter):
            self._parameters[name] = value
        else:
            object.__setattr__(self, name, value)

    def __dir__(self):
        c = self.__dict__.get("_c")
        own = list(super().__dir__())
        return own if c is None else sorted({*own, *c._method_names(), *c.class_().attribute_names()})

    def __call__(self, *args, **kwargs):
        c = self.__dict__.get("_c")
        if c is None:
            return super().__call__(*args, **kwargs)
        if self._forward_hooks or self._forward_pre_hooks:
            return call_with_hooks(self, args, kwargs)
        return call_compiled(c, args, kwargs)

    def forward(self, *args, **kwargs):
        c = self.__dict__.get("_c")
        if c is None:
            raise NotImplementedError(f"Module [{type(self).__name__}] is missing the required \"forward\" function")
        return _call(c, "forward", args, kwargs)

    # What a program has to show.
    @property
    def graph(self):
        return self._c._get_method("forward").graph

    @property
    def inlined_graph(self):
        return self._c._get_method("forward").inlined_graph()

    @property
    def code(self):
        return self._c._get_method("forward").code

    @property
    def code_with_constants(self):
        """The text of `forward`, and the tensors that it names in `CONSTANTS`."""
        text, constants = self._c._get_method("forward").code_with_constants()
        return text, ConstMap(constants)

    def define(self, src):
        """Adds the methods of a text; names in it are those that the caller knows."""
        from umbra.jit._compile_modules import define_methods
        if "_c" not in self.__dict__:  # made when the module is
            self.__dict__.setdefault("_defined", []).append((src, sys._getframe(1)))
        else:
            define_methods(self._c, src, sys._getframe(1))

    @property
    def original_name(self):
        c = self.__dict__.get("_c")
        return type(self).__name__ if c is None else c.qualified_name().rpartition(".")[2]

    def graph_for(self, *args, **kwargs):
        self(*args, **kwargs)
        return self.inlined_graph

    def save(self, f, **kwargs):
        from umbra.jit._serialization import save
        save(self, f, **kwargs)

    def save_to_buffer(self, **kwargs):
        """The archive that `save` would write, as bytes."""
        import io
        buffer = io.BytesIO()
        self.save(buffer, **kwargs)
        return buffer.getvalue()

    def _save_for_lite_interpreter(self, *args, **kwargs):
        raise NotImplementedError("bytecode for mobile is not written by Umbra; torch.jit.save writes the program's source")

    _save_to_buffer_for_lite_interpreter = _save_for_lite_interpreter

    def extra_repr(self):
        return f"original_name={self.original_name}"

    def __copy__(self):
        return wrap_object(self._c.deepcopy(False), type(self))

    def __deepcopy__(self, memo):
        if "_c" not in self.__dict__:
            raise RuntimeError("a ScriptModule that is not compiled yet cannot be copied")
        return wrap_object(self._c.deepcopy(True))

    def __reduce_ex__(self, protocol):
        raise RuntimeError("ScriptModules cannot be pickled; use torch.jit.save and torch.jit.load")


def _call(c, name, args, kwargs):
    """Calls a method of a program; one that is given Proxies is recorded."""
    try:
        return c.call(name, *args, **kwargs)
    except RuntimeError:
        recorded = _recorded(c, name, args, kwargs)
        if recorded is None:
            raise
        return recorded


def _recorded(c, name, args, kwargs):
    """The Proxy of such a call, which a symbolic trace takes whole; None where no argument is a Proxy."""
    from umbra.fx.proxy import Proxy
    tracer = next((a.tracer for a in (*args, *kwargs.values()) if isinstance(a, Proxy)), None)
    if tracer is None:
        return None
    owner = next((module for module in tracer.root.modules() if module.__dict__.get("_c") is c), None)
    return None if owner is None else tracer.create_proxy("call_method", name, (owner, *args), kwargs)


def call_compiled(c, args, kwargs):
    """Calls a module of a program: its compiled hooks run around `forward`."""
    before, after = c.class_().hooks()
    if (before or after) and (recorded := _recorded(c, "__call__", args, kwargs)) is not None:
        return recorded
    for hook in before:
        changed = c.call(hook, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    result = _call(c, "forward", args, kwargs)
    for hook in after:
        changed = c.call(hook, args, result)
        result = result if changed is None else changed
    return result


class CompiledModule(ScriptModule):
    """The face of an object of a program."""
    _compiled_class = True

    def __init__(self, c):
        attach(self, c)

    @property
    def forward(self):
        if not self._c._has_method("forward"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute 'forward'")
        return ScriptMethod(self._c, "forward")


class RecursiveScriptModule(CompiledModule):
    """What scripting and loading give."""
    _compiled_class = True

    def _of_container(self, name, *args):
        """What a method that Python calls by itself gives: one of the program's, or that of the container that was compiled."""
        if self._c._has_method(name):
            return self._c.call(name, *args)
        container = self.__dict__.get("_container")
        if container is None or not hasattr(container, name):
            raise NotImplementedError
        return getattr(container, name)(*args)

    def __len__(self):
        return self._of_container("__len__")

    def __iter__(self):
        return self._of_container("__iter__")

    def __getitem__(self, key):
        return self._of_container("__getitem__", key)

    def __contains__(self, key):
        return self._of_container("__contains__", key)

    def __bool__(self):
        return True


def _refusing(name):
    def method(self, *args, **kwargs):
        raise RuntimeError(f"{name} is not supported on ScriptModules")

    method.__name__ = name
    return method


for _name in ("_register_load_state_dict_pre_hook", "_register_state_dict_hook", "bfloat16", "get_buffer", "get_parameter", "get_submodule",
              "register_backward_hook", "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
              "register_full_backward_pre_hook", "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook",
              "register_state_dict_post_hook", "register_state_dict_pre_hook", "requires_grad_", "set_submodule", "to_empty"):
    setattr(RecursiveScriptModule, _name, _refusing(_name))


class ConstMap:
    """The tensors that the text of a program names, as attributes."""

    def __init__(self, const_mapping):
        self.const_mapping = const_mapping

    def __getattr__(self, name):
        return self.const_mapping[name]


def attach(module, c, child_kind=None, originals=None):
    """Makes a Python module the face of an object of a program; `originals` are the modules that some objects were made of, by identity."""
    attributes = module.__dict__
    if "_forward_hooks" not in attributes:
        Module.__init__(module)
    attributes["_c"] = c
    attributes.pop("training", None)
    attributes["_parameters"] = _Slots(c, lambda k, n: k.is_parameter(n))
    attributes["_buffers"] = _Slots(c, lambda k, n: k.is_buffer(n))
    children = attributes["_modules"] = _Children(c, child_kind or RecursiveScriptModule, originals)
    if _wrapped:
        list(children.values())  # those that are known are known now only
    original = originals.get(c.identity()) if originals else None
    left = left_to_python.get(c.class_())
    if original is not None and left is None:
        left = methods_for_python(original)
    if left:
        attributes["_python_only"] = {name: function.__get__(module) for name, function in left.items()}
        _faces[c.identity()] = module
    if original is not None and c.class_().is_container():
        attributes["_container"] = original


def methods_for_python(module):
    """Methods that are marked as ignored or unused stay callable from Python, as functions of the compiled module."""
    found = {name: getattr(module, name) for name, function in marked_methods(type(module)).items()
             if modifier_of(function) in ("ignore", "unused") and not isinstance(getattr(type(module), name, None), property)}
    return {name: getattr(method, "__func__", staticmethod(method)) for name, method in found.items()}


def wrap_object(c, kind=RecursiveScriptModule, child_kind=None, originals=None):
    """The Python object of an object of a program: a module, or an instance of a class."""
    if not c.class_().is_module():
        return ScriptObject(c)
    module = kind.__new__(kind)
    attach(module, c, child_kind, originals)
    return module


class ScriptObject:
    """An instance of a compiled class, as it comes out of a program."""

    def __init__(self, c):
        self.__dict__["_c"] = c

    def __getattr__(self, name):
        c = self.__dict__["_c"]
        if c.hasattr(name):
            return c.getattr(name)
        if c._has_method(name):
            return ScriptMethod(c, name)
        if c._has_method(f"__{name}_getter"):
            return c.call(f"__{name}_getter")
        raise AttributeError(f"'{c.qualified_name()}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        if self._c._has_method(f"__{name}_setter"):
            return self._c.call(f"__{name}_setter", value)
        self._c.setattr(name, value)


def _magic(name):
    """A method that Python calls by itself, as the compiled class has it."""
    def method(self, *args):
        if not self._c._has_method(name):
            raise TypeError(f"'{self._c.qualified_name()}' has no method {name}")
        return self._c.call(name, *args)

    return method


for _name in ("len", "contains", "getitem", "setitem", "delitem", "add", "sub", "mul", "truediv", "mod", "neg", "lt", "le", "gt", "ge", "int", "float", "call"):
    setattr(ScriptObject, f"__{_name}__", _magic(f"__{_name}__"))
RecursiveScriptClass = ScriptObject
_C._jit_set_wrapper(lambda c: _faces.get(c.identity()) or wrap_object(c))  # what ignored methods keep on a module stays there


@uninterrupted
def wrapping(objects):
    """Uses these Python objects for objects of a program inside."""
    _wrapped.update(objects)
    try:
        yield
    finally:
        for key in objects:
            _wrapped.pop(key, None)


def check_initialized(module):
    """Refuses a module whose own tensors have no sizes yet."""
    for kind, values in (("parameters", module._parameters), ("buffers", module._buffers)):
        name = next((name for name, value in values.items() if value is not None and is_lazy(value)), None)
        if name is not None:
            raise RuntimeError(f"'{typename(type(module))}' has uninitialized {kind} {name}. Did you forget to run a forward pass?")
