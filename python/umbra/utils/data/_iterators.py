"""Passes over a loader's batches, which are made in this process or in workers."""
import functools
import itertools
import multiprocessing
import os
import queue
import warnings

import umbra
from umbra import distributed
from umbra._utils import ExceptionWrapper
from umbra.utils.data import _utils
from umbra.utils.data._utils.fetch import _DatasetKind
from umbra.utils.data._utils.worker import _POLL, Job, _IterableDatasetStopIteration, _ResumeIteration, _work, get_worker_info, seed_pipes
from umbra.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from umbra.utils.data.graph_settings import apply_sharding
from umbra.utils.data.sampler import Sampler


class _InfiniteConstantSampler(Sampler):
    """For streams: there are no indices, and no end."""

    def __iter__(self):
        return itertools.repeat(None)


def _get_distributed_settings():
    """How many processes train together, and which one this is."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size(), distributed.get_rank()
    return 1, 0


def _drawn_seed(generator):
    return umbra.empty((), dtype=umbra.int64).random_(generator=generator)


def _share_dist_seed(generator, pg):
    """A seed that all processes have: the first one's."""
    seed = _drawn_seed(generator)
    if isinstance(pg, distributed.ProcessGroup):
        distributed.broadcast(seed, src=0, group=pg)
    return seed.item()


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id):
    """Begins a worker that reads pipes: its share of the samples is one of those of all workers of all processes."""
    info = get_worker_info()
    if info is None:
        raise AssertionError("Worker info is None in sharding worker init function")
    if not isinstance(info.dataset, (IterDataPipe, MapDataPipe)):
        raise AssertionError("datapipe must be an instance of IterDataPipe or MapDataPipe")
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


