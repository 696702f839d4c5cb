"""What goes wrong between processes."""


class DistError(RuntimeError):
    """Something went wrong in torch.distributed."""
    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """A library that processes talk by failed."""
    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """The network failed."""
    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """A store failed."""
    __module__ = "torch.distributed"


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing in it."""
    __module__ = "torch.distributed"
