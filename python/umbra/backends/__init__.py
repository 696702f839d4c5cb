"""Which devices and libraries there are: the CPU alone."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
