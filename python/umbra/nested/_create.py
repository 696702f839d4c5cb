"""Nested tensors made of lists, of values and offsets, and of parts of strided tensors."""
import umbra
from umbra.nested._tensor import JaggedTensor, StridedNestedTensor

_LISTS_ONLY = "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor"


def _check_layout(layout):
    layout = umbra.strided if layout is None else layout
    if layout not in (umbra.strided, umbra.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def _check_pinned(pin_memory):
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")


def _made_of(parts, layout):
    if layout == umbra.jagged:
        return JaggedTensor.from_parts(parts)
    return StridedNestedTensor.from_parts(parts)


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor without history, of copies of tensors or of lists of numbers."""
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(_LISTS_ONLY)
    layout = _check_layout(layout)
    _check_pinned(pin_memory)
    parts = [t if isinstance(t, umbra.Tensor) else umbra.as_tensor(t) for t in tensor_list]
    with umbra.no_grad():
        parts = [t.detach().to(dtype=dtype or parts[0].dtype, device=device, copy=True) for t in parts]
        made = _made_of(parts, layout)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor whose gradient reaches the tensors it is made of; of a strided tensor, one whose parts have one length."""
    layout = _check_layout(layout)
    if isinstance(ts, umbra.Tensor):
        if ts.is_nested:
            if ts.layout != layout:
                raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
            return ts if dtype is None and device is None else ts.to(dtype=dtype or ts.dtype, device=device or ts.device)
        if ts.dim() < 2:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
        ts = list(ts.unbind(0))
    elif not isinstance(ts, (list, tuple)) or not all(isinstance(t, umbra.Tensor) for t in ts):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    parts = [t.to(dtype=dtype or t.dtype, device=device or t.device) for t in ts]
    return _made_of(parts, layout)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A jagged tensor over `values`, of which part i begins at `offsets[i]` and is `lengths[i]` long."""
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    if jagged_dim not in (None, 1):
        raise NotImplementedError("torch.nested.nested_tensor_from_jagged with a jagged_dim other than 1 is not in Umbra yet")
    if offsets is None:
        offsets, lengths = umbra.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    if lengths is not None and offsets.shape[0] - 1 != lengths.shape[0]:
        raise AssertionError("offsets and lengths batch sizes must match: "
                             f"offsets.shape[0] - 1 = {offsets.shape[0] - 1}, lengths.shape[0] = {lengths.shape[0]}")
    sizes = offsets.diff() if lengths is None else lengths
    for name, given, wrong in (("min_seqlen", min_seqlen, sizes.lt), ("max_seqlen", max_seqlen, sizes.gt)):
        if given is not None and wrong(given).any():
            raise ValueError(f"nested_tensor_from_jagged(): {name}={given} does not fit the lengths {sizes.tolist()}")
    return JaggedTensor(values, offsets, lengths)


def narrow(tensor, dim, start, length, layout=umbra.strided):
    """For each row of a strided tensor the range along `dim`, which is 1, that `start` and `length` say."""
    if dim != 1 or tensor.is_nested:
        raise RuntimeError("torch.nested.narrow: expected a strided tensor and dim=1" if tensor.is_nested else
                           f"torch.nested.narrow: only dim=1 is supported, but got {dim}")
    layout = _check_layout(layout)
    count = tensor.shape[0]
    starts = start.tolist() if isinstance(start, umbra.Tensor) else [start] * count
    lengths = length.tolist() if isinstance(length, umbra.Tensor) else [length] * count
    if layout == umbra.strided:
        return StridedNestedTensor.from_parts([tensor[i].narrow(0, starts[i], lengths[i]) for i in range(count)])
    width = tensor.shape[1]
    if any(s < 0 or n < 0 or s + n > width for s, n in zip(starts, lengths)):
        raise RuntimeError(f"torch.nested.narrow: a range does not lie within the {width} elements of its row")
    begins = [i * width + s for i, s in enumerate(starts)]
    ends = [begin + n for begin, n in zip(begins, lengths)]
    offsets = umbra.tensor(begins + ends[-1:], device=tensor.device)
    return JaggedTensor(tensor.reshape(count * width, *tensor.shape[2:]), offsets, umbra.tensor(lengths, device=tensor.device))


def masked_select(tensor, mask):
    """The chosen elements along the last dimension, as a jagged tensor of one part for each row of it."""
    if tensor.layout != umbra.strided or tensor.is_nested:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    mask = mask.expand(tensor.shape)
    lengths = mask.reshape(-1, mask.shape[-1]).sum(1)
    offsets = umbra.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return JaggedTensor(tensor.masked_select(mask), offsets)


def to_padded_tensor(input, padding, output_size=None):
    """A strided tensor with `padding` behind the shorter parts."""
    if not input.is_nested:
        raise RuntimeError("to_padded_tensor: expected a nested tensor")
    return input.to_padded_tensor(padding, output_size)
