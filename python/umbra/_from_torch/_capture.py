"""The run of a torch module on Umbra's tensors."""
import inspect

import umbra
from umbra import _C
from umbra._from_torch import _symbols
from umbra.utils._contextlib import uninterrupted


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
        self._make = torch.Tensor._make_wrapper_subclass
        self._operators, self._questions, self._met = {}, {}, []  # what torch's operators are here, by id, and these operators
        self._grad_modes = torch.is_grad_enabled, _C.is_grad_enabled
        self._shared = {}  # torch's tensors that the program has, by id, and what shares their memory here
        self._kept = []    # such tensors: an id means nothing without them
        self._constants = {getattr(torch, name): getattr(umbra, name) for name in _PLAIN if hasattr(torch, name) and hasattr(umbra, name)}
        self._dtypes = {here: there for there, here in self._constants.items() if type(there) is torch.dtype}
        self._devices = {}

    # ---- sharing ----

    def parameter(self, parameter):
        known = self._shared.get(id(parameter))
        return known if known is not None else self._keep(parameter, umbra.nn.Parameter(self._alias(parameter), requires_grad=parameter.requires_grad))

    def _keep(self, tensor, here):
        self._kept.append(tensor)
        self._shared[id(tensor)] = here
        return here

    def _alias(self, tensor):
        strided = tensor.layout is self._torch.strided and tensor.device.type == "cpu" and not tensor.is_conj() and not tensor.is_neg()
        return umbra.from_dlpack(self._torch._C._to_dlpack(tensor) if strided else tensor.detach())

    def share(self, tensor):
        """The tensor of Umbra that has the same memory."""
        known = self._shared.get(id(tensor))
        return known if known is not None else self._keep(tensor, self._alias(tensor))

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

    def outward(self, tree, known):
        """A tree of Umbra's values as one of torch's. `known`: tensors that were met, since one that is given twice is one."""
        if isinstance(tree, _C.Tensor):
            return known[tree] if tree in known else known.setdefault(tree, self._wrap(tree))
        if type(tree) in (list, tuple):
            return type(tree)(self.outward(part, known) for part in tree)
        if type(tree) is dict:
            return {key: self.outward(value, known) for key, value in tree.items()}
        return self._symbols.wrap(tree)

    def _wrap(self, here):
        """A tensor for torch. Its sizes are asked for when somebody wants to know them, so those given here are nobody's."""
        device = self._devices.get(here.device)
        if device is None:
            device = self._devices[here.device] = self._torch.device(str(here.device))
        made = self._make(self._shadow, (), dtype=self._dtypes[here.dtype], device=device, dispatch_sizes_strides_policy="sizes")
        made.here = here
        return made

    # ---- calls ----

    def call(self, operator, args, kwargs):
        function = self._operators.get(id(operator))
        if function is None:
            asked = self._questions.get(id(operator))
            if asked is None:
                self._meet(operator)
                return self.call(operator, args, kwargs)
            return asked(self._symbols.wrap, args[0].here, *map(self._inward, args[1:]))
        there, here = self._grad_modes
        if there() is not here():
            _C._set_grad_enabled(there())
        shadow, inward = self._shadow, self._inward
        given = [a.here if type(a) is shadow else inward(a) for a in args]
        result = function(*given, **{key: inward(a) for key, a in kwargs.items()}) if kwargs else function(*given)
        if isinstance(result, _C.Tensor):
            for value, tensor in zip(given, args):
                if value is result:
                    return tensor
            if not kwargs:
                return self._wrap(result)
        return self._results(result, kwargs)

    def _meet(self, operator):
        """Notes what an operator of torch's is here: a question about a tensor, or an operator."""
        self._met.append(operator)
        asked = _QUESTIONS.get(operator.name())
        if asked is None:
            self._operators[id(operator)] = self._find(operator)
        else:
            self._questions[id(operator)] = asked

    def _find(self, operator):
        space, _, name = operator.name().partition("::")
        name, _, overload = name.partition(".")
        packet = getattr(getattr(umbra.ops, space, None), name, None)
        found = getattr(packet, overload or "default", None)
        if found is None:
            raise NotImplementedError(f"from_torch: the module calls {operator.name()}, which Umbra does not have")
        return found

    def _inward(self, value):
        kind = type(value)
        if kind is int or kind is float or kind is bool or kind is str or value is None:
            return value
        if kind is self._shadow:
            return value.here
        if kind is list or kind is tuple:
            return list(map(self._inward, value))
        if isinstance(value, self._torch.Tensor):
            return self.share(value)
        if kind in self._symbols.types:
            return value.node.value
        if kind is self._torch.device:
            return umbra.device(str(value))
        if kind in (self._torch.dtype, self._torch.layout, self._torch.memory_format):
            return self._constants[value]
        return value

    def _results(self, result, kwargs):
        """Results for torch; a tensor that was given to be written (`out`) is itself."""
        if isinstance(result, _C.Tensor):
            for value in kwargs.values():
                if isinstance(value, self._torch.Tensor) and self._inward(value) is result:
                    return value
            return self._wrap(result)
        if isinstance(result, (list, tuple)):
            return (list if type(result) is list else tuple)(self._results(item, kwargs) for item in result)
        return self._symbols.wrap(result)


