"""What Tensor has besides its operators, written in Python: it is attached to the class when the package is imported."""
import copy as _copy
import copyreg as _copyreg
import functools
import warnings

from umbra import _C
from umbra._C import Tensor
from umbra._old_constructor import is_count, made, read_call
from umbra.overrides import heard

_SPARSE = (_C.sparse_coo, _C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)  # layouts without memory of their own


# ---- __torch_function__ ----

def _convert(result, cls):
    """Results of a call on a subclass are of that subclass, unless they are already of it."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_convert(part, cls) for part in result]
        return type(result)(*parts) if hasattr(type(result), "_fields") else type(result)(parts)
    return result


# Attributes that hold another tensor: it keeps its own class.
_KEEPING_CLASSES = {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}


def _torch_function(cls, func, types, args=(), kwargs=None):
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in _KEEPING_CLASSES else _convert(result, cls)


def _init_subclass(cls, **kwargs):
    """A class that decides what operators do with it decides of what class their results are, too."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    inherits = getattr(cls.__torch_function__, "__func__", None) is _torch_function
    if inherits and cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
        cls.__torch_function__ = _C._disabled_torch_function_impl


def _overridable(function):
    """A method written in Python, of which a subclass's __torch_function__ and the modes hear first."""
    @heard
    @functools.wraps(function)
    def method(self, *args, **kwargs):
        if _C._has_torch_function(self):
            from umbra.overrides import handle_torch_function
            return handle_torch_function(method, (self,), self, *args, **kwargs)
        return function(self, *args, **kwargs)
    return method


# ---- copies and files ----

def _has_no_data(tensor):
    return not tensor.untyped_storage()._has_data()


def _is_wrapper(tensor):
    """A subclass around other tensors, without data of its own."""
    return not isinstance(tensor, _C.FakeTensor) and not tensor.is_meta and tensor.layout not in _SPARSE and _has_no_data(tensor)


