"""torch.distributed of a build without it: one process, and what needs several is refused."""
import os

from umbra._modules import lazy_submodules


def is_available():
    """Whether processes can work together: they cannot."""
    return False


def is_initialized():
    return False


def is_nccl_available():
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_torchelastic_launched():
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _no_group(*args, **kwargs):
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def _refusing(name):
    def refused(*args, **kwargs):
        raise RuntimeError(f"torch.distributed.{name}: torch.distributed is not available in Umbra")
    refused.__name__ = refused.__qualname__ = name
    return refused


def _refusing_class(name, base=object, **attributes):
    """A class that can be asked for and derived from, and of which there is no object."""
    def refused(self, *args, **kwargs):
        raise RuntimeError(f"torch.distributed.{name}: torch.distributed is not available in Umbra")
    last = name.rpartition(".")[2]
    return type(base)(last, (base,), {"__init__": refused, "__module__": f"torch.distributed.{name}".removesuffix("." + last), **attributes})


get_rank = get_world_size = get_backend = _no_group
(init_process_group, new_group, destroy_process_group, barrier, all_reduce, all_gather, all_gather_object, all_gather_into_tensor, broadcast,
 broadcast_object_list, reduce, reduce_scatter, reduce_scatter_tensor, gather, scatter, send, recv, isend, irecv, all_to_all,
 all_to_all_single) = map(_refusing, (
     "init_process_group", "new_group", "destroy_process_group", "barrier", "all_reduce", "all_gather", "all_gather_object",
     "all_gather_into_tensor", "broadcast", "broadcast_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "gather", "scatter",
     "send", "recv", "isend", "irecv", "all_to_all", "all_to_all_single"))


class ProcessGroup:
    """Processes that work together; there are none."""

    def __init__(self, *args):
        _refusing("ProcessGroup")()


class Backend(str):
    """The name of a library that processes talk by."""
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"


class ReduceOp:
    """How values of several processes become one."""
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


class group:
    """The group of all processes."""
    WORLD = None


GroupMember = group

__getattr__ = lazy_submodules(__name__)
