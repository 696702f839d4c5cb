"""FakeTensorMode: programs run on shapes, strides, types and devices, without data.

    with FakeTensorMode() as mode:
        w = umbra.empty(1_000_000, 1_000_000, device="cuda")
        y = w @ w
"""
import contextlib
import itertools
import weakref
from typing import NamedTuple

from umbra import _C
from umbra._C import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorDeviceMismatchError, Tensor,
    UnsupportedOperatorException)
from umbra._library.fakes import overload_text
from umbra._options import not_built
from umbra.utils._contextlib import whole

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeCopyMode", "FakeTensor",
           "FakeTensorConverter", "FakeTensorDeviceMismatchError", "FakeTensorMode", "MetadataMismatchError", "UnsupportedFakeTensorException",
           "UnsupportedMutationAliasingException", "UnsupportedOperatorException", "is_fake", "maybe_get_fake_mode",
           "unset_fake_temporarily"]


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be made fake."""


class UnsupportedMutationAliasingException(RuntimeError):
    """A function whose writes or shared memory cannot be followed without data."""


class MetadataMismatchError(RuntimeError):
    """A fake result that does not look like the real one."""


def _from_meta(cls, fake_mode, elem, device, constant=None, real_tensor=None, *, requires_grad=None):
    """A fake tensor on a device with the metadata of a meta tensor."""
    import umbra
    not_built("FakeTensor", constant=(constant, None), real_tensor=(real_tensor, None))
    if elem.device.type != "meta":
        raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
    with fake_mode:
        fake = umbra.empty_strided(elem.shape, elem.stride(), dtype=elem.dtype, device=device)
    return fake.requires_grad_(elem.requires_grad if requires_grad is None else requires_grad)


FakeTensor.__new__ = _from_meta


class DispatchCacheInfo(NamedTuple):
    hits: int
    misses: int
    bypasses: dict
    size: int


_modes = weakref.WeakValueDictionary()  # the Python object of a mode, by the C++ one


def _mode_object(handle):
    """The FakeTensorMode of a C++ mode; one that was made in C++ gets its object here."""
    if handle is None:
        return None
    mode = _modes.get(handle._cdata)
    if mode is None:
        mode = FakeTensorMode.__new__(FakeTensorMode)
        mode._adopt(handle)
    return mode


class _Memo:
    """What a converter has converted and is still in use, by the real tensor. Nothing is kept alive by it."""

    def __init__(self, converter):
        self._converter = converter

    def __contains__(self, tensor):
        return self._converter.find(tensor) is not None

    def get(self, tensor, default=None):
        fake = self._converter.find(tensor)
        return default if fake is None else fake

    def __getitem__(self, tensor):
        fake = self._converter.find(tensor)
        if fake is None:
            raise KeyError(tensor)
        return fake

    def __len__(self):
        return len(self._converter.tensors())

    def __iter__(self):
        return iter(real for real, _ in self._converter.tensors())

    def values(self):
        return [fake for _, fake in self._converter.tensors()]

    def items(self):
        return self._converter.tensors()


class _MetaConverter:
    """The memos of a converter, where torch has them."""

    def __init__(self, converter):
        self._converter = converter

    @property
    def storage_memo(self):
        """Storages in use: the fake one by the real one, by their identities."""
        return dict(self._converter.storages())

    @property
    def tensor_memo(self):
        return _Memo(self._converter)


class FakeTensorConverter:
    """Converts real tensors, and knows what it has converted for as long as it is in use. Every mode has one."""

    def __init__(self, *, copy_data=False, export=False, _converter=None):
        # A mode whose tensors carry real ones copies them itself: FakeTensorMode.propagate_real_tensors.
        not_built("FakeTensorConverter", copy_data=(copy_data, False))
        self.export = export
        self._converter = _converter or _C._FakeConverter()
        self._unnamed = itertools.count()  # of tensors that were converted without a source; symbols are named after them, as in PyTorch
        self._from_meta = {}  # (id of a meta tensor, device): the tensor, weakly, and its fake

    @property
    def tensor_memo(self):
        return _Memo(self._converter)

    @property
    def meta_converter(self):
        return _MetaConverter(self._converter)

    def set_tensor_memo(self, t, v):
        self._converter.remember(t, v)

    def from_real_tensor(self, fake_mode, t, make_constant=False, shape_env=None, *, source=None, symbolic_context=None, trace=True):
        """A fake tensor like `t`; its sizes are symbols only where a shape environment is given. `make_constant`: it knows its value."""
        if shape_env is not None and shape_env is not fake_mode.shape_env:
            raise NotImplementedError("FakeTensorConverter.from_real_tensor: a shape_env other than the mode's is not in Umbra yet")
        if t.is_quantized or t.is_mkldnn:
            raise UnsupportedFakeTensorException("quantized nyi in meta tensors" if t.is_quantized else "meta converter nyi")
        if make_constant:
            return fake_mode._handle.with_constant(t.clone())
        return fake_mode._from_tensor(self, t, shape_env is None, source, symbolic_context)

    def from_meta_and_device(self, fake_mode, t, device, pytype=None, dispatch_keys=None):
        """The fake tensor on a device that looks like a meta tensor: one for each."""
        import umbra
        not_built("FakeTensorConverter.from_meta_and_device", pytype=(pytype, None), dispatch_keys=(dispatch_keys, None))
        if t.device.type != "meta":
            raise AssertionError(f"tensor's device must be `meta`, got {t.device.type} instead")
        key = id(t), str(device)
        known, fake = self._from_meta.get(key, (lambda: None, None))
        if known() is not t:
            with fake_mode:
                fake = umbra.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device).requires_grad_(t.requires_grad)
            self._from_meta[key] = weakref.ref(t, lambda _: self._from_meta.pop(key, None)), fake
        return fake

    def __call__(self, fake_mode, t, *, make_constant=False, **kwargs):
        return self.from_real_tensor(fake_mode, t, make_constant, **kwargs)


@whole
class FakeTensorMode:
    """Factories called inside make fake tensors, and operators on fake tensors compute metadata alone."""

    def __init__(self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None, static_shapes=None, export=False):
        from umbra._dynamo import config as cache_config
        from umbra._functorch import config
        env = None if shape_env is None else shape_env._env
        symbolic = shape_env is not None
        self._adopt(_C._FakeMode(env, allow_non_fake_inputs=allow_non_fake_inputs,
                                 allow_scalar_outputs=symbolic and getattr(shape_env, "allow_scalar_outputs", True),
                                 allow_dynamic_output_shapes=symbolic and getattr(shape_env, "allow_dynamic_output_shape_ops", True),
                                 allow_meta=config.fake_tensor_allow_meta,
                                 propagate_real_tensors=config.fake_tensor_propagate_real_tensors,
                                 counts_calls=cache_config.fake_tensor_cache_enabled), shape_env)
        self.allow_fallback_kernels = allow_fallback_kernels
        self.export = export
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.cache_crosscheck_enabled = cache_config.fake_tensor_cache_crosscheck_enabled

    def _adopt(self, handle, shape_env=None):
        self._handle = handle
        self._shape_env = shape_env
        self.allow_fallback_kernels, self.export, self.static_shapes = True, False, handle.shape_env is None
        self._in_kernel_invocation = False
        self.fake_tensor_converter = FakeTensorConverter(_converter=handle.converter)
        _modes[handle._cdata] = self

    @property
    def allow_meta(self):
        return self._handle.allow_meta

    @property
    def propagate_real_tensors(self):
        return self._handle.propagate_real_tensors

    @property
    def in_kernel_invocation(self):
        """While it is set, this mode's tensors say that they are on the device `meta`, as they do inside a kernel without data."""
        return self._in_kernel_invocation

    @in_kernel_invocation.setter
    def in_kernel_invocation(self, value):
        self._in_kernel_invocation = bool(value)
        if value:
            FakeTensor.device = property(_device_in_kernels)

    @property
    def cache_crosscheck_enabled(self):
        """Whether calls that were seen before are compared with what they gave then."""
        return _C._fake_cache_crosschecked()

    @cache_crosscheck_enabled.setter
    def cache_crosscheck_enabled(self, value):
        _C._fake_cache_crosscheck(value)

    @property
    def cache_enabled(self):
        """Whether calls are counted by `cache_info`."""
        from umbra._dynamo import config
        return config.fake_tensor_cache_enabled

    @property
    def shape_env(self):
        if self._shape_env is None and self._handle.shape_env is not None:
            from umbra.fx.experimental.symbolic_shapes import ShapeEnv
            self._shape_env = ShapeEnv._of(self._handle.shape_env)
        return self._shape_env

    @property
    def allow_non_fake_inputs(self):
        return self._handle.allow_non_fake_inputs

    @allow_non_fake_inputs.setter
    def allow_non_fake_inputs(self, value):
        self._handle.allow_non_fake_inputs = value

    def __enter__(self):
        self._handle.enter()
        return self

    def __exit__(self, *exception):
        self._handle.leave()

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """A fake tensor like a real one; with a shape environment its sizes are symbols, as the context says."""
        static = self.static_shapes if static_shapes is None else static_shapes
        if static and symbolic_context is not None:
            raise AssertionError("cannot set both static_shapes and symbolic_context")
        return self._from_tensor(self.fake_tensor_converter, tensor, static, source, symbolic_context)

    def _from_tensor(self, converter, tensor, static, source, symbolic_context):
        from umbra.nested._tensor import NestedTensor
        from umbra.nn.parameter import Buffer, Parameter
        from umbra.utils._python_dispatch import is_traceable_wrapper_subclass
        if is_traceable_wrapper_subclass(tensor):
            return self._from_subclass(converter, tensor, static, source, symbolic_context)
        if isinstance(tensor, NestedTensor):
            return tensor._converted(lambda held: self._from_tensor(converter, held, static, None, None))
        if symbolic_context is not None:
            if len(symbolic_context.dynamic_sizes) != tensor.dim():
                raise AssertionError(f"{len(symbolic_context.dynamic_sizes)} != {tensor.dim()}")
            if symbolic_context.view_base_context is not None and tensor._is_view():
                self._from_tensor(converter, tensor._base, static, None, symbolic_context.view_base_context)
        name, *policies = self._sizes(tensor, static, source, symbolic_context)
        fake = converter._converter.from_tensor(self._handle, tensor, name, *policies)
        if symbolic_context is not None and hasattr(symbolic_context, "_remember"):
            symbolic_context._remember(self.shape_env, name, fake)
        if isinstance(tensor, Parameter) and fake is not tensor:
            fake._is_param = True
        if isinstance(tensor, Buffer) and fake is not tensor:
            fake._is_buffer, fake.persistent = True, tensor.persistent
        return fake

    def _from_subclass(self, converter, tensor, static, source, symbolic_context):
        """A tensor class around converted tensors. Its own sizes are symbols where those of the tensors inside are."""
        import umbra
        from umbra.fx.experimental.symbolic_shapes import SubclassSymbolicContext
        from umbra.utils._python_dispatch import transform_subclass
        symbolic = self.shape_env is not None and not static
        if symbolic and not isinstance(symbolic_context, (SubclassSymbolicContext, type(None))):
            raise AssertionError(f"Expected SubclassSymbolicContext or None, got {type(symbolic_context)}")
        name = _source_name(source)

        def convert(attribute, inner):
            context = symbolic_context.inner_contexts[attribute] if symbolic and symbolic_context is not None else None
            return self._from_tensor(converter, inner, static, f"{name}.{attribute}" if name else None, context)
        if not symbolic:
            return transform_subclass(tensor, convert)
        with unset_fake_temporarily():
            outer = umbra.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")
        policies = self._sizes(outer, static, source, symbolic_context)
        outer = converter._converter.from_tensor(self._handle, outer, *policies)
        return transform_subclass(tensor, convert, outer.shape, outer.stride())

    def _sizes(self, tensor, static, source, symbolic_context):
        """What guards call the tensor, and what becomes of its sizes and strides; None where all stay numbers and nothing has to be said."""
        if self.shape_env is None:
            return "", None
        name = _source_name(source) or f"__meta_utils_unknown_tensor{next(self.fake_tensor_converter._unnamed)}"
        if symbolic_context is not None:
            return name, symbolic_context._dimensions(self.shape_env), symbolic_context._strides()
        if static:
            return name, [("static",)] * tensor.dim()
        return name, [("duck",)] * tensor.dim(), [None] * tensor.dim()

    def is_our_fake(self, tensor):
        return isinstance(tensor, FakeTensor) and tensor.fake_mode is self

    def create_symbolic_nested_int(self, *, nt_tensor_id=None):
        raise NotImplementedError("nested tensors are not supported")

    # Nothing is cached: running an operator's metadata costs less than looking it up would. What is counted is which calls a cache would
    # have answered, and why it could not have kept others; counting starts with the first question.

    @classmethod
    def cache_info(cls):
        """Calls that were seen before (hits), that were new (misses), and those that depend on more than metadata, by the reason."""
        return DispatchCacheInfo(*_C._fake_cache_info())

    @classmethod
    def cache_clear(cls):
        """Forgets the counts and the calls that were seen."""
        _C._fake_cache_clear()

    def _cache_key(self, *call):
        """What a call's metadata follow from: equal keys, equal results. `call`: the operator, its arguments and keyword arguments, after a
        state that is not looked at where there are four."""
        func, args, kwargs = call[-3:]
        key, reason = _C._fake_call_key(self._handle, func._schema.name + ("." + func._schema.overload_name if func._schema.overload_name else ""),
                                        [*args, *(part for item in sorted((kwargs or {}).items()) for part in item)])
        if reason is not None:
            raise _BypassDispatchCache(reason)
        return key


