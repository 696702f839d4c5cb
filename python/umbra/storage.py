"""The memory behind tensors."""
import mmap
import operator
import os
import sys
import weakref

import umbra
from umbra._C import UntypedStorage
from umbra._old_constructor import is_count

# Types that have a storage class of their own, by its name in pickles. Tensors of other types are saved over an UntypedStorage.
_STORAGE_TYPES = {
    "DoubleStorage": umbra.float64, "FloatStorage": umbra.float32, "HalfStorage": umbra.float16, "BFloat16Storage": umbra.bfloat16,
    "LongStorage": umbra.int64, "IntStorage": umbra.int32, "ShortStorage": umbra.int16, "CharStorage": umbra.int8, "ByteStorage": umbra.uint8,
    "BoolStorage": umbra.bool, "ComplexDoubleStorage": umbra.complex128, "ComplexFloatStorage": umbra.complex64,
}
_STORAGE_NAMES = {dtype: name for name, dtype in _STORAGE_TYPES.items()}


def _flat(storage, dtype):
    """A storage's memory as a tensor of one dimension, which shares it."""
    tensor = umbra.empty(0, dtype=dtype, device=storage.device)
    umbra._C._set_storage(tensor, storage, 0, [storage.nbytes() // dtype.itemsize], [1])
    return tensor


# ---- what UntypedStorage has in Python ----

def _untyped(self):
    return self


def _check_data(storage):
    if storage.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type")


def _tolist(self):
    _check_data(self)
    return _flat(self, umbra.uint8).tolist()


def _clone(self):
    self._refuse_wrapper("call copy_()")
    return _flat(self, umbra.uint8).clone().untyped_storage()


def _copy(self, source, non_blocking=None):
    self._refuse_wrapper("call copy_()")
    source = source.untyped()
    if self.nbytes() != source.nbytes():
        raise RuntimeError(f"Expected a storage of {self.nbytes()} bytes to copy from, but got one of {source.nbytes()}")
    _flat(self, umbra.uint8).copy_(_flat(source, umbra.uint8), non_blocking=bool(non_blocking))
    return self


def _fill(self, value):
    self._refuse_wrapper("call fill_()")
    _flat(self, umbra.uint8).fill_(value)
    return self


def _to_device(self, device):
    device = umbra.device(device)
    return self if self.device == device else _flat(self, umbra.uint8).to(device).untyped_storage()


def _cpu(self):
    return _to_device(self, "cpu")


def _size_with_elements(self):
    return object.__sizeof__(self) + self.nbytes()


def _reduce_untyped(self):
    return _reduce_storage(self)


def _reduce_storage(storage):
    """In a plain pickle a storage is a file of its own, in the old format."""
    import io
    file = io.BytesIO()
    umbra.save(storage, file, _use_new_zipfile_serialization=False)
    return _load_from_bytes, (file.getvalue(),)


def _load_from_bytes(data):
    import io
    storage = umbra.load(io.BytesIO(data), weights_only=False)
    if umbra._C._active_fake_mode() is None:
        return storage
    # Under a fake mode a pickled storage comes without data and, as in torch, on the device meta.
    empty = umbra.empty(storage.nbytes(), dtype=umbra.uint8, device="meta").untyped_storage()
    return TypedStorage(wrap_storage=empty, dtype=storage.dtype) if isinstance(storage, TypedStorage) else empty


_byte_at = UntypedStorage.__getitem__


def _part_of(self, index):
    """A byte, or a slice: a storage that shares its memory."""
    _check_data(self)
    if not isinstance(index, (int, slice)):
        raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
    if not isinstance(index, slice):
        return _byte_at(self, index)
    start, stop, step = index.indices(self.nbytes())
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    if stop <= start:
        return UntypedStorage(0)
    return umbra.frombuffer(self._buffer(), dtype=umbra.uint8, offset=start, count=stop - start).untyped_storage()


def _set_part(self, index, value):
    _flat(self, umbra.uint8)[index] = value


class _SharedFile(mmap.mmap):
    """A file's memory, which knows the file's name."""


_shared_files = weakref.WeakValueDictionary()  # by the place where their memory begins


def _from_file(filename, shared=False, nbytes=0):
    """The memory of a file: written through to it where `shared`, else a private copy of what is written."""
    try:
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})") from None
    with open(descriptor, "r+b" if shared else "rb") as file:
        size = os.fstat(descriptor).st_size
        if shared and size < nbytes:
            file.truncate(nbytes)
        elif size < nbytes:
            raise RuntimeError(f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>")
        if not (nbytes or size):
            return UntypedStorage(0)
        mapped = _SharedFile(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    storage = umbra.frombuffer(mapped, dtype=umbra.uint8).untyped_storage()
    if shared:
        mapped.filename = os.fspath(filename)
        _shared_files[storage.data_ptr()] = mapped
    return storage


def _filename(self):
    """The file whose memory it is, where that was asked for as shared; else None."""
    return getattr(_shared_files.get(self.data_ptr()), "filename", None) if self._has_data() else None


def _byteswap(self, dtype):
    """Turns the bytes of each element round; of a complex number, those of each part."""
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    elements = _flat(self, umbra.uint8).view(-1, size)
    elements.copy_(elements.flip(1))


_BYTE_ORDERS = {"native": sys.byteorder, "little": "little", "big": "big"}


def _from_buffer(buffer, byte_order=None, offset=0, count=-1, *, dtype):
    """A new storage with the elements that a buffer holds in some order of bytes. `offset` is in bytes, `count` in elements."""
    if dtype.itemsize > 1 and byte_order is None:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order is not None and byte_order not in _BYTE_ORDERS:
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    data, size = memoryview(buffer).cast("B"), dtype.itemsize
    if not 0 <= offset <= len(data):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)}), but got {offset}")
    if count < 0 and (len(data) - offset) % size:
        raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
    count = (len(data) - offset) // size if count < 0 else count
    if offset + count * size > len(data):
        raise ValueError(f"buffer has only {len(data) - offset} elements after offset {offset}, but specified a size of {count}")
    if count == 0:
        return UntypedStorage(0)
    storage = umbra.frombuffer(bytearray(data[offset:offset + count * size]), dtype=umbra.uint8).clone().untyped_storage()
    if size > 1 and _BYTE_ORDERS[byte_order] != sys.byteorder:
        _byteswap(storage, dtype)
    if dtype == umbra.bool:
        truths = _flat(storage, umbra.uint8)
        truths.copy_(truths != 0)
    return storage


