"""cond: one of two functions, chosen by a tensor. Captured, both become graphs."""
from umbra import _C
from umbra._C import SymBool, Tensor
from umbra._higher_order_ops.operator import FlatFunction, HigherOrderOperator, call
from umbra.utils import _pytree as pytree


def cond(pred, true_fn, false_fn, operands=()):
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`.

        y = umbra.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    """
    if not isinstance(pred, (bool, Tensor, SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}.")
    if isinstance(pred, bool) or (isinstance(pred, SymBool) and not _C._is_tracing()):
        return (true_fn if pred else false_fn)(*operands)
    leaves, in_spec = pytree.tree_flatten(tuple(operands))

    def same_tree(_):
        if yes.spec is not None and no.spec is not None and yes.spec != no.spec:
            raise RuntimeError(f"Unmatched output spec from torch.cond branches: true branch tree_spec {yes.spec} vs false branch "
                               f"tree_spec {no.spec}.")
    yes, no = FlatFunction(true_fn, in_spec, same_tree), FlatFunction(false_fn, in_spec, same_tree)
    results = call("cond", pred, yes, no, leaves)
    return pytree.tree_unflatten(results, yes.spec or no.spec)


cond_op = HigherOrderOperator("cond")
