"""DataLoader: batches of a dataset, in order or shuffled. Samples are read in the calling process."""
import collections.abc
import itertools

import umbra
from umbra._C import Tensor
from umbra._options import not_built
from umbra.utils.data.dataset import IterableDataset
from umbra.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


def default_collate(batch):
    """Samples to a batch: tensors are stacked, numbers become a tensor, containers are gone into."""
    first = batch[0]
    if isinstance(first, Tensor):
        return umbra.stack(list(batch))
    if type(first).__module__ == "numpy":
        return umbra.stack([umbra.as_tensor(sample) for sample in batch])
    if isinstance(first, float):
        return umbra.tensor(batch, dtype=umbra.float64)
    if isinstance(first, int):
        return umbra.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return type(first)({key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(samples) for samples in zip(*batch)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}")


class DataLoader:
    """Iterates over batches, in this process: workers are not built."""

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False,
                 drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None,
                 persistent_workers=False, pin_memory_device="", in_order=True):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        not_built("DataLoader", num_workers=(num_workers, 0))
        self._check_worker_options(timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler options")
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        # Without workers there is nothing to initialise, nothing out of order, and without an accelerator no memory to pin: as in torch.
        self.pin_memory, self.pin_memory_device, self.worker_init_fn, self.in_order = pin_memory, pin_memory_device, worker_init_fn, in_order
        self.collate_fn = collate_fn or (default_collate if batch_size is not None else lambda sample: sample)

    @staticmethod
    def _check_worker_options(timeout, prefetch_factor, persistent_workers, multiprocessing_context):
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if timeout:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                             "multiprocessing, otherwise set prefetch_factor to None.")
        if persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if multiprocessing_context is not None:
            raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0")

    def __iter__(self):
        # The seed that workers would get; drawn without workers too, as in torch, so that what is drawn afterwards is the same.
        umbra.empty((), dtype=umbra.int64).random_(generator=self.generator)
        return self._iterate()

    def _iterate(self):
        if self._iterable:
            yield from self._iterate_stream()
        elif self.batch_sampler is not None:
            for indices in self.batch_sampler:
                yield self.collate_fn([self.dataset[i] for i in indices])
        else:
            for i in self.sampler:
                yield self.collate_fn(self.dataset[i])

    def _iterate_stream(self):
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self):
        if self._iterable:
            count = len(self.dataset)
            return count if self.batch_size is None else count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)
