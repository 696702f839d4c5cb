"""Functions of samples."""
from umbra.utils.data.datapipes._decorator import functional_datapipe
from umbra.utils.data.datapipes.datapipe import MapDataPipe, _T_co
from umbra.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data):
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[_T_co]):
    """A function of each sample."""

    def __init__(self, datapipe, fn=default_fn):
        super().__init__()
        _check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn

    def __len__(self):
        return len(self.datapipe)

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])
