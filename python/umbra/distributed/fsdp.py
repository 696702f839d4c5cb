"""Models whose parameters are spread over several processes, of which there is one."""
from umbra.distributed import _refusing, _refusing_class
from umbra.nn import Module

FSDPModule = _refusing_class("fsdp.FSDPModule")
FullyShardedDataParallel = _refusing_class("fsdp.FullyShardedDataParallel", Module)
MixedPrecision, MixedPrecisionPolicy, CPUOffload, CPUOffloadPolicy, OffloadPolicy = map(_refusing_class, (
    "fsdp.MixedPrecision", "fsdp.MixedPrecisionPolicy", "fsdp.CPUOffload", "fsdp.CPUOffloadPolicy", "fsdp.OffloadPolicy"))
fully_shard = _refusing("fsdp.fully_shard")
