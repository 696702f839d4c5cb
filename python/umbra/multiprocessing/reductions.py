"""How tensors go from process to process: their memory moves to where both see it, and its file's descriptor is sent."""
from multiprocessing.reduction import DupFd, ForkingPickler

import umbra


def _rebuild_storage(descriptor, nbytes):
    import os
    number = descriptor.detach()
    try:
        return umbra._C._shared_storage(number, nbytes)
    finally:
        os.close(number)


def reduce_storage(storage):
    """An UntypedStorage is sent as the file that it shares; what has no data goes as pickles have it."""
    if storage.nbytes() == 0:
        return umbra.UntypedStorage, (0,)
    if not storage._has_data():
        return storage.__reduce_ex__(2)
    storage.share_memory_()
    return _rebuild_storage, (DupFd(storage._shared_descriptor()), storage.nbytes())


def _rebuild_typed_storage(kind, storage, dtype):
    return kind(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage):
    return _rebuild_typed_storage, (type(storage), storage.untyped(), storage.dtype)


def reduce_tensor(tensor):
    """A tensor is sent as its memory and how it lies in it; a result of autograd is refused, for its graph stays here."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
                           "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
                           "on the queue).")
    return tensor.__reduce_ex__(2)


def init_reductions():
    """Teaches Python's multiprocessing to send tensors; done once, on import."""
    ForkingPickler.register(umbra.storage.UntypedStorage, reduce_storage)
    for kind in (umbra.storage.TypedStorage, *umbra.storage._CLASSES.values()):
        ForkingPickler.register(kind, reduce_typed_storage)
    ForkingPickler.register(umbra.Tensor, reduce_tensor)
