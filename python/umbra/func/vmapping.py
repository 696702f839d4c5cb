"""vmap: a function of one element becomes a function of a batch."""
import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.func.wrappers import entered, name_of, same_name
from umbra.utils import _pytree as pytree


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`func` over the dimension `in_dims` of its arguments; the results have theirs at `out_dims`.

    `in_dims` and `out_dims` are a number, None (not mapped), or a tree of them that fits the arguments. Operators that draw random numbers are
    an error unless `randomness` says 'same' or 'different'. With `chunk_size`, that many elements are computed at a time.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @same_name(func)
    def call(*args, **kwargs):
        leaves, dims, spec, size = _read_inputs(args, in_dims, func)
        if chunk_size is None:
            return _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
        return _run_chunks(func, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk_size)
    return call


# ---- arguments ----

def _read_inputs(args, in_dims, func):
    """The leaves of the arguments, the dimension of each, their structure and the size of the batch."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")
    leaves, spec = pytree.tree_flatten(args)
    dims = pytree._broadcast_to_and_flatten(in_dims, spec)
    where = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if dims is None:
        raise ValueError(f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                         f"{pytree.tree_structure(in_dims)} but inputs has structure {spec}.")
    dims = [_checked_dim(leaf, dim, where) for leaf, dim in zip(leaves, dims)]
    return leaves, dims, spec, _batch_size(leaves, dims)


def _checked_dim(leaf, dim, where):
    if dim is not None and not isinstance(dim, int):
        raise ValueError(f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
    if dim is None:
        return None
    if not isinstance(leaf, Tensor):
        raise ValueError(f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, "
                         "please use None as the respective in_dim")
    rank = leaf.dim()
    if not -rank <= dim < rank:
        raise ValueError(f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so expected in_dim to "
                         f"satisfy -{rank} <= in_dim < {rank}.")
    return dim + rank if dim < 0 else dim


def _batch_size(leaves, dims):
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0]


# ---- the call ----

def _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs):
    with entered(_C._enter_vmap_level(size, randomness)) as level:
        batched = [leaf if dim is None else level.batch(leaf, dim) for leaf, dim in zip(leaves, dims)]
        result = func(*spec.unflatten(batched), **kwargs)
    return _read_results(level, result, out_dims, func)


def _read_results(level, result, out_dims, func):
    leaves, spec = pytree.tree_flatten(result)
    dims = _broadcast_out_dims(out_dims, result, spec, func)
    name, results = name_of(func), []
    for leaf, dim in zip(leaves, dims):
        if not isinstance(leaf, Tensor):
            if dim is not None:
                raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set out_dims= to None "
                                 "for output?")
            results.append(leaf)
            continue
        if dim is None and level.is_batched(leaf):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        results.append(leaf if dim is None else level.result(leaf, dim))
    return spec.unflatten(results)


def _broadcast_out_dims(out_dims, result, spec, func):
    where = f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>)"
    for dim in pytree.tree_leaves(out_dims):
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(f"{where}: `out_dims` must be an int, None or a python collection of ints representing where in the outputs the vmapped "
                             "dimension should appear.")
    if isinstance(result, Tensor) and not isinstance(out_dims, int) and out_dims is not None:
        # A single result may have its dimension in a tuple or list of one.
        if isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
            return list(out_dims)
        dims = None
    else:
        dims = pytree._broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(f"{where}: out_dims is not compatible with the structure of `outputs`. out_dims has structure "
                         f"{pytree.tree_structure(out_dims)} but outputs has structure {spec}.")
    return dims


# ---- chunks ----

def _run_chunks(func, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk_size):
    chunks, result_spec = [], None
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        part = [leaf if dim is None else leaf.narrow(dim, start, length) for leaf, dim in zip(leaves, dims)]
        result = _run(func, part, dims, spec, length, out_dims, randomness, kwargs)
        flat, result_spec = pytree.tree_flatten(result)
        chunks.append(flat)
    if result_spec is None:
        return _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
    positions = pytree._broadcast_to_and_flatten(out_dims, result_spec)
    if positions is None:
        positions = list(out_dims)
    joined = [parts[0] if dim is None else umbra.cat(parts, dim) for parts, dim in zip(zip(*chunks), positions)]
    return result_spec.unflatten(joined)