class _FakeContents:
    """What copies of a fake tensor share; no file can hold it."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        raise TypeError(f"cannot pickle a {type(self.tensor).__name__} on {self.tensor.device}: it has no data")


def _is_materialized(tensor):
    """Whether a fake tensor is to be written like one with data."""
    from umbra.serialization import _serialization_tls
    return isinstance(tensor, _C.FakeTensor) and _serialization_tls.materialize_fake_tensors


def _copy_of_fake(contents, requires_grad, attributes):
    tensor = contents.tensor.detach().requires_grad_(requires_grad)
    tensor.__dict__.update(attributes)
    return tensor


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of another class, or with attributes: `func(*args)` makes what it is without them."""
    from umbra._utils import _set_obj_state
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if getattr(new_type, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        tensor.__setstate__(state)
        return tensor
    return _set_obj_state(tensor, state)


def _sparse_parts(tensor):
    if tensor.layout == _C.sparse_coo:
        return tensor._indices(), tensor._values(), tensor.size(), tensor.is_coalesced()
    by_rows = tensor.layout in (_C.sparse_csr, _C.sparse_bsr)
    places = (tensor.crow_indices(), tensor.col_indices()) if by_rows else (tensor.ccol_indices(), tensor.row_indices())
    return *places, tensor.values(), tensor.size()


def _reduce_contents(self):
    """How files and copies describe a tensor, its class and attributes apart."""
    from collections import OrderedDict

    from umbra import _utils
    from umbra.storage import _STORAGE_NAMES, TypedStorage
    if self.layout in _SPARSE:
        return _utils._rebuild_sparse_tensor, (self.layout, _sparse_parts(self))
    if _is_wrapper(self):
        return _utils._rebuild_wrapper_subclass, (type(self), self.dtype, tuple(self.size()), self.stride(), self.storage_offset(), self.layout,
                                                  self.device, self.requires_grad)
    if self.is_meta:
        return _utils._rebuild_meta_tensor_no_storage, (self.dtype, tuple(self.size()), self.stride(), self.requires_grad)
    if _has_no_data(self) and not _is_materialized(self):
        raise TypeError(f"cannot pickle a tensor on {self.device}: it has no data")
    geometry = self.storage_offset(), tuple(self.size()), self.stride(), self.requires_grad, OrderedDict()
    bits = {name: True for name, is_set in (("conj", self.is_conj()), ("neg", self.is_neg())) if is_set}
    metadata = (bits,) if bits else ()
    storage = self.untyped_storage()
    if self.dtype in _STORAGE_NAMES:
        return _utils._rebuild_tensor_v2, (TypedStorage(wrap_storage=storage, dtype=self.dtype), *geometry, *metadata)
    return _utils._rebuild_tensor_v3, (storage, *geometry, self.dtype, *metadata)


@heard
def _reduce_ex(self, protocol):
    from umbra._utils import _get_obj_state
    if _is_materialized(self):
        return _reduce_contents(self)
    if isinstance(self, _C.FakeTensor):
        return _copy_of_fake, (_FakeContents(_C._plain_alias(self)), self.requires_grad, dict(self.__dict__))
    state = _get_obj_state(self)
    if type(self) is Tensor and not state:
        return _reduce_contents(self)
    if _C._has_torch_function(self):
        from umbra.overrides import handle_torch_function
        return handle_torch_function(Tensor.__reduce_ex__, (self,), self, protocol)
    func, args = _reduce_contents(self)
    return _rebuild_from_type_v2, (func, type(self), args, state)


@_overridable
def storage(self):
    """The tensor's memory as elements of its type."""
    from umbra.storage import TypedStorage
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@_overridable
def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If "
                           "you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
                           "https://github.com/pytorch/pytorch/pull/103001")
    import umbra
    if _is_wrapper(self) or type(self) is not Tensor and self.is_meta:  # what it stands for is not in its own memory
        with umbra.no_grad():
            result = self.clone()
        if type(result) is not type(self):
            raise RuntimeError("The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that implement clone() and "
                               "for which cloning returns another instance of the same subclass. You should either properly implement clone() for your "
                               "subclass or override __deepcopy__() if it is intended behavior for clone() to return an instance of a different type.")
    else:
        with umbra.no_grad():
            if type(self) is not Tensor and self.layout not in _SPARSE and type(self.new_empty(())) is not type(self):
                raise RuntimeError("The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that implement "
                                   "new_empty() and for which that function returns another instance of the same subclass. You should either properly "
                                   "implement new_empty() for your subclass or override __deepcopy__() if it is intended behavior for new_empty() to "
                                   "return an instance of a different type.")
            result = self.detach().clone() if self.layout in _SPARSE else _copied_memory(self, memo)
    if self.requires_grad:
        result.requires_grad_()
    if self.grad is not None:
        result.grad = _copy.deepcopy(self.grad, memo)
    memo[id(self)] = result
    _copy_attributes(self, result, memo)
    return result


def _copy_attributes(self, result, memo):
    """What a tensor carries besides its contents: attributes, and the slots of its class."""
    if self.__dict__:
        result.__dict__.update(_copy.deepcopy(self.__dict__, memo))
    for name in _copyreg._slotnames(type(self)):
        if hasattr(self, name):
            setattr(result, name, _copy.deepcopy(getattr(self, name), memo))


