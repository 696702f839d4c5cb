"""The CPU, asked as accelerators are."""
import contextlib

from umbra._modules import lazy_submodules


class Stream:
    """Work on the CPU is done when a call returns: there is one stream, and nothing to wait for."""

    def __init__(self, priority=-1):
        self.priority = priority

    def wait_stream(self, stream):
        """Everything is done already."""

    def record_event(self):
        """There is nothing to record."""

    def wait_event(self, event):
        """Everything is done already."""


class Event:
    def query(self):
        return True

    def record(self, stream=None):
        """There is nothing to record."""

    def synchronize(self):
        """Everything is done already."""

    def wait(self, stream=None):
        """Everything is done already."""


_stream = Stream()


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is one."""


def current_stream(device=None):
    return _stream


class StreamContext(contextlib.AbstractContextManager):
    """A region on a stream, of which there is one."""

    def __init__(self, stream):
        self.stream = stream

    def __exit__(self, *exception):
        return None


def stream(stream):
    return StreamContext(stream)


def synchronize(device=None):
    """Everything is done already."""


__getattr__ = lazy_submodules(__name__)
