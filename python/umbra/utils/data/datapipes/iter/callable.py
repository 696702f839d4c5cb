"""Functions of samples."""
from umbra.utils.data._utils.collate import default_collate
from umbra.utils.data.datapipes._decorator import functional_datapipe
from umbra.utils.data.datapipes.datapipe import IterDataPipe, _T_co
from umbra.utils.data.datapipes.utils.common import _check_unpickable_fn, _length, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[_T_co]):
    """A function of each sample, or of some columns of it.

    `input_col` says which columns (places or keys) the function is called with. What it gives takes the place of the first of them, the others
    go; or it goes to `output_col`, where -1 appends it.
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        super().__init__()
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply_fn(self, data):
        if self.input_col is None:
            return self.fn(data)
        columns = self.input_col if isinstance(self.input_col, (list, tuple)) else [self.input_col]
        value = self.fn(*(data[column] for column in columns))
        sample = list(data) if isinstance(data, tuple) else data
        if self.output_col == -1:
            sample.append(value)
        elif self.output_col is not None:
            sample[self.output_col] = value
        else:
            sample[columns[0]] = value
            for column in sorted(columns[1:], reverse=True):
                del sample[column]
        return tuple(sample) if isinstance(data, tuple) else sample

    def __iter__(self):
        for sample in self.datapipe:
            yield self._apply_fn(sample)

    def __len__(self):
        return _length(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Tensors of lists of samples, by `collate_fn` or as a DataLoader makes them."""

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None):
        if collate_fn is None and not callable(conversion):
            raise NotImplementedError("collate with functions for the columns of data frames is not in Umbra: give a function of the samples")
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)
