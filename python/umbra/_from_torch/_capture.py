"""The run of a torch module on Umbra's tensors."""
import contextlib

import umbra
from umbra import _C
from umbra._from_torch import _symbols
from umbra.nn.modules.module import Module


def real_torch():
    """PyTorch itself, not this package under its name."""
    import torch
    if torch is umbra or not hasattr(torch._C, "_dispatch_has_kernel_for_dispatch_key"):
        raise RuntimeError("from_torch needs PyTorch, but the name `torch` belongs to Umbra in this process (umbra.compat.install)")
    return torch


class Bridge:
    """Values of torch and of Umbra side by side, for one module."""

    def __init__(self, torch):
        self._torch = torch
        self._symbols = _symbols.classes(torch)
        self._shadow = _shadow_class(torch)
        self._operators = {}
        self._shared = {}  # torch's tensors that the program has, by id, and what shares their memory here
        self._kept = []    # such tensors: an id means nothing without them
        self._constants = {getattr(torch, name): getattr(umbra, name) for name in _PLAIN if hasattr(torch, name) and hasattr(umbra, name)}

    # ---- the module ----

    def facade(self, module, signature):
        """A module of Umbra with the same tensors by the same names, which runs the original."""
        root = _Facade(self, module, signature)
        for path, part in module.named_modules(remove_duplicate=False):
            here = root if not path else _child(root, path)
            for name, parameter in part._parameters.items():
                here.register_parameter(name, None if parameter is None else self._parameter(parameter))
            for name, buffer in part._buffers.items():
                here.register_buffer(name, None if buffer is None else self.share(buffer), persistent=name not in part._non_persistent_buffers_set)
        return root

    def _parameter(self, parameter):
        known = self._shared.get(id(parameter))
        return known if known is not None else self._keep(
            parameter, umbra.nn.Parameter(umbra.from_dlpack(parameter.detach()), requires_grad=parameter.requires_grad))

    def _keep(self, tensor, here):
        self._kept.append(tensor)
        self._shared[id(tensor)] = here
        return here

    def share(self, tensor):
        """The tensor of Umbra that has the same memory."""
        known = self._shared.get(id(tensor))
        return known if known is not None else self._keep(tensor, umbra.from_dlpack(tensor.detach()))

    def run(self, facade, module, args, kwargs):
        """What the original gives for tensors of Umbra. Below autograd composites are whole, and nobody counts versions. The grad mode is that of the
        program all the same: modules ask for it, and regions of another one are noted."""
        torch = self._torch
        paths = {id(part): path for path, part in module.named_modules()}
        versions = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
        with (self._keeping_attributes(facade, module), torch.inference_mode(), torch._C._ExcludeDispatchKeyGuard(versions), _exporting(torch),
              umbra.set_grad_enabled(umbra.is_grad_enabled()), torch.set_grad_enabled(umbra.is_grad_enabled()), _noting_modules(torch, paths),
              _mode_class()(self)):
            return self.plain(module(*self._outward(args), **self._outward(kwargs)))

    @contextlib.contextmanager
    def _keeping_attributes(self, facade, module):
        """Afterwards the original has the attributes that it had, and the facade the buffers that the run has put in the place of others."""
        before = [(path, part, dict(vars(part)), dict(part._buffers)) for path, part in module.named_modules()]
        try:
            yield
        finally:
            for path, part, attributes, buffers in before:
                for name, buffer in buffers.items():
                    now = part._buffers.get(name)
                    if now is not buffer and now is not None:
                        facade.get_submodule(path)._buffers[name] = self.plain(now)
                part.__dict__.clear()
                part.__dict__.update(attributes)
                part._buffers.clear()
                part._buffers.update(buffers)

    # ---- values ----

    def plain(self, tree):
        """A tree of torch's values as one of Umbra's: in lists, tuples and dicts; classes that PyTorch's pytrees know become these."""
        torch = self._torch
        if isinstance(tree, torch.Tensor):
            return tree.here if isinstance(tree, self._shadow) else self.share(tree)
        if type(tree) in (list, tuple):
            return type(tree)(map(self.plain, tree))
        if isinstance(tree, dict):
            return {key: self.plain(value) for key, value in tree.items()}
        if tree is None or isinstance(tree, (bool, int, float, str)):
            return tree
        if isinstance(tree, self._symbols.types):
            return tree.node.value
        nodes = torch.utils._pytree.SUPPORTED_NODES
        if type(tree) in nodes:
            return [self.plain(part) for part in nodes[type(tree)].flatten_fn(tree)[0]]
        raise TypeError(f"from_torch: a {type(tree)} among the inputs or results is no tensor and no container that torch.utils._pytree knows")

    def _outward(self, tree):
        if isinstance(tree, _C.Tensor):
            return self._wrap(tree)
        if type(tree) in (list, tuple):
            return type(tree)(map(self._outward, tree))
        if type(tree) is dict:
            return {key: self._outward(value) for key, value in tree.items()}
        return self._symbols.wrap(tree)

    def _wrap(self, here):
        torch, wrap = self._torch, self._symbols.wrap
        dtype = getattr(torch, str(here.dtype).removeprefix("torch."))
        made = torch.Tensor._make_wrapper_subclass(self._shadow, tuple(map(wrap, here.shape)), strides=tuple(map(wrap, here.stride())),
                                                   storage_offset=wrap(here.storage_offset()), dtype=dtype, device=str(here.device))
        made.here = here
        return made

    # ---- calls ----

    def call(self, operator, args, kwargs):
        function = self._operators.get(operator)
        if function is None:
            function = self._operators[operator] = self._find(operator)
        if self._torch.is_grad_enabled() != _C.is_grad_enabled():
            _C._set_grad_enabled(self._torch.is_grad_enabled())
        written = {}
        given = [self._inward(argument, written) for argument in args]
        named = {key: self._inward(argument, written) for key, argument in kwargs.items()}
        return self._results(function(*given, **named), written)

    def _find(self, operator):
        space, _, name = operator.name().partition("::")
        name, _, overload = name.partition(".")
        packet = getattr(getattr(umbra.ops, space, None), name, None)
        found = getattr(packet, overload or "default", None)
        if found is None:
            raise NotImplementedError(f"from_torch: the module calls {operator.name()}, which Umbra does not have")
        return found

    def _inward(self, value, written):
        kind = type(value)
        if kind is self._shadow:
            written[id(value.here)] = value
            return value.here
        if kind is int or kind is float or kind is bool or kind is str or value is None:
            return value
        if kind is list or kind is tuple:
            return [self._inward(item, written) for item in value]
        if isinstance(value, self._torch.Tensor):
            here = self.share(value)
            written[id(here)] = value
            return here
        if kind in self._symbols.types:
            return value.node.value
        if kind is self._torch.device:
            return umbra.device(str(value))
        if kind in (self._torch.dtype, self._torch.layout, self._torch.memory_format):
            return self._constants[value]
        return value

    def _results(self, result, written):
        if isinstance(result, _C.Tensor):
            same = written.get(id(result))
            return self._wrap(result) if same is None else self._unchanged(same, result)
        if isinstance(result, (list, tuple)):
            return (list if type(result) is list else tuple)(self._results(item, written) for item in result)
        return self._symbols.wrap(result)

    @staticmethod
    def _unchanged(tensor, here):
        """A tensor that was written in place. PyTorch has its sizes by heart."""
        if tuple(map(str, tensor.shape)) != tuple(map(str, here.shape)):
            raise NotImplementedError("from_torch: the module changes the shape of a tensor in place, which is not in Umbra yet")
        return tensor


