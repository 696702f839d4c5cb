"""Where collections begin."""
import copy
import warnings

from umbra.utils.data.datapipes.datapipe import MapDataPipe, _T_co

__all__ = ["SequenceWrapperMapDataPipe"]


class SequenceWrapperMapDataPipe(MapDataPipe[_T_co]):
    """The samples of a list or a dictionary: of a copy of it, unless `deepcopy` is False."""

    def __init__(self, sequence, deepcopy=True):
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn("The input sequence can not be deepcopied, please be aware of in-place modification would affect source data",
                              stacklevel=2)

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)