def _copied_memory(self, memo):
    """A copy of a strided tensor. Those that share memory go on sharing it."""
    storage = self.untyped_storage()
    key = ("umbra storage", storage._cdata)
    if key not in memo:
        written = self.detach()  # as the memory has it: the other tensors there need not be conjugate
        _C._set_conj(written, False)
        _C._set_neg(written, False)
        memo[key] = written.as_strided((storage.nbytes() // self.element_size(),), (1,), 0).clone()
    copied = memo[key]
    if copied.dtype != self.dtype:
        copied = copied.view(self.dtype)
    result = copied.as_strided(self.size(), self.stride(), self.storage_offset()).detach()
    if self.is_conj():
        result = result.conj_physical()
    if self.is_neg():
        result = result.neg()
    if type(self) not in (Tensor, _C.FakeTensor):
        result = _C._make_subclass(type(self), result, False)
    return result


# ---- NumPy, DLPack ----

@_overridable
def _array(self, dtype=None, copy=None):
    array = self.numpy()
    if copy is False and dtype is not None and array.dtype != dtype:
        raise ValueError(f"Unable to avoid copy: the tensor has the type {array.dtype}, and {dtype} is asked for")
    return array.astype(array.dtype if dtype is None else dtype, copy=bool(copy))


def _array_wrap(self, array, context=None, return_scalar=False):
    """What NumPy computed with a tensor among its operands becomes a tensor."""
    import numpy
    import umbra
    array = numpy.asarray(array)
    return umbra.from_numpy(array.astype("uint8") if array.dtype == bool else array)  # truths are bytes, as in torch


@_overridable
def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self.layout is not _C.strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None:
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and tuple(dl_device) != _dlpack_device(self):
        raise BufferError(f"a tensor on {self.device} cannot be given to the DLPack device {tuple(dl_device)}")
    return _C._to_dlpack(self.clone() if copy else self)


@_overridable
def _dlpack_device(self):
    if self.device.type != "cpu":
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    from umbra.utils.dlpack import DLDeviceType
    return DLDeviceType.kDLCPU, 0


# ---- the rest ----

@_overridable
def _format(self, spec):
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


@_overridable
def untyped_storage(self):
    if self.layout in _SPARSE:
        raise NotImplementedError(f"Cannot access storage of {'SparseTensorImpl' if self.is_sparse else 'SparseCsrTensorImpl'}")
    return _C._untyped_storage(self)


@_overridable
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    import umbra
    return umbra.tensor(data, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device,
                        requires_grad=requires_grad)


_split = _C._find_function("aten::split", 1)


@_overridable
def split(self, split_size, dim=0):
    import umbra
    if isinstance(split_size, (float, list, tuple)):
        return tuple(umbra.split_with_sizes(self, split_size, dim))
    return tuple(_split(self, split_size, dim))


def as_subclass(self, cls):
    return _C._as_subclass(self, cls)


@_overridable
def is_same_size(self, other):
    if not isinstance(other, Tensor):
        raise TypeError(f"is_same_size(): argument 'other' must be Tensor, not {type(other).__name__}")
    if _C._has_torch_function(other):
        from umbra.overrides import handle_torch_function
        return handle_torch_function(Tensor.is_same_size, (other,), self, other)
    return self.shape == other.shape


@_overridable
def is_signed(self):
    return self.dtype.is_signed


@_overridable
def is_set_to(self, tensor):
    return (_C._is_alias_of(self, tensor) and self.storage_offset() == tensor.storage_offset() and self.shape == tensor.shape
            and self.stride() == tensor.stride())


@_overridable
def dim_order(self, *, ambiguity_check=False):
    """The dimensions from the outermost to the innermost in memory. With `ambiguity_check` no other order may be as good; with a list of
    memory formats, one of them has to decide."""
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, _C.memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False and (len(set(self.stride())) < self.dim() or 1 in self.shape):
        if 0 in self.stride():
            raise RuntimeError("The tensor does not have unique dim order.")
        if sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    if self.numel() == 0:
        return tuple(range(self.dim()))
    return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), -self.size(d))))


@_overridable
def _complex(self):
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return complex(self.item())


@_overridable
def _reversed(self):
    return self.flip(0) if self.dim() else self


@_overridable
def apply_(self, function):
    """function(a) in the place of each element a."""
    return _map(self, function)


