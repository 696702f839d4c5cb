"""Module: parameters, buffers and submodules under names, and a forward function."""
import collections
import inspect
import warnings
from typing import TYPE_CHECKING, Any, Iterator, TypeVar

from umbra import _C
from umbra._C import Tensor
from umbra._modules import raise_missing_method
from umbra.nn.modules import _capture, _conversion, _hooks
from umbra.nn.modules._hooks import (  # noqa: F401  (torch's names for them are here)
    register_module_backward_hook, register_module_buffer_registration_hook, register_module_forward_hook, register_module_forward_pre_hook,
    register_module_full_backward_hook, register_module_full_backward_pre_hook, register_module_module_registration_hook,
    register_module_parameter_registration_hook)
from umbra.nn.modules._state import HasState, _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys  # noqa: F401
from umbra.nn.parameter import Buffer, Parameter  # noqa: F401  (torch has Buffer here)
from umbra.utils.hooks import add_hook

# The hooks of all modules under torch's names, for who looks whether there are any.
_global_forward_hooks, _global_forward_pre_hooks = _hooks.forward.hooks, _hooks.forward_pre.hooks
_global_backward_hooks, _global_backward_pre_hooks = _hooks.backward.hooks, _hooks.backward_pre.hooks
_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called = _hooks.forward.with_kwargs, _hooks.forward.always_called
_global_parameter_registration_hooks, _global_buffer_registration_hooks = _hooks.parameter_registration.hooks, _hooks.buffer_registration.hooks
_global_module_registration_hooks = _hooks.module_registration.hooks

T_destination = TypeVar("T_destination", bound=dict)
_HOOKS = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
          "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
          "_load_state_dict_post_hooks")


def _has_any_global_hook():
    return any(_hooks.AROUND_CALLS)


def _indent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * spaces + line for line in rest])


