"""Tensors whose handler says how they look: `_make_wrapper_subclass(..., dispatch_sizes_strides_policy="sizes", dispatch_device=True, dispatch_layout=True)`.

What a program asks such a tensor for (`size()`, `stride()`, `device`, ...) is asked of its `__torch_dispatch__`; None is the tensor's own. The library reads sizes and
strides of the tensor itself: before a call that takes one they are made what the handler says.
"""
import math

from umbra import _C
from umbra._C import Tensor

_LEVELS = {"strides": 1, "sizes": 2}
_STRIDES, _SIZES = 1, 2


def _define_questions():
    """The operators that a handler is asked by and that nothing else needs."""
    questions = {"aten": {"sym_size(Tensor self) -> SymInt[]": lambda self: tuple(self.shape), "sym_stride(Tensor self) -> SymInt[]": lambda self: self.stride(),
                         "size(Tensor self) -> int[]": lambda self: list(self.shape), "stride(Tensor self) -> int[]": lambda self: list(self.stride())},
                 "prim": {"device(Tensor a) -> Device": lambda self: self.device, "layout(Tensor a) -> Layout": lambda self: self.layout}}
    libraries = []
    for space, operators in questions.items():
        libraries.append(_C._Library(space, "FRAGMENT"))
        for schema, function in operators.items():
            libraries[-1].define(schema, [])
            libraries[-1].impl(schema.partition("(")[0], function, "CompositeImplicitAutograd")
    return libraries  # which the definitions live as long as


_questions = _define_questions()


def follow(tensor, sizes_strides, device, layout):
    """Makes the tensor's handler say how it looks: strides, or sizes and strides; its device; its layout."""
    if sizes_strides is not None and sizes_strides not in _LEVELS:
        raise ValueError(f"Unknown sizes_strides_policy: {sizes_strides}; expected 'strides' or 'sizes'")
    tensor._metadata_policy = (_LEVELS.get(sizes_strides, 0), device, layout)
    _C._set_metadata_answers(_ANSWERS)
    cls = type(tensor)
    if cls.__torch_function__ in (_C._disabled_torch_function_impl, Tensor.__torch_function__):
        cls.__torch_function__ = classmethod(_function)


def _ask(tensor, space, name, *args):
    """What the handler says; None: what the tensor itself has."""
    import umbra
    packet = getattr(getattr(umbra.ops, space), name)
    overload = packet.memory_format if args and name == "is_contiguous" else packet.default
    answer = tensor.__torch_dispatch__(overload, (type(tensor),), (tensor, *args), {})
    if answer is NotImplemented:
        raise TypeError(f"Multiple dispatch failed for 'torch.ops.{space}.{name}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
                        f"  - tensor subclass {type(tensor)}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented")
    return answer


def _ask_or_none(tensor, name):
    """The same; None also where it declines: a call may not need it."""
    try:
        return _ask(tensor, "aten", name)
    except TypeError:
        return None


# ---- what tensors are asked: NotImplemented is the tensor's own answer ----

def _policy(tensor):
    return tensor.__dict__.get("_metadata_policy", (0, False, False)) if hasattr(tensor, "__dict__") else (0, False, False)


def _answer(part, least, space, name):
    """The answer of a tensor whose policy says so."""
    def answer(tensor, *args):
        given = _ask(tensor, space, name, *args) if _policy(tensor)[part] >= least else None
        return NotImplemented if given is None else given
    return answer


def _entries(least, name, kind):
    """All sizes or strides, or the one of a dimension."""
    ask = _answer(0, least, "aten", name)

    def answer(tensor, dim=None):
        if _policy(tensor)[0] < least:
            return NotImplemented
        rank = None if dim is None else tensor.dim()
        entries = ask(tensor)
        if entries is NotImplemented:
            entries = _C._own_geometry(tensor)[least == _STRIDES]
        if dim is None:
            return kind(entries)
        if not -max(rank, 1) <= dim < max(rank, 1):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, {max(rank, 1) - 1}], but got {dim})")
        return entries[dim]
    return answer


_ANSWERS = {
    "size": _entries(_SIZES, "sym_size", _C.Size), "stride": _entries(_STRIDES, "sym_stride", tuple), "dim": _answer(0, _SIZES, "aten", "dim"),
    "numel": _answer(0, _SIZES, "aten", "sym_numel"), "storage_offset": _answer(0, _SIZES, "aten", "sym_storage_offset"),
    "is_contiguous": lambda tensor, memory_format=None: _contiguity(tensor, *(() if memory_format is None else (memory_format,))),
    "device": _answer(1, True, "prim", "device"), "layout": _answer(2, True, "prim", "layout"),
}
_contiguity = _answer(0, _STRIDES, "aten", "is_contiguous")


# ---- calls ----

def _function(cls, func, types, args=(), kwargs=None):
    kwargs = kwargs or {}
    if func in (Tensor.contiguous,) and _policy(args[0])[0]:
        return args[0] if args[0].is_contiguous(*args[1:], **kwargs) else args[0].clone(memory_format=(*args[1:], *kwargs.values(), _C.contiguous_format)[0])
    if func is Tensor.type_as:
        return args[0].to(*args[1:], *kwargs.values())  # which asks for the other's device
    for value in (*args, *kwargs.values()):
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(one, Tensor) and _policy(one)[0] and func not in _QUESTIONS:
                _make_it_so(one)
    with _C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


_QUESTIONS = {Tensor.size, Tensor.stride, Tensor.dim, Tensor.ndimension, Tensor.numel, Tensor.nelement, Tensor.storage_offset, Tensor.is_contiguous, Tensor.data_ptr,
              Tensor.shape.__get__, Tensor.ndim.__get__, Tensor.device.__get__, Tensor.layout.__get__, Tensor.dtype.__get__, Tensor.requires_grad.__get__}


def _make_it_so(tensor):
    """Gives the tensor itself the sizes and strides that its handler says."""
    own_sizes, own_strides = _C._own_geometry(tensor)
    sizes, strides = _ask_or_none(tensor, "sym_size") if _policy(tensor)[0] >= _SIZES else None, _ask_or_none(tensor, "sym_stride")
    sizes = own_sizes if sizes is None else tuple(sizes)
    if strides is None:
        strides = own_strides if tuple(sizes) == tuple(own_sizes) else tuple(math.prod(max(size, 1) for size in sizes[i + 1:]) for i in range(len(sizes)))
    if tuple(sizes) != tuple(own_sizes) or tuple(strides) != tuple(own_strides):
        _C._set_wrapper_geometry(tensor, tuple(sizes), tuple(strides))
