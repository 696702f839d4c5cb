"""torch.FloatTensor and its like: a dtype in the shape of a class."""
import warnings

import umbra
from umbra._C import Tensor
from umbra._old_constructor import check_device, made, read_call

__all__ = ["set_default_tensor_type"]


class _LegacyType(type):
    def __new__(metaclass, name, bases, body):
        if bases:
            raise TypeError(f"type '{bases[0].__module__}.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(metaclass, name, bases, body)

    def __call__(cls, *args, **kwargs):
        kind, given, device = read_call(args, kwargs)
        if kind == "other":
            if device is None and given.dtype != cls._legacy_dtype:
                raise TypeError(f"expected torch.{cls.__name__} (got {given.type()})")
            return Tensor(given, device=device)
        check_device(device)
        return made(kind, given, cls._legacy_dtype, device)

    def __getattr__(cls, name):
        """Methods are those of all tensors: `torch.FloatTensor.add(x, y)`."""
        if name.startswith("__"):
            raise AttributeError(f"type object 'torch.{cls.__name__}' has no attribute '{name}'")
        return getattr(Tensor, name)

    dtype = property(lambda cls: cls._legacy_dtype)
    layout = property(lambda cls: umbra.strided)
    is_cuda = is_sparse = property(lambda cls: False)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls._legacy_dtype and instance.device.type == "cpu" and instance.layout == cls.layout


class _LegacySparseType(_LegacyType):
    """torch.sparse.FloatTensor(indices, values, size): values keep their own type."""

    def __call__(cls, *args, device=None):
        warnings.warn("torch.sparse.SparseTensor(indices, values, shape, *, device=) is deprecated.  Please use torch.sparse_coo_tensor(indices, values, "
                      "shape, dtype=, device=).", stacklevel=2)
        if args and isinstance(args[0], Tensor):
            return umbra.sparse_coo_tensor(*args, device=device)
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
        return umbra.sparse_coo_tensor(size=tuple(sizes), dtype=cls._legacy_dtype, device=device)

    layout = property(lambda cls: umbra.sparse_coo)
    is_sparse = property(lambda cls: True)


def _text(name, dtype):
    return f"""Tensors of {dtype} on the CPU, by the older name: `isinstance` asks for them, calls make them of sizes or of elements.

    >>> torch.{name}Tensor(2, 3).dtype
    {dtype}
    """


SPARSE_TYPES = {}  # torch.sparse has them by these names
for _name, _dtype in (("Float", umbra.float32), ("Double", umbra.float64), ("Half", umbra.float16), ("BFloat16", umbra.bfloat16),
                      ("Byte", umbra.uint8), ("Char", umbra.int8), ("Short", umbra.int16), ("Int", umbra.int32), ("Long", umbra.int64),
                      ("Bool", umbra.bool)):
    __all__.append(_name + "Tensor")
    globals()[_name + "Tensor"] = _LegacyType(_name + "Tensor", (), {"_legacy_dtype": _dtype, "__module__": "torch", "__doc__": _text(_name, _dtype)})
    if _dtype != umbra.bool:
        SPARSE_TYPES[_name + "Tensor"] = _LegacySparseType(_name + "Tensor", (), {"_legacy_dtype": _dtype, "__module__": "torch.sparse"})


def set_default_tensor_type(t, /):
    """The type of floating point tensors that nobody gave one, by the name of its old class: `set_default_tensor_type(torch.DoubleTensor)`."""
    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
                  "torch.set_default_device() as alternatives.", stacklevel=2)
    if isinstance(t, str):
        module, _, name = t.rpartition(".")
        t = getattr(umbra, name) if module == "torch" else globals().get(t)
    dtype = getattr(t, "_legacy_dtype", None)
    if dtype is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    umbra.set_default_dtype(dtype)

