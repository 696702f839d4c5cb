"""strict_mode: a function that stays a part of its own in a graph."""
from umbra._higher_order_ops.operator import FlatOperator

strict_mode_op = FlatOperator("strict_mode")


def strict_mode(callable, operands):
    """`callable(*operands)`; captured, it is a graph inside the graph."""
    return strict_mode_op(callable, tuple(operands))