def _source_name(source):
    """What guards call a tensor: a text, or the name of a source."""
    name = source if isinstance(source, str) else source.name if source is not None else ""
    return name() if callable(name) else name


class _BypassDispatchCache(Exception):
    """A call that depends on more than metadata."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@whole
class FakeCopyMode:
    """Copies of tensors made inside are fake: `copy.deepcopy(model)` without its memory, and `clone`."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    def __enter__(self):
        from umbra.nn.parameter import Parameter
        self._before = Tensor.__deepcopy__, Parameter.__deepcopy__, Tensor.clone
        clone = Tensor.clone

        def copy(tensor, memo):
            if id(tensor) not in memo:
                fake = self.fake_mode.from_tensor(tensor, static_shapes=True)
                memo[id(tensor)] = Parameter(fake, tensor.requires_grad) if isinstance(tensor, Parameter) else fake
            return memo[id(tensor)]
        Tensor.__deepcopy__ = Parameter.__deepcopy__ = copy
        Tensor.clone = lambda tensor, **options: clone(self.fake_mode.from_tensor(tensor, static_shapes=True), **options)
        return self

    def __exit__(self, *exception):
        from umbra.nn.parameter import Parameter
        Tensor.__deepcopy__, Parameter.__deepcopy__, Tensor.clone = self._before


