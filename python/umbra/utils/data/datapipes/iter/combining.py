"""Several streams from one, and one from several."""
import copy as copying
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sized

from umbra.utils.data.datapipes._decorator import functional_datapipe
from umbra.utils.data.datapipes._hook_iterator import _SnapshotState
from umbra.utils.data.datapipes.datapipe import IterDataPipe
from umbra.utils.data.datapipes.iter._transient import _Transient
from umbra.utils.data.datapipes.utils.common import StreamWrapper, _check_unpickable_fn

__all__ = ["ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe", "MultiplexerIterDataPipe", "ZipperIterDataPipe"]


def _lengths(pipe):
    if not all(isinstance(source, Sized) for source in pipe.datapipes):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return [len(source) for source in pipe.datapipes]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """All samples of the first stream, then those of the next."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(_lengths(self))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of a sample from each stream, until one of them ends."""

    def __init__(self, *datapipes):
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*map(iter, self.datapipes))

    def __len__(self):
        return min(_lengths(self))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Transient):
    """A sample from each stream in turn, until one of them ends: whole rounds only."""

    _transient = ("buffer",)

    def __init__(self, *datapipes):
        self.datapipes = datapipes
        self._begin()

    def _begin(self):
        self.buffer = []

    def __iter__(self):
        iterators = [iter(pipe) for pipe in self.datapipes]
        while iterators:
            for iterator in iterators:
                try:
                    self.buffer.append(next(iterator))
                except StopIteration:
                    self.buffer.clear()
                    return
            yield from self.buffer
            self.buffer.clear()

    def __len__(self):
        return min(_lengths(self)) * len(self.datapipes)


def _close_all(buffer):
    """Closes the streams among samples that nobody will read any more."""
    while buffer:
        StreamWrapper.close_streams(buffer.popleft())


class _ContainerTemplate(ABC):
    """What the children of one source share."""

    @abstractmethod
    def get_next_element_by_instance(self, instance_id): ...

    @abstractmethod
    def is_every_instance_exhausted(self): ...

    @abstractmethod
    def reset(self): ...

    @abstractmethod
    def get_length_by_instance(self, instance_id): ...


class _Shared(_Transient, _ContainerTemplate):
    """One source for several children, each of which reads at its own pace as far as the buffer lets it.

    A pass begins with the first child that asks, and `_child_stop`, a list of its own, says of each child whether it has ended, or has not begun.
    """

    _name = None  # of the step, for messages

    def __init__(self, datapipe, num_instances, buffer_size):
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(f"Unlimited buffer size is set for `{self._name}`, please be aware of OOM at random places", UserWarning, stacklevel=4)
        self._begin()

    def _begin(self):
        self._datapipe_iterator, self._ended = None, False
        self._child_stop = [True] * self.num_instances

    def _start_if_new(self, child):
        if self._datapipe_iterator is None and self._child_stop[child]:
            self._datapipe_iterator, self._ended = iter(self.main_datapipe), False
            self._snapshot_state = _SnapshotState.Iterating
            self._child_stop = [False] * self.num_instances

    def _read(self):
        """The source's next sample. StopIteration is its end."""
        try:
            return next(self._datapipe_iterator)
        except StopIteration:
            self._ended, self._datapipe_iterator = True, None
            raise

    def is_every_instance_exhausted(self):
        return self._ended and all(self._child_stop)

    def __del__(self):
        self._cleanup()


class _ChildDataPipe(IterDataPipe):
    """One of the streams that read a shared source. A new pass of a child begins one of all of them."""

    _is_child_datapipe = True

    def __init__(self, main_datapipe, instance_id):
        if not isinstance(main_datapipe, _ContainerTemplate):
            raise AssertionError("main_datapipe must implement _ContainerTemplate")
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self):
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self):
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _set_main_datapipe_valid_iterator_id(self):
        """Joins the pass that has begun, or begins the next where this child has been part of it."""
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn("Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each child DataPipe will "
                              "read from the start again.", UserWarning, stacklevel=2)
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _check_valid_iterator_id(self, iterator_id):
        return iterator_id == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several streams that all give the source's samples: the same objects, or copies ("shallow", "deep"). One may be `buffer_size` ahead of another."""

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return datapipe
        shared = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(shared, i) for i in range(num_instances)]


