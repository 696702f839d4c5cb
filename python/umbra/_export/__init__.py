"""Names of torch's older export."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)


def capture_pre_autograd_graph(f, args, kwargs=None, dynamic_shapes=None):
    """The module of an exported program, as PyTorch 2.4 and programs written for it ask for it."""
    from umbra.export import export
    return export(f, args, kwargs, dynamic_shapes=dynamic_shapes).module()
