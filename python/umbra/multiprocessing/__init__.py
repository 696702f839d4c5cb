"""multiprocessing, whose queues carry tensors: as bytes, so that each process has memory of its own."""
import multiprocessing
from multiprocessing import *  # noqa: F403

from umbra.multiprocessing.spawn import (  # noqa: F401
    ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes)

__all__ = [*multiprocessing.__all__, "spawn", "start_processes", "get_sharing_strategy", "set_sharing_strategy", "get_all_sharing_strategies"]


def get_all_sharing_strategies():
    return {"file_system", "file_descriptor"}


_strategy = "file_descriptor"


def get_sharing_strategy():
    return _strategy


def set_sharing_strategy(new_strategy):
    """Tensors are sent as bytes, so that there is no memory to be shared by one strategy or another."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _strategy = new_strategy
