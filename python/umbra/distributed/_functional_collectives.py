"""Collective operations that give new tensors; of one process, what it gave."""
import umbra
from umbra.distributed import _collectives
from umbra.distributed._group import ReduceOp, _known
from umbra.distributed._refusals import refusing_names
from umbra.distributed.device_mesh import DeviceMesh


def _alone(name, group):
    """The group that is meant: by a mesh, by a mesh and one of its dimensions, by its ranks, or itself."""
    if isinstance(group, tuple):
        group, dimension = group
        group = group.get_group(dimension)
    elif isinstance(group, DeviceMesh):
        group = group.get_group()
    elif isinstance(group, list):
        group = None if group == [0] else group
    group = _known(group)
    if group.size() != 1:
        raise RuntimeError(f"torch.distributed._functional_collectives.{name}: groups of several processes are not in Umbra, which has one")
    return group


def _reduced(name, tensor, reduceOp, group):
    result = tensor.clone()
    _collectives.all_reduce(result.detach(), ReduceOp[reduceOp.upper()], _alone(name, group))
    return result


def wait_tensor(tensor):
    return tensor


def broadcast(self, src, group, tag=""):
    _collectives.broadcast(self.detach(), src, _alone("broadcast", group))
    return self.clone()


def all_reduce(self, reduceOp, group, tag=""):
    return _reduced("all_reduce", self, reduceOp, group)


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    return [_reduced("all_reduce_coalesced", tensor, reduceOp, group) for tensor in self]


def all_gather_tensor(self, gather_dim, group, tag=""):
    _alone("all_gather_tensor", group)
    if not -self.dim() <= gather_dim < max(self.dim(), 1):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {gather_dim})")
    return self.clone(memory_format=umbra.contiguous_format)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    if not -self.dim() <= scatter_dim < max(self.dim(), 1):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {scatter_dim})")
    return _reduced("reduce_scatter_tensor", self, reduceOp, group)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    result = umbra.empty_like(self, memory_format=umbra.contiguous_format)
    _collectives.all_to_all_single(result, self.detach(), output_split_sizes, input_split_sizes, _alone("all_to_all_single", group))
    return self.clone(memory_format=umbra.contiguous_format)


all_gather_tensor_autograd, all_to_all_single_autograd, reduce_scatter_tensor_autograd = all_gather_tensor, all_to_all_single, reduce_scatter_tensor

__getattr__ = refusing_names(__name__)
