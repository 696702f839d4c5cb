"""Processes with unequal numbers of inputs: one has as many as it has."""
import contextlib


class JoinHook:
    """What a process that is through does for the others."""

    def main_hook(self):
        pass

    def post_hook(self, is_last_joiner):
        pass


class Joinable:
    """What can take part in a `Join`."""


class Join(contextlib.AbstractContextManager):
    """Where processes may end at different times. With one process, what is done at the end is done at its end."""

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enabled, self._kwargs = joinables, enable and not throw_on_early_termination, kwargs

    def __exit__(self, kind, value, traceback):
        if kind is None and self._enabled:
            for joinable in self._joinables:
                joinable.join_hook(**self._kwargs).post_hook(is_last_joiner=True)

    @staticmethod
    def notify_join_context(joinable):
        """There is nobody to tell."""
