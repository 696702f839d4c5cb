"""Names that torch keeps here. Capture in Umbra runs the program; it does not analyse its code."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)


def is_compiling():
    from umbra import _C
    return bool(_C._is_tracing())


def reset():
    pass