class _BaseDataLoaderIter:
    """One pass over a loader's batches; subclasses have `_next_data`, which makes the next one.

    It does not hold the loader, which holds it where workers persist: both are to end with the last who uses them. Loaders of other packages
    derive their iterators from it, so its attributes have torch's names.
    """

    def __init__(self, loader):
        self._dataset, self._dataset_kind = loader.dataset, loader._dataset_kind
        self._shared_seed = self._pg = None
        if isinstance(self._dataset, IterDataPipe):
            if distributed.is_available() and distributed.is_initialized():
                self._pg = distributed.new_group(backend="gloo")
            self._seed_pipes(loader)
        self._auto_collation, self._drop_last, self._collate_fn = loader._auto_collation, loader.drop_last, loader.collate_fn
        self._index_sampler, self._num_workers = loader._index_sampler, loader.num_workers
        self._world_size, self._rank = _get_distributed_settings()
        self._pin_memory, self._pin_memory_device = False, None  # without an accelerator there is no memory to pin: as in torch
        self._timeout, self._persistent_workers = loader.timeout, loader.persistent_workers
        self._sampler_iter = iter(self._index_sampler)
        # The seed of workers; drawn without workers too, as in torch, so that what is drawn afterwards is the same.
        self._base_seed = _drawn_seed(loader.generator).item()
        self._count_anew(loader)

    def _seed_pipes(self, loader):
        self._shared_seed = _share_dist_seed(loader.generator, self._pg)
        seed_pipes(self._dataset, self._shared_seed)

    def _count_anew(self, loader):
        self._num_yielded, self._IterableDataset_len_called = 0, loader._IterableDataset_len_called

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        """Another pass."""
        self._sampler_iter = iter(self._index_sampler)
        self._count_anew(loader)
        if isinstance(self._dataset, IterDataPipe):
            self._seed_pipes(loader)

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        batch = self._next_data()
        self._num_yielded += 1
        if self._dataset_kind == _DatasetKind.Iterable and self._IterableDataset_len_called is not None:
            self._warn_of_more()
        return batch

    def _warn_of_more(self):
        """Where there are more batches than a stream has said."""
        promised, given = self._IterableDataset_len_called, self._num_yielded
        if given > promised:
            note = ("For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at each worker. "
                    "Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.") if self._num_workers else ""
            warnings.warn(f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), "
                          f"but {given} samples have been fetched. {note}", stacklevel=3)

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches that are made in this process."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            apply_sharding(self._dataset, self._world_size, self._rank)
        self._dataset_fetcher = _DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches from worker processes, in the order of the sampler (or of the workers, for streams)."""

    def __init__(self, loader):
        super().__init__(loader)
        context = loader.multiprocessing_context or multiprocessing
        self._in_order, self._prefetch_factor = loader.in_order, loader.prefetch_factor
        init = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            init = functools.partial(_sharding_worker_init_fn, init, self._world_size, self._rank)
        job = Job(self._dataset, self._dataset_kind, self._auto_collation, self._collate_fn, self._drop_last, init, self._num_workers, self._base_seed,
                  self._shared_seed)
        self._worker_result_queue = context.Queue()
        self._index_queues, self._workers = [], []
        for i in range(self._num_workers):
            requests = context.Queue()
            worker = context.Process(target=_work, args=(job, i, requests, self._worker_result_queue, os.getpid()), daemon=True)
            worker.start()
            self._index_queues.append(requests)
            self._workers.append(worker)
        super()._reset(loader, first_iter=True)  # pipes draw a second seed, which nobody uses: as in torch, so that what is drawn afterwards is the same
        self._begin()

    def _begin(self):
        self._send_idx = self._rcvd_idx = self._turn = self._tasks_outstanding = 0
        self._workers_status = [True] * len(self._workers)
        self._owner, self._ready = {}, {}
        for _ in range(self._prefetch_factor * len(self._workers)):
            self._try_put_index()

    def _reset(self, loader, first_iter=False):
        """Another pass with the same workers."""
        while self._tasks_outstanding:  # answers of a pass that was left early
            self._receive()
        super()._reset(loader, first_iter)
        for requests in self._index_queues:
            requests.put(_ResumeIteration(self._shared_seed))
        waiting = len(self._index_queues)
        while waiting:
            number, _ = self._get()
            waiting -= isinstance(number, _ResumeIteration)
        self._begin()

    def _try_put_index(self):
        """Gives the next indices to the next worker that still has samples."""
        for _ in self._workers:
            worker = self._turn
            self._turn = (self._turn + 1) % len(self._workers)
            if self._workers_status[worker]:
                break
        else:
            return
        try:
            indices = self._next_index()
        except StopIteration:
            return
        self._index_queues[worker].put((self._send_idx, indices))
        self._owner[self._send_idx] = worker
        self._send_idx += 1
        self._tasks_outstanding += 1

    def _get(self):
        waited = 0.0
        while True:
            step = min(_POLL, self._timeout - waited) if self._timeout else _POLL
            try:
                return self._worker_result_queue.get(timeout=max(step, 0.001))
            except queue.Empty:
                waited += step
                dead = [str(worker.pid) for worker in self._workers if not worker.is_alive()]
                if dead:
                    self._shutdown_workers()
                    raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly") from None
                if self._timeout and waited >= self._timeout:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _receive(self):
        number, answer = self._get()
        self._tasks_outstanding -= 1
        if isinstance(answer, _IterableDatasetStopIteration):
            worker = self._owner[number]
            self._workers_status[worker] = False
        self._ready[number] = answer

    def _next_data(self):
        while self._rcvd_idx < self._send_idx:
            number = self._rcvd_idx
            if not self._in_order and self._ready:
                number = next(iter(self._ready))
            if number not in self._ready:
                self._receive()
                continue
            answer = self._ready.pop(number)
            self._owner.pop(number, None)
            if number == self._rcvd_idx:
                self._rcvd_idx += 1
                while self._rcvd_idx < self._send_idx and self._rcvd_idx not in self._owner:
                    self._rcvd_idx += 1
            self._try_put_index()
            if isinstance(answer, _IterableDatasetStopIteration):
                continue
            if isinstance(answer, ExceptionWrapper):  # the batches behind it are still there
                answer.reraise()
            return answer
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _shutdown_workers(self, wait=5.0):
        """Ends the workers: those that do not end by themselves in `wait` seconds, by a signal."""
        workers, self._workers = self._workers, []
        for requests in self._index_queues if wait else ():
            requests.put(None)
        for worker in workers:
            worker.join(timeout=wait)
            if worker.is_alive():
                worker.terminate()
        for channel in (*self._index_queues, self._worker_result_queue):
            channel.cancel_join_thread()
            channel.close()
        self._index_queues = []
        self._send_idx = self._rcvd_idx

    def __del__(self):
        if getattr(self, "_workers", None):
            try:
                self._shutdown_workers(wait=0)  # who collects garbage may hold locks that the queues' threads need
            except Exception:
                pass  # the interpreter is on its way out
