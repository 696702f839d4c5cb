"""How vmap goes on: arguments lose the dimension of the batch, the function runs, results get it back.

The steps have torch's names, and are looked up here at each call: packages with containers of tensors of their own put others in their place.
"""
import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._functorch.levels import _add_batch_dim, _remove_batch_dim, is_batchedtensor, maybe_get_level
from umbra.func.wrappers import name_of as _get_name
from umbra.utils import _pytree as pytree
from umbra.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten  # noqa: F401

# ---- arguments ----

def _process_batched_inputs(in_dims, args, func):
    """The size of the batch, the dimension of each leaf of the arguments, the leaves and their structure."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")
    leaves, spec = pytree.tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    where = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if dims is None:
        raise ValueError(f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                         f"{pytree.tree_structure(in_dims)} but inputs has structure {spec}.")
    dims = [_checked_dim(leaf, dim, where) for leaf, dim in zip(leaves, dims)]
    return _validate_and_get_batch_size(dims, leaves), dims, leaves, spec


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


def _validate_and_get_batch_size(dims, leaves):
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0]


# ---- the call ----

def _create_batched_inputs(flat_in_dims, flat_args, vmap_level, args_spec):
    """The arguments as the function sees them: without the dimension of the batch."""
    return args_spec.unflatten([leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level) for leaf, dim in zip(flat_args, flat_in_dims)])


def _flat_vmap(func, batch_size, flat_in_dims, flat_args, args_spec, out_dims, randomness, **kwargs):
    with _C._vmap_level(batch_size, randomness):
        number = _C._level_count()
        result = func(*_create_batched_inputs(flat_in_dims, flat_args, number, args_spec), **kwargs)
        return _unwrap_batched(result, out_dims, number, batch_size, func)


def _unwrap_batched(batched_outputs, out_dims, vmap_level, batch_size, func):
    """The results as the caller sees them: with the dimension of the batch."""
    leaves, spec = pytree.tree_flatten(batched_outputs)
    dims = _broadcast_out_dims(out_dims, batched_outputs, spec, func)
    return spec.unflatten([_maybe_remove_batch_dim(_get_name(func), leaf, vmap_level, batch_size, dim) for leaf, dim in zip(leaves, dims)])


def _maybe_remove_batch_dim(name, batched_output, vmap_level, batch_size, out_dim):
    if not isinstance(batched_output, Tensor):
        if out_dim is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to set out_dims= "
                             "to None for output?")
        return batched_output
    if out_dim is not None:
        return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
    if maybe_get_level(batched_output) == vmap_level and is_batchedtensor(batched_output):
        raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    return batched_output


def _broadcast_out_dims(out_dims, result, spec, func):
    where = f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>)"
    for dim in pytree.tree_leaves(out_dims):
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(f"{where.removesuffix('(<inputs>)')}: `out_dims` must be an int, None or a python collection of ints representing where in the outputs the vmapped "
                             "dimension should appear.")
    if isinstance(result, Tensor) and not isinstance(out_dims, int) and out_dims is not None:
        # A single result may have its dimension in a tuple of one.
        if isinstance(out_dims, tuple) and len(out_dims) == 1:
            return list(out_dims)
        dims = None
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(f"{where}: out_dims is not compatible with the structure of `outputs`. out_dims has structure "
                         f"{pytree.tree_structure(out_dims)} but outputs has structure {spec}.")
    return dims


# ---- chunks ----

def _run_chunks(func, size, dims, leaves, spec, out_dims, randomness, kwargs, chunk_size):
    chunks, result_spec = [], None
    state = umbra.get_rng_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if state is not None and start:  # one draw for the whole batch: each chunk draws it again
            umbra.set_rng_state(state)
        length = min(chunk_size, size - start)
        part = [leaf if dim is None else leaf.narrow(dim, start, length) for leaf, dim in zip(leaves, dims)]
        result = _flat_vmap(func, length, dims, part, spec, out_dims, randomness, **kwargs)
        flat, result_spec = pytree.tree_flatten(result)
        chunks.append(flat)
    if result_spec is None:
        return _flat_vmap(func, size, dims, leaves, spec, out_dims, randomness, **kwargs)
    positions = _broadcast_to_and_flatten(out_dims, result_spec)
    if positions is None:
        positions = list(out_dims)
    joined = [parts[0] if dim is None else umbra.cat(parts, dim) for parts, dim in zip(zip(*chunks), positions)]
    return result_spec.unflatten(joined)
