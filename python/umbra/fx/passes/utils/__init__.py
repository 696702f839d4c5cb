"""What passes share."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
from umbra.fx.passes.utils.common import HolderModule, compare_graphs, lift_subgraph_as_module  # noqa: E402,F401
