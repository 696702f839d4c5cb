"""For seeing what the exchange of gradients costs."""
import umbra


def noop_hook(_, bucket):
    """Leaves the gradients as this process has them."""
    future = umbra.futures.Future()
    future.set_result(bucket.buffer())
    return future
