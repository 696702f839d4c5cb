"""Future: a value that another thread will have."""
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
        """A future of `callback(self)`, which is called when this one is done."""
        following = Future()

        def run(future):
            try:
                following.set_result(callback(future))
            except Exception as error:
                following.set_exception(error)
        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback):
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def _finish(self, result, error):
        with self._condition:
            if self._done:
                raise RuntimeError("Attempting to mark a completed Future as complete again.  Note that a Future can only be marked completed once.")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)

    def set_result(self, result):
        self._finish(result, None)

    def set_exception(self, result):
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)


def wait_all(futures):
    """The values of all futures; the first error among them is raised when all are done."""
    for future in futures:
        with future._condition:
            future._condition.wait_for(future.done)
    return [future.wait() for future in futures]


def collect_all(futures):
    """A future of the list of futures, which is done when they all are."""
    collected, left, lock = Future(), [len(futures)], threading.Lock()

    def count(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            collected.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result(futures)
    return collected
