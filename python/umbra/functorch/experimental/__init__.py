"""functorch's experiments."""
from umbra._modules import lazy_submodules
from umbra.func import functionalize  # noqa: F401

__getattr__ = lazy_submodules(__name__)
