"""Which devices and libraries there are: the CPU alone."""
import contextlib

from umbra._modules import lazy_submodules


@contextlib.contextmanager
def __allow_nonbracketed_mutation():
    """A region in which switches may be set. They always may."""
    yield


__getattr__ = lazy_submodules(__name__)
