"""The classes of nested tensors: what they hold, how they look, and where operators on them go.

A nested tensor holds strided tensors, and what is done with it is done with those (`_functions.py`): they have the history, so
gradients flow through them, and an operator without a function of its own is refused by name.
"""
import itertools

import umbra
from umbra.nested._nested_int import NestedSize, ragged_size


class NestedTensor(umbra.Tensor):
    """What both layouts share."""

    is_nested = True

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from umbra.nested import _functions
        return _functions.call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{func} of nested tensors is not in Umbra yet")

    # ---- what a subclass says: _held(), _with(tensors) and _converted(convert) ----

    @property
    def requires_grad(self):
        return any(t.requires_grad for t in self._held())

    @requires_grad.setter
    def requires_grad(self, value):
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad=True):
        for t in self._held():
            t.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self):
        return all(t.is_leaf for t in self._held())

    @property
    def grad_fn(self):
        return next((t.grad_fn for t in self._held() if t.grad_fn is not None), None)

    @property
    def grad(self):
        gradients = [t.grad for t in self._held()]
        if all(g is None for g in gradients):
            return None
        return self._with([umbra.zeros_like(t) if g is None else g for t, g in zip(self._held(), gradients)])

    @grad.setter
    def grad(self, value):
        for t, g in zip(self._held(), [None] * len(self._held()) if value is None else value._held()):
            t.grad = g

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        if gradient is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        umbra.autograd.backward(self._held(), gradient._held(), retain_graph, create_graph, inputs=inputs)

    @property
    def shape(self):
        return self.size()

    def dim(self):
        return self._rank

    ndim = property(dim)
    dtype = property(lambda self: self._held_type)

    def stride(self, dim=None):
        raise NotImplementedError("strides of nested tensors are not in Umbra yet")

    def numel(self):
        return sum(t.numel() for t in self.unbind())

    nelement = numel

    def is_floating_point(self):
        return self._held_type.is_floating_point

    def is_complex(self):
        return self._held_type.is_complex

    def element_size(self):
        return self._held_type.itemsize

    def tolist(self):
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *, force=False):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __len__(self):
        return len(self.unbind())

    def __iter__(self):
        return iter(self.unbind())

    def __getitem__(self, index):
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis and all(isinstance(i, int) and not isinstance(i, bool) for i in rest):
            for i in reversed(rest):
                self = self.select(-1, i)
            return self
        if isinstance(first, int) and not isinstance(first, bool):
            part = self.unbind()[first]
            return part[tuple(rest)] if rest else part
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")

    def __setitem__(self, index, value):
        self[index][...] = value  # parts share their memory

    def __deepcopy__(self, memo):
        copied = self.detach().clone()
        memo[id(self)] = copied
        return copied.requires_grad_() if self.requires_grad else copied

    __hash__ = object.__hash__


def _sizes_for_padding(parts):
    return [max((t.shape[d] for t in parts), default=0) for d in range(parts[0].dim())] if parts else []


def padded(parts, padding, output_size):
    """Parts in one strided tensor, `padding` behind the shorter ones."""
    sizes = _sizes_for_padding(parts)
    if output_size is not None:
        if len(output_size) != len(sizes) + 1 or output_size[0] not in (-1, len(parts)):
            raise RuntimeError(f"to_padded_tensor: output_size {tuple(output_size)} does not fit {len(parts)} parts of {len(sizes)} dimensions")
        if any(o != -1 and o < s for o, s in zip(output_size[1:], sizes)):
            raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
        sizes = [s if o == -1 else o for o, s in zip(output_size[1:], sizes)]
    rows = []
    for part in parts:
        gaps = [gap for wanted, have in reversed(list(zip(sizes, part.shape))) for gap in (0, wanted - have)]
        rows.append(umbra.nn.functional.pad(part, gaps, value=padding))
    return umbra.stack(rows)


