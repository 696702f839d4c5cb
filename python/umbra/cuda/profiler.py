"""NVIDIA's profiler, which needs a device."""
import contextlib

from umbra.cuda import cudart


def start():
    return cudart()


def stop():
    return cudart()


@contextlib.contextmanager
def profile():
    """A region that is profiled."""
    start()
    try:
        yield
    finally:
        stop()
