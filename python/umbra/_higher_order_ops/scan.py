"""scan: a function called on each row, and on what it carries from row to row."""
import umbra
from umbra._C import Tensor
from umbra._dynamo.exc import UserError
from umbra._higher_order_ops.operator import FlatFunction, FlatOperator, call
from umbra.utils import _pytree as pytree


def _rows(name, xs, dim, reverse):
    """The leaves of `xs` with the dimension to go along first."""
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"All xs leaves of {name} must be a Tensor")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if dim != 0:
        leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if any(leaf.shape[0] != leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError("All xs leaves must have the same scan dimension size")
    return [leaf.flip(0) for leaf in leaves] if reverse else leaves, spec


def _put_back(stacked, dim, reverse):
    """What was collected, along the dimension of the inputs; what has fewer dimensions keeps the rows in front."""
    if stacked is None:
        return None
    stacked = stacked.flip(0) if reverse else stacked
    return stacked.movedim(0, dim) if 0 < dim < stacked.dim() else stacked


def scan(combine_fn, init, xs, *, dim=0, reverse=False, length=None):
    """`carry, y = combine_fn(carry, x)` for each slice x of `xs` along `dim`; gives the last carry, and all y stacked along `dim`.

        total, sums = scan(lambda c, x: (c + x, c + x), umbra.zeros(()), x)

    Without tensors in `xs` the function is called `length` times, with None for x.
    """
    if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 0):
        raise RuntimeError(f"scan() length must be a non-negative integer, got {length!r}")
    if not any(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(xs)):
        if length is None:
            return init, []
        return scan(lambda carry, _: combine_fn(carry, None), init, umbra.zeros(length, dtype=umbra.int64), dim=dim, reverse=reverse)
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    start, start_spec = pytree.tree_flatten(init)
    if not start:
        raise RuntimeError("scan() operator requires init leaves.")
    for leaf in start:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"All init leaves must be a Tensor but got {leaf}")
    rows, spec = _rows("scan", xs, dim, reverse)
    if length is not None and rows[0].shape[0] != length:
        raise RuntimeError(f"scan() length={length} does not match xs size along dim={dim}: {rows[0].shape[0]}")
    count, collected_spec, nothing = len(start), [], []
    dim = dim + rows[0].dim() if dim < 0 else dim

    def run(*values):
        result = combine_fn(pytree.tree_unflatten(list(values[:count]), start_spec), pytree.tree_unflatten(list(values[count:]), spec))
        if not isinstance(result, tuple) or len(result) != 2:
            raise UserError(f"Expected init and carry to have same metadata but found:\ncombine_fn must give a carry and an output, got {result}")
        carry, carry_spec = pytree.tree_flatten(result[0])
        if carry_spec != start_spec:
            raise RuntimeError(f"The tree structure of the inits and the carries are not identical!\nExpected {start_spec}, but got {carry_spec}")
        collected, y_spec = pytree.tree_flatten(result[1])
        collected_spec[:] = [y_spec]
        nothing[:] = [i for i, y in enumerate(collected) if y is None]
        return [*carry, *(y for y in collected if y is not None)]
    if rows[0].shape[0] == 0:
        return _of_nothing(run, start, rows, start_spec, collected_spec, nothing, dim)
    results = call("scan", FlatFunction(run), start, rows, [])
    stacked = _with_nothing([_put_back(y, dim, reverse) for y in results[count:]], nothing)
    return pytree.tree_unflatten(results[:count], start_spec), pytree.tree_unflatten(stacked, collected_spec[0])


def _with_nothing(values, places):
    """The values with None at these places among them."""
    for place in places:
        values.insert(place, None)
    return values


def _of_nothing(run, start, rows, start_spec, collected_spec, nothing, dim):
    """No rows: the start, and collections of no elements, of which a run on a row of zeros tells the kind."""
    with umbra.no_grad():
        example = run(*[t.clone() for t in start], *[t.new_zeros(t.shape[1:]) for t in rows])[len(start):]
    empty = _with_nothing([_put_back(y.new_zeros((0, *y.shape)), dim, False) for y in example], nothing)
    return pytree.tree_unflatten([t.clone() for t in start], start_spec), pytree.tree_unflatten(empty, collected_spec[0])


scan_op = FlatOperator("scan")
