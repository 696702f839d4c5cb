"""Models whose parameters are spread over several processes, of which there is one."""
from umbra.distributed._refusals import refusing, refusing_class, refusing_names
from umbra.distributed.fsdp.api import BackwardPrefetch, OptimStateKeyType, ShardingStrategy, StateDictType  # noqa: F401
from umbra.nn import Module

FSDPModule = refusing_class("fsdp.FSDPModule")
FullyShardedDataParallel = refusing_class("fsdp.FullyShardedDataParallel", Module)
MixedPrecision, MixedPrecisionPolicy, CPUOffload, CPUOffloadPolicy, OffloadPolicy = map(refusing_class, (
    "fsdp.MixedPrecision", "fsdp.MixedPrecisionPolicy", "fsdp.CPUOffload", "fsdp.CPUOffloadPolicy", "fsdp.OffloadPolicy"))
fully_shard = refusing("fsdp.fully_shard")

__getattr__ = refusing_names(__name__)
