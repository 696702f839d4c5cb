"""What torch tries out for tensors over several machines."""
import contextlib


@contextlib.contextmanager
def implicit_replication():
    """Plain tensors beside such tensors count as copies on each machine: inside, nothing is different, for there are no such tensors."""
    yield
