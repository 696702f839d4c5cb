"""What makes the graphs that torch.compile captures run."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
