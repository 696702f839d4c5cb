"""What operators do with masked tensors: one function for each kind of operator, and tables that say which is of which kind."""
import functools
import warnings

import umbra
from umbra.masked.maskedtensor import _sparse
from umbra.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from umbra.masked.maskedtensor.creation import as_masked_tensor

_UNARY = """abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip
    conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg
    negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc""".split()
_UNARY_WITHOUT_INPLACE = {"angle", "positive", "signbit", "isnan"}
_BINARY = """add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp
    logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum
    fmax fmin not_equal""".split()
_BINARY_WITHOUT_INPLACE = {"logaddexp", "logaddexp2", "fmin", "minimum", "maximum", "fmax"}
_ALONGSIDE = """select transpose split t slice slice_backward select_backward index expand view _unsafe_view _reshape_alias cat unsqueeze
    unfold unfold_backward im2col col2im stack unbind""".split()
_REDUCTIONS = "sum mean amin amax argmin argmax prod all norm var std".split()


def _each(value, part):
    """An argument with masked tensors, in lists too, replaced by one of their parts."""
    if is_masked_tensor(value):
        return part(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_each(v, part) for v in value)
    return value


def _data(value):
    return _each(value, lambda masked: masked._masked_data)


def _mask(value):
    return _each(value, lambda masked: masked._masked_mask)


def _wrap(data, mask):
    if isinstance(data, (list, tuple)):
        return type(data)(_wrap(d, m) for d, m in zip(data, mask))
    return MaskedTensor(data, mask)


def _masks_match(a, b):
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.is_sparse:
        return _sparse.match(a.get_mask(), b.get_mask())
    return a.dim() == b.dim() and bool((a.get_mask() == b.get_mask()).all())


# ---- operators of each element ----

def _check_unary(args, kwargs):
    if kwargs:
        raise ValueError("MaskedTensor unary ops require that len(kwargs) == 0. If you need support for this, please open an issue on Github.")
    if any(isinstance(a, umbra.Tensor) for a in args):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")


def _elementwise(func, first, *others):
    return _sparse.on_values(func, first, *others) if _sparse.is_sparse(first) else func(first, *others)


def _unary(func, self, *args, **kwargs):
    _check_unary(args, kwargs)
    return MaskedTensor(_elementwise(func, _data(self), *args), self.get_mask())


def _unary_(func, self, *args, **kwargs):
    _check_unary(args, kwargs)
    self._set_data_mask(_elementwise(func, _data(self), *args), self.get_mask())
    return self


