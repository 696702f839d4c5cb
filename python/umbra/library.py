"""Operators of the user's own.

    @umbra.library.custom_op("mylib::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor

    @scale.register_fake
    def _(x, factor):
        return umbra.empty_like(x)

    scale.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=lambda ctx, inputs, output:
                            setattr(ctx, "factor", inputs[1]))
"""
import contextlib
import re
import weakref

import umbra
from umbra import _C
from umbra._C import OpOverload
from umbra._library import effects, fakes
from umbra._library.keys import with_keyset as given_keys
from umbra._library.autograd import Formula, check_functional, has_tensors_by_name
from umbra._library.custom_ops import CustomOpDef, _definitions, custom_op
from umbra._library.infer_schema import infer_schema
from umbra._library.opcheck import opcheck
from umbra._library.vmap import register_rule
from umbra._options import not_built
from umbra._ops import OpOverloadPacket, forget_packet


def fallthrough_kernel():
    """Registered as a kernel: calls pass the layer by."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


# ---- names and keys ----

def _split(qualname):
    parts = qualname.split("::") if isinstance(qualname, str) else []
    if len(parts) != 2 or not all(parts):
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
                         "torch.library APIs must consist of a namespace and a name, e.g. aten::sin")
    return parts


def _qualified(op):
    """The name of an operator that is given as a name, an overload or a custom operator."""
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, OpOverload):
        return op.name()
    if isinstance(op, OpOverloadPacket):
        return op._qualified_op_name
    _split(op)
    return op


def _overload(op):
    """The overload of such an operator; torch's AttributeError where there is none."""
    space, name = _split(_qualified(op))
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(umbra.ops, space), name), overload or "default")


_DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
# Devices that no tensor with data lies on: kernels for them are taken, as packages have them, and never asked.
_ABSENT_DEVICE_KEYS = {"mps": "MPS", "xpu": "XPU", "hpu": "HPU", "xla": "XLA", "ipu": "IPU", "ve": "VE", "lazy": "Lazy", "mtia": "MTIA", "maia": "MAIA",
                       "hip": "HIP", "vulkan": "Vulkan", "fpga": "FPGA", "privateuseone": "PrivateUse1"}
_ABSENT_KEYS = {prefix + key for key in (*_ABSENT_DEVICE_KEYS.values(), "PrivateUse2", "PrivateUse3", "Metal") for prefix in ("", "Autograd")}


def _key_of(kind):
    """The dispatch key of a device type, "default", or a key itself."""
    if kind == "default":
        return "CompositeExplicitAutograd"
    if kind[:1].isupper():
        return kind
    if kind in _ABSENT_DEVICE_KEYS:
        return _ABSENT_DEVICE_KEYS[kind]
    device = umbra.device(kind).type
    if device not in _DEVICE_KEYS:
        raise NotImplementedError(f"kernels for the device type {device} are not in Umbra yet")
    return _DEVICE_KEYS[device]


_registered = set()  # (operator, key) of all living libraries


def _registered_kernels():
    """(operator, key) of all kernels of living libraries."""
    return frozenset(_registered)


_kept = []  # libraries of the functions below that were given none


