"""Tensor(2, 3), Tensor([1., 2.]), Tensor(other) and x.new(...): how tensors were made before torch.tensor and torch.empty."""
import operator

from umbra import _C
from umbra._C import Tensor


def construct(cls, *args, size=None, device=None, dtype=None, requires_grad=False):
    """What Tensor(...), or a class made of it, gives."""
    import umbra
    if device is not None and umbra.device(device).type != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {umbra.device(device).type} was passed")
    if len(args) == 1 and isinstance(args[0], Tensor):
        if device is not None:
            raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or "
                               "torch.as_tensor(...) instead.")
        if type(args[0]).__torch_dispatch__ is Tensor.__torch_dispatch__:
            return _C._as_subclass(args[0], cls)  # the same memory, and gradients flow through
        data = args[0].detach()
    elif len(args) == 1 and isinstance(args[0], (_C.UntypedStorage, umbra.storage.TypedStorage)):
        data = over_storage(args[0], dtype or umbra.get_default_dtype())
    elif size is not None and not args:
        data = _empty(size, dtype, device)
    elif len(args) == 1 and not isinstance(args[0], _C.Size) and not is_count(args[0]):
        given = checked_data(args[0])
        with _C.DisableTorchFunction():  # modes, and the default device that is one, do not hear of the old constructor
            data = umbra.tensor(given, dtype=dtype or umbra.get_default_dtype())
    else:
        data = _empty(given_sizes(args), dtype, device)
    if cls is Tensor:
        return data
    return _C._make_subclass(cls, data, requires_grad)


def _empty(sizes, dtype, device):
    import umbra
    with _C.DisableTorchFunction():
        return umbra.empty(sizes, dtype=dtype, device=device)


def is_count(value):
    """Whether old constructors take a value for a size: an integer, Python's or NumPy's, and no bool."""
    if isinstance(value, (int, _C.SymInt)):
        return not isinstance(value, bool)
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, Tensor)


def checked_data(data):
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, dict) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        kind = type(data)
        name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
        raise TypeError(f"new(): data must be a sequence (got {name})")
    return data


def given_sizes(args):
    """The sizes that old constructors are given: as a torch.Size, which may be empty, or one by one; nothing is a row of no elements."""
    if len(args) == 1 and isinstance(args[0], _C.Size):
        return args[0]
    return tuple(n if isinstance(n, (int, _C.SymInt)) or not is_count(n) else operator.index(n) for n in args) or (0,)


def over_storage(storage, dtype):
    """A tensor of one dimension over a storage's memory."""
    import umbra
    held = getattr(storage, "dtype", None) or dtype
    if held != dtype:
        names = [umbra._functions._kernel_name(t) for t in (dtype, held)]
        raise RuntimeError(f"Expected a Storage of type {names[0]} or an UntypedStorage, but got type {names[1]} for argument 1 'storage'")
    return umbra.storage._flat(storage.untyped(), dtype)
