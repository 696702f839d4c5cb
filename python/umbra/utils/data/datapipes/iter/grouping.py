"""Batches of samples."""
from collections import defaultdict

from umbra.utils.data.datapipes._decorator import functional_datapipe
from umbra.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from umbra.utils.data.datapipes.iter._transient import _Transient
from umbra.utils.data.datapipes.utils.common import _check_unpickable_fn, _length

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[DataChunk]):
    """Lists of `batch_size` samples; the last one may be shorter, unless `drop_last`."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __iter__(self):
        batch = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        count = _length(self, self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of lists, so many levels deep; -1 is as deep as they are."""

    def __init__(self, datapipe, unbatch_level=1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element, unbatch_level):
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if unbatch_level == 0 or (unbatch_level == -1 and not isinstance(element, list)):
            yield element
        elif isinstance(element, list):
            for item in element:
                yield from self._dive(item, max(unbatch_level - 1, -1))
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(_Transient):
    """Lists of samples that have the same key.

    A group is given when it has `group_size` samples. When `buffer_size` samples wait, the largest group is given, if it has
    `guaranteed_group_size` of them; if not, it is dropped with `drop_remaining`, and an error without. The rest comes at the end.
    """

    _transient = ("buffer_elements", "curr_buffer_size")

    def __init__(self, datapipe, group_key_fn, *, keep_key=False, buffer_size=10000, group_size=None, guaranteed_group_size=None, drop_remaining=False):
        self._begin()
        _check_unpickable_fn(group_key_fn)
        self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size = datapipe, group_key_fn, keep_key, buffer_size
        self.group_size, self.guaranteed_group_size, self.drop_remaining, self.wrapper_class = group_size, None, drop_remaining, DataChunk
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
            self.guaranteed_group_size = guaranteed_group_size

    def _begin(self):
        self.curr_buffer_size, self.buffer_elements = 0, defaultdict(list)

    def _take(self, key):
        samples = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(samples)
        return samples

    def _remove_biggest_key(self):
        """The samples of the largest group, or None where they are dropped."""
        key = max(self.buffer_elements, key=lambda key: len(self.buffer_elements[key]))  # the first of those that are as large
        enough = self.guaranteed_group_size is None or len(self.buffer_elements[key]) >= self.guaranteed_group_size
        if not enough and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(self.buffer_elements[key]))
        samples = self._take(key)
        return samples if enough else None

    def _given(self, key, samples):
        group = self.wrapper_class(samples)
        return (key, group) if self.keep_key else group

    def __iter__(self):
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            self.buffer_elements[key].append(sample)
            self.curr_buffer_size += 1
            if self.group_size == len(self.buffer_elements[key]):
                yield self._given(key, self._take(key))
            if self.curr_buffer_size == self.max_buffer_size:
                largest = self._remove_biggest_key()
                if largest is not None:
                    yield self._given(key, largest)  # under the last sample's key, as in torch
        for key in tuple(self.buffer_elements):
            yield self._given(key, self._take(key))
