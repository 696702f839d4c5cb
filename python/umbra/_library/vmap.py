"""Batching rules of operators of the user's own."""
from typing import NamedTuple

from umbra import _C


class VmapInfo(NamedTuple):
    """What a rule is told of its vmap."""
    batch_size: int
    randomness: str


def register_rule(overload, function):
    """`function(info, in_dims, *args, **kwargs)` gives (output, out_dims): what vmap does with the operator. Gives what takes the rule back."""
    count = len(overload._schema.returns)

    def rule(in_dims, size, randomness, args, kwargs):
        result = function(VmapInfo(size, randomness), tuple(in_dims[:len(args)]), *args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(f"Expected the vmap function of {overload} to have two returns: (output, out_dims), got {type(result).__name__}")
        output, out_dims = result
        if count == 1:
            return output, (out_dims,)
        return output, tuple(out_dims) if isinstance(out_dims, (tuple, list)) else (out_dims,) * count
    return _C._register_batch_rule(overload.name(), rule)
