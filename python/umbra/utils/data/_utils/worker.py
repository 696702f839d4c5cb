"""Loading in worker processes: what runs in each of them.

A worker is given (number, indices) and answers (number, batch), whose tensors lie in memory that both see.
"""
import os
import queue
import random
import sys
from dataclasses import dataclass
from typing import Any

import umbra
from umbra._utils import ExceptionWrapper
from umbra.utils.data._utils import signal_handling
from umbra.utils.data._utils.fetch import _DatasetKind

_POLL = 1.0  # seconds between looks whether the other side still lives


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows of itself: `id`, `num_workers`, `seed`, `dataset`."""
    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info = None


def get_worker_info():
    """In a worker: which one it is. None in the process that loads."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's stream of samples has ended."""
    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Begin again: the next pass of workers that stay. `seed`: that of the pipes which draw, the same in all workers."""
    seed: int | None = None


class ManagerWatchdog:
    """In a worker: whether the process that loads still lives."""

    def __init__(self):
        self.manager_pid, self.manager_dead = os.getppid(), False

    def is_alive(self):
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


def _generate_state(base_seed, worker_id):
    """Four words of 32 bits that seed NumPy in a worker."""
    import numpy as np
    return np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()


@dataclass
class Job:
    """What workers are given: the dataset and how batches are made of it."""
    dataset: Any
    kind: int
    batched: bool
    collate: Any
    drop_last: bool
    init: Any
    num_workers: int
    base_seed: int
    shared_seed: int | None

    def begin(self, shared_seed):
        """What makes the batches of one pass."""
        if shared_seed is not None:
            seed_pipes(self.dataset, shared_seed)
        return _DatasetKind.create_fetcher(self.kind, self.dataset, self.batched, self.collate, self.drop_last)


def seed_pipes(pipe, shared_seed):
    """Gives the pipes of a pipeline their seeds: who has the same shared seed gives the same ones, and so samples are shared out of one order."""
    from umbra.utils.data.graph_settings import apply_random_seed
    generator = umbra.Generator()
    generator.manual_seed(shared_seed)
    apply_random_seed(pipe, generator)


def _seed(seed, base_seed, worker_id):
    random.seed(seed)
    umbra.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_generate_state(base_seed, worker_id))


def _work(job, worker_id, requests, answers, parent):
    """The life of a worker."""
    global _worker_info
    signal_handling._set_worker_signal_handlers()
    umbra.set_num_threads(1)
    answers.cancel_join_thread()  # a worker that is told to end does not wait for somebody to read its last batches
    seed = job.base_seed + worker_id
    _seed(seed, job.base_seed, worker_id)
    _worker_info = WorkerInfo(id=worker_id, num_workers=job.num_workers, seed=seed, dataset=job.dataset)
    failure = fetcher = None
    try:
        if job.init is not None:
            job.init(worker_id)
        fetcher = job.begin(job.shared_seed)
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
        if isinstance(request, _ResumeIteration):
            answers.put((request, None))
            fetcher = job.begin(request.seed)
            continue
        number, indices = request
        answer = failure
        if failure is None:
            try:
                answer = fetcher.fetch(indices)
            except Exception as error:
                ended = isinstance(error, StopIteration) and job.kind == _DatasetKind.Iterable
                answer = _IterableDatasetStopIteration(worker_id) if ended else ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
        failure = None
        answers.put((number, answer))