class JaggedTensor(NestedTensor):
    """Parts one after the other in one tensor; their lengths differ in one dimension."""

    @staticmethod
    def __new__(cls, values, offsets, lengths=None, ragged=1):
        if values.dim() < 1 or offsets.dim() != 1 or offsets.shape[0] < 1:
            raise RuntimeError("a jagged tensor is made of values with at least one dimension and a vector of offsets")
        sizes = [offsets.shape[0] - 1, *values.shape]
        made = umbra.Tensor._make_wrapper_subclass(cls, sizes, dtype=values.dtype, device=values.device, layout=umbra.jagged)
        made._values, made._offsets, made._lengths, made._ragged = values, offsets, lengths, ragged
        made._rank, made._held_type = len(sizes), values.dtype
        return made

    @classmethod
    def from_parts(cls, parts):
        """Of a list of tensors that differ in their first dimension, or in another one."""
        if not parts:
            raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
        if any(t.dim() != parts[0].dim() for t in parts):
            raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
        if parts[0].dim() == 0:
            raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
        ragged = [d for d in range(parts[0].dim()) if len({t.shape[d] for t in parts}) > 1]
        if len(ragged) > 1:
            raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
                               "allows for a single ragged dimension.")
        along = ragged[0] if ragged else 0
        lengths = umbra.tensor([0] + [t.shape[along] for t in parts], device=parts[0].device)
        return cls(umbra.cat(parts, along), lengths.cumsum(0), None, along + 1)

    def _held(self):
        return [self._values]

    def _with(self, tensors):
        return JaggedTensor(tensors[0], self._offsets, self._lengths, self._ragged)

    def _converted(self, convert):
        """The same of other tensors: a fake one, where `convert` makes them fake."""
        return JaggedTensor(convert(self._values), convert(self._offsets), None if self._lengths is None else convert(self._lengths), self._ragged)

    def values(self):
        """All parts one after the other."""
        return self._values

    def offsets(self):
        """Where each part begins among the values, and where the last one ends."""
        return self._offsets

    def lengths(self):
        """The length of each part where they have gaps between them, else None."""
        return self._lengths

    def size(self, dim=None):
        sizes = [self._offsets.shape[0] - 1, *self._values.shape]
        sizes[self._ragged] = ragged_size(self._offsets)
        return NestedSize(sizes) if dim is None else sizes[dim]

    _ragged_idx = property(lambda self: self._ragged)

    def _get_max_seqlen(self):
        return max((length for _, length in self._ranges()), default=0)

    def _get_min_seqlen(self):
        return min((length for _, length in self._ranges()), default=0)

    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)

    def __reduce_ex__(self, protocol):
        from umbra.nested._internal.nested_tensor import _rebuild_njt
        return _rebuild_njt, ({"values": self._values.detach(), "offsets": self._offsets, "lengths": self._lengths, "_ragged_idx": self._ragged,
                               "_metadata_cache": {}, "requires_grad": self.requires_grad},)

    def __setstate__(self, state):
        """PyTorch's files repeat the parts, and say what follows from them."""

    def is_contiguous(self, memory_format=umbra.contiguous_format):
        return self._lengths is None and self._ragged == 1 and self._values.is_contiguous(memory_format=memory_format)

    def _ranges(self):
        """Where each part begins, and how long it is."""
        starts = self._offsets.tolist()
        lengths = self._lengths.tolist() if self._lengths is not None else [b - a for a, b in zip(starts, starts[1:])]
        for start, length in zip(starts, lengths):
            if isinstance(start, umbra.SymInt):  # of a fake one, which only the run tells
                umbra._check(start >= 0)
                umbra._check(length >= 0)
                umbra._check(start + length <= self._values.shape[self._ragged - 1])
        return list(zip(starts, lengths))

    def unbind(self, dim=0):
        if dim != 0:
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        return tuple(self._values.narrow(self._ragged - 1, start, length) for start, length in self._ranges())

    def to_padded_tensor(self, padding, output_size=None):
        """A strided tensor with `padding` behind the shorter parts; what is longer than `output_size` is cut off."""
        parts = self.unbind()
        if output_size is not None and output_size[self._ragged] != -1:
            parts = [t.narrow(self._ragged - 1, 0, min(t.shape[self._ragged - 1], output_size[self._ragged])) for t in parts]
        return padded(parts, padding, output_size)

    def __repr__(self):
        fact = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        size = "(" + ", ".join(map(str, self.size())) + ")"
        return f"NestedTensor(size={size}, offsets={self._offsets}{fact}, contiguous={self._lengths is None})"


