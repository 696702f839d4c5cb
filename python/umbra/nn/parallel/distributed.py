"""DistributedDataParallel, which needs several processes."""
from umbra.nn.modules.module import Module


class DistributedDataParallel(Module):
    """Cannot be made: there is no torch.distributed here. The class is there to be asked for."""

    def __init__(self, module, *args, **kwargs):
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