def _check_binary(args, kwargs):
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    if any(isinstance(a, umbra.Tensor) for a in args[2:]):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    if not _masks_match(*args[:2]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")


def _binary(func, *args, **kwargs):
    _check_binary(args, kwargs)
    result = _elementwise(func, *_data(args))
    mask = (args[0] if is_masked_tensor(args[0]) else args[1]).get_mask()
    return MaskedTensor(result, mask if _sparse.is_sparse(result) else mask.expand_as(result))


def _binary_(func, *args, **kwargs):
    _check_binary(args, kwargs)
    args[0]._set_data_mask(_elementwise(func, *_data(args)), _mask(args[0]))
    return args[0]


def _alongside(func, *args, **kwargs):
    return _wrap(func(*_data(args), **kwargs), func(*_mask(args), **kwargs))


# ---- reductions ----

def _reduce_everything(name, self):
    if self.is_sparse:
        return _reduce_elements(name, self)
    mask = self.get_mask()
    if name == "all":
        data = self.get_data().masked_fill(~mask, True).all()
    else:
        data = getattr(umbra.masked, name)(self, mask=mask)
    return as_masked_tensor(data, mask.any())


def _reduce_elements(name, self):
    """Of sparse data: the elements that are there. Where one of them stands would be a question about the whole."""
    if name in ("argmin", "argmax", "all"):
        raise NotImplementedError(f"{name} of a masked tensor of layout {self.layout} is not in Umbra yet")
    mask = self.get_mask().values()
    data = getattr(umbra.masked, name)(MaskedTensor(self.get_data().values(), mask), mask=mask)
    return as_masked_tensor(data, mask.any())


def _reduce(name, *args, **kwargs):
    if len(args) == 1 and not kwargs:
        return _reduce_everything(name, args[0])
    return _reduce_over(name, *args, **kwargs)


def _reduce_over(name, self, dim, keepdim=False, dtype=None):
    if self.is_sparse:
        warnings.warn(f"The sparse version of {name} is not implemented in reductions.", stacklevel=2)
        return NotImplemented
    mask = self.get_mask()
    if name == "all":
        data = self.get_data().masked_fill(~mask, True).all(dim=dim, keepdim=keepdim)
    else:
        data = getattr(umbra.masked, name)(self, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    for d in sorted([dim] if isinstance(dim, int) else dim, reverse=True):
        mask = mask.any(dim=d, keepdim=keepdim)
    return as_masked_tensor(data, mask)


# ---- the others ----

class _Contiguous(umbra.autograd.Function):
    @staticmethod
    def forward(_, masked):
        return MaskedTensor(masked._masked_data.contiguous(), masked._masked_mask.contiguous())

    @staticmethod
    def backward(_, grad):
        return grad


class _ToDense(umbra.autograd.Function):
    """Data and mask without places; the gradient goes back to the layout that they had."""

    @staticmethod
    def forward(ctx, masked):
        ctx.layout = masked.layout
        return MaskedTensor(masked._masked_data.to_dense(), masked._masked_mask.to_dense())

    @staticmethod
    def backward(ctx, grad):
        return _to_layout(grad, ctx.layout)


class _ToSparse(umbra.autograd.Function):
    """The elements that are there, at their places."""

    @staticmethod
    def forward(_, masked, layout):
        mask = masked._masked_mask.to_sparse(layout=layout)
        return MaskedTensor(masked._masked_data.sparse_mask(mask), mask)

    @staticmethod
    def backward(_, grad):
        return _to_layout(grad, umbra.strided), None


def _to_layout(masked, layout):
    if masked.layout == layout:
        return masked
    if layout is umbra.strided:
        return _ToDense.apply(masked)
    if layout is umbra.sparse_csr and masked.dim() != 2:
        raise ValueError(f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {masked.size()}")
    return _ToSparse.apply(_to_layout(masked, umbra.strided), layout)


def _is_contiguous(masked, memory_format=umbra.contiguous_format):
    if masked.is_sparse:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return _data(masked).is_contiguous(memory_format=memory_format)


def _contiguous(masked):
    return masked if _is_contiguous(masked) else _Contiguous.apply(masked)


class _Where(umbra.autograd.Function):
    """Chosen element by element with its mask; the gradient of what was not chosen is not there."""

    @staticmethod
    def forward(ctx, condition, left, right):
        ctx.save_for_backward(condition)
        return umbra.ops.aten.where(condition, left, right)

    @staticmethod
    def backward(ctx, grad):
        condition, = ctx.saved_tensors
        nothing = MaskedTensor(_data(grad), umbra.zeros_like(_mask(grad)))
        return None, umbra.ops.aten.where(condition, grad, nothing), umbra.ops.aten.where(condition, nothing, grad)


def _masked(tensor):
    return tensor if is_masked_tensor(tensor) else MaskedTensor(tensor, umbra.ones_like(tensor, dtype=umbra.bool))


def _where(func, condition, left, right):
    left, right = _masked(left), _masked(right)
    return MaskedTensor(func(condition, _data(left), _data(right)), func(condition, _mask(left), _mask(right)))


def _on_data(func, self, **kwargs):
    return MaskedTensor(func(_data(self), **kwargs), self.get_mask())


def _copied(func, self, **kwargs):
    return MaskedTensor(func(_data(self), **kwargs), func(_mask(self), **{**kwargs, "dtype": umbra.bool}))


def _empty_strided(func, self, size, stride, **kwargs):
    if tuple(size) != tuple(self.size()):
        raise ValueError(f"__torch_dispatch__, {func}: args[1] expected to be the same as data.size()")
    return MaskedTensor(func(_data(self), size, stride, **kwargs), self.get_mask())


def _number(func, self):
    if not self.get_mask():
        raise ValueError(f"__torch_dispatch__, {func}: expected a mask tensor")
    return func(_data(self))


def _copy_(func, self, source, **kwargs):
    func(_data(self), _data(source), **kwargs)
    return self


def _softmax(func, self, dim, half_to_float):
    mask = self.get_mask()
    filled = _data(self).masked_fill(~mask, -umbra.inf)
    # a line without elements is 0, where a softmax would give nan
    return MaskedTensor(func(filled, dim, half_to_float).masked_fill(~mask, 0), mask)


def _softmax_backward(func, grad, output, dim, input_dtype):
    if not (is_masked_tensor(grad) and is_masked_tensor(output)):
        raise ValueError(f"__torch_dispatch__, {func}: grad and output must both be MaskedTensors")
    if not _masks_match(grad, output):
        raise ValueError(f"__torch_dispatch__, {func}: expected the masks of grad and output to match")
    mask = grad.get_mask()
    result = func(_data(grad).masked_fill(~mask, 0), _data(output), dim, input_dtype)
    return MaskedTensor(result, mask)


def _any_true(func, self):
    if _data(self).dtype != umbra.bool:
        raise ValueError(f"__torch_dispatch__, {func}: expected a boolean tensor")
    return MaskedTensor(func(_data(self) & self.get_mask()), umbra.tensor(True))


_OTHERS = {
    "where": _where, "detach": _on_data, "clone": _on_data, "ones_like": _on_data, "_to_copy": _copied, "new_empty_strided": _empty_strided,
    "_local_scalar_dense": _number, "copy_": _copy_, "_softmax": _softmax, "_softmax_backward_data": _softmax_backward, "_is_any_true": _any_true,
    "is_same_size": lambda func, a, b: func(_data(a), _data(b)),
}


@functools.cache
def operators():
    """By packet of ATen (`torch.ops.aten.add`): the function that takes the packet and the call's arguments."""
    named = {name: _unary for name in _UNARY} | {name + "_": _unary_ for name in _UNARY if name not in _UNARY_WITHOUT_INPLACE}
    named |= {name: _binary for name in _BINARY} | {name + "_": _binary_ for name in _BINARY if name not in _BINARY_WITHOUT_INPLACE}
    named |= {name: _alongside for name in _ALONGSIDE} | _OTHERS
    table = {getattr(umbra.ops.aten, name): function for name, function in named.items() if hasattr(umbra.ops.aten, name)}
    return table | {getattr(umbra.ops.aten, name): (lambda func, *a, name=name, **k: _reduce(name, *a, **k)) for name in _REDUCTIONS}


@functools.cache
def functions():
    """By function or method (`torch.sum`, `torch.Tensor.sum`): what is done above autograd."""
    table = {}
    for owner in (umbra, umbra.Tensor):
        table |= {getattr(owner, name): functools.partial(_reduce, name) for name in _REDUCTIONS}
        table[owner.where] = _Where.apply
    return table | {umbra.Tensor.contiguous: _contiguous, umbra.Tensor.is_contiguous: _is_contiguous,
                    umbra.Tensor.to_dense: lambda masked: _to_layout(masked, umbra.strided),
                    umbra.Tensor.to_sparse: lambda masked: _to_layout(masked, umbra.sparse_coo),
                    umbra.Tensor.to_sparse_coo: lambda masked: _to_layout(masked, umbra.sparse_coo),
                    umbra.Tensor.to_sparse_csr: lambda masked: _to_layout(masked, umbra.sparse_csr)}
