"""What functions do with nested tensors, by name: of each element, over dimensions that all parts have alike, or part by part."""
from typing import NamedTuple

import umbra
from umbra.nested._tensor import JaggedTensor, NestedTensor, StridedNestedTensor

_OF_EACH = set("""abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atan2 atanh bitwise_and bitwise_not
    bitwise_or bitwise_xor ceil clamp clamp_max clamp_min clip clone conj copysign cos cosh deg2rad detach digamma div divide elu eq erf erfc
    erfinv exp exp2 expm1 fix floor floor_divide fmax fmin fmod frac full_like ge gelu greater greater_equal gt hardsigmoid hardswish hardtanh
    heaviside hypot isfinite isinf isnan isneginf isposinf ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative not_equal ones_like positive pow
    rad2deg rand_like randn_like reciprocal relu relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus
    softsign sqrt square sub subtract tan tanh threshold true_divide trunc where xlogy zeros_like empty_like bool byte double float half bfloat16
    int long short char to type type_as cpu contiguous dropout alpha_dropout logsigmoid tanhshrink softshrink hardshrink celu
    """.split())
_DUNDERS = {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__div__", "__rdiv__", "__pow__",
            "__rpow__", "__mod__", "__floordiv__", "__neg__", "__pos__", "__abs__", "__invert__", "__and__", "__or__", "__xor__", "__eq__",
            "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
_IN_PLACE = {name + "_" for name in _OF_EACH} | {"__iadd__", "__isub__", "__imul__", "__itruediv__", "zero_", "fill_", "copy_"}


def call(func, args, kwargs):
    """A call of torch's with nested tensors among its arguments."""
    name = getattr(func, "__name__", str(func))
    if name == "__get__":
        return _attribute(func, args)
    if name in _OF_EACH or name in _DUNDERS or name in _IN_PLACE:
        return _of_each(func, name, args, kwargs)
    function = _FUNCTIONS.get(name)
    if function is None:
        raise NotImplementedError(f"{name} of nested tensors is not in Umbra yet")
    return function(_Call(func, name), *args, **kwargs)


class _Call(NamedTuple):
    """What was called."""
    func: object
    name: str


_PLAIN_ATTRIBUTES = {"layout", "device", "is_cpu", "is_cuda", "is_meta", "is_mps", "is_xpu", "is_sparse", "is_sparse_csr", "is_quantized",
                     "is_mkldnn", "output_nr"}


def _attribute(func, args):
    """An attribute that the wrapper has by itself."""
    name = func.__self__.__name__
    if name == "mT":
        return args[0].transpose(-2, -1)
    if name not in _PLAIN_ATTRIBUTES:
        raise NotImplementedError(f"{name} of nested tensors is not in Umbra yet")
    with umbra._C.DisableTorchFunctionSubclass():
        return func(*args)


# ---- of each element ----

def _nested(values):
    return [v for v in values if isinstance(v, NestedTensor)]


def _mismatch(name, a, b):
    shape = lambda t: tuple(t.shape) if isinstance(t, JaggedTensor) else getattr(t, "shape", None)
    return RuntimeError(f"cannot call binary pointwise function {name} with inputs of shapes {shape(a)} and {shape(b)}")


def _beside(first, other, name):
    """A strided tensor made to stand beside the values of a jagged one."""
    rank = first.dim()
    if other.dim() == 0:
        return other
    sizes = [1] * (rank - other.dim()) + list(other.shape)
    batch = first._offsets.shape[0] - 1
    if len(sizes) != rank or sizes[first._ragged] != 1 or sizes[0] not in (1, batch):
        raise _mismatch(name, first, other)
    other = other.reshape(sizes)
    if sizes[0] == 1:
        return other[0]
    if first._lengths is not None or first._ragged != 1:
        raise NotImplementedError(f"{name} of a jagged tensor with gaps, or transposed, and one row for each part is not in Umbra yet")
    return other.squeeze(1).repeat_interleave(first._offsets.diff(), 0)


def _jagged_argument(first, value, name):
    if isinstance(value, JaggedTensor):
        shared = value._offsets is first._offsets or (name == "copy_" and umbra.equal(value._offsets, first._offsets))
        if not shared or value._ragged != first._ragged or value._rank != first._rank:
            raise _mismatch(name, first, value)
        return value._values
    if isinstance(value, StridedNestedTensor):
        raise RuntimeError(f"{name}: nested tensors of different layouts cannot be taken together")
    return _beside(first, value, name) if isinstance(value, umbra.Tensor) else value


def _part_argument(value, i, count, name):
    if isinstance(value, StridedNestedTensor):
        if len(value._parts) != count:
            raise RuntimeError(f"{name}: nested tensors of {count} and {len(value._parts)} parts cannot be taken together")
        return value._parts[i]
    if isinstance(value, umbra.Tensor) and value.dim() > 0 and not isinstance(value, NestedTensor):
        raise NotImplementedError(f"{name} of a nested tensor and a strided one is not in Umbra yet")
    return value


def _of_each(func, name, args, kwargs):
    first = _nested([*args, *kwargs.values()])[0]
    if name in _IN_PLACE and args[0] is not first:
        raise RuntimeError(f"{name}: a nested tensor cannot be written into one that is not")
    if isinstance(first, JaggedTensor):
        changed = func(*(_jagged_argument(first, a, name) for a in args), **{k: _jagged_argument(first, v, name) for k, v in kwargs.items()})
        results = [changed]
    else:
        count = len(first._parts)
        results = [func(*(_part_argument(a, i, count, name) for a in args), **{k: _part_argument(v, i, count, name) for k, v in kwargs.items()})
                   for i in range(count)]
        for i in range(count):
            shapes = {t._parts[i].shape for t in _nested(args) if isinstance(t, StridedNestedTensor)}
            if len(shapes) > 1:
                raise RuntimeError(f"{name}: parts of different sizes cannot be taken together")
    return first if name in _IN_PLACE else first._with(results)


# ---- dimensions ----

def _dims(first, dim):
    dims = [dim] if isinstance(dim, int) else list(dim)
    rank = first.dim()
    for d in dims:
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
    return [d % rank for d in dims]


def _packed(first):
    """The values of all parts, without gaps."""
    return first._values if first._lengths is None else umbra.cat(first.unbind(), first._ragged - 1)


def _require_jagged(first, name):
    if not isinstance(first, JaggedTensor):
        raise NotImplementedError(f"{name} of a nested tensor of layout torch.strided is not in Umbra yet")


def _inner(first, name, dim):
    """A dimension that all parts have alike, as one of the values'."""
    at, = _dims(first, dim)
    if at == 0 or at == first._ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on {'dim=0' if at == 0 else 'ragged dim'}")
    return at - 1


def _removed(first, dims, keepdim):
    """Where the ragged dimension is once others are gone."""
    return first._ragged if keepdim else first._ragged - sum(d < first._ragged for d in dims)


def _reduce(call, input, dim=None, keepdim=False, **kwargs):
    if isinstance(input, StridedNestedTensor):
        if dim is None or 0 in _dims(input, dim):
            raise NotImplementedError(f"{call.name} of a nested tensor of layout torch.strided is built over dimensions of its parts alone")
        inner = [d - 1 for d in _dims(input, dim)]
        return input._with([call.func(t, inner[0] if isinstance(dim, int) else inner, keepdim=keepdim, **kwargs) for t in input._parts])
    if dim is None:
        return call.func(_packed(input), **kwargs)
    dims = _dims(input, dim)
    if 0 in dims and input._ragged not in dims:
        raise RuntimeError(f"{call.name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors")
    if 0 in dims:
        if keepdim:
            raise NotImplementedError(f"{call.name} over the batch of a nested tensor with keepdim is not in Umbra yet")
        return call.func(_packed(input), [d - 1 for d in dims if d != 0], **kwargs)
    if input._ragged in dims:
        if len(dims) > 1:
            raise RuntimeError(f"{call.name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors")
        if call.name in ("max", "min", "argmax", "argmin"):
            raise NotImplementedError(f"{call.name} along the ragged dimension of a nested tensor is not in Umbra yet")
        return umbra.stack([call.func(t, dims[0] - 1, keepdim=keepdim, **kwargs) for t in input.unbind()])
    inner = [d - 1 for d in dims] if not isinstance(dim, int) else dims[0] - 1
    result = call.func(input._values, inner, keepdim=keepdim, **kwargs)
    ragged = _removed(input, dims, keepdim)
    wrap = lambda values: JaggedTensor(values, input._offsets, input._lengths, ragged)
    return wrap(result) if isinstance(result, umbra.Tensor) else type(result)(map(wrap, result))


def _along(call, input, dim=None, *args, **kwargs):
    """Of each element among those along one dimension: softmax."""
    if dim is None:
        raise NotImplementedError(f"{call.name} of a nested tensor without dim is not in Umbra yet")
    at, = _dims(input, dim)
    if at == 0:
        raise RuntimeError(f"{call.name}(): not supported when reducing across the batch dimension for NestedTensor")
    if isinstance(input, StridedNestedTensor):
        return input._with([call.func(t, at - 1, *args, **kwargs) for t in input._parts])
    if at != input._ragged:
        return input._with([call.func(input._values, at - 1, *args, **kwargs)])
    if input._lengths is not None:
        raise NotImplementedError(f"{call.name} along the ragged dimension of a jagged tensor with gaps is not in Umbra yet")
    return input._with([umbra.cat([call.func(t, at - 1, *args, **kwargs) for t in input.unbind()], at - 1)])


# ---- layers ----

def _on_rows(call, input, *args, **kwargs):
    """What takes the last dimension of any tensor: linear, layer_norm."""
    if _nested([*args, *kwargs.values()]):
        raise NotImplementedError(f"{call.name} with nested parameters is not in Umbra yet")
    if isinstance(input, StridedNestedTensor):
        return input._with([call.func(t, *args, **kwargs) for t in input._parts])
    if input._ragged == input.dim() - 1:
        raise RuntimeError(f"{call.name}(): not supported for NestedTensor on ragged dim")
    return input._with([call.func(input._values, *args, **kwargs)])


def _norm_rows(call, input, normalized_shape, *args, **kwargs):
    if isinstance(input, StridedNestedTensor) and call.name == "layer_norm" and (len(args) < 2 or args[0] is None or args[1] is None) and not (
            kwargs.get("weight") is not None and kwargs.get("bias") is not None):
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if isinstance(input, JaggedTensor) and input.dim() - len(shape) <= input._ragged:
        raise RuntimeError(f"{call.name}(): normalizing over ragged dim not supported for nested tensors")
    return _on_rows(call, input, normalized_shape, *args, **kwargs)


def _matmul(call, input, other):
    if not isinstance(input, NestedTensor):
        raise NotImplementedError(f"{call.name} of a strided tensor and a nested one is not in Umbra yet")
    if isinstance(input, StridedNestedTensor):
        right = other._parts if isinstance(other, StridedNestedTensor) else other.unbind(0) if other.dim() == 3 else [other] * len(input._parts)
        return input._with([umbra.matmul(a, b) for a, b in zip(input._parts, right)])
    if isinstance(other, NestedTensor) or input._ragged == input.dim() - 1:
        raise NotImplementedError(f"{call.name} over or between ragged dimensions is not in Umbra yet")
    if other.dim() == 2:
        return input._with([umbra.matmul(input._values, other)])
    if other.dim() == input.dim() == 3 and other.shape[0] == input.size(0) and input._lengths is None:
        return input._with([umbra.cat([umbra.matmul(a, b) for a, b in zip(input.unbind(), other.unbind(0))])])
    raise NotImplementedError(f"{call.name} of a nested tensor and one of sizes {tuple(other.shape)} is not in Umbra yet")


def _attention(call, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None:
        raise NotImplementedError("scaled_dot_product_attention of nested tensors with a mask is not in Umbra yet")
    parts = [call.func(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa).squeeze(0)
             for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)]
    if isinstance(query, StridedNestedTensor):
        return query._with(parts)
    return JaggedTensor(umbra.cat(parts, query._ragged - 1), query._offsets if query._lengths is None else _offsets_of(query), None, query._ragged)


def _offsets_of(jagged):
    return umbra.cat([jagged._lengths.new_zeros(1), jagged._lengths.cumsum(0)])


def _embedding(call, input, weight, *args, **kwargs):
    if not isinstance(input, NestedTensor) or isinstance(weight, NestedTensor):
        input, weight = weight, input  # the operator takes the table first
        if not isinstance(input, NestedTensor) or isinstance(weight, NestedTensor):
            raise NotImplementedError("embedding with a nested table is not in Umbra yet")
        return input._with([call.func(weight, t, *args, **kwargs) for t in input._held()])
    return input._with([call.func(t, weight, *args, **kwargs) for t in input._held()])


# ---- shapes ----

def _transpose(_, input, dim0, dim1):
    a, b = _dims(input, dim0)[0], _dims(input, dim1)[0]
    if a == b:
        return input
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    if isinstance(input, StridedNestedTensor):
        return input._with([t.transpose(a - 1, b - 1) for t in input._parts])
    ragged = {a: b, b: a}.get(input._ragged, input._ragged)
    return JaggedTensor(input._values.transpose(a - 1, b - 1), input._offsets, input._lengths, ragged)


def _unsqueeze(_, input, dim):
    at = dim + input.dim() + 1 if dim < 0 else dim
    if at == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    if isinstance(input, StridedNestedTensor):
        return input._with([t.unsqueeze(at - 1) for t in input._parts])
    return JaggedTensor(input._values.unsqueeze(at - 1), input._offsets, input._lengths, input._ragged + (at <= input._ragged))


def _permute(_, input, *dims):
    dims = _dims(input, dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)
    if sorted(dims) != list(range(input.dim())):
        raise RuntimeError("permute(): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions")
    if dims[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    inner = [d - 1 for d in dims[1:]]
    if isinstance(input, StridedNestedTensor):
        return input._with([t.permute(inner) for t in input._parts])
    return JaggedTensor(input._values.permute(inner), input._offsets, input._lengths, dims.index(input._ragged))


def _select(call, input, dim, index):
    at, = _dims(input, dim)
    if at == 0:
        return input.unbind()[index]
    if isinstance(input, StridedNestedTensor):
        return input._with([t.select(at - 1, index) for t in input._parts])
    inner = _inner(input, call.name, dim)
    return JaggedTensor(input._values.select(inner, index), input._offsets, input._lengths, _removed(input, [at], False))


def _narrow(call, input, dim, start, length):
    at, = _dims(input, dim)
    if isinstance(input, StridedNestedTensor):
        return input._with(input._parts[start:start + length] if at == 0 else [t.narrow(at - 1, start, length) for t in input._parts])
    return input._with([input._values.narrow(_inner(input, call.name, dim), start, length)])


def _expand(call, input, *sizes):
    """Dimensions that all parts have alike may grow; batch and ragged dimension stay."""
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    _require_jagged(input, call.name)
    kept = len(sizes) == input.dim() and all(sizes[d] in (-1, input.size(d)) for d in (0, input._ragged))
    if not kept:
        raise RuntimeError(f"expand(): cannot expand shape {tuple(input.shape)} -> {tuple(sizes)}")
    return input._with([input._values.expand([-1 if d == input._ragged else size for d, size in enumerate(sizes)][1:])])


def _squeeze(call, input, dim=None):
    if dim is None:
        raise RuntimeError("For nested tensors, squeeze without the dim argument is not supported: there is no telling which sizes are one")
    if isinstance(input, StridedNestedTensor):
        at, = _dims(input, dim)
        if at == 0:
            raise RuntimeError("squeeze(): not supported for NestedTensor on dim=0")
        return input._with([t.squeeze(at - 1) for t in input._parts])
    at = _inner(input, call.name, dim)
    if input._values.shape[at] != 1:
        return input
    return JaggedTensor(input._values.squeeze(at), input._offsets, input._lengths, input._ragged - (at + 1 < input._ragged))


def _split(call, input, size, dim=0):
    if isinstance(input, StridedNestedTensor):
        at, = _dims(input, dim)
        if at != input.dim() - 1:
            raise RuntimeError(f"{call.name} for nested tensors is currently only supported for the last dimension.")
        return tuple(input._with(list(parts)) for parts in zip(*(call.func(t, size, at - 1) for t in input._parts), strict=True))
    at = _inner(input, call.name, dim)
    return tuple(input._with([values]) for values in call.func(input._values, size, at))


def _unflatten(call, input, dim, sizes):
    _require_jagged(input, call.name)
    at = _inner(input, call.name, dim)
    if at + 1 < input._ragged:
        raise NotImplementedError("unflatten before the ragged dimension is not in Umbra yet")
    return input._with([input._values.unflatten(at, sizes)])


def _flatten(call, input, start_dim=0, end_dim=-1):
    _require_jagged(input, call.name)
    start, end = _dims(input, start_dim)[0], _dims(input, end_dim)[0]
    if start <= input._ragged <= end or start == 0:
        raise RuntimeError(f"flatten(): not supported for NestedTensor on {'dim=0' if start == 0 else 'ragged dim'}")
    if end < input._ragged:
        raise NotImplementedError("flatten before the ragged dimension is not in Umbra yet")
    return input._with([input._values.flatten(start - 1, end - 1)])


def _view(call, input, *sizes):
    """Batch and ragged dimension stay where they are; what is behind them may be another shape."""
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    if isinstance(input, StridedNestedTensor):
        return _view_parts(call, input, sizes)
    batch = input._offsets.shape[0] - 1
    ragged = len(sizes) > 1 and (sizes[1] == -1 or sizes[1] == input.size(1))
    if input._ragged != 1 or sizes[0] not in (-1, batch) or not ragged:
        raise RuntimeError(f"{call.name}(): cannot view shape {tuple(input.shape)} as {tuple(sizes)}")
    return input._with([input._values.reshape(input._values.shape[0], *sizes[2:])])


def _view_parts(call, input, sizes):
    """Each part in another shape; -1 stands for the size that a part has there."""
    if not sizes or sizes[0] != len(input._parts):
        raise RuntimeError(f"{call.name}: for now nested {call.name} cannot change the size of the first dimension")
    return input._with([getattr(t, call.name)([t.shape[d] if size == -1 and d < t.dim() else size for d, size in enumerate(sizes[1:])])
                        for t in input._parts])


def _cat(call, tensors, dim=0):
    first = tensors[0]
    if all(isinstance(t, StridedNestedTensor) for t in tensors):
        at, = _dims(first, dim)
        lists = [t._parts for t in tensors]
        return first._with(sum(lists, []) if at == 0 else [call.func(parts, at - 1) for parts in zip(*lists, strict=True)])
    if not all(isinstance(t, JaggedTensor) and t._offsets is first._offsets and t._ragged == first._ragged for t in tensors):
        raise NotImplementedError("cat of nested tensors that do not share their offsets is not in Umbra yet")
    return first._with([call.func([t._values for t in tensors], _inner(first, call.name, dim))])


def _is_same_size(_, a, b):
    if isinstance(a, StridedNestedTensor) and isinstance(b, StridedNestedTensor):
        return [t.shape for t in a._parts] == [t.shape for t in b._parts]
    if isinstance(a, StridedNestedTensor) or isinstance(b, StridedNestedTensor):
        which = [f"{name} is {'' if isinstance(t, StridedNestedTensor) else 'not '}nested" for name, t in (("Self", a), ("Other", b))]
        raise RuntimeError(f"Expected both self and other to be nested tensors. {which[0]}. While {which[1]}.")
    return a.shape == b.shape


_FUNCTIONS = {
    **{name: _reduce for name in ("sum", "mean", "amax", "amin", "all", "any", "max", "min", "prod", "nansum", "nanmean", "logsumexp", "argmax", "argmin")},
    "softmax": _along, "log_softmax": _along, "linear": _on_rows, "layer_norm": _norm_rows, "rms_norm": _norm_rows, "matmul": _matmul,
    "__matmul__": _matmul, "bmm": _matmul, "scaled_dot_product_attention": _attention, "embedding": _embedding, "transpose": _transpose,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "split": _split, "chunk": _split, "split_with_sizes": _split, "permute": _permute,
    "select": _select, "narrow": _narrow, "expand": _expand, "unflatten": _unflatten, "flatten": _flatten, "view": _view, "reshape": _view,
    "cat": _cat, "is_floating_point": lambda _, a: a.is_floating_point(), "is_complex": lambda _, a: a.is_complex(),
    "is_same_size": _is_same_size,
}
