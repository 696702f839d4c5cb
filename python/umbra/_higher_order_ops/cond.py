"""cond: one of two functions, chosen by a tensor. Captured, both become graphs."""
import warnings
from contextlib import nullcontext

from umbra import _C
from umbra._C import SymBool, Tensor
from umbra._dynamo.exc import UserError, refused_without_data
from umbra._export.operands import ordered, without_order
from umbra._higher_order_ops.operator import FlatFunction, FlatOperator, call
from umbra.compiler import is_exporting
from umbra.utils import _pytree as pytree


def cond(pred, true_fn, false_fn, operands=()):
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`.

        y = umbra.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    """
    if isinstance(pred, (bool, int, float)) or (isinstance(pred, SymBool) and not _C._is_tracing()):
        if is_exporting() and not isinstance(pred, SymBool):
            warnings.warn("Pred is a Python constant. When used with torch.cond, it specializes on one of the branches. To have both in the program, make "
                          "it a tensor or a symbolic condition.", UserWarning, stacklevel=2)
        return (true_fn if pred else false_fn)(*operands)
    if not isinstance(pred, (Tensor, SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    leaves, in_spec = pytree.tree_flatten(tuple(operands) if isinstance(operands, (tuple, list)) else operands)
    if not isinstance(operands, (tuple, list)) or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}.")

    def same_tree(_):
        if yes.spec is not None and no.spec is not None and yes.spec != no.spec:
            text = f"Unmatched output spec from torch.cond branches: true branch tree_spec {yes.spec} vs false branch tree_spec {no.spec}."
            raise UserError(text) if yes.spec.num_leaves == no.spec.num_leaves else refused_without_data(text)
    yes, no = FlatFunction(without_order(true_fn), in_spec, same_tree), FlatFunction(without_order(false_fn), in_spec, same_tree)
    with ordered((true_fn, false_fn), operands) if is_exporting() else nullcontext():
        results = call("cond", pred, yes, no, leaves)
    return pytree.tree_unflatten(results, yes.spec or no.spec)


cond_op = FlatOperator("cond", parameters=("pred", "true_fn", "false_fn", "operands"))
