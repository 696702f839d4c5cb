"""Modules, parameters and functions of neural networks."""
from umbra._modules import lazy_submodules
from umbra.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401
from umbra.nn.modules import *  # noqa: F401, F403
from umbra.nn import functional, init, modules  # noqa: F401
from umbra.nn.parallel import DataParallel  # noqa: F401

__getattr__ = lazy_submodules(__name__)