class FakeContext:
    """Given to fake functions of custom operators: sizes that only the run will tell."""

    def __init__(self, name):
        self._name = name

    def new_dynamic_size(self, *, min=0, max=None):
        mode = _mode_object(_C._active_fake_mode())
        if mode is None or mode.shape_env is None:
            raise DynamicOutputShapeException(overload_text(self._name))
        if isinstance(min, _C.SymInt) or isinstance(max, _C.SymInt):
            raise ValueError(f"ctx.new_dynamic_size(min={min}, max={max}): expected min and max to be statically known ints but got SymInt. This is "
                             "not supported.")
        if min < 0:
            raise ValueError(f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal to 0: this API can only create "
                             "non-negative sizes.")
        size = mode.shape_env.create_unbacked_symint()
        from umbra import _check
        _check(size >= min)  # a promise, which programs check: what runs is the operator's own kernel
        if max is not None:
            _check(size <= max)
        _C._sym_mark_size_like(size)
        return size

    def create_unbacked_symint(self, *, min=2, max=None):
        """The same under its old name, which had sizes of two or more."""
        return self.new_dynamic_size(min=min, max=max)


@contextlib.contextmanager
def unset_fake_temporarily():
    """No fake mode inside."""
    handle = _C._active_fake_mode()
    with _C._NoModes():
        yield _mode_object(handle)