class Library:
    """Definitions and kernels in a namespace. `kind`: DEF for a new one, FRAGMENT to add to one, IMPL for kernels alone.

    They are there as long as the Library is.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.m = _C._Library(ns, kind)
        self._op_defs, self._op_impls, self._dispatch_rules, self._effects, self._batch_rules = set(), set(), [], set(), []
        self._finalizer = weakref.finalize(self, _take_back, self.m, self._op_defs, self._op_impls, self._dispatch_rules, self._effects, self._batch_rules)
        self._finalizer.atexit = False

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Defines an operator: `lib.define("scale(Tensor x, float factor) -> Tensor")`."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if alias_analysis == "CONSERVATIVE":
            raise NotImplementedError('define(alias_analysis="CONSERVATIVE") is not in Umbra yet')
        tags = tags if isinstance(tags, (tuple, list)) else (tags,)
        overload = self.m.define(schema, [tag.name for tag in tags])
        self._op_defs.add(overload._qualified_op_name)
        forget_packet(overload._qualified_op_name)
        return schema.split("(")[0].strip()

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """A kernel of an operator, at a dispatch key. `with_keyset`: it is given the keys of its call before its arguments."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if not isinstance(op_name, (str, OpOverload)):
            raise RuntimeError(f"impl should be passed either a name or an OpOverload object as the first argument, got {type(op_name)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        entry = (name if "::" in name else f"{self.ns}::{name}", key)
        if not allow_override and entry in _registered:
            raise RuntimeError(f"This is not allowed since there's already a kernel registered from python overriding {name}'s behavior for "
                               f"{key} dispatch key and {self.ns} namespace.")
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the dispatch key of the enclosing library "
                               f"({self.dispatch_key}), for {entry[0]}")
        if key in _ABSENT_KEYS:
            pass
        elif fn is fallthrough_kernel:
            self.m.fall_through(name, key)
        else:
            self.m.impl(name, given_keys(fn, key) if with_keyset else fn, key)
        _registered.add(entry)
        self._op_impls.add(entry)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        if self.ns != "_":
            raise RuntimeError('Fallback can only be registered using library fragment on the global namespace "_" but it is ' + self.ns)
        raise NotImplementedError("Library.fallback is not in Umbra yet: a TorchDispatchMode sees all operators")

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True):
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        if not allow_override and (name, "Fake") in _registered:
            raise RuntimeError(f"register_fake(...): the operator {name} already has an fake impl registered.")
        self.m.impl(name, fakes.named(name, fn), "Fake")
        _registered.add((name, "Fake"))
        self._op_impls.add((name, "Fake"))

    def _register_effectful_op(self, op_name, effect):
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        effects.register(name, effect)
        self._effects.add(name)

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        op_name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        _C._torch_dispatch_rules.setdefault(op_name, {})[torch_dispatch_class] = fn
        self._dispatch_rules.append((op_name, torch_dispatch_class))

    def _destroy(self):
        """Takes definitions and kernels back now."""
        self._finalizer()


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A Library that is there for a scope."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def _take_back(module, definitions, implementations, dispatch_rules, effectful, batch_rules):
    for take_back in reversed(batch_rules):
        take_back()
    module.reset()
    for name in effectful:
        effects.register(name, None)
    for name, cls in dispatch_rules:
        rules = _C._torch_dispatch_rules.get(name, {})
        rules.pop(cls, None)
        if not rules:
            _C._torch_dispatch_rules.pop(name, None)
    for qualified in definitions:
        forget_packet(qualified)
    _registered.difference_update(implementations)


def _library_for(qualname, lib):
    if lib is not None:
        return lib
    made = Library(_split(qualname)[0], "FRAGMENT")
    _kept.append(made)
    return made


# ---- functions ----

def define(qualname, schema, alias_analysis=None, *, lib=None, tags=()):
    """Defines an operator: `define("mylib::scale", "(Tensor x, float factor) -> Tensor")`. (`define(lib, schema, alias_analysis="")` decorates its kernel.)"""
    if isinstance(qualname, Library):
        return _define_with_kernel(qualname, schema, alias_analysis or "")
    if alias_analysis is not None:
        raise TypeError("define() takes 2 positional arguments but 3 were given")
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    _, name = _split(qualname)
    if not re.match(r"\(.*\) -> .*", schema):
        raise ValueError('define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "' + schema + '"')
    _library_for(qualname, lib).define(name + schema, alias_analysis="", tags=tags)


def _define_with_kernel(lib, schema, alias_analysis):
    def register(function):
        lib.impl(lib.define(schema, alias_analysis), function)
        return function
    return register


def impl(qualname, types, func=None, *, lib=None):
    """A kernel for device types ("cpu", "cuda"), for all of them ("default") or for a dispatch key. (`impl(lib, name, key)` decorates.)"""
    if isinstance(qualname, Library):
        def decorate(function):
            qualname.impl(types, function, func or "")
            return function
        return decorate
    _split(qualname)
    keys = [_key_of(kind) for kind in ((types,) if isinstance(types, str) else types)]

    def register(function):
        library = _library_for(qualname, lib)
        for key in keys:
            library.impl(qualname, function, key)
        return function
    if func is None:
        return register
    register(func)
    return None


