"""Pipes that keep samples on the way through them."""
from umbra.utils.data.datapipes.datapipe import IterDataPipe


class _Transient(IterDataPipe):
    """A pipe whose `_begin` makes anew what it keeps between samples: `_transient`, the names that pickles leave out."""

    _transient = ()

    def _begin(self):
        raise NotImplementedError

    def reset(self):
        self._begin()

    def __getstate__(self):
        state = {name: value for name, value in self.__dict__.items() if name not in self._transient}
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._begin()