def _tensors_inside(value):
    """The tensors that a wrapper is made of; none of anything else."""
    from umbra.nested._tensor import NestedTensor
    from umbra.utils._python_dispatch import is_traceable_wrapper_subclass
    if isinstance(value, NestedTensor):
        return value._held()
    return get_plain_tensors(value, out=[]) if is_traceable_wrapper_subclass(value) else []


def is_fake(value):
    """Whether a tensor is fake, or all that a wrapper is made of."""
    inside = _tensors_inside(value)
    return isinstance(value, FakeTensor) or bool(inside) and all(map(is_fake, inside))


def maybe_get_fake_mode(value):
    """The mode of a fake tensor, or of a wrapper whose tensors are all fake; None of anything else."""
    if isinstance(value, FakeTensor):
        return value.fake_mode
    modes = {maybe_get_fake_mode(inner) for inner in _tensors_inside(value)}
    if len(modes) > 1:
        raise AssertionError(f"expected one fake mode inside a {type(value).__name__}, got {len(modes)}")
    return modes.pop() if modes else None


def maybe_get_real_tensor(value):
    return value.real_tensor if isinstance(value, FakeTensor) else None


def maybe_get_fake_constant(value):
    return value.constant if isinstance(value, FakeTensor) else None


def get_plain_tensors(subclass, *, out):
    names, _ = subclass.__tensor_flatten__()
    for name in names:
        out.append(getattr(subclass, name))
    return out