def _defined(op):
    """The custom operator that is meant, where it is one: by itself, by its name or by its overload."""
    return op if isinstance(op, CustomOpDef) else _definitions.get(_qualified(op))


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """A kernel for a device ("cpu"), several, or all that have none of their own (None)."""
    if (defined := _defined(op)) is not None:
        return defined.register_kernel(device_types, func)
    return impl(_qualified(op), "default" if device_types is None else device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """What the operator does on fake tensors: makes results of the right metadata."""
    if func is None:
        return lambda function: register_fake(op, function, lib=lib, allow_override=allow_override)
    if (defined := _defined(op)) is not None:
        return defined.register_fake(func)
    name = _qualified(op)
    if not _C._overload_names(name.partition(".")[0]):
        raise RuntimeError(f"operator {name} does not exist")
    _library_for(name, lib)._register_fake(name, func, allow_override=allow_override)
    return func


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The old name of register_fake."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The operator's gradient: `backward(ctx, *grads)`, with `setup_context(ctx, inputs, output)` saving what it needs."""
    if (defined := _defined(op)) is not None:
        return defined.register_autograd(backward, setup_context=setup_context)
    overload = _overload(op)
    check_functional(overload, overload)
    _library_for(overload.name(), lib).impl(overload, Formula(overload, backward, setup_context), "Autograd")


def register_vmap(op, func=None, /, *, lib=None):
    """What vmap does with the operator: `func(info, in_dims, *args, **kwargs)` gives (output, out_dims)."""
    if func is None:
        return lambda function: register_vmap(op, function, lib=lib)
    overload = _overload(op)
    if has_tensors_by_name(overload._schema):
        raise NotImplementedError("register_vmap with kwarg-only Tensor args. In the original definition of the op, please make your tensors not kwarg-only. "
                                  f"Got: {overload._schema}")
    take_back = register_rule(overload, func)
    if lib is not None:
        lib._batch_rules.append(take_back)
    return func


def get_ctx():
    """Inside a fake function: makes sizes that only the run will tell. None elsewhere."""
    from umbra._subclasses import fake_tensor
    name = fakes.running()
    if name is None:
        return None
    if _C._active_fake_mode() is None:
        raise RuntimeError(f"{name}: You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but this operator may return an "
                           "output Tensor with data-dependent shape. Meta Tensors don't support operators with outputs that have data-dependent shapes "
                           "but FakeTensors do. If your operator does not return an output with data-dependent shape, make sure the FakeTensor and/or "
                           "meta kernel does not call torch.library.get_ctx(). Otherwise, please use FakeTensors.")
    return fake_tensor.FakeContext(name)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """While autocast is on for a device, the operator's floating tensors become `cast_inputs`, and it runs without autocast."""
    not_built("torch.library.register_autocast", lib=(lib, None))
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    if device_type == "cuda":
        return  # autocast is never on there
    name = op if isinstance(op, str) else op.name() if callable(getattr(op, "name", None)) else op._qualname
    _C._set_autocast_inputs(name, cast_inputs)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """What a mode or a tensor class does with the operator, instead of its own __torch_dispatch__: `func(mode or class, func, types, args, kwargs)`."""
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(f"register_torch_dispatch({op}): got unexpected type for op: {type(op)}")
    if func is None:
        return lambda function: register_torch_dispatch(op, torch_dispatch_class, function, lib=lib)
    name = _qualified(op)
    _library_for(name, lib)._register_torch_dispatch_rule(name, torch_dispatch_class, func)
    return func


def _register_effectful_op(op, effect, *, lib=None):
    """Says that an operator does something besides computing (`EffectType.ORDERED`): captures keep the order of its calls. None: it does not."""
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(f"register_effectful_op({op}): got unexpected type for op: {type(op)}")
    name = _qualified(op)
    _library_for(name, lib)._register_effectful_op(name, effect)


# ---- what is not there yet ----

def get_kernel(op, dispatch_key):
    """The kernel that is registered for an operator at a key."""
    raise NotImplementedError("torch.library.get_kernel is not in Umbra yet")


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """An operator whose function may launch Triton kernels: defined as `custom_op` does, with the function as its fake kernel too. Launches are refused."""
    def define(function):
        made = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made.register_fake(function)
        return made
    return define if fn is None else define(fn)


class _TritonKernel:
    """A Triton kernel that a function names. It can be given a grid, not launched."""

    def __init__(self, kernel, grid=None):
        self.kernel, self.grid = kernel, grid

    def __getitem__(self, grid):
        return _TritonKernel(self.kernel, grid)

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"launching the Triton kernel {getattr(self.kernel, '__name__', self.kernel)!s} is not in Umbra yet")


def wrap_triton(triton_kernel, /):
    """The kernel as `triton_op`'s functions launch it: `wrap_triton(kernel)[grid](...)`."""
    return _TritonKernel(triton_kernel)
