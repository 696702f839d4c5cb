"""torch.distributed of one process: a world is entered, and what its processes do together this one does alone; what needs several is refused."""
from umbra.distributed._collectives import (  # noqa: F401
    _all_gather_base, _reduce_scatter_base, all_gather, all_gather_coalesced, all_gather_into_tensor, all_gather_object, all_gather_single, all_reduce,
    all_reduce_coalesced, all_to_all, all_to_all_single, barrier, broadcast, broadcast_object_list, gather, gather_object, monitored_barrier, reduce,
    reduce_scatter, reduce_scatter_single, reduce_scatter_tensor, scatter, scatter_object_list)
from umbra.distributed._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError  # noqa: F401
from umbra.distributed._group import (  # noqa: F401
    Backend, GroupMember, ProcessGroup, ReduceOp, Work, _rank_not_in_group, destroy_process_group, get_backend, get_backend_config,
    get_default_backend_for_device, get_global_rank, get_group_rank, get_node_local_rank, get_pg_count, get_process_group_ranks, get_rank, get_world_size,
    group, init_process_group, is_available, is_backend_available, is_gloo_available, is_initialized, is_mpi_available, is_nccl_available,
    is_torchelastic_launched, is_ucc_available, is_xccl_available, new_group, new_subgroups, new_subgroups_by_enumeration, reduce_op)
from umbra.distributed._refusals import refusing_names
from umbra.distributed._stores import FileStore, HashStore, PrefixStore, Store, TCPStore  # noqa: F401
from umbra.distributed.device_mesh import DeviceMesh, init_device_mesh  # noqa: F401

_missing = refusing_names(__name__)


def __getattr__(name):
    if name == "GradBucket":     # its module is one of nn, which needs this one
        from umbra.nn.parallel.distributed import GradBucket
        return GradBucket
    return _missing(name)
