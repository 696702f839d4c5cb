"""scan: a function called on each row, and on what it carries from row to row."""
import umbra
from umbra._C import Tensor
from umbra._higher_order_ops.operator import FlatFunction, HigherOrderOperator, call
from umbra.utils import _pytree as pytree


def _rows(name, xs, dim, reverse):
    """The leaves of `xs` with the dimension to go along first."""
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"All xs leaves of {name} must be a Tensor")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if any(leaf.shape[0] != leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError(f"All xs leaves of {name} must have the same size along dim {dim}")
    return [leaf.flip(0) for leaf in leaves] if reverse else leaves, spec


def _put_back(stacked, dim, reverse):
    stacked = stacked.flip(0) if reverse else stacked
    return stacked.movedim(0, dim if dim >= 0 else dim + stacked.dim()) if stacked.dim() > 0 else stacked


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """`carry, y = combine_fn(carry, x)` for each slice x of `xs` along `dim`; gives the last carry, and all y stacked along `dim`.

        total, sums = scan(lambda c, x: (c + x, c + x), umbra.zeros(()), x)
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    start, start_spec = pytree.tree_flatten(init)
    if not start:
        raise RuntimeError("scan() operator requires init leaves.")
    rows, spec = _rows("scan", xs, dim, reverse)
    count, collected_spec = len(start), []

    def run(*values):
        result = combine_fn(pytree.tree_unflatten(list(values[:count]), start_spec), pytree.tree_unflatten(list(values[count:]), spec))
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(f"scan: combine_fn must give a carry and an output, got {result}")
        carry, carry_spec = pytree.tree_flatten(result[0])
        if carry_spec != start_spec:
            raise RuntimeError(f"The tree structure of the inits and the carries are not identical!\nExpected {start_spec}, but got {carry_spec}")
        collected, y_spec = pytree.tree_flatten(result[1])
        collected_spec[:] = [y_spec]
        return [*carry, *collected]
    if rows[0].shape[0] == 0:
        return _of_nothing(run, start, rows, start_spec, collected_spec, dim)
    results = call("scan", FlatFunction(run), start, rows, [])
    stacked = [_put_back(y, dim, reverse) for y in results[count:]]
    return pytree.tree_unflatten(results[:count], start_spec), pytree.tree_unflatten(stacked, collected_spec[0])


def _of_nothing(run, start, rows, start_spec, collected_spec, dim):
    """No rows: the start, and collections of no elements, of which a run on a row of zeros tells the kind."""
    with umbra.no_grad():
        example = run(*[t.clone() for t in start], *[t.new_zeros(t.shape[1:]) for t in rows])[len(start):]
    empty = [_put_back(y.new_zeros((0, *y.shape)), dim, False) for y in example]
    return pytree.tree_unflatten([t.clone() for t in start], start_spec), pytree.tree_unflatten(empty, collected_spec[0])


scan_op = HigherOrderOperator("scan")


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """All prefixes of `xs` along `dim`, combined by an associative function.

        sums = associative_scan(umbra.add, x, 0, combine_mode="generic")
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    rows, spec = _rows("associative_scan", xs, dim, reverse)
    if rows[0].shape[0] == 0:
        raise RuntimeError("Expected scan dimension size to be non-zero")
    running = [row.select(0, 0) for row in rows]
    collected = [[r] for r in running]
    for i in range(1, int(rows[0].shape[0])):
        result = combine_fn(pytree.tree_unflatten(running, spec), pytree.tree_unflatten([row.select(0, i) for row in rows], spec))
        running, result_spec = pytree.tree_flatten(result)
        if result_spec != spec or any(a.shape != b.shape or a.dtype != b.dtype for a, (b, *_) in zip(running, collected)):
            raise RuntimeError("The pytree and the metadata of the combine_fn's output must be those of xs")
        for rows_of, value in zip(collected, running):
            rows_of.append(value)
    return pytree.tree_unflatten([_put_back(umbra.stack(c), dim, reverse) for c in collected], spec)