def _copy_of(self):
    return self.clone()


def _deep_copy_of(self, memo):
    """One copy for all that share this memory, tensors among them."""
    key = ("umbra storage", self._cdata)
    if key not in memo:
        memo[key] = _flat(self, umbra.uint8).clone()
    return memo[key].untyped_storage()


def _is_pinned(self, device=None):
    return False


def _iterate(self):
    return iter(self.tolist())


def _type_of(self, dtype=None, non_blocking=False):
    """The name of its class; memory without a type cannot be cast to one."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    raise RuntimeError(f"an UntypedStorage has no elements to be cast to {dtype}: take .untyped_storage() of a tensor of that type")


def _get_device(self):
    return self.device.index if self.device.index is not None else -1


for _name, _method in (("byteswap", _byteswap), ("__copy__", _copy_of), ("__deepcopy__", _deep_copy_of), ("is_pinned", _is_pinned), ("type", _type_of),
                       ("get_device", _get_device), ("untyped", _untyped), ("tolist", _tolist), ("__iter__", _iterate), ("clone", _clone), ("copy_", _copy), ("fill_", _fill), ("cpu", _cpu),
                       ("__sizeof__", _size_with_elements), ("__reduce__", _reduce_untyped), ("__getitem__", _part_of), ("__setitem__", _set_part)):
    setattr(UntypedStorage, _name, _method)
UntypedStorage.__module__ = "umbra.storage"
UntypedStorage.from_file, UntypedStorage.from_buffer = staticmethod(_from_file), staticmethod(_from_buffer)
UntypedStorage.filename = property(_filename)
UntypedStorage.is_cuda = property(lambda self: self.device.type == "cuda")


# ---- storages of elements ----

class _StorageMeta(type):
    def __instancecheck__(cls, instance):
        """A TypedStorage of floats is a FloatStorage."""
        if cls is not TypedStorage and type(instance) is TypedStorage:
            return instance.dtype == cls.dtype
        return super().__instancecheck__(instance)


class TypedStorage(metaclass=_StorageMeta):
    """A tensor's memory as elements of the tensor's type: what `tensor.storage()` gives.

        umbra.ones(2, 3).storage()[4]      # 1.0
    """

    dtype = None

    __sizeof__ = _size_with_elements

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        self.dtype = type(self).dtype or dtype or umbra.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError("No positional arguments should be given when using 'wrap_storage'")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            if type(self).dtype is None and dtype is None:
                raise RuntimeError("TypedStorage.__init__ received an invalid combination of arguments: argument 'dtype' must be specified")
            self._untyped_storage = wrap_storage
        elif len(args) > 1:
            raise RuntimeError(f"Too many positional arguments: at most 1 is taken, but got {len(args)}")
        elif args and not is_count(args[0]):
            self._untyped_storage = umbra.tensor(args[0], dtype=self.dtype, device=device).untyped_storage()
        else:
            size = args[0] if args else 0
            self._untyped_storage = umbra.empty(operator.index(size), dtype=self.dtype, device=device).untyped_storage()

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    @property
    def _elements(self):
        return _flat(self._untyped_storage, self.dtype)

    @property
    def _cdata(self):
        """What tells one memory from another."""
        return self._untyped_storage._cdata

    def untyped(self):
        return self._untyped_storage

    _untyped = untyped

    def _like(self, elements):
        return TypedStorage(wrap_storage=elements.untyped_storage(), dtype=elements.dtype)

    def element_size(self):
        return self.dtype.itemsize

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def __len__(self):
        return self.nbytes() // self.element_size()

    size = _size = __len__

    def __getitem__(self, index):
        _check_data(self)
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int) or isinstance(index, bool):
            raise (TypeError if isinstance(index, bool) else RuntimeError)(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._elements[index].item()

    def __setitem__(self, index, value):
        _check_data(self)
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")
        self._elements[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        _check_data(self)
        return self._elements.tolist()

    def fill_(self, value):
        self._elements.fill_(value)
        return self

    def clone(self):
        return self._like(self._elements.clone())

    def copy_(self, source, non_blocking=None):
        self._elements.copy_(source._elements, non_blocking=bool(non_blocking))
        return self

    def cpu(self):
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def resize_(self, size):
        self._untyped_storage.resize_(size * self.element_size())

    def resizable(self):
        return self._untyped_storage.resizable()

    is_pinned, get_device, __copy__ = _is_pinned, _get_device, _copy_of

    def __deepcopy__(self, memo):
        return TypedStorage(wrap_storage=_deep_copy_of(self._untyped_storage, memo), dtype=self.dtype)

    @classmethod
    def _typed(cls, storage, dtype):
        return cls(wrap_storage=storage) if cls.dtype is not None else cls(wrap_storage=storage, dtype=dtype)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """The memory of a file of `size` elements: written through to it where `shared`."""
        if cls.dtype is None:
            raise RuntimeError("from_file can only be called on derived classes")
        return cls._typed(_from_file(filename, shared, size * cls.dtype.itemsize), cls.dtype)

    @classmethod
    def from_buffer(cls, *args, dtype=None, **kwargs):
        """The elements that a buffer holds in some order of bytes: `ShortStorage.from_buffer(data, "big")`."""
        dtype = cls.dtype or dtype or umbra.get_default_dtype()
        return cls._typed(_from_buffer(*args, dtype=dtype, **kwargs), dtype)

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    def type(self, dtype=None):
        """The name of the class of such storages, or the elements in another type."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        return self._like(self._elements.to(dtype))

    def pickle_storage_type(self):
        if self.dtype not in _STORAGE_NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return _STORAGE_NAMES[self.dtype]

    _pickle_storage_type = pickle_storage_type

    def __reduce__(self):
        return _reduce_storage(self)

    def __repr__(self):
        values = "..." if self.device.type == "meta" else "\n".join(f" {value}" for value in self)
        return f"{values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _conversion(dtype):
    def convert(self):
        return self._like(self._elements.to(dtype))
    return convert


for _name, _dtype in (("double", umbra.float64), ("float", umbra.float32), ("half", umbra.float16), ("bfloat16", umbra.bfloat16), ("long", umbra.int64),
                      ("int", umbra.int32), ("short", umbra.int16), ("char", umbra.int8), ("byte", umbra.uint8), ("bool", umbra.bool),
                      ("complex_double", umbra.complex128), ("complex_float", umbra.complex64)):
    setattr(TypedStorage, _name, _conversion(_dtype))
_CLASSES = {name: _StorageMeta(name, (TypedStorage,), {"dtype": dtype, "__module__": "umbra", "__doc__": f"A tensor's memory as elements of {dtype}."})
            for name, dtype in _STORAGE_TYPES.items()}


def class_of(dtype):
    """The storage class of a type of elements."""
    return next(cls for cls in _CLASSES.values() if cls.dtype == dtype)


def is_storage(obj):
    """Whether an object is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))
