"""torch.distributed of a build without it: one process, and what needs several is refused."""
import os

from umbra.distributed._refusals import refusing, refusing_names


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


get_rank = get_world_size = get_backend = _no_group


class ProcessGroup:
    """Processes that work together; there are none."""

    def __init__(self, *args):
        refusing("ProcessGroup")()


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

__getattr__ = refusing_names(__name__)
