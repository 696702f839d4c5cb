"""What DistributedDataParallel may do with gradients instead of averaging them."""
from umbra.distributed._refusals import refusing_names

__getattr__ = refusing_names(__name__)