_PLAIN = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex32",
          "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "strided", "sparse_coo", "sparse_csr", "contiguous_format", "channels_last",
          "channels_last_3d", "preserve_format")


class _Facade(Module):
    """What export sees of a torch module."""

    def __init__(self, bridge, module, signature):
        super().__init__()
        object.__setattr__(self, "_original", (bridge, module, signature))

    def _forward_signature(self):
        return self._original[2]

    def forward(self, *args, **kwargs):
        bridge, module, _ = self._original
        return bridge.run(self, module, args, kwargs)


def _child(root, path):
    for part in path.split("."):
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    return root


# ---- classes over the user's torch, made once ----

_made = {}


def _shadow_class(torch):
    if "shadow" not in _made:
        class Shadow(torch.Tensor):
            """A tensor of torch's without data; `here` is the one of Umbra that it stands for."""
            __torch_function__ = torch._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, func, *_):
                raise RuntimeError(f"from_torch: {func} is called outside of the capture that a tensor belongs to")

            def __repr__(self):
                return f"Shadow({self.here!r})"
        _made["shadow"] = Shadow
    return _made["shadow"]


def _mode_class():
    if "mode" not in _made:
        from torch.utils._python_dispatch import TorchDispatchMode

        class Handing(TorchDispatchMode):
            """Hands every call to Umbra."""

            def __init__(self, bridge):
                super().__init__()
                self._bridge = bridge

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return self._bridge.call(func, args, kwargs or {})
        _made["mode"] = Handing
    return _made["mode"]


@contextlib.contextmanager
def _exporting(torch):
    """Code that asks torch whether it is being exported is told so."""
    flags = [name for name in ("_is_compiling_flag", "_is_exporting_flag") if hasattr(torch.compiler, name)]
    before = [getattr(torch.compiler, name) for name in flags]
    for name in flags:
        setattr(torch.compiler, name, True)
    try:
        yield
    finally:
        for name, value in zip(flags, before):
            setattr(torch.compiler, name, value)


@contextlib.contextmanager
def _noting_modules(torch, paths):
    """The modules that run are noted in the graph by their paths."""
    hooks = torch.nn.modules.module

    def enter(module, _):
        if id(module) in paths:
            _C._enter_module(paths[id(module)], f"{type(module).__module__}.{type(module).__qualname__}")

    def leave(module, *_):
        if id(module) in paths:
            _C._leave_module()
    handles = [hooks.register_module_forward_pre_hook(enter), hooks.register_module_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
