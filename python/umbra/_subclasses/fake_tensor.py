"""FakeTensorMode: programs run on shapes, strides, types and devices, without data.

    with FakeTensorMode() as mode:
        w = umbra.empty(1_000_000, 1_000_000, device="cuda")
        y = w @ w
"""
import contextlib
import weakref
from typing import NamedTuple

from umbra import _C
from umbra._C import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, Tensor, UnsupportedOperatorException)
from umbra._options import not_built

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorConverter", "FakeTensorMode",
           "MetadataMismatchError", "UnsupportedFakeTensorException", "UnsupportedOperatorException", "is_fake", "maybe_get_fake_mode",
           "unset_fake_temporarily"]


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be made fake."""


class MetadataMismatchError(RuntimeError):
    """A fake result that does not look like the real one."""


def _from_meta(cls, fake_mode, elem, device, constant=None):
    """A fake tensor on a device with the metadata of a meta tensor."""
    import umbra
    not_built("FakeTensor", constant=(constant, None))
    if elem.device.type != "meta":
        raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
    with fake_mode:
        return umbra.empty_strided(elem.shape, elem.stride(), dtype=elem.dtype, device=device)


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


class FakeTensorConverter:
    """What a mode has converted; the mode itself keeps it."""

    def __init__(self, *, copy_data=False, export=False):
        not_built("FakeTensorConverter", copy_data=(copy_data, False))
        self.export = export
        self._from_meta = {}  # (id of a meta tensor, device): the tensor, weakly, and its fake

    def from_real_tensor(self, fake_mode, t, make_constant=False, shape_env=None, *, source=None, symbolic_context=None, trace=True):
        if shape_env is not None and shape_env is not fake_mode.shape_env:
            raise NotImplementedError("FakeTensorConverter.from_real_tensor: a shape_env other than the mode's is not in Umbra yet")
        if make_constant:
            return fake_mode._handle.with_constant(t)
        return fake_mode.from_tensor(t, source=source, symbolic_context=symbolic_context)

    def from_meta_and_device(self, fake_mode, t, device, pytype=None, dispatch_keys=None):
        import umbra
        not_built("FakeTensorConverter.from_meta_and_device", pytype=(pytype, None), dispatch_keys=(dispatch_keys, None))
        key = id(t), str(device)
        known, fake = self._from_meta.get(key, (lambda: None, None))
        if known() is not t:
            with fake_mode:
                fake = umbra.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
            self._from_meta[key] = weakref.ref(t, lambda _: self._from_meta.pop(key, None)), fake
        return fake

    def __call__(self, fake_mode, t, *, make_constant=False, **kwargs):
        return self.from_real_tensor(fake_mode, t, make_constant, **kwargs)


class FakeTensorMode:
    """Factories called inside make fake tensors, and operators on fake tensors compute metadata alone."""

    def __init__(self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None, static_shapes=None, export=False):
        env = None if shape_env is None else shape_env._env
        symbolic = shape_env is not None
        self._adopt(_C._FakeMode(env, allow_non_fake_inputs, symbolic and getattr(shape_env, "allow_scalar_outputs", True),
                                 symbolic and getattr(shape_env, "allow_dynamic_output_shape_ops", True)), shape_env)
        self.allow_fallback_kernels = allow_fallback_kernels
        self.export = export
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes

    def _adopt(self, handle, shape_env=None):
        self._handle = handle
        self._shape_env = shape_env
        self.allow_fallback_kernels, self.export, self.static_shapes = True, False, handle.shape_env is None
        self.fake_tensor_converter = FakeTensorConverter()
        _modes[handle._cdata] = self

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
        from umbra.nn.parameter import Parameter
        from umbra.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass
        if is_traceable_wrapper_subclass(tensor):
            if symbolic_context is not None or (self.shape_env is not None and not static_shapes and not self.static_shapes):
                raise NotImplementedError(f"a {type(tensor).__name__} cannot be converted with symbolic sizes yet")
            return transform_subclass(tensor, lambda _, inner: self.from_tensor(inner, static_shapes=True))
        fake = self._convert(tensor, static_shapes, source, symbolic_context)
        if isinstance(tensor, Parameter) and fake is not tensor:
            fake._is_param = True
        return fake

    def _convert(self, tensor, static_shapes, source, symbolic_context):
        static = self.static_shapes if static_shapes is None else static_shapes
        if self.shape_env is None:
            return self._handle.from_tensor(tensor)
        name = source if isinstance(source, str) else source.name if source is not None else ""
        name = name() if callable(name) else name
        if static:
            dims = [("static",)] * tensor.dim()
        elif symbolic_context is not None:
            dims = symbolic_context._dimensions()
        else:
            dims = [("duck",)] * tensor.dim()
        return self._handle.from_tensor(tensor, name, dims)

    def is_our_fake(self, tensor):
        return isinstance(tensor, FakeTensor) and tensor.fake_mode is self

    def create_symbolic_nested_int(self, *, nt_tensor_id=None):
        raise NotImplementedError("nested tensors are not supported")

    # There is no dispatch cache: running an operator's metadata costs less than looking it up would.
    @classmethod
    def cache_info(cls):
        return DispatchCacheInfo(0, 0, {}, 0)

    @classmethod
    def cache_clear(cls):
        pass


class FakeCopyMode:
    """Copies of tensors made inside are fake: `copy.deepcopy(model)` without its memory."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    def __enter__(self):
        from umbra.nn.parameter import Parameter
        self._before = Tensor.__deepcopy__, Parameter.__deepcopy__

        def copy(tensor, memo):
            if id(tensor) not in memo:
                fake = self.fake_mode.from_tensor(tensor, static_shapes=True)
                memo[id(tensor)] = Parameter(fake, tensor.requires_grad) if isinstance(tensor, Parameter) else fake
            return memo[id(tensor)]
        Tensor.__deepcopy__ = Parameter.__deepcopy__ = copy
        return self

    def __exit__(self, *exception):
        from umbra.nn.parameter import Parameter
        Tensor.__deepcopy__, Parameter.__deepcopy__ = self._before


