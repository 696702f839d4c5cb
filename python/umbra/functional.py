"""Functions whose arguments are not those of one operator: lists of tensors given one by one, results that depend on what is asked for."""
import collections.abc

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._functions import broadcast_shapes, broadcast_tensors, einsum, split  # noqa: F401  (part of this module's surface)
from umbra._linear_algebra import cdist, chain_matmul, lu, norm, stft, tensordot  # noqa: F401
from umbra._lowrank import pca_lowrank, svd_lowrank  # noqa: F401
from umbra.overrides import heard, overridable

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod", "meshgrid", "unique", "unique_consecutive",
           "unravel_index", "pca_lowrank", "svd_lowrank"]


def _listed(tensors):
    """Tensors given one by one, or as one list."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


def _overridden(function, tensors, *args, **kwargs):
    """What a __torch_function__ makes of the call, as a tuple of one; None where none of the tensors has one."""
    if _C._has_torch_function(*tensors):
        from umbra.overrides import handle_torch_function
        return (handle_torch_function(function, tuple(tensors), *args, **kwargs),)
    return None


# As functions read their arguments: what does not fit is a TypeError.
_atleast_1d, _atleast_2d, _atleast_3d, _block_diag, _cartesian_prod, _meshgrid, _unique_consecutive = (
    _C._find_function("aten::" + _name, 1)
    for _name in ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod", "meshgrid", "unique_consecutive"))
_unique_elements, _unique_slices = _C._find_function("aten::_unique2", 1), _C._find_function("aten::unique_dim", 1)


def _at_least(function, operator, tensors):
    listed = _listed(tensors)
    overridden = _overridden(function, listed, *tensors)
    if overridden:
        return overridden[0]
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return operator(tensors[0])
    return tuple(operator(listed))


@heard
def atleast_1d(*tensors):
    """Each tensor with one dimension or more."""
    return _at_least(atleast_1d, _atleast_1d, tensors)


@heard
def atleast_2d(*tensors):
    """Each tensor with two dimensions or more: a row becomes a matrix of one row."""
    return _at_least(atleast_2d, _atleast_2d, tensors)


@heard
def atleast_3d(*tensors):
    """Each tensor with three dimensions or more."""
    return _at_least(atleast_3d, _atleast_3d, tensors)


@heard
def block_diag(*tensors):
    """A matrix with the tensors along its diagonal, and zeros elsewhere."""
    overridden = _overridden(block_diag, tensors, *tensors)
    return overridden[0] if overridden else _block_diag(list(tensors))


@heard
def cartesian_prod(*tensors):
    """All combinations of an element of each vector, one in a row."""
    overridden = _overridden(cartesian_prod, tensors, *tensors)
    return overridden[0] if overridden else _cartesian_prod(list(tensors))


@heard
def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid, one tensor for each vector. With indexing="xy" the first runs along columns."""
    listed = _listed(tensors)
    overridden = _overridden(meshgrid, listed, *tensors, indexing=indexing)
    if overridden:
        return overridden[0]
    if indexing is None:
        return tuple(_meshgrid(listed))
    return tuple(_meshgrid(listed, indexing=indexing))


def _asked_for(values, inverse, counts, return_inverse, return_counts):
    parts = [values] + [part for part, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
    return parts[0] if len(parts) == 1 else tuple(parts)


@heard
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements, or the distinct slices along `dim`; with them, if asked for, which one each element is and how
    many there are of each."""
    if _C._has_torch_function(input):
        return _overridden(unique, (input,), input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts, dim=dim)[0]
    if dim is None:
        found = _unique_elements(input, sorted, return_inverse, return_counts)
    else:
        found = _unique_slices(input, dim, sorted, return_inverse, return_counts)
    return _asked_for(*found, return_inverse, return_counts)


@heard
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements, or of equal slices along `dim`."""
    overridden = _overridden(unique_consecutive, (input,), input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    if overridden:
        return overridden[0]
    found = _unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked_for(*found, return_inverse, return_counts)


@overridable
def unravel_index(indices, shape):
    """Positions in a row as coordinates in a tensor of that shape: one tensor of them for each dimension."""
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == umbra.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, _C.SymInt, collections.abc.Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = [shape] if isinstance(shape, (int, _C.SymInt)) else shape
    for size in sizes:
        if not isinstance(size, (int, _C.SymInt)):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    steps = [1]
    for size in reversed(list(sizes)[1:]):
        steps.insert(0, steps[0] * size)
    steps, sizes = (indices.new_tensor(numbers, dtype=umbra.int64) for numbers in (steps, list(sizes)))
    return (indices.unsqueeze(-1).floor_divide(steps) % sizes).unbind(-1)