class TensorMetadata(NamedTuple):
    """Everything that results of operators on a tensor follow from, but for its data."""
    dtype: object
    shape: tuple
    stride: tuple
    device: object
    layout: object
    memory_format: object  # the format that the strides are, None where they are none's
    storage_offset: object
    storage_bytes: object  # None of layouts without a storage
    requires_grad: bool
    is_quantized: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    is_sparse: bool
    is_coalesced: object  # this and what follows: of sparse tensors
    dense_dim: object
    sparse_dim: object


def _memory_format(t):
    import umbra
    formats = {4: [umbra.channels_last], 5: [umbra.channels_last_3d]}.get(t.dim(), [])
    return next((f for f in [umbra.contiguous_format, *formats] if t.is_contiguous(memory_format=f)), None)


def extract_tensor_metadata(t):
    import umbra
    strided, coo = t.layout is umbra.strided, t.layout is umbra.sparse_coo
    return TensorMetadata(
        t.dtype, tuple(t.shape), t.stride() if strided else (), t.device, t.layout, _memory_format(t) if strided else None,
        t.storage_offset() if strided else 0, t.untyped_storage().nbytes() if strided else None, t.requires_grad, t.is_quantized, t.is_conj(), t.is_neg(),
        t.is_inference(), not strided, t.is_coalesced() if coo else None, None if strided else t.dense_dim(), None if strided else t.sparse_dim())


# ---- what FakeTensor has besides what Tensor has ----

def _device_in_kernels(tensor):
    """The device of a fake tensor once a mode has been told that it is inside a kernel."""
    import umbra
    return umbra.device("meta") if tensor.fake_mode.in_kernel_invocation else Tensor.device.__get__(tensor)


@contextlib.contextmanager
def in_kernel_invocation_manager(fake_mode):
    """The mode's tensors are on the device `meta` inside."""
    before, fake_mode.in_kernel_invocation = fake_mode.in_kernel_invocation, True
    try:
        yield
    finally:
        fake_mode.in_kernel_invocation = before


FakeTensor.fake_mode = property(lambda self: _mode_object(_C._fake_mode_of(self)))
FakeTensor.fake_device = property(lambda self: self.device, _C._set_fake_device)
FakeTensor.constant = property(lambda self: _C._fake_constant(self))
FakeTensor.real_tensor = property(lambda self: _C._fake_real(self))
FakeTensor.from_tensor = staticmethod(lambda t, fake_mode: fake_mode.from_tensor(t))


# ---- what is said of operators by their schemas ----

def _tensor_in(type):
    return "Tensor" in str(type)


def _is_tensor_constructor(func):
    """An operator that makes one tensor of none."""
    schema = func._schema
    return not any(_tensor_in(a.type) for a in schema.arguments) and len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor"


def _overloads(names):
    import umbra
    packets = [getattr(umbra.ops.aten, name) for name in names]
    return {getattr(packet, overload): True for packet in packets for overload in packet.overloads()}


def _device_positions():
    """Operators on tensors that take a device by position."""
    import umbra
    found = {}
    for name in _C._operator_names():
        if not name.startswith("aten::"):
            continue
        packet, _, overload = name[6:].partition(".")
        op = getattr(getattr(umbra.ops.aten, packet), overload or "default")
        schema = op._schema
        if any(_tensor_in(a.type) for a in [*schema.arguments, *schema.returns]) and any(
                not a.kwarg_only and str(a.type) in ("Device", "Optional[Device]") for a in schema.arguments):
            found[op] = True
    return found


_tables = {
    "_like_tensor_constructors": lambda: _overloads(
        ["empty_like", "full_like", "ones_like", "rand_like", "randn_like", "randint_like", "zeros_like", "new_empty", "new_empty_strided",
         "new_full", "new_zeros", "new_ones"]),
    "_device_not_kwarg_ops": _device_positions,
}


def __getattr__(name):
    if name not in _tables:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = _tables[name]()
    return globals()[name]
