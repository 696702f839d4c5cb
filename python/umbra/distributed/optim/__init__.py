"""Optimisers whose state is spread over several processes, of which there is one."""
from umbra.distributed._refusals import refusing_class
from umbra.optim import Optimizer

ZeroRedundancyOptimizer = refusing_class("optim.ZeroRedundancyOptimizer", Optimizer)
