"""Collective operations that are differentiated; of one process each gives what it was given."""
import umbra
from umbra.distributed import _collectives
from umbra.distributed._group import ReduceOp, _known
from umbra.distributed._refusals import refusing_names


def _alone(name, group):
    if _known(group).size() != 1:
        raise RuntimeError(f"torch.distributed.nn.{name}: groups of several processes are not in Umbra, which has one")


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    _alone("all_reduce", group)
    result = tensor.clone()
    _collectives.all_reduce(result.detach(), op, group)
    return result


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    _alone("reduce", group)
    result = tensor.clone()
    _collectives.reduce(result.detach(), dst, op, group)
    return result


def broadcast(tensor, src, group=None):
    _alone("broadcast", group)
    _collectives.broadcast(tensor.detach(), src, group)
    return tensor.clone()


def all_gather(tensor, group=None):
    _alone("all_gather", group)
    return (tensor.contiguous().clone(),)


def gather(tensor, dst=0, group=None):
    _alone("gather", group)
    _collectives.broadcast(tensor.detach(), dst, group)
    return (tensor.clone(),)


def scatter(tensors, src=0, group=None):
    _alone("scatter", group)
    _collectives.broadcast(tensors[0].detach(), src, group)
    return tensors[0].clone()


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    _alone("reduce_scatter", group)
    _collectives.reduce_scatter(output.detach(), [tensor.detach() for tensor in input_list], op, group)
    return input_list[0].clone()


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    _alone("all_to_all", group)
    _collectives.all_to_all([tensor.detach() for tensor in output_tensor_list], [tensor.detach() for tensor in input_tensor_list], group)
    return tuple(tensor.clone() for tensor in input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    _alone("all_to_all_single", group)
    with umbra.no_grad():
        _collectives.all_to_all_single(output, input.detach(), output_split_sizes, input_split_sizes, group)
    return input.clone()


__getattr__ = refusing_names(__name__)
