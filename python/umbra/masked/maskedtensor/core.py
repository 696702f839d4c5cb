"""The class of tensors that carry a mask: elements whose mask is False are not there.

    mt = torch.masked.masked_tensor(torch.arange(3.0), torch.tensor([True, False, True]))
    mt.sum()                                      # MaskedTensor(  2.0000, True)

Operators of each element work on the data and keep the mask, views and joins take both along, reductions leave out what is not there.
The data may be strided, or sparse tensors (COO, CSR) with elements at the mask's places.
"""
import warnings

import umbra
from umbra.masked.maskedtensor import _sparse

__all__ = ["MaskedTensor", "is_masked_tensor"]

_TYPES = {umbra.float16, umbra.float32, umbra.float64, umbra.bool, umbra.int8, umbra.int16, umbra.int32, umbra.int64}


def is_masked_tensor(obj, /):
    """Whether this is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _check_parts(data, mask):
    if type(data) is not type(mask):
        raise TypeError(f"data and mask must have the same type. Got {type(data)} and {type(mask)}")
    if data.layout is not umbra.strided and data.layout not in _sparse.LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    _sparse.check_places(data, mask)
    if mask.dtype != umbra.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _TYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


def _number_text(value):
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _text(data, mask):
    if data.dim() == 1:
        parts = [(_number_text(value), there) for value, there in zip(data.tolist(), mask.tolist())]
        width = max(len(text) if there else 8 for text, there in parts)
        return "[" + ", ".join(text if there else "--".rjust(width) for text, there in parts) + "]"
    rows = (_text(d, m).replace("\n", "\n  ") for d, m in zip(data, mask))
    return "[\n  " + ",\n  ".join(rows) + "\n]"


class _Data(umbra.autograd.Function):
    """From a masked tensor to its data; the gradient gets the mask."""

    @staticmethod
    def forward(ctx, masked):
        ctx.mask = masked.get_mask()
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx, grad):
        return grad if is_masked_tensor(grad) else MaskedTensor(grad, ctx.mask)


class MaskedTensor(umbra.Tensor):
    """A tensor and, of the same shape, a mask of bools that says which elements are there."""

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        for name, part in (("data", data), ("mask", mask)):
            if is_masked_tensor(part) or not isinstance(part, umbra.Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn("The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github issue "
                      "for feature requests and see our documentation on the torch.masked module for further information about the project.",
                      UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn("It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                          "To avoid this, you can use data.detach().clone()", UserWarning, stacklevel=2)
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        if data.layout in _sparse.LAYOUTS:
            data, mask = _sparse.aligned(data, mask)
        made = umbra.Tensor._make_wrapper_subclass(cls, data.size(), dtype=data.dtype, layout=data.layout, device=data.device,
                                                   requires_grad=requires_grad)
        made._set_data_mask(data.clone(), mask.clone())
        return made

    def _set_data_mask(self, data, mask):
        _check_parts(data, mask)
        self._masked_data, self._masked_mask = data, mask

    def get_data(self):
        """The data, elements that are not there among them; gradients come back with the mask."""
        return _Data.apply(self)

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def is_sparse_coo(self):
        """Whether the data are a COO tensor."""
        return self.layout == umbra.sparse_coo

    def is_sparse_csr(self):
        """Whether the data are a CSR tensor."""
        return self.layout == umbra.sparse_csr

    @property
    def is_sparse(self):
        """Whether the data are a sparse tensor."""
        return self.layout in _sparse.LAYOUTS

    def to_tensor(self, value):
        """A plain tensor, with `value` where nothing is there."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    def __lt__(self, other):
        return MaskedTensor(self.get_data() < (other.get_data() if is_masked_tensor(other) else other), self.get_mask())

    def __repr__(self):
        if self.dim() == 0:
            there = self._masked_mask.item()
            return f"MaskedTensor({_number_text(self._masked_data.item()) if there else '--'}, {there})"
        data, mask = self._masked_data.detach(), self._masked_mask
        if self.is_sparse:
            data, mask = data.to_dense(), mask.to_dense()
        return "MaskedTensor(\n  " + _text(data, mask).replace("\n", "\n  ") + "\n)"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from umbra.masked.maskedtensor import _operators
        handler = _operators.functions().get(func)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from umbra.masked.maskedtensor import _operators
        handler = _operators.operators().get(func.overloadpacket)
        if handler is None:
            warnings.warn(f"{func.overloadpacket.__name__} is not implemented in __torch_dispatch__ for MaskedTensor.", stacklevel=2)
            return NotImplemented
        return handler(func.overloadpacket, *args, **(kwargs or {}))
