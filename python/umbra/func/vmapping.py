"""vmap: a function of one element becomes a function of a batch. How it goes on stands in umbra._functorch.vmap."""
from collections.abc import Callable
from typing import Any

from umbra._functorch import vmap as steps
from umbra.func.wrappers import same_name


_RANDOMNESS = ("error", "different", "same")


def _randomness_error(randomness):
    return f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"


def vmap(func, in_dims: Any = 0, out_dims: Any = 0, randomness="error", *, chunk_size=None) -> Callable[..., Any]:
    """`func` over the dimension `in_dims` of its arguments; the results have theirs at `out_dims`.

    `in_dims` and `out_dims` are a number, None (not mapped), or a tree of them that fits the arguments. Operators that draw random numbers are
    an error unless `randomness` says 'same' or 'different'. With `chunk_size`, that many elements are computed at a time.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(_randomness_error(randomness))
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @same_name(func)
    def call(*args, **kwargs):
        size, dims, leaves, spec = steps._process_batched_inputs(in_dims, args, func)
        if chunk_size is None:
            return steps._flat_vmap(func, size, dims, leaves, spec, out_dims, randomness, **kwargs)
        return steps._run_chunks(func, size, dims, leaves, spec, out_dims, randomness, kwargs, chunk_size)
    return call


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap in at most `chunks` parts of one size (the last one may be smaller), one after the other."""
    if randomness not in _RANDOMNESS:
        raise RuntimeError(_randomness_error(randomness))

    @same_name(func)
    def call(*args, **kwargs):
        size, dims, leaves, spec = steps._process_batched_inputs(in_dims, args, func)
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        return steps._run_chunks(func, size, dims, leaves, spec, out_dims, randomness, kwargs, max(1, -(-size // chunks)))
    return call
