from umbra.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard  # noqa: F401