class FakeContext:
    """Given to fake functions of custom operators: sizes that only the run will tell."""

    def new_dynamic_size(self, *, min=0, max=None):
        mode = _mode_object(_C._active_fake_mode())
        if mode is None or mode.shape_env is None:
            raise DynamicOutputShapeException("new_dynamic_size() needs a fake mode with a shape environment")
        size = mode.shape_env.create_unbacked_symint()
        mode.shape_env._env.constrain_range(size, min, max)
        _C._sym_mark_size_like(size)
        return size

    create_unbacked_symint = new_dynamic_size


@contextlib.contextmanager
def unset_fake_temporarily():
    """No fake mode inside."""
    handle = _C._active_fake_mode()
    with _C._NoModes():
        yield _mode_object(handle)


def is_fake(value):
    from umbra.utils._python_dispatch import is_traceable_wrapper_subclass
    if isinstance(value, FakeTensor):
        return True
    if is_traceable_wrapper_subclass(value):
        names, _ = value.__tensor_flatten__()
        return all(is_fake(getattr(value, name)) for name in names)
    return False


def maybe_get_fake_mode(value):
    return value.fake_mode if isinstance(value, FakeTensor) else None


def get_plain_tensors(subclass, *, out):
    names, _ = subclass.__tensor_flatten__()
    for name in names:
        out.append(getattr(subclass, name))
    return out


class TensorMetadata(NamedTuple):
    dtype: object
    shape: tuple
    stride: tuple
    device: object
    layout: object
    storage_offset: object
    requires_grad: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool


def extract_tensor_metadata(t):
    return TensorMetadata(t.dtype, tuple(t.shape), t.stride(), t.device, t.layout, t.storage_offset(), t.requires_grad, t.is_conj(),
                          t.is_neg(), t.is_inference())


# ---- what FakeTensor has besides what Tensor has ----

FakeTensor.fake_mode = property(lambda self: _mode_object(_C._fake_mode_of(self)))
FakeTensor.fake_device = property(lambda self: self.device)
FakeTensor.constant = property(lambda self: _C._fake_constant(self))
FakeTensor.real_tensor = None
FakeTensor.from_tensor = staticmethod(lambda t, fake_mode: fake_mode.from_tensor(t))
