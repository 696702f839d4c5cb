"""The classes of pipes' classes."""
import functools
from abc import ABCMeta

from umbra.utils.data.datapipes._hook_iterator import _SnapshotState, hook_iterator


class _DataPipeMeta(ABCMeta):
    """Of pipes that are read by index."""


class _IterDataPipeMeta(_DataPipeMeta):
    """Of streams: a class made here counts its samples, and each of its objects has one valid iterator."""

    def __new__(cls, name, bases, namespace, **kwargs):
        if "reset" in namespace:
            namespace["reset"] = _conditional(namespace["reset"])
        if "__iter__" in namespace:
            hook_iterator(namespace)
        return super().__new__(cls, name, bases, namespace, **kwargs)


def _conditional(reset):
    """A reset that leaves alone what was just restored."""

    @functools.wraps(reset)
    def conditional_reset(pipe, *args, **kwargs):
        if pipe._snapshot_state is not _SnapshotState.Restored:
            pipe._number_of_samples_yielded = 0
            pipe._fast_forward_iterator = None
            reset(pipe, *args, **kwargs)
        pipe._snapshot_state = _SnapshotState.Iterating

    return conditional_reset
