"""The steps of optimisers as functions, under one name."""
from umbra.optim.adadelta import adadelta  # noqa: F401
from umbra.optim.adagrad import adagrad  # noqa: F401
from umbra.optim.adam import adam  # noqa: F401
from umbra.optim.adamax import adamax  # noqa: F401
from umbra.optim.adamw import adamw  # noqa: F401
from umbra.optim.asgd import asgd  # noqa: F401
from umbra.optim.nadam import nadam  # noqa: F401
from umbra.optim.radam import radam  # noqa: F401
from umbra.optim.rmsprop import rmsprop  # noqa: F401
from umbra.optim.rprop import rprop  # noqa: F401
from umbra.optim.sgd import sgd  # noqa: F401
