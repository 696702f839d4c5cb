"""Where streams begin."""
import copy
import warnings

from umbra.utils.data.datapipes.datapipe import IterDataPipe, _T_co
from umbra.utils.data.datapipes.utils.common import _length

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe[_T_co]):
    """The samples of an iterable: of a copy of it, so that no step changes what is given, unless `deepcopy` is False."""

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # such as a generator
                warnings.warn("The input iterable can not be deepcopied, please be aware of in-place modification would affect source data.",
                              stacklevel=2)
        yield from source

    def __len__(self):
        return _length(self, self.iterable)