# What torch asks of a tensor when it wants to know its sizes.
_QUESTIONS = {
    "aten::sym_size": lambda wrap, here: tuple(map(wrap, here.shape)),
    "aten::size": lambda wrap, here: tuple(map(int, here.shape)),
    "aten::sym_stride": lambda wrap, here: tuple(map(wrap, here.stride())),
    "aten::stride": lambda wrap, here: tuple(map(int, here.stride())),
    "aten::sym_numel": lambda wrap, here: wrap(here.numel()),
    "aten::sym_storage_offset": lambda wrap, here: wrap(here.storage_offset()),
    "aten::dim": lambda wrap, here: here.dim(),
    "aten::is_contiguous": lambda wrap, here: here.is_contiguous(),
    "aten::is_contiguous.memory_format": lambda wrap, here, memory_format: here.is_contiguous(memory_format=memory_format),
    "aten::sym_is_contiguous": lambda wrap, here, memory_format=umbra.contiguous_format: here.is_contiguous(memory_format=memory_format),
    "aten::is_strides_like_format": lambda wrap, here, memory_format: here.is_contiguous(memory_format=memory_format),
    "aten::is_non_overlapping_and_dense": lambda wrap, here: here.is_contiguous(),
}


_PLAIN = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex32",
          "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "strided", "sparse_coo", "sparse_csr", "contiguous_format", "channels_last",
          "channels_last_3d", "preserve_format")


def _named_modules(path, module, found):
    """A module's parts by their paths, with those that stand in several places. (`named_modules` hands each on through all of its owners.)"""
    found.append((path, module))
    for name, part in module._modules.items():
        if part is not None:
            _named_modules(f"{path}.{name}" if path else name, part, found)
    return found


class TorchSource:
    """What export asks of a torch module (`umbra.export._trace._ModuleSource` says what that is)."""

    def __init__(self, bridge, module):
        self._bridge, self._module, self._signature = bridge, module, inspect.signature(module.forward)
        self._modules = _named_modules("", module, [])
        self._before = []

    def __call__(self, *args, **kwargs):
        """What the module gives for tensors of Umbra. Below autograd composites are whole, and nobody counts versions. The grad mode is that of the
        program all the same: modules ask for it, and regions of another one are noted."""
        torch, bridge = self._bridge._torch, self._bridge
        versions = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
        with (torch.inference_mode(), torch._C._ExcludeDispatchKeyGuard(versions), _exporting(torch), umbra.set_grad_enabled(umbra.is_grad_enabled()),
              torch.set_grad_enabled(umbra.is_grad_enabled()), _noting_modules(torch, self._modules), _mode_class()(bridge)):
            known = {}
            return bridge.plain(self._module(*bridge.outward(args, known), **bridge.outward(kwargs, known)))

    def _forward_signature(self):
        return self._signature

    def parameters(self):
        return [(f"{path}.{name}" if path else name, self._bridge.parameter(parameter)) for path, part in self._modules
                for name, parameter in part._parameters.items() if parameter is not None]

    def buffers(self):
        return [(f"{path}.{name}" if path else name, self._bridge.share(buffer), name not in part._non_persistent_buffers_set)
                for path, part in self._modules for name, buffer in part._buffers.items() if buffer is not None]

    def plain_tensors(self):
        return []

    def trained_parts(self):
        return set()

    def module_paths(self):
        return [path for path, _ in self._modules]

    def assigned_buffers(self):
        return [(self._bridge.share(buffer), self._bridge.plain(part._buffers[name])) for part, _, buffers in self._before
                for name, buffer in buffers.items() if buffer is not None and not any(part._buffers.get(name) is known for known in (None, buffer))]

    def kept_calls(self):
        return []

    def kept_specs(self):
        return {}

    @uninterrupted
    def running(self):
        """Afterwards the module has the attributes that it had."""
        self._before = [(part, dict(vars(part)), dict(part._buffers)) for part in dict.fromkeys(part for _, part in self._modules)]
        try:
            yield
        finally:
            for part, attributes, buffers in self._before:
                part.__dict__.clear()
                part.__dict__.update(attributes)
                part._buffers.clear()
                part._buffers.update(buffers)


# ---- classes over the user's torch, made once ----

_made = {}


def _shadow_class(torch):
    if "shadow" not in _made:
        wrap, size = _symbols.classes(torch).wrap, torch.Size

        class Shadow(torch.Tensor):
            """A tensor of torch's without data; `here` is the one of Umbra that it stands for."""
            __torch_function__ = torch._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, func, _, args=(), *__):
                asked = _QUESTIONS.get(func.name())
                if asked is None:
                    raise RuntimeError(f"from_torch: {func} is called outside of the capture that a tensor belongs to")
                return asked(wrap, args[0].here, *args[1:])

            # The shortest way for what models ask most.
            shape = property(lambda self: size(map(wrap, self.here.shape)))
            ndim = property(lambda self: self.here.dim())

            def dim(self):
                return self.here.dim()

            def size(self, dim=None):
                return self.shape if dim is None else wrap(self.here.shape[dim])

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

        def hand(self, func, _, args=(), kwargs=None):
            return self._bridge.call(func, args, kwargs)
        Handing.__torch_dispatch__ = hand  # set afterwards: torch puts a function around what a class is made with
        _made["mode"] = Handing
    return _made["mode"]


@uninterrupted
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


@uninterrupted
def _noting_modules(torch, modules):
    """The modules that run are noted in the graph by their paths."""
    paths = {}
    for path, part in modules:
        paths.setdefault(id(part), (path, f"{type(part).__module__}.{type(part).__qualname__}"))
    module_class, enter, leave = torch.nn.Module, _C._enter_module, _C._leave_module
    plain_call = module_class.__call__

    def call(self, *args, **kwargs):
        known = paths.get(id(self))
        if known is None:
            return plain_call(self, *args, **kwargs)
        enter(*known)
        try:
            return plain_call(self, *args, **kwargs)
        finally:
            leave()
    module_class.__call__ = call
    try:
        yield
    finally:
        module_class.__call__ = plain_call
