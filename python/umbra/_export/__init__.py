"""Names of torch's older export."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
