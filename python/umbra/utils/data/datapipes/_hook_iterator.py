"""The rule that a pipe has one iterator at a time: whoever asks for another makes the one before it invalid."""
import contextlib
import functools
import inspect
from enum import Enum

_FEEDBACK = ("\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: "
             "https://github.com/pytorch/data/issues/45.")


class _SnapshotState(Enum):
    """`Restored` is a pipe that stands where a snapshot was taken: its next iterator goes on there, without a reset."""
    NotStarted = 0
    Restored = 1
    Iterating = 2


def _arguments_of(pipe):
    """The arguments a pipe was made with, as far as it keeps them under their names."""
    names = inspect.signature(type(pipe)).parameters
    kept = ((name, value) for name, value in inspect.getmembers(pipe) if name in names)
    return ", ".join(f"{name}={value.__name__ if inspect.isfunction(value) else repr(value)}" for name, value in kept)


def _described(pipe):
    return f"{type(pipe).__name__}({_arguments_of(pipe)})"


def _invalid(pipe):
    return ("This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{_described(pipe)}\nThis may be caused by multiple references to the same IterDataPipe. We recommend using `.fork()` if that is necessary.")


def _is_child(pipe):
    return getattr(pipe, "_is_child_datapipe", False) is True


def _check_iterator_valid(pipe, number, next_method_exists=False):
    """Refuses to go on with an iterator that is not the pipe's last one."""
    if next_method_exists:
        if pipe._valid_iterator_id not in (None, 0):
            raise RuntimeError(_invalid(pipe) + "\nNote that this exception is raised inside your IterDataPipe's `__next__` method" + _FEEDBACK)
    elif not _is_child(pipe):
        if pipe._valid_iterator_id != number:
            raise RuntimeError(_invalid(pipe) + _FEEDBACK)
    elif not hasattr(pipe, "_check_valid_iterator_id"):
        raise RuntimeError("ChildDataPipe must have method `_check_valid_iterator_id`.")
    elif not pipe._check_valid_iterator_id(number):
        raise RuntimeError("This iterator has been invalidated, because a new iterator has been created from one of the ChildDataPipes of "
                           f"{_described(pipe.main_datapipe)}." + _FEEDBACK)


def _set_datapipe_valid_iterator_id(pipe):
    """Begins anew: the number of the iterator that is valid from here on."""
    if not _is_child(pipe):
        pipe._valid_iterator_id = 0 if pipe._valid_iterator_id is None else pipe._valid_iterator_id + 1
        pipe.reset()
    elif hasattr(pipe, "_set_main_datapipe_valid_iterator_id"):
        pipe._set_main_datapipe_valid_iterator_id()  # which resets what the children share, where it has to be
    else:
        raise RuntimeError("ChildDataPipe must have method `_set_main_datapipe_valid_iterator_id`.")
    return pipe._valid_iterator_id


def _region(pipe):
    """A profile, where one is taken, shows the step under the pipe's name."""
    from umbra.autograd import profiler
    if not profiler._running:
        return contextlib.nullcontext()
    if not hasattr(pipe, "_profile_name"):
        pipe._profile_name = _described(pipe).replace("IterDataPipe", "").replace("MapDataPipe", "")
    return profiler.record_function(pipe._profile_name)


def _name_the_pipe(error, pipe):
    """Adds to an error's message which pipe it comes from, unless a pipe before has done so."""
    note = "thrown by __iter__ of"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (f"\nThis exception is {note} {_described(pipe)}",)
    elif note not in error.args[0] and "single iterator per IterDataPipe constraint" not in error.args[0]:
        error.args = (f"{error.args[0]}\nThis exception is {note} {_described(pipe)}", *error.args[1:])


class _CheckedIterator:
    """The iterator that a pipe's `__iter__` returned, valid as long as it is the pipe's last one."""

    def __init__(self, iterator, pipe, number, counts_itself):
        self.iterator, self.datapipe, self.iterator_id = iterator, pipe, number
        self._counts_itself = counts_itself

    def __iter__(self):
        return self

    def __next__(self):
        with _region(self.datapipe):
            _check_iterator_valid(self.datapipe, self.iterator_id)
            sample = next(self.iterator)
        if not self._counts_itself:
            self.datapipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name):
        return getattr(self.iterator, name)


def _checked_generator(function):
    """For an `__iter__` that is a generator: it begins with its first sample, and so does its validity."""

    @functools.wraps(function)
    def iterate(pipe, *args, **kwargs):
        samples = function(pipe, *args, **kwargs)
        if pipe._fast_forward_iterator:
            restored, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            pipe._snapshot_state = _SnapshotState.Iterating
            yield from restored
            return
        number = _set_datapipe_valid_iterator_id(pipe)
        request = None
        try:
            while True:
                with _region(pipe):
                    _check_iterator_valid(pipe, number)
                    sample = samples.send(request)
                pipe._number_of_samples_yielded += 1
                request = yield sample
        except StopIteration:
            return
        except Exception as error:
            _name_the_pipe(error, pipe)
            raise

    return iterate


def _checked_function(function, has_next):
    """For an `__iter__` that returns an iterator, be it the pipe itself or another object."""

    @functools.wraps(function)
    def iterate(pipe, *args, **kwargs):
        iterator = function(pipe, *args, **kwargs)
        pipe._snapshot_state = _SnapshotState.Iterating
        if pipe._fast_forward_iterator:
            restored, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            return restored
        return _CheckedIterator(iterator, pipe, _set_datapipe_valid_iterator_id(pipe), has_next and iterator is pipe)

    return iterate


def _counted_next(function):

    @functools.wraps(function)
    def advance(pipe, *args, **kwargs):
        with _region(pipe):
            sample = function(pipe, *args, **kwargs)
        pipe._number_of_samples_yielded += 1
        return sample

    return advance


def hook_iterator(namespace):
    """Puts the rule around the `__iter__` of a class of pipes that is being made."""
    function, has_next = namespace["__iter__"], "__next__" in namespace
    if inspect.isgeneratorfunction(function):
        namespace["__iter__"] = _checked_generator(function)
        return
    if has_next:
        namespace["__next__"] = _counted_next(namespace["__next__"])
    namespace["__iter__"] = _checked_function(function, has_next)
