"""torch.distributed.tensor's older name."""
from umbra.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_module, distribute_tensor  # noqa: F401
