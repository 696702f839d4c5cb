"""Marks for profilers. Nothing is measured here: a mark is a region like any other."""
import contextlib


class record_function(contextlib.ContextDecorator):
    """A region with a name."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def kineto_available():
    return False


class profile:
    """A profile of what runs inside. There is none here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.autograd.profiler.profile is not in Umbra yet")


emit_nvtx = emit_itt = profile


class EventList(list):
    """What a profile would hold."""
