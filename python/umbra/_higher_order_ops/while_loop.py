"""while_loop: a function called on its own results for as long as a condition of them holds."""
from contextlib import nullcontext

from umbra._C import SymInt, Tensor
from umbra._dynamo.exc import UserError
from umbra._export.operands import ordered, without_order
from umbra._higher_order_ops.operator import FlatFunction, FlatOperator, call
from umbra.compiler import is_exporting
from umbra.utils import _pytree as pytree


def while_loop(cond_fn, body_fn, carried_inputs):
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`; gives what is carried in the end.

        i, x = while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (umbra.tensor(0), x))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, got {type(carried_inputs)}")
    leaves, spec = pytree.tree_flatten(tuple(carried_inputs))
    if not all(isinstance(leaf, (Tensor, SymInt)) or type(leaf) is int for leaf in leaves):
        raise AssertionError(f"{leaves} can only be of {(Tensor, int, SymInt)} but got {tuple(type(leaf) for leaf in leaves)}")

    def same_tree(function):
        if function.spec != spec and not isinstance(carried_inputs, list):
            raise UserError(f"while_loop: body_fn gives {function.spec} for what is carried as {spec}")
    bare = False

    def as_tuple(*args):
        nonlocal bare
        result = body(*args)
        bare = not isinstance(result, (tuple, list))
        return _as_tuple(result)
    body = without_order(body_fn)
    condition, step = FlatFunction(without_order(cond_fn), spec), FlatFunction(as_tuple, spec, same_tree)
    with ordered((cond_fn, body_fn)) if is_exporting() else nullcontext():
        results = pytree.tree_unflatten(call("while_loop", condition, step, leaves, []), spec)
    return results[0] if bare else results  # what the body gives by itself comes back by itself


def _as_tuple(result):
    return tuple(result) if isinstance(result, list) else result if isinstance(result, tuple) else (result,)


while_loop_op = FlatOperator("while_loop", result=1)
while_loop_backward_op = FlatOperator("while_loop_backward", result=2)
