"""Workers that die: who loads is told at once, by the signal that a child has ended, where it asks for that."""
import os
import signal
import threading

_workers = {}  # processes by the iterator that they work for
_SIGCHLD_handler_set = False


def _set_worker_pids(key, pids):
    """Notes the processes that work for an iterator."""
    if key in _workers:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    _workers[key] = set(pids)


def _remove_worker_pids(key):
    """The iterator has no workers any more."""
    if _workers.pop(key, None) is None:
        raise ValueError(f"Cannot find worker information for _BaseDataLoaderIter with id {key}")


def _ended(pid):
    """How a child has ended, without taking note of it in the parent's place; None while it runs."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # somebody has waited for it
        return None


def _error_if_any_worker_fails():
    """Raises where a worker has failed. Each failure is told once."""
    for pids in _workers.values():
        for pid in pids:
            end = _ended(pid)
            if end is None or (end.si_code == os.CLD_EXITED and end.si_status == 0):
                continue
            pids.clear()
            if end.si_code == os.CLD_EXITED:
                raise RuntimeError(f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {end.si_status}. Details are lost due to "
                                   "multiprocessing. Rerunning with num_workers=0 may give better error trace.")
            raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(end.si_status)}. ")


def _set_worker_signal_handlers():
    """In a worker, SIGTERM ends the process: a handler that the loading process has set is not for the worker."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _set_SIGCHLD_handler():
    """Looks after the workers whenever a child ends. Handlers can be set in the main thread alone."""
    global _SIGCHLD_handler_set
    if _SIGCHLD_handler_set or threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGCHLD)

    def handler(number, frame):
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _SIGCHLD_handler_set = True
