"""What passes share."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