def _no_op(x):
    return x


_COPIES = {None: _no_op, "shallow": copying.copy, "deep": copying.deepcopy}


class _ForkerIterDataPipe(_Shared):
    """Keeps the samples that some child has read and another has not."""

    _name = "fork"
    _transient = ("_datapipe_iterator", "_ended", "_child_stop", "buffer", "child_pointers", "slowest_ptr")

    def __init__(self, datapipe, num_instances, buffer_size=1000, copy=None):
        if copy not in _COPIES:
            self.buffer = deque()  # which the end of this object looks at
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_fn = _COPIES[copy]
        super().__init__(datapipe, num_instances, buffer_size)

    def _begin(self):
        super()._begin()
        self.buffer, self.slowest_ptr = deque(), 0  # the samples from place `slowest_ptr` on
        self.child_pointers = [0] * self.num_instances  # how many samples each child has read

    def __len__(self):
        return len(self.main_datapipe)

    def get_length_by_instance(self, instance_id):
        return len(self.main_datapipe)

    def _next_of(self, child):
        place = self.child_pointers[child] - self.slowest_ptr
        if place == len(self.buffer):
            if self._ended:
                raise StopIteration
            self.buffer.append(self._read())
        sample = self.buffer[place]
        self.child_pointers[child] += 1
        if min(self.child_pointers) > self.slowest_ptr:
            self.slowest_ptr += 1
            self.buffer.popleft()
        if 0 <= self.buffer_size < len(self.buffer):
            raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient.")
        return self.copy_fn(sample)

    def get_next_element_by_instance(self, instance_id):
        self._start_if_new(instance_id)
        stopped = self._child_stop
        try:
            while not stopped[instance_id]:
                try:
                    sample = self._next_of(instance_id)
                except StopIteration:
                    break
                yield sample
        finally:
            stopped[instance_id] = True
            if all(stopped) and stopped is self._child_stop:  # not those of a pass after this one
                self._datapipe_iterator = None
                self._cleanup()

    def _cleanup(self):
        _close_all(self.buffer)


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several streams, to one of which a function of the sample sends it. Those whose turn has not come wait in a buffer."""

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        _check_unpickable_fn(classifier_fn)
        shared = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(shared, i) for i in range(num_instances)]


class _DemultiplexerIterDataPipe(_Shared):
    """Keeps for each child the samples that were read while another asked."""

    _name = "demux"
    _transient = ("_datapipe_iterator", "_ended", "_child_stop", "child_buffers", "current_buffer_usage")

    def __init__(self, datapipe, num_instances, classifier_fn, drop_none, buffer_size):
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__(datapipe, num_instances, buffer_size)

    def _begin(self):
        super()._begin()
        self.current_buffer_usage = 0
        self.child_buffers = [deque() for _ in range(self.num_instances)]

    def get_length_by_instance(self, instance_id):
        raise TypeError  # without a message: list() asks, and goes on without

    def _find_next(self, instance_id):
        """Reads until a sample of this child comes."""
        while not self._ended and not self._child_stop[instance_id]:
            sample = self._read()
            child = self.classifier_fn(sample)
            if child is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if child is None or not 0 <= child < self.num_instances:
                raise ValueError(f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {child} is returned.")
            if child == instance_id:
                return sample
            self.child_buffers[child].append(sample)
            self.current_buffer_usage += 1
            if 0 <= self.buffer_size < self.current_buffer_usage:
                raise BufferError(f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient.")
        raise StopIteration

    def get_next_element_by_instance(self, instance_id):
        self._start_if_new(instance_id)
        stopped, waiting = self._child_stop, self.child_buffers[instance_id]
        try:
            while not stopped[instance_id]:
                if waiting:
                    self.current_buffer_usage -= 1
                    yield waiting.popleft()
                    continue
                try:
                    sample = self._find_next(instance_id)
                except StopIteration:
                    break
                yield sample
        finally:
            stopped[instance_id] = True
            if all(stopped) and stopped is self._child_stop:  # not those of a pass after this one
                self._datapipe_iterator = None
            _close_all(waiting)

    def _cleanup(self):
        for waiting in self.child_buffers:
            _close_all(waiting)
