"""Optimisers whose state is spread over several processes, of which there is one."""
from umbra.distributed import _refusing_class
from umbra.optim import Optimizer

ZeroRedundancyOptimizer = _refusing_class("optim.ZeroRedundancyOptimizer", Optimizer)
