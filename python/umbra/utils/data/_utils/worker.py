"""Loading in worker processes: each reads batches of its own, and they come back in order.

A worker is given (number, indices) and answers (number, batch), whose tensors lie in memory that both see.
"""
import multiprocessing
import multiprocessing.connection
import os
import queue
import random
import sys
import warnings

import umbra
from umbra._utils import ExceptionWrapper

_POLL = 1.0  # seconds between looks whether the other side still lives


class WorkerInfo:
    """What a worker knows of itself: `id`, `num_workers`, `seed`, `dataset`."""

    def __init__(self, **facts):
        self.__dict__.update(facts)

    def __setattr__(self, name, value):
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


_worker_info = None


def get_worker_info():
    """In a worker: which one it is. None in the process that loads."""
    return _worker_info


class _IterableEnd:
    """A worker's stream of samples has ended."""


class _Resume:
    """Begin again: the next pass of workers that stay."""


def _generate_state(base_seed, worker_id):
    """Four words of 32 bits that seed NumPy in a worker."""
    import numpy as np
    return np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()


class _DatasetKind:
    """What a loader reads: samples by index, or a stream of them."""
    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What makes batches of the samples: `fetcher.fetch(indices)`."""
        return _Fetcher(Job(dataset, kind, auto_collation, collate_fn, drop_last))


class _Fetcher:
    """Makes batches of a dataset in the process that it runs in."""

    def __init__(self, job):
        self.job = job
        self.stream = iter(job.dataset) if job.iterable else None
        self.ended = False

    def fetch(self, indices):
        job = self.job
        if self.stream is None:
            if not job.batched:
                return job.collate(job.dataset[indices])
            if hasattr(job.dataset, "__getitems__") and job.dataset.__getitems__:
                return job.collate(job.dataset.__getitems__(indices))
            return job.collate([job.dataset[i] for i in indices])
        if self.ended:
            raise StopIteration
        if not job.batched:
            return job.collate(next(self.stream))
        samples = []
        for _ in indices:
            try:
                samples.append(next(self.stream))
            except StopIteration:
                self.ended = True
                break
        if not samples or (job.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return job.collate(samples)


class Job:
    """What workers are given: the dataset and how batches are made of it."""

    def __init__(self, dataset, kind, batched, collate, drop_last, init=None, num_workers=0):
        self.dataset, self.collate, self.iterable = dataset, collate, kind == _DatasetKind.Iterable
        self.batched, self.drop_last, self.init, self.num_workers = batched, drop_last, init, num_workers

    @classmethod
    def of(cls, loader):
        return cls(loader.dataset, loader._dataset_kind, loader._auto_collation, loader.collate_fn, loader.drop_last, loader.worker_init_fn,
                   loader.num_workers)


def _seed(seed, base_seed, worker_id):
    random.seed(seed)
    umbra.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_generate_state(base_seed, worker_id))


def _work(job, worker_id, base_seed, requests, answers, parent):
    """The life of a worker."""
    global _worker_info
    umbra.set_num_threads(1)
    answers.cancel_join_thread()  # a worker that is told to end does not wait for somebody to read its last batches
    _seed(base_seed + worker_id, base_seed, worker_id)
    _worker_info = WorkerInfo(id=worker_id, num_workers=job.num_workers, seed=base_seed + worker_id, dataset=job.dataset)
    failure = fetcher = None
    try:
        if job.init is not None:
            job.init(worker_id)
        fetcher = _Fetcher(job)
    except Exception:
        failure = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
    while True:
        try:
            request = requests.get(timeout=_POLL)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        if request is None:
            return
        if isinstance(request, _Resume):
            answers.put((request, None))
            fetcher = _Fetcher(job)
            continue
        number, indices = request
        answer = failure
        if failure is None:
            try:
                answer = fetcher.fetch(indices)
            except StopIteration:
                answer = _IterableEnd()
            except Exception:
                answer = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
        failure = None
        answers.put((number, answer))


class _BaseDataLoaderIter:
    """One pass over a loader's batches. It does not hold the loader, which holds it where workers persist: both are to end with the last who uses them."""

    def __init__(self, loader):
        self._dataset, self._num_workers, self._index_sampler = loader.dataset, loader.num_workers, loader._index_sampler
        self._count_anew(loader)

    def _count_anew(self, loader):
        self._given, self._promised = 0, getattr(loader, "_length_said", None)

    def __iter__(self):
        return self

    def _counted(self, batch):
        """A batch, with a warning where there are more of them than a stream has said."""
        self._given += 1
        if self._promised is not None and self._given > self._promised:
            note = ("For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at each worker. "
                    "Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.") if self._num_workers else ""
            warnings.warn(f"Length of IterableDataset {self._dataset} was reported to be {self._promised}(when accessing len(dataloader)), "
                          f"but {self._given} samples have been fetched. {note}", stacklevel=3)
        return batch

    def __len__(self):
        return len(self._index_sampler)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches from worker processes, in the order of the sampler (or of the workers, for streams)."""

    def __init__(self, loader):
        super().__init__(loader)
        context = loader.multiprocessing_context or multiprocessing
        self._timeout, self._in_order = loader.timeout, loader.in_order
        self._prefetch_factor, self._persistent_workers = loader.prefetch_factor, loader.persistent_workers
        seed = int(umbra.empty((), dtype=umbra.int64).random_(generator=loader.generator).item())
        job = Job.of(loader)
        self._answers = context.Queue()
        self._requests, self._workers = [], []
        for i in range(loader.num_workers):
            requests = context.Queue()
            worker = context.Process(target=_work, args=(job, i, seed, requests, self._answers, os.getpid()), daemon=True)
            worker.start()
            self._requests.append(requests)
            self._workers.append(worker)
        self._begin()

    def _begin(self):
        self._indices = iter(self._index_sampler)
        self._sent = self._next = self._turn = 0
        self._alive = [True] * len(self._workers)
        self._owner, self._ready = {}, {}
        self._outstanding = 0
        for _ in range(self._prefetch_factor * len(self._workers)):
            self._send()

    def _reset(self, loader):
        """Another pass with the same workers."""
        self._count_anew(loader)
        while self._outstanding:  # answers of a pass that was left early
            self._receive()
        for requests in self._requests:
            requests.put(_Resume())
        waiting = len(self._requests)
        while waiting:
            number, _ = self._get()
            waiting -= isinstance(number, _Resume)
        self._begin()

    def _send(self):
        """Gives the next indices to the next worker that still has samples."""
        for _ in self._workers:
            worker = self._turn
            self._turn = (self._turn + 1) % len(self._workers)
            if self._alive[worker]:
                break
        else:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        self._requests[worker].put((self._sent, indices))
        self._owner[self._sent] = worker
        self._sent += 1
        self._outstanding += 1

    def _get(self):
        waited = 0.0
        while True:
            step = min(_POLL, self._timeout - waited) if self._timeout else _POLL
            try:
                return self._answers.get(timeout=max(step, 0.001))
            except queue.Empty:
                waited += step
                dead = [str(worker.pid) for worker in self._workers if not worker.is_alive()]
                if dead:
                    self.close()
                    raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly") from None
                if self._timeout and waited >= self._timeout:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _receive(self):
        number, answer = self._get()
        self._outstanding -= 1
        if isinstance(answer, _IterableEnd):
            worker = self._owner[number]
            self._alive[worker] = False
        self._ready[number] = answer

    def __next__(self):
        while self._next < self._sent:
            number = self._next
            if not self._in_order and self._ready:
                number = next(iter(self._ready))
            if number not in self._ready:
                self._receive()
                continue
            answer = self._ready.pop(number)
            self._owner.pop(number, None)
            if number == self._next:
                self._next += 1
                while self._next < self._sent and self._next not in self._owner:
                    self._next += 1
            self._send()
            if isinstance(answer, _IterableEnd):
                continue
            if isinstance(answer, ExceptionWrapper):  # the batches behind it are still there
                answer.reraise()
            return self._counted(answer)
        if not self._persistent_workers:
            self.close()
        raise StopIteration

    def close(self, wait=5.0):
        """Ends the workers: those that do not end by themselves in `wait` seconds, by a signal."""
        workers, self._workers = self._workers, []
        for requests in self._requests if wait else ():
            requests.put(None)
        for worker in workers:
            worker.join(timeout=wait)
            if worker.is_alive():
                worker.terminate()
        for channel in (*self._requests, self._answers):
            channel.cancel_join_thread()
            channel.close()
        self._requests = []
        self._sent = self._next

    def __del__(self):
        if getattr(self, "_workers", None):
            try:
                self.close(wait=0)  # who collects garbage may hold locks that the queues' threads need
            except Exception:
                pass  # the interpreter is on its way out
