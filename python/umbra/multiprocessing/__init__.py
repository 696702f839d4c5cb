"""multiprocessing, whose queues and pipes carry tensors: both processes see the same memory.

    queue.put(x)        # x moves to shared memory; who gets it sees what is written to x from now on, and the other way round
"""
import multiprocessing
from multiprocessing import *  # noqa: F403

from umbra.multiprocessing import reductions
from umbra.multiprocessing.spawn import (  # noqa: F401
    ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes)

__all__ = [*multiprocessing.__all__, "get_sharing_strategy", "set_sharing_strategy", "get_all_sharing_strategies"]


def get_all_sharing_strategies():
    return {"file_system", "file_descriptor"}


_strategy = "file_descriptor"


def get_sharing_strategy():
    return _strategy


def set_sharing_strategy(new_strategy):
    """Both names are taken; memory is sent as a file's descriptor by either."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _strategy = new_strategy


reductions.init_reductions()
