"""What Tensor has besides its operators, written in Python: it is attached to the class when the package is imported."""
import copy as _copy

from umbra import _C
from umbra._C import Tensor


def _construct(cls, *args, device=None, dtype=None, requires_grad=False):
    """Tensor(2, 3), Tensor([1., 2.]), Tensor(other): the old constructor."""
    import umbra
    if len(args) == 1 and isinstance(args[0], Tensor):
        data = args[0].detach()
    elif len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], _C.Size):
        data = umbra.tensor(args[0], dtype=dtype or umbra.get_default_dtype())
    else:
        sizes = args[0] if len(args) == 1 and isinstance(args[0], _C.Size) else args
        data = umbra.empty(sizes or (0,), dtype=dtype, device=device)
    if cls is Tensor:
        return data
    return _C._make_subclass(cls, data, requires_grad)


# ---- __torch_function__ ----

def _convert(result, cls):
    """Results of a call on a subclass are of that subclass, unless they are already of it."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_convert(part, cls) for part in result]
        return type(result)(parts) if type(result) in (tuple, list) or hasattr(type(result), "n_fields") else type(result)(*parts)
    return result


def _torch_function(cls, func, types, args=(), kwargs=None):
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        return _convert(func(*args, **(kwargs or {})), cls)


# ---- copies and files ----

def _rebuild(cls, values, requires_grad, attributes):
    import umbra
    dtype, sizes, strides, offset, data = values
    storage = umbra.frombuffer(bytearray(data), dtype=umbra.uint8).clone() if data else umbra.empty(0, dtype=umbra.uint8)
    tensor = umbra.empty(0, dtype=dtype)
    _C._set_storage(tensor, storage.untyped_storage(), offset, list(sizes), list(strides))
    if cls is not Tensor:
        tensor = _C._make_subclass(cls, tensor, requires_grad)
    elif requires_grad:
        tensor.requires_grad_()
    tensor.__dict__.update(attributes)
    return tensor


def _reduce_ex(self, protocol):
    if self.device.type != "cpu":
        raise RuntimeError(f"a tensor on {self.device} has no data to pickle")
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
    plain = self.detach().resolve_conj().resolve_neg()
    data = bytes(memoryview(plain.untyped_storage()._buffer()))
    values = (plain.dtype, tuple(plain.shape), plain.stride(), plain.storage_offset(), data)
    return _rebuild, (type(self), values, self.requires_grad, dict(self.__dict__))


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. If "
                           "you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage")
    import umbra
    with umbra.no_grad():
        # Tensors that share memory go on sharing it.
        storage = self.untyped_storage()
        key = ("umbra storage", storage._cdata)
        if key not in memo:
            flat = self.detach().as_strided((storage.nbytes() // self.element_size(),), (1,), 0)
            memo[key] = flat.clone()
        copied = memo[key]
        if copied.dtype != self.dtype:
            copied = copied.view(self.dtype)
        result = copied.as_strided(self.size(), self.stride(), self.storage_offset()).detach()
        if self.is_conj():
            _C._set_conj(result, True)
        if self.is_neg():
            _C._set_neg(result, True)
        if type(self) not in (Tensor, _C.FakeTensor):
            result = _C._make_subclass(type(self), result, False)
    if self.requires_grad:
        result.requires_grad_()
    if self.grad is not None:
        result.grad = _copy.deepcopy(self.grad, memo)
    if self.__dict__:
        result.__dict__.update(_copy.deepcopy(self.__dict__, memo))
    memo[id(self)] = result
    return result


# ---- NumPy, DLPack ----

def _array(self, dtype=None, copy=None):
    array = self.numpy() if not self.requires_grad else self.detach().numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    return _C._to_dlpack(self)


# ---- the rest ----

def _format(self, spec):
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def untyped_storage(self):
    return _C._untyped_storage(self)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    import umbra
    return umbra.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def split(self, split_size, dim=0):
    import umbra
    if isinstance(split_size, (list, tuple)):
        return tuple(umbra.ops.aten.split_with_sizes.default(self, split_size, dim))
    return tuple(umbra.ops.aten.split.Tensor(self, split_size, dim))


def as_subclass(self, cls):
    return _C._as_subclass(self, cls)


def is_same_size(self, other):
    return self.shape == other.shape


def is_signed(self):
    return self.dtype.is_signed


def is_set_to(self, other):
    return (_C._is_alias_of(self, other) and self.storage_offset() == other.storage_offset() and self.shape == other.shape
            and self.stride() == other.stride())


def dim_order(self):
    return tuple(sorted(range(self.dim()), key=lambda d: -self.stride(d)))



def _complex(self):
    return complex(self.item())


def _reversed(self):
    return self.flip(0) if self.dim() else self


def apply_(self, function):
    import umbra
    flat = [function(value) for value in self.detach().reshape(-1).tolist()]
    with umbra.no_grad():
        return self.copy_(umbra.tensor(flat, dtype=self.dtype).reshape(self.shape))


Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__torch_dispatch__ = _C._disabled_torch_dispatch_impl
Tensor.__reduce_ex__ = _reduce_ex
Tensor.__deepcopy__ = _deepcopy
Tensor.__array__ = _array
Tensor.__array_priority__ = 1000
Tensor.__dlpack__ = _dlpack
Tensor.__dlpack_device__ = lambda self: (1, 0)
Tensor.__format__ = _format
Tensor.__complex__ = _complex
Tensor.__reversed__ = _reversed
Tensor._make_subclass = staticmethod(lambda cls, data, require_grad=False, **_: _C._make_subclass(cls, data, require_grad))
Tensor._make_wrapper_subclass = staticmethod(lambda cls, size, strides=None, storage_offset=None, **kwargs: _C._make_wrapper_subclass(
    cls, size, {**kwargs, "strides": strides, "storage_offset": storage_offset}))
for _function in (untyped_storage, new_tensor, split, as_subclass, is_same_size, is_signed, is_set_to, dim_order, apply_):
    setattr(Tensor, _function.__name__, _function)
Tensor.storage = untyped_storage
Tensor._typed_storage = untyped_storage
