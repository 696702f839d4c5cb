"""Optimisers."""
from umbra._modules import lazy_submodules
from umbra.optim import lr_scheduler, swa_utils  # noqa: F401
from umbra.optim._adafactor import Adafactor  # noqa: F401
from umbra.optim._muon import Muon  # noqa: F401
from umbra.optim.adadelta import Adadelta  # noqa: F401
from umbra.optim.adagrad import Adagrad  # noqa: F401
from umbra.optim.adam import Adam  # noqa: F401
from umbra.optim.adamax import Adamax  # noqa: F401
from umbra.optim.adamw import AdamW  # noqa: F401
from umbra.optim.asgd import ASGD  # noqa: F401
from umbra.optim.lbfgs import LBFGS  # noqa: F401
from umbra.optim.nadam import NAdam  # noqa: F401
from umbra.optim.optimizer import Optimizer  # noqa: F401
from umbra.optim.radam import RAdam  # noqa: F401
from umbra.optim.rmsprop import RMSprop  # noqa: F401
from umbra.optim.rprop import Rprop  # noqa: F401
from umbra.optim.sgd import SGD  # noqa: F401
from umbra.optim.sparse_adam import SparseAdam  # noqa: F401

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD",
           "SparseAdam", "lr_scheduler", "swa_utils"]

__getattr__ = lazy_submodules(__name__)
