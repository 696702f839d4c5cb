"""Future: a value that another thread will have."""
import logging
import threading
import types


class Future:
    """`wait()` gives what `set_result` sets, or raises what `set_exception` sets."""

    def __init__(self, *, devices=None):
        if devices:
            raise ValueError("a Future of devices is for accelerators, of which there are none")
        self._condition, self._done = threading.Condition(), False
        self._result = self._error = None
        self._callbacks = []

    __class_getitem__ = classmethod(types.GenericAlias)

    def done(self):
        return self._done

    def wait(self):
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._result

    def value(self):
        if not self._done:
            raise RuntimeError("Cannot get value from an incomplete Future: call wait()")
        return self.wait()

    def then(self, callback):
        """A future of `callback(self)`, which is called when this one is done. An error of the callback is the future's."""
        following = Future()
        self._check_callback(callback, "then")

        def run(future):
            try:
                result = callback(future)
            except Exception as error:
                failure = RuntimeError(_of_callback(error))
                failure.__cause__ = error
                following.set_exception(failure)
            else:
                following.set_result(result)
        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback):
        """Calls `callback(self)` when this future is done. An error of the callback is logged; nobody waits for it."""
        self._check_callback(callback, "add_done_callback")
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    @staticmethod
    def _check_callback(callback, name):
        if not callable(callback):
            raise TypeError(f"{name}(): incompatible function arguments: expected a callable, but got {callback!r}")

    def _call(self, callback):
        try:
            callback(self)
        except Exception as error:
            logging.getLogger(__name__).error(_of_callback(error))

    def _finish(self, result, error):
        with self._condition:
            if self._done:
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once.")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            self._call(callback)

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def set_result(self, result):
        self._finish(result, None)

    def set_exception(self, result):
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)


def _of_callback(error):
    return f"Got the following error when running the callback: {type(error).__name__}: {error}"


def _check_given(futures):
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")


def wait_all(futures):
    """The values of all futures; the first error among them is raised when all are done."""
    _check_given(futures)
    for future in futures:
        with future._condition:
            future._condition.wait_for(future.done)
    return [future.wait() for future in futures]


def collect_all(futures):
    """A future of the list of futures, which is done when they all are; the first error among them is its error."""
    _check_given(futures)
    collected, left, lock = Future(), [len(futures)], threading.Lock()

    def count(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            errors = [future._error for future in futures if future._error is not None]
            collected._finish(futures, errors[0] if errors else None)
    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result(futures)
    return collected
