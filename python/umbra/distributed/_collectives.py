"""What processes do together, done by one: it has already what it would be told, so results are what it gave.

Of the backend "fake", whose other processes are not there, every tensor that one of them would fill is filled from this one's.
"""
import pickle

import umbra
from umbra.distributed._group import ReduceOp, Work, _known, _rank_not_in_group

_OF_COMPLEX = (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)
_OF_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


# ---- what is asked of arguments ----

def _check_single_tensor(value, name):
    if not isinstance(value, umbra.Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} instead.")


def _check_tensor_list(values, name):
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, umbra.Tensor) for value in values):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(values)} instead.")


def _check_one_dtype(*tensors):
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {tensor.dtype}")


def _reduced(tensor, op, name):
    """Checks that `op` is one of such elements, and does what it does to the elements of one process: an average divides them."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}(): op must be a torch.distributed.ReduceOp, not {type(op).__name__}")
    if tensor.is_complex() and op not in _OF_COMPLEX:
        raise ValueError(f"{name} does not support {op} on complex tensors")
    if op in _OF_BITS and tensor.is_floating_point():
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op == ReduceOp.AVG:
        tensor.div_(1)


def _root(rank, group_rank, group, name):
    """The rank, in the group, of the one that gives or takes."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_src and src" if name in ("broadcast", "scatter") else "Can't specify both group_dst and dst")
    root = group_rank if group_rank is not None else rank or 0
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {root}")
    return root


def _check_outputs(outputs, tensor, group, name="allgather"):
    if len(outputs) != group.size():
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid output tensor list at index 0 (expected length {group.size()}, got {len(outputs)})")
    for index, output in enumerate(outputs):
        _check_same_size(output, tensor, index, name)


def _check_same_size(output, tensor, index, name):
    if output.shape != tensor.shape:
        sizes = [f"({', '.join(map(str, t.shape))})" for t in (tensor, output)]
        raise RuntimeError(f"ProcessGroupGloo::{name}: invalid tensor size at index {index} (expected {sizes[0]}, got {sizes[1]})")


def _done(async_op, *result):
    return Work(result) if async_op else None


def _fill(output, tensor):
    with umbra.no_grad():
        output.copy_(tensor.reshape(output.shape))


# ---- tensors ----

def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return None
    _known(group)
    with umbra.no_grad():
        _reduced(tensor, op, "all_reduce")
    return _done(async_op, tensor)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    tensors = [tensors] if isinstance(tensors, umbra.Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    _check_one_dtype(*tensors)
    for tensor in tensors:
        all_reduce(tensor, op, group)
    return Work(tensors).get_future() if async_op and not _rank_not_in_group(group) else None


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return None
    _root(src, group_src, _known(group), "broadcast")
    return _done(async_op, tensor)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return None
    _root(dst, group_dst, _known(group), "reduce")
    with umbra.no_grad():
        _reduced(tensor, op, "reduce")
    return _done(async_op, tensor)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _check_one_dtype(*tensor_list, tensor)
    if _rank_not_in_group(group):
        return None
    _check_outputs(tensor_list, tensor, _known(group))
    for output in tensor_list:
        _fill(output, tensor)
    return _done(async_op, *tensor_list)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    _check_one_dtype(output_tensor, input_tensor)
    if _rank_not_in_group(group):
        return None
    size = _known(group).size()
    if size == 1:
        _check_same_size(output_tensor, input_tensor, 0, "allgather")
    for part in output_tensor.view(size, *input_tensor.shape).unbind():
        _fill(part, input_tensor)
    return _done(async_op, output_tensor)


_all_gather_base = all_gather_single = all_gather_into_tensor


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    for place, tensor in enumerate(input_tensor_list):
        all_gather([outputs[place] for outputs in output_tensor_lists], tensor, group)
    return Work(input_tensor_list).get_future() if async_op and not _rank_not_in_group(group) else None


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _check_one_dtype(output, *input_list)
    if _rank_not_in_group(group):
        return None
    known = _known(group)
    _check_outputs(input_list, output, known, "reduce_scatter")
    _fill(output, input_list[known.rank()])
    with umbra.no_grad():
        _reduced(output, op, "reduce_scatter")
    return _done(async_op, output)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if _rank_not_in_group(group):
        return None
    known = _known(group)
    return reduce_scatter(output, list(input.view(known.size(), *output.shape).unbind()), op, group, async_op)


_reduce_scatter_base = reduce_scatter_single = reduce_scatter_tensor


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return None
    known = _known(group)
    if _root(dst, group_dst, known, "gather") == known.rank():
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_tensor_list(gather_list, "gather_list")
        _check_one_dtype(tensor, *gather_list)
        _check_outputs(gather_list, tensor, known, "gather")
        for output in gather_list:
            _fill(output, tensor)
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return _done(async_op, *(gather_list or ()))


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return None
    known = _known(group)
    if _root(src, group_src, known, "scatter") == known.rank():
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_tensor_list(scatter_list, "scatter_list")
        _check_one_dtype(tensor, *scatter_list)
        _check_outputs(scatter_list, tensor, known, "scatter")
        _fill(tensor, scatter_list[known.rank()])
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _done(async_op, tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_one_dtype(*output_tensor_list, *input_tensor_list)
    if _rank_not_in_group(group):
        return None
    _known(group)
    for output, tensor in zip(output_tensor_list, input_tensor_list, strict=True):
        _fill(output, tensor)
    return _done(async_op, *output_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _check_one_dtype(output, input)
    if _rank_not_in_group(group):
        return None
    _known(group)
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        if sizes and sum(sizes) != tensor.size(0):
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    _fill(output, input)
    return _done(async_op, output)


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    if _rank_not_in_group(group):
        return None
    _known(group)
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    if not _rank_not_in_group(group):
        _known(group)


# ---- objects, which other processes would get by pickle ----

def _copy(value):
    return pickle.loads(pickle.dumps(value))


def all_gather_object(object_list, obj, group=None, weights_only=False):
    if not _rank_not_in_group(group):
        for place in range(_known(group).size()):
            object_list[place] = _copy(obj)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, weights_only=False):
    if not _rank_not_in_group(group):
        _root(src, group_src, _known(group), "broadcast")


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None, weights_only=False):
    if _rank_not_in_group(group):
        return
    known = _known(group)
    if _root(dst, group_dst, known, "gather") == known.rank():
        if not object_gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        all_gather_object(object_gather_list, obj, group)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None, weights_only=False):
    if _rank_not_in_group(group):
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    known = _known(group)
    if _root(src, group_src, known, "scatter") == known.rank():
        if not scatter_object_input_list:
            raise ValueError("Argument ``scatter_object_input_list`` must be specified on source rank.")
        scatter_object_output_list[0] = _copy(scatter_object_input_list[known.rank()])
