"""Helpers under torch's private names: files of torch.save name those that build tensors."""
import copyreg
import sys
import traceback

from umbra import _C
from umbra.compiler import is_compiling  # noqa: F401


def _flatten_dense_tensors(tensors):
    import umbra
    return umbra.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """The parts of a flat tensor, with the sizes of `tensors`."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors))


def _take_tensors(tensors, size_limit):
    """The tensors in lists of one type each, none of which is larger than `size_limit` bytes where it has several."""
    waiting = {}
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        gathered, used = waiting.get(tensor.type(), ([], 0))
        if gathered and used + size > size_limit:
            yield gathered
            gathered, used = [], 0
        waiting[tensor.type()] = ([*gathered, tensor], used + size)
    for gathered, _ in waiting.values():
        if gathered:
            yield gathered


# ---- devices: there is no accelerator ----

def _get_available_device_type():
    """The type of the accelerator."""
    return None


def _get_device_module(device_type):
    import umbra
    module = getattr(umbra, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'.")
    return module


def _get_all_device_indices():
    return None


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device; that of the CPU, where it is allowed, is -1. `optional`: None is the accelerator in use."""
    import umbra
    device = umbra.device(device) if isinstance(device, str) else device
    index = None
    if isinstance(device, umbra.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if isinstance(device, int):
        index = device
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


class ExceptionWrapper:
    """An exception on its way to another process or thread: its type, and its text with the trace."""

    def __init__(self, exc_info=None, where="in background"):
        self.exc_type, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_msg = "".join(traceback.format_exception(self.exc_type, error, trace))
        self.where = where

    def reraise(self):
        """Raises an exception of that type that says where the other one came from."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            error = self.exc_type(text)
        except Exception:
            # The type wants other arguments than a text.
            raise RuntimeError(text) from None
        raise error


class KeyErrorMessage(str):
    """A text that is its own repr: KeyError shows reprs."""

    def __repr__(self):
        return str(self)


def _element_size(dtype):
    return dtype.itemsize


# ---- what objects carry besides their contents ----

def _get_obj_state(obj):
    """The attributes of an object: what its class says of them, else a dict, or a pair of one and of the values of its slots."""
    if getattr(type(obj), "__getstate__", None) is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    slots = copyreg._slotnames(type(obj))
    if not slots:
        return obj.__dict__
    return obj.__dict__, {name: getattr(obj, name) for name in slots if hasattr(obj, name)}


def _set_obj_state(obj, state):
    parts = state if isinstance(state, tuple) else (state,)
    if len(parts) > 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for part in parts:
        for name, value in (part or {}).items():
            setattr(obj, name, value)
    return obj


# ---- tensors from what files say of them ----

def _checked_geometry(storage, dtype, offset, sizes, strides):
    """Files are not to be trusted: a tensor reads nothing outside of its storage."""
    sizes, strides = list(sizes), list(strides)
    numbers = [offset, *sizes, *strides]
    if len(sizes) != len(strides) or any(type(n) is not int or not 0 <= n < 1 << 62 for n in numbers):
        raise RuntimeError(f"not the geometry of a tensor: offset {offset}, sizes {sizes}, strides {strides}")
    needed = offset + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if all(sizes) else 0
    if needed * dtype.itemsize > storage.nbytes():
        raise RuntimeError(f"setStorage: sizes {sizes}, strides {strides}, storage offset {offset}, and itemsize {dtype.itemsize} requiring a "
                           f"storage size of {needed * dtype.itemsize} are out of bounds for storage of size {storage.nbytes()}")
    return offset, sizes, strides


def _over_storage(storage, dtype, offset, sizes, strides):
    import umbra
    tensor = umbra.empty(0, dtype=dtype, device=storage.device)
    _C._set_storage(tensor, storage, *_checked_geometry(storage, dtype, offset, sizes, strides))
    return tensor


def _finished(tensor, requires_grad, metadata):
    if requires_grad:
        tensor.requires_grad_()
    for name, set_bit in (("conj", _C._set_conj), ("neg", _C._set_neg)):
        if (metadata or {}).get(name):
            set_bit(tensor, True)
    return tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _over_storage(storage._untyped_storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """A tensor over a TypedStorage. `backward_hooks` are always empty: no file holds hooks."""
    _refuse_hooks(backward_hooks)
    return _finished(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """A tensor of a type that has no TypedStorage."""
    _refuse_hooks(backward_hooks)
    return _finished(_over_storage(storage.untyped(), dtype, storage_offset, size, stride), requires_grad, metadata)


def _refuse_hooks(backward_hooks):
    if backward_hooks:
        raise NotImplementedError("a file with backward hooks of tensors is not in Umbra yet")


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from umbra.nn import Parameter
    _refuse_hooks(backward_hooks)
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor of its parts. Its indices are always checked: when the file has been read to its end, where they come later."""
    import umbra
    from umbra import serialization
    if layout == umbra.sparse_coo:
        *parts, coalesced = data if len(data) == 4 else (*data, None)
        checked, unchecked, options = umbra.sparse_coo_tensor, umbra.ops.aten._sparse_coo_tensor_unsafe, {"is_coalesced": coalesced}
    else:
        parts = data
        checked, unchecked, options = umbra.sparse_compressed_tensor, umbra.ops.aten._sparse_compressed_tensor_unsafe, {"layout": layout}
    later = serialization._serialization_tls.checks_of_data
    if later is None:
        return checked(*parts, **options)
    later.append(lambda: checked(*parts, **options))
    return unchecked(*parts, **options)


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A nested tensor of strided layout over the elements of all its parts."""
    from umbra.nested._tensor import StridedNestedTensor
    storage = buffer.untyped_storage()
    parts = []
    for size, stride, offset in zip(sizes.tolist(), strides.tolist(), storage_offsets.tolist()):
        offset, size, stride = _checked_geometry(storage, buffer.dtype, buffer.storage_offset() + offset, size, stride)
        parts.append(buffer.as_strided(size, stride, offset))
    return StridedNestedTensor(parts)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    import umbra
    return umbra.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    options = {"strides": stride, "storage_offset": storage_offset, "dtype": dtype, "layout": layout, "device": device}
    return _C._make_wrapper_subclass(cls, size, {**options, "requires_grad": requires_grad})


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    return _finished(data.to(dtype=dtype, device=device), requires_grad, None)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    import umbra
    return _rebuild_device_tensor_from_cpu_tensor(umbra.from_numpy(data), dtype, device, requires_grad)
