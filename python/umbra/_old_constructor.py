"""Tensor(2, 3), Tensor([1., 2.]), Tensor(other) and x.new(...): how tensors were made before torch.tensor and torch.empty."""
import operator

from umbra import _C
from umbra._C import Tensor


def construct(cls, *args, **kwargs):
    """What Tensor(...), or a class made of it, gives."""
    import umbra
    kind, given, device = read_call(args, kwargs)
    check_device(device)
    if kind == "other":
        if device is not None:
            raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or "
                               "torch.as_tensor(...) instead.")
        if type(given).__torch_dispatch__ is Tensor.__torch_dispatch__:
            return _C._as_subclass(given, cls)  # the same memory, and gradients flow through
        data = given.detach()
    else:
        data = made(kind, given, umbra.get_default_dtype(), device)
    if cls is Tensor:
        return data
    return _C._make_subclass(cls, data, False)


def check_device(device):
    import umbra
    if device is not None and umbra.device(device).type != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {umbra.device(device).type} was passed")


def made(kind, given, dtype, device):
    """A tensor of its own, of what `read_call` found."""
    import umbra
    if kind == "storage":
        return over_storage(given, dtype)
    with _C.DisableTorchFunction():  # modes, and the default device that is one, do not hear of the old constructor
        return umbra.empty(given, dtype=dtype, device=device) if kind == "size" else umbra.tensor(given, dtype=dtype, device=device)


_FORMS = {"": "(*, torch.device device = None)", "storage": "(torch.Storage storage)", "other": "(Tensor other)",
          "size": "(tuple of ints size, *, torch.device device = None)", "data": "(object data, *, torch.device device = None)"}


def read_call(args, kwargs):
    """Which form a call of an old constructor has ("storage", "other", "size" or "data"), what it is made of, and the device."""
    device = kwargs.get("device")
    names = [name for name in kwargs if name != "device"]
    if not args and len(names) == 1 and names[0] in ("storage", "other", "size", "data"):
        kind, given = names[0], kwargs[names[0]]
        if kind in ("storage", "other") and (_kind_of(given) != kind or "device" in kwargs) or kind == "size" and not isinstance(given, (tuple, list)):
            _refuse(args, kwargs)
    elif names or len(args) > 1 and not _is_size(args[0]):
        _refuse(args, kwargs)
    elif len(args) == 1 and not is_count(args[0]):
        kind, given = _kind_of(args[0]), args[0]
    else:
        kind, given = "size", args or (0,)
    if kind == "size":
        return kind, _sizes(given), device
    return kind, checked_data(given) if kind == "data" else given, device


def _kind_of(value):
    import umbra
    if isinstance(value, Tensor):
        return "other"
    if isinstance(value, _C.Size):
        return "size"
    return "storage" if isinstance(value, (_C.UntypedStorage, umbra.storage.TypedStorage)) else "data"


def _is_size(value):
    return is_count(value) or isinstance(value, Tensor) and value.dim() == 0 and not value.is_floating_point() and not value.is_complex()


def _sizes(given):
    for i, size in enumerate(given):
        if not _is_size(size) and not isinstance(size, bool):
            raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error \"type must be tuple of ints,but got "
                            f"{_type_name(size)}\"")
    return given if isinstance(given, _C.Size) else tuple(n if isinstance(n, (_C.SymInt, Tensor)) else int(operator.index(n)) for n in given)


def _type_name(value):
    kind = type(value)
    if isinstance(value, Tensor):
        return "Tensor"
    return f"{kind.__module__.replace('umbra', 'torch')}.{kind.__name__}" if kind.__module__ in ("numpy", "torch", "umbra") else kind.__name__


def _refuse(args, kwargs):
    names = sorted(kwargs, key=lambda name: (name == "device", name)) if args else sorted(kwargs)
    given = ", ".join([*map(_type_name, args), *(f"{name}={_type_name(kwargs[name])}" for name in names)])
    text = f"new() received an invalid combination of arguments - got ({given}{', ' * (not args)}), but expected one of:\n"
    for kind, form in _FORMS.items():
        text += f" * {form}\n"
        if len(args) + len(names) == form.count(",") + 1:  # PyTorch says more of the forms that have as many parameters
            text += f"      didn't match because some of the {_mismatch(kind, args, kwargs, names)}\n"
    raise TypeError(text)


def _mismatch(kind, args, kwargs, names):
    if any(name != kind for name in names):
        return f"keywords were incorrect: {', '.join(names)}"
    marked = [f"!{_type_name(value)}{_inside(value)}!" for value in args] + [f"!{name}={_type_name(kwargs[name])}!" for name in names]
    return f"arguments have invalid types: ({', '.join(marked)}{', ' * (not args)})"


def _inside(value):
    if not isinstance(value, (tuple, list)):
        return ""
    kinds = ", ".join(map(_type_name, value)) + "," * (isinstance(value, tuple) and len(value) == 1)
    return f" of [{kinds}]" if isinstance(value, list) else f" of ({kinds})"


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
    if isinstance(data, (dict, Tensor)) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        raise TypeError(f"new(): data must be a sequence (got {_type_name(data)})")
    return data


def over_storage(storage, dtype):
    """A tensor of one dimension over a storage's memory."""
    import umbra
    held = getattr(storage, "dtype", None) or dtype
    if held != dtype:
        names = [umbra._functions._kernel_name(t) for t in (dtype, held)]
        raise RuntimeError(f"Expected a Storage of type {names[0]} or an UntypedStorage, but got type {names[1]} for argument 1 'storage'")
    return umbra.storage._flat(storage.untyped(), dtype)
