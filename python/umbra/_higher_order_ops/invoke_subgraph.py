"""invoke_subgraph: a graph that is called from several places."""
import functools

import umbra
from umbra._higher_order_ops.operator import FlatOperator


class InvokeSubgraph(FlatOperator):
    """`invoke_subgraph(subgraph, identifier, *operands)`: what `subgraph(*operands)` gives, as a tuple."""

    def __init__(self):
        super().__init__("invoke_subgraph")

    def __call__(self, subgraph, identifier, *operands):
        if identifier is not None and not isinstance(identifier, str):
            raise AssertionError("identifier must be a None or a string")
        for operand in operands:
            if not isinstance(operand, (umbra.Tensor, int, umbra.SymInt, umbra.Generator)):
                raise AssertionError(f"invoke_subgraph operands must be a list of tensors/ints/SymInts/Generator {operands}")
        return super().__call__(subgraph, identifier, list(operands))


invoke_subgraph = InvokeSubgraph()


def mark_compile_region(fn=None):
    """A function whose calls a compiler may compile once and use again. Captured, it is a part of the graph that calls it."""
    if fn is None:
        return mark_compile_region
    return functools.wraps(fn)(lambda *args, **kwargs: fn(*args, **kwargs))
