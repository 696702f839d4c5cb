"""Modules on several devices: there is one."""
from umbra.nn.parallel.data_parallel import DataParallel, data_parallel  # noqa: F401
from umbra.nn.parallel.distributed import DistributedDataParallel  # noqa: F401
from umbra.nn.parallel.parallel_apply import parallel_apply  # noqa: F401
from umbra.nn.parallel.scatter_gather import gather, scatter  # noqa: F401

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "scatter"]
