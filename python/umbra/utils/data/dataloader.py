"""DataLoader: batches of a dataset, in order or shuffled, read in this process or in workers."""
import multiprocessing
import os
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from umbra.utils.data import _utils  # noqa: F401
from umbra.utils.data._iterators import (_BaseDataLoaderIter, _get_distributed_settings, _InfiniteConstantSampler,  # noqa: F401
                                         _MultiProcessingDataLoaderIter, _share_dist_seed, _sharding_worker_init_fn, _SingleProcessDataLoaderIter)
from umbra.utils.data._utils.collate import default_collate, default_convert
from umbra.utils.data._utils.fetch import _DatasetKind
from umbra.utils.data._utils.worker import get_worker_info  # noqa: F401
from umbra.utils.data.datapipes.datapipe import (IterDataPipe, MapDataPipe, _IterDataPipeSerializationWrapper,
                                                 _MapDataPipeSerializationWrapper)
from umbra.utils.data.dataset import Dataset, IterableDataset  # noqa: F401
from umbra.utils.data.graph_settings import apply_shuffle_settings
from umbra.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler  # noqa: F401

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[_T]], Any]


class DataLoader(Generic[_T_co]):
    """Iterates over the batches of a dataset.

        for x, y in DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2): ...

    With `num_workers` batches are made in that many processes and come in order; each has the seed base + its number, and
    `get_worker_info()` says which one it is. `persistent_workers` keeps them from one pass to the next.
    """

    def __init__(self, dataset: "Dataset[_T_co]", batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False,
                 drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None,
                 persistent_workers=False, pin_memory_device="", in_order=True):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        self._check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if isinstance(dataset, IterDataPipe):
            apply_shuffle_settings(dataset, shuffle)  # what it adds where nothing shuffles is not read, as in torch
            dataset, shuffle = _IterDataPipeSerializationWrapper(dataset), None
        elif isinstance(dataset, MapDataPipe):
            dataset = _MapDataPipeSerializationWrapper(dataset)
        if self._iterable:
            self._check_stream_options(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = _InfiniteConstantSampler() if self._iterable else RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(
                dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        # Without an accelerator there is no memory to pin: as in torch.
        self.pin_memory, self.pin_memory_device, self.worker_init_fn, self.in_order = pin_memory, pin_memory_device, worker_init_fn, in_order
        self.timeout, self.persistent_workers = timeout, persistent_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.multiprocessing_context = multiprocessing_context
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._iterator = self._IterableDataset_len_called = None
        self.__initialized = True
        self.check_worker_number_rationality()

    __initialized = False
    _FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))

    def __setattr__(self, name, value):
        if self.__initialized and name in self._FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def check_worker_number_rationality(self):
        """Warns of more workers than there are processors for this process."""
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if usable is not None and self.num_workers > usable:
            warnings.warn(f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in current "
                          f"system is {usable}, which is smaller than what this DataLoader is going to create. Please be aware that excessive "
                          "worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential "
                          "slowness/freeze if necessary.", stacklevel=3)

    @staticmethod
    def _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers):
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                             "multiprocessing, otherwise set prefetch_factor to None.")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if num_workers == 0 and persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if num_workers == 0 and timeout:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")

    @staticmethod
    def _check_stream_options(shuffle, sampler, batch_sampler):
        if shuffle not in (False, None):
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
        if sampler is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}")
        if batch_sampler is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified batch_sampler option, but got batch_sampler={batch_sampler}")

    @property
    def multiprocessing_context(self):
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is None:
            self.__multiprocessing_context = None
            return
        if self.num_workers == 0:
            raise ValueError(f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers="
                             f"{self.num_workers}")
        if isinstance(context, str):
            valid = multiprocessing.get_all_start_methods()
            if context not in valid:
                raise ValueError(f"multiprocessing_context option should specify a valid start method in {valid!r}, but got "
                                 f"multiprocessing_context={context!r}")
            context = multiprocessing.get_context(context)
        if not isinstance(context, multiprocessing.context.BaseContext):
            raise TypeError(f"multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
                            f"multiprocessing_context={context}")
        self.__multiprocessing_context = context

    @property
    def _iterable(self):
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        if self.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.", stacklevel=2)
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self):
        """A new pass over the batches."""
        return _SingleProcessDataLoaderIter(self) if self.num_workers == 0 else _MultiProcessingDataLoaderIter(self)

    def __len__(self):
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is not None:
                count = count // self.batch_size if self.drop_last else -(-count // self.batch_size)
            self._IterableDataset_len_called = count
            return count
        return len(self._index_sampler)
