"""Tensors over several machines, of which there are none: the classes are there to be asked for."""
from umbra._C import Tensor
from umbra.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard  # noqa: F401


class DTensor(Tensor):
    """A tensor over several machines. None can be made here, so no tensor is one."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("torch.distributed.tensor.DTensor is not in Umbra, which has one process")


def distribute_tensor(*args, **kwargs):
    raise RuntimeError("torch.distributed.tensor.distribute_tensor is not in Umbra, which has one process")


distribute_module = distribute_tensor
