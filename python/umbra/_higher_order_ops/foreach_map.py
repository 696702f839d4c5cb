"""foreach_map: a function of numbers or tensors, for each place of some lists."""
import itertools


def foreach_map(op, *operands):
    """`op` of the first elements of all lists, of the second ones, and so on; what is no list is the same each time. Captured, it is those calls."""
    if not any(isinstance(operand, (list, tuple)) for operand in operands):
        return op(*operands)
    lists = [operand if isinstance(operand, (list, tuple)) else itertools.repeat(operand) for operand in operands]
    return [op(*values) for values in zip(*lists)]
