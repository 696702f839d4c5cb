"""cond: one of two functions, chosen by a tensor. Captured, both become graphs."""
from umbra import _C
from umbra._C import SymBool, Tensor
from umbra.utils import _pytree as pytree


class HigherOrderOperator:
    """An operator that takes functions, as graphs name it."""

    def __init__(self, name, function):
        self._name, self._function = name, function
        self.__name__ = self.__qualname__ = name
        self.__module__ = "torch.ops.higher_order"

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def name(self):
        return self._name

    def __repr__(self):
        return f"torch.ops.higher_order.{self._name}"

    def __deepcopy__(self, memo):
        return self


def cond(pred, true_fn, false_fn, operands=()):
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`."""
    if not isinstance(pred, (bool, Tensor, SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}.")
    leaves, in_spec = pytree.tree_flatten(tuple(operands))
    specs = {}

    def flat(branch, function):
        def run(values):
            results, spec = pytree.tree_flatten(function(*pytree.tree_unflatten(values, in_spec)))
            specs[branch] = spec
            if len(specs) == 2 and specs["true"] != specs["false"]:
                raise RuntimeError(f"Unmatched output spec from torch.cond branches: true branch tree_spec {specs['true']} vs false branch "
                                   f"tree_spec {specs['false']}.")
            return results
        return run
    results = _C._cond(pred, flat("true", true_fn), flat("false", false_fn), leaves)
    return pytree.tree_unflatten(results, next(iter(specs.values())))


cond_op = HigherOrderOperator("cond", cond)