class Module(HasState):
    """Base of everything with weights. Tensors of class Parameter and modules that are set as attributes are registered."""
    dump_patches = False
    _version = 1
    T_destination = T_destination
    training: bool
    call_super_init = False
    _compiled_call_impl = None
    _stands_for_another = False  # a module that it calls, for which hooks of all modules are run

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            unexpected = f"unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else f"1 positional argument but {len(args) + 1} were given"
            verb = "got an" if kwargs else "takes"
            raise TypeError(f"{type(self).__name__}.__init__() {verb} {unexpected}")
        set_plain = super().__setattr__
        set_plain("training", True)
        set_plain("_parameters", {})
        set_plain("_buffers", {})
        set_plain("_non_persistent_buffers_set", set())
        set_plain("_modules", {})
        set_plain("_is_full_backward_hook", None)
        for name in _HOOKS:
            set_plain(name, collections.OrderedDict())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _forward_unimplemented(self, *input):
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward = _forward_unimplemented

    # ---- attributes ----

    def _forget(self, name, *kinds):
        for kind in kinds:
            if kind == "_non_persistent_buffers_set":
                self.__dict__[kind].discard(name)
            elif kind == "__dict__":
                self.__dict__.pop(name, None)
            else:
                _C._module_members(self, kind).pop(name, None)

    def __setattr__(self, name, value):
        parameters, modules, buffers = (_C._module_members(self, kind) for kind in ("_parameters", "_modules", "_buffers"))
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "__dict__", "_buffers", "_modules", "_non_persistent_buffers_set")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{_type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "__dict__", "_parameters", "_buffers", "_non_persistent_buffers_set")
            modules[name] = _hooks.registered(_hooks.module_registration, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{_type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)")
            modules[name] = value
        elif buffers is not None and isinstance(value, Tensor) and getattr(value, "_is_buffer", False):
            self._register_marked(name, value)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
                raise TypeError(f"cannot assign '{_type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)")
            buffers[name] = _hooks.registered(_hooks.buffer_registration, self, name, value)
        else:
            super().__setattr__(name, value)

    def _register_marked(self, name, buffer):
        """A torch.nn.Buffer, through the module's own register_buffer, which may be of the time before buffers could be left out of files."""
        if type(self).register_buffer is Module.register_buffer or "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, buffer, buffer.persistent)
        elif buffer.persistent:
            self.register_buffer(name, buffer)
        else:
            raise RuntimeError("Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent "
                               "argument is not allowed.")

    def __delattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in (members := _C._module_members(self, kind)):
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        names = set(dir(type(self))) | set(self.__dict__) | set(self._parameters) | set(self._modules) | set(self._buffers)
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self):
        """What a copy has: it is not compiled."""
        return {name: value for name, value in self.__dict__.items() if name != "_compiled_call_impl"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOKS:  # files of older versions have fewer kinds
            self.__dict__.setdefault(name, collections.OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _check_name(self, name, kind):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}' if kind == "module" else f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_parameter(self, name, param):
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter")
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{_type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                             f"express '{name}' as a function of another Tensor, compute the value in the forward() method.")
        self._parameters[name] = _hooks.registered(_hooks.parameter_registration, self, name, param)

    def register_buffer(self, name, tensor, persistent=True):
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = _hooks.registered(_hooks.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_name(name, "module")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        self._modules[name] = _hooks.registered(_hooks.module_registration, self, name, module)

    register_module = add_module

    def get_submodule(self, target):
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts a module at a path; with `strict` only where there is one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_tensor(self, target, kind, holder):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in getattr(module, holder):
            raise AttributeError(f"`{name}` is not {kind}")
        return getattr(module, name)

    def get_parameter(self, target):
        found = self._get_tensor(target, "an nn.Parameter", "_parameters")
        if found is None:  # a buffer may be none, a parameter may not
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target):
        return self._get_tensor(target, "a buffer", "_buffers")

    # ---- calls and hooks ----

    # __call__, _call_impl and __getattr__ are in C (python/bindings/nn_module.cpp).
    if TYPE_CHECKING:
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _C._look_up_members_in_c(cls)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """`hook(module, args)`, or with_kwargs `hook(module, args, kwargs)`, before forward; what it returns takes the place of the arguments."""
        return add_hook(self._forward_pre_hooks, hook, prepend, [self._forward_pre_hooks_with_kwargs] * with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """`hook(module, args, output)`, or with_kwargs `hook(module, args, kwargs, output)`; what it returns takes the place of the output."""
        marks = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return add_hook(self._forward_hooks, hook, prepend, marks)

    def _set_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them.")
        self._is_full_backward_hook = full

    def register_backward_hook(self, hook):
        """`hook(module, grad_input, grad_output)` at the module's last operator alone. `register_full_backward_hook` sees the module."""
        self._set_backward_kind(False)
        return add_hook(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False):
        """`hook(module, grad_input, grad_output)` when the gradients of the inputs are known; what it returns takes the place of grad_input."""
        self._set_backward_kind(True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """`hook(module, grad_output)` before the backward of the module; what it returns takes the place of grad_output."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def _get_backward_hooks(self):
        """The full hooks that a call runs, and those of the last operator."""
        return _hooks._backward_hooks(self)

    def _get_backward_pre_hooks(self):
        return [*_hooks.backward_pre.hooks.values(), *self._backward_pre_hooks.values()]

    # ---- walking ----

    def _named_members(self, get, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield path + ("." if path else "") + name, value

    def parameters(self, recurse=True) -> Iterator[Parameter]:
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Parameter]]:
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Tensor]]:
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator["Module"]:
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate=True) -> Iterator["Module"]:
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True) -> Iterator[tuple[str, "Module"]]:
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # ---- modes and conversions ----

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad = parameter.grad.detach().zero_()

    def apply(self, fn):
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replaces every tensor by what `fn` makes of it; parameters stay the same objects, where they can become what it makes."""
        import umbra
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                with umbra.no_grad():
                    changed = fn(parameter)
                if _conversion.is_exchanged(parameter, changed):
                    _conversion.exchange_parameter(f"{self._get_name()}.{name}", parameter, changed, fn)
                else:
                    self._parameters[name] = _conversion.convert_parameter(parameter, changed, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Moves and casts parameters and buffers in place: `to(device)`, `to(dtype)`, `to(tensor)`, with non_blocking and memory_format."""
        import umbra
        device, dtype, _, memory_format = umbra._C._nn._parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
        if dtype is not None and dtype.is_complex:
            warnings.warn("Complex modules are a new feature under active development whose design may change, and some modules might not work as "
                          "expected when using complex tensors as parameters or buffers.", stacklevel=2)

        def convert(tensor):
            target = dtype if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()) else tensor.dtype
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device or tensor.device, target, memory_format=memory_format)
            return tensor.to(device or tensor.device, target)
        return self._apply(convert)

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):
        import umbra
        return self._cast(umbra.float32)

    def double(self):
        import umbra
        return self._cast(umbra.float64)

    def half(self):
        import umbra
        return self._cast(umbra.float16)

    def bfloat16(self):
        import umbra
        return self._cast(umbra.bfloat16)

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def to_empty(self, *, device, recurse=True):
        """On the device, without contents: what comes off the meta device has none."""
        import umbra
        return self._apply(lambda t: umbra.empty_like(t, device=device), recurse)

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def _replicate_for_data_parallel(self):
        """A module that shares the submodules and buffers and has no parameters of its own."""
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_buffers": dict(self._buffers), "_modules": dict(self._modules), "_is_replica": True}
        return replica

    def _to_accelerator(self, kind, device):
        return self._apply(lambda t: t.to(kind if device is None else device))

    def cuda(self, device=None):
        return self._to_accelerator("cuda", device)

    def xpu(self, device=None):
        return self._to_accelerator("xpu", device)

    def ipu(self, device=None):
        return self._to_accelerator("ipu", device)

    def mtia(self, device=None):
        return self._to_accelerator("mtia", device)

    def share_memory(self):
        """Moves parameters and buffers to memory that other processes see: what one writes is there for all."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def compile(self, *args, **kwargs):
        """Makes its calls those of `torch.compile(self, ...)`."""
        from umbra._dynamo.compilation import compile_in_place
        compile_in_place(self, *args, **kwargs)

    # ---- text ----

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _indent(repr(module), 2) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        parts = lines + children
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(parts) + "\n" if parts else "") + ")"




def _missing_attribute(module, name):
    raise_missing_method(type(module), name)
    raise AttributeError(f"'{type(module).__name__}' object has no attribute '{name}'")


_C._set_module_class(Module, _hooks.AROUND_CALLS, _hooks.call_with_hooks, _capture.call, _missing_attribute, _capture.by_name)


def _type_name(value):
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ != "builtins" else cls.__name__
    return "torch" + name.removeprefix("umbra") if name.startswith("umbra.") else name
