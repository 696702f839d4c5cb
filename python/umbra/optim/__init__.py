"""Optimisers."""
from umbra._modules import lazy_submodules
from umbra.optim.adafactor import Adafactor  # noqa: F401
from umbra.optim.adam import Adam, AdamW  # noqa: F401
from umbra.optim.adaptive import Adadelta, Adagrad, Adamax, RMSprop  # noqa: F401
from umbra.optim.lbfgs import LBFGS  # noqa: F401
from umbra.optim.optimizer import Optimizer  # noqa: F401
from umbra.optim.sgd import SGD  # noqa: F401
from umbra.optim.variants import ASGD, NAdam, RAdam, Rprop  # noqa: F401

__getattr__ = lazy_submodules(__name__)
