"""Scans by an associative function, in a number of steps that grows with the logarithm of the length."""
import umbra
from umbra._higher_order_ops.operator import FlatOperator
from umbra.utils import _pytree as pytree


_slice = umbra.ops.aten.slice.Tensor


def _interleave(evens, odds):
    """The slices of two tensors by turns; there may be one even slice more."""
    total = evens.size(0) + odds.size(0)
    more = evens.size(0) > odds.size(0)
    if more:
        odds = umbra.ops.aten.constant_pad_nd(odds, [0] * 2 * (odds.dim() - 1) + [0, 1])
    pairs = umbra.stack([evens, odds], 1).flatten(0, 1)
    return _slice(pairs, 0, 0, total) if more else pairs


def _scan(combine, leaves):
    count = leaves[0].size(0)
    if count < 2:
        return leaves
    odds = _scan(combine, combine([_slice(x, 0, 0, -1, 2) for x in leaves], [_slice(x, 0, 1, None, 2) for x in leaves]))
    before = [_slice(x, 0, 0, -1) for x in odds] if count % 2 == 0 else odds
    evens = combine(before, [_slice(x, 0, 2, None, 2) for x in leaves])
    evens = [umbra.cat([_slice(x, 0, 0, 1), e]) if e.numel() > 0 else _slice(x, 0, 0, 1) for x, e in zip(leaves, evens)]
    return [_interleave(e, o) for e, o in zip(evens, odds)]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """The running results of `combine_fn(a, b)` over the slices of tensors, or trees of them, along `dim`.

        associative_scan(lambda a, b: a + b, x, 0)      # cumsum
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(x, umbra.Tensor) for x in leaves):
        raise ValueError(f"xs leaves must be a Tensor, but got {leaves}")
    if any(x.size(dim) != leaves[0].size(dim) for x in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")

    def combine(a, b):
        result = umbra.vmap(lambda p, q: combine_fn(pytree.tree_unflatten(p, spec), pytree.tree_unflatten(q, spec)))(a, b)
        parts, given = pytree.tree_flatten(result)
        if len(parts) != len(leaves):
            raise AssertionError(f"Combine_fn received wrong number of arguments, expected {2 * len(leaves)}, but got {len(leaves) + len(parts)}")
        if given != spec:
            raise RuntimeError(f"The pytree of the output of the combine_fn is {given}, but the pytree of the input is {spec}")
        return parts
    moved = [x.movedim(dim, 0) for x in leaves]
    moved = [x.flip(0) for x in moved] if reverse else moved
    results = _scan(combine, moved)
    results = [x.flip(0) for x in results] if reverse else results
    return pytree.tree_unflatten([x.movedim(0, dim) for x in results], spec)


associative_scan_op = FlatOperator("associative_scan")