def _wrapper_subclass(cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=None, device=None,
                      pin_memory=False, requires_grad=False, dispatch_sizes_strides_policy=None, dispatch_device=False,
                      dispatch_layout=False, _extra_dispatch_keys=None, storage_size=None):
    """A tensor of a user's class that has metadata and no memory; what is done with it goes to its `__torch_dispatch__`."""
    refused = {"memory_format": memory_format, "pin_memory": pin_memory, "_extra_dispatch_keys": _extra_dispatch_keys, "storage_size": storage_size}
    for name, given in refused.items():
        if given is not None and given is not False:
            raise NotImplementedError(f"_make_wrapper_subclass({name}=...) is not in Umbra yet")
    made = _C._make_wrapper_subclass(cls, size, {"strides": strides, "storage_offset": storage_offset, "dtype": dtype, "layout": layout,
                                                 "device": device, "requires_grad": requires_grad})
    return _with_policy(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


def _with_policy(tensor, sizes_strides, device, layout):
    if sizes_strides is not None or device or layout:
        from umbra import _metadata_policy
        _metadata_policy.follow(tensor, sizes_strides, device, layout)
    return tensor


def _subclass(cls, data, require_grad=False, *, dispatch_sizes_strides_policy=None, dispatch_device=False, dispatch_layout=False, device_for_backend_keys=None):
    """A tensor of a user's class over the memory of another one."""
    if device_for_backend_keys is not None:
        raise NotImplementedError("_make_subclass(device_for_backend_keys=...) is not in Umbra yet")
    return _with_policy(_C._make_subclass(cls, data, require_grad), dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


@_overridable
def map_(self, tensor, function):
    """function(a, b) in the place of each element a, with the element b of `tensor`."""
    return _map(self, function, tensor)


@_overridable
def map2_(self, x, y, function):
    """function(a, b, c) in the place of each element a, with the elements of x and y."""
    return _map(self, function, x, y)


def _map(self, function, *others):
    import umbra
    name = ("apply_", "map_", "map2_")[len(others)]
    for place, (given, argument) in enumerate(zip(others, ("other",) if len(others) == 1 else ("x", "y")), 1):
        if not isinstance(given, umbra.Tensor):
            raise TypeError(f"{name}(): argument '{argument}' (position {place}) must be Tensor, not {type(given).__name__}")
    if any(tensor.requires_grad for tensor in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for label, tensor in zip(("'other'",) if len(others) == 1 else ("argument 'x'", "argument 'y'"), others):
        if tensor.dtype != self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for {label} (got {tensor.type()})")
    rows = [tensor.detach().expand(self.shape).reshape(-1).tolist() for tensor in (self, *others)]
    results = [function(*values) for values in zip(*rows)]
    for result in results:
        if isinstance(result, (str, bytes)) or not (hasattr(result, "__float__") or hasattr(result, "__index__") or hasattr(result, "__complex__")):
            raise TypeError(f"must be real number, not {type(result).__name__}")
    with umbra.no_grad():
        return self.copy_(umbra.tensor(results, dtype=self.dtype).reshape(self.shape))


@_overridable
def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    import umbra
    return umbra.unique(self, sorted, return_inverse, return_counts, dim)


@_overridable
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    import umbra
    return umbra.unique_consecutive(self, return_inverse, return_counts, dim)


def _new_sparse(self, args, device):
    """A COO tensor of this one's type: of elements, or of sizes without any."""
    import umbra
    options = {"dtype": self.dtype, "device": device}
    if args and isinstance(args[0], Tensor):
        return umbra.sparse_coo_tensor(*args, **options)
    return umbra.sparse_coo_tensor(size=args[0] if len(args) == 1 and isinstance(args[0], (_C.Size, tuple, list)) else args or (0,), **options)


@_overridable
def new(self, *args, **kwargs):
    """A tensor of this one's type: from sizes, from data, or the other tensor's."""
    if self.layout == _C.sparse_coo and not kwargs.keys() - {"device"}:
        return _new_sparse(self, args, kwargs.get("device") or self.device)
    if self.layout in _SPARSE:
        raise RuntimeError("Cannot map DispatchKey SparseCsrCPU to a unique layout.")
    kind, given, device = read_call(args, kwargs)
    if kind != "other":
        return made(kind, given, self.dtype, device or self.device)
    if device is not None:
        raise RuntimeError("Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...) instead.")
    if given.dtype != self.dtype:
        raise TypeError(f"expected {self.type()} (got {given.type()})")
    return given.detach()


@_overridable
def chalf(self, memory_format=None):
    import umbra
    return self.to(umbra.complex32) if memory_format is None else self.to(umbra.complex32, memory_format=memory_format)


def _reshaped(self, sizes):
    numel = 1
    for size in sizes:
        numel = numel * size
    if numel != self.numel():
        raise RuntimeError(f"requested resize to {'x'.join(map(str, sizes))} ({numel} elements in total), but the given tensor has a size of "
                           f"{'x'.join(map(str, self.size()))} ({self.numel()} elements). autograd's resize can only change the shape of a given "
                           "tensor, while preserving the number of elements. ")
    return self.contiguous().view(sizes)


@_overridable
def resize(self, *sizes):
    """The elements in another shape, as many as there are; `resize_` gives and takes elements."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=3)
    return _reshaped(self, sizes)


@_overridable
def resize_as(self, tensor):
    """The elements in the other tensor's shape."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=3)
    return _reshaped(self, tensor.size())


_set_to_tensor, _new_empty = Tensor.set_, Tensor.new_empty
_C_NAMES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long int", "int16": "short int", "int8": "signed char",
            "uint8": "unsigned char", "bool": "bool", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
            "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


def _c_name(dtype):
    name = str(dtype).split(".")[-1]
    return _C_NAMES.get(name, name)


@_overridable
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """The tensor becomes one over other memory: that of another tensor, or of a storage, which grows where it is too small."""
    from umbra.storage import TypedStorage
    if isinstance(source, TypedStorage):
        if source.dtype != self.dtype:
            raise RuntimeError(f"Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {source.dtype} for argument 1 "
                               "'storage'")
        source = source._untyped_storage
    if isinstance(source, _C.UntypedStorage):
        memory = _new_empty(self, (0,))
        _C._set_storage(memory, source, 0, [source.nbytes() // self.element_size()], [1])
        if size is None:
            return _set_to_tensor(self, memory)
        return _set_to_tensor(self, memory, storage_offset, size, stride or ())
    if source is None:
        return _set_to_tensor(self)
    if isinstance(source, Tensor) and source.dtype != self.dtype:
        raise RuntimeError(f"Could not set tensor of type {_c_name(source.dtype)} to a tensor of type {_c_name(self.dtype)}")
    if size is None:
        return _set_to_tensor(self, source)
    return _set_to_tensor(self, source, storage_offset, size, stride or ())


Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__torch_dispatch__ = _C._disabled_torch_dispatch_impl
Tensor.__init_subclass__ = classmethod(_init_subclass)
Tensor.__array_priority__ = 1000
Tensor._make_subclass = staticmethod(_subclass)
Tensor._make_wrapper_subclass = staticmethod(_wrapper_subclass)


def _attach(name, function):
    """Makes a method of a function, under the name that handlers of __torch_function__ see."""
    function.__name__, function.__qualname__ = name, f"Tensor.{name}"
    setattr(Tensor, name, function)


@heard
def _repr(self, *, tensor_contents=None):
    """The tensor as text; a subclass may give what stands between the parentheses."""
    if _C._has_torch_function(self):
        from umbra.overrides import handle_torch_function
        return handle_torch_function(Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
    from umbra._tensor_str import _str
    return _str(self, tensor_contents=tensor_contents)


for _protocol, _function in (("repr", _repr), ("reduce_ex", _reduce_ex), ("deepcopy", _deepcopy), ("array", _array), ("array_wrap", _array_wrap),
                             ("dlpack", _dlpack), ("dlpack_device", _dlpack_device), ("format", _format), ("complex", _complex),
                             ("reversed", _reversed)):
    _attach(f"__{_protocol}__", _function)
for _function in (untyped_storage, new_tensor, split, as_subclass, is_same_size, is_signed, is_set_to, dim_order, apply_, map_, map2_, unique,
                  unique_consecutive, new, chalf, resize, resize_as, set_):
    _attach(_function.__name__, _function)
Tensor.storage, Tensor._typed_storage = storage, storage.__wrapped__

# Names of Python 2's operators, which torch has kept.
for _old, _today in (("__div__", "__truediv__"), ("__rdiv__", "__rtruediv__"), ("__idiv__", "__itruediv__"), ("__long__", "__int__"),
                     ("__nonzero__", "__bool__")):
    setattr(Tensor, _old, getattr(Tensor, _today))
