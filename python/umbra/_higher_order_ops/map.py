"""map: a function called on each row of its inputs, its results stacked."""
from umbra._C import Tensor
from umbra._higher_order_ops.operator import FlatFunction, FlatOperator, call
from umbra.utils import _pytree as pytree


def map(f, xs, *args):
    """`f(row, *args)` for each row of the tensors in `xs`, along their first dimension.

        y = map(lambda row, w: row * w, x, w)
    """
    if not callable(f):
        raise RuntimeError(f"Expect f to be callable, got {f}")
    leaves, spec = pytree.tree_flatten(xs)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    if any(leaf.dim() == 0 for leaf in leaves):
        raise IndexError("tuple index out of range")
    if any(leaf.shape[0] == 0 for leaf in leaves):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(leaf.shape[0] != leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {[leaf.shape for leaf in leaves]}.")
    more, more_spec = pytree.tree_flatten(args)
    count = len(leaves)

    def run(*values):
        return f(pytree.tree_unflatten(list(values[:count]), spec), *pytree.tree_unflatten(list(values[count:]), more_spec))
    function = FlatFunction(run)
    return pytree.tree_unflatten(call("map_impl", function, leaves, more), function.spec)


map_impl = FlatOperator("map_impl")