class StridedNestedTensor(NestedTensor):
    """A list of tensors of one rank; every size may differ."""

    layout = umbra.strided

    @staticmethod
    def __new__(cls, parts):
        dtype = parts[0].dtype if parts else umbra.get_default_dtype()
        device = parts[0].device if parts else "cpu"
        sizes = [len(parts), *_sizes_for_padding(parts)]  # the wrapper's own layout keeps captures from taking it for a strided tensor
        made = umbra.Tensor._make_wrapper_subclass(cls, sizes, dtype=dtype, device=device, layout=umbra.jagged)
        made._parts, made._rank, made._held_type = list(parts), parts[0].dim() + 1 if parts else 1, dtype
        return made

    @classmethod
    def from_parts(cls, parts):
        """Of a list of tensors of one rank and type."""
        for i, t in enumerate(parts):
            if t.dim() != parts[0].dim():
                raise RuntimeError(f"All Tensors given to nested_tensor must have the same dimension. Found dimension {t.dim()} for Tensor at "
                                   f"index {i} and dimension {parts[0].dim()} for Tensor at index 0.")
        return cls(parts)

    def _held(self):
        return self._parts

    def _with(self, tensors):
        return StridedNestedTensor(tensors)

    def _converted(self, convert):
        return StridedNestedTensor([convert(part) for part in self._parts])

    def size(self, dim=None):
        if dim is None:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
        at = dim + self._rank if dim < 0 else dim
        if at == 0:
            return len(self._parts)
        sizes = {t.shape[at - 1] for t in self._parts}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    def values(self):
        """The elements of all parts one after the other."""
        return umbra.cat([t.reshape(-1) for t in self._parts]) if self._parts else umbra.empty(0, dtype=self._held_type)

    def _nested_tensor_size(self):
        """The sizes of the parts, a row each."""
        return umbra.tensor([list(t.shape) for t in self._parts], dtype=umbra.int64)

    def _nested_tensor_strides(self):
        """The strides of the parts, a row each."""
        return umbra.tensor([list(t.stride()) for t in self._parts], dtype=umbra.int64)

    def __reduce_ex__(self, protocol):
        from umbra._utils import _rebuild_nested_tensor
        parts = [t.detach().contiguous() for t in self._parts]
        starts = [0, *itertools.accumulate(t.numel() for t in parts)][:-1]
        strides = umbra.tensor([list(t.stride()) for t in parts], dtype=umbra.int64)
        return _rebuild_nested_tensor, (self.detach().values(), self._nested_tensor_size(), strides, umbra.tensor(starts, dtype=umbra.int64))

    def is_contiguous(self, memory_format=umbra.contiguous_format):
        return all(t.is_contiguous(memory_format=memory_format) for t in self._parts)

    def unbind(self, dim=0):
        if dim != 0:
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        return tuple(self._parts)

    def to_padded_tensor(self, padding, output_size=None):
        """A strided tensor with `padding` behind the shorter parts."""
        return padded(self._parts, padding, output_size)

    def __repr__(self):
        parts = ",\n".join("  " + repr(t).replace("\n", "\n  ") for t in (p.detach().requires_grad_(self.requires_grad) for p in self._parts))
        fact = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        return f"nested_tensor([\n{parts}\n]{fact})"
