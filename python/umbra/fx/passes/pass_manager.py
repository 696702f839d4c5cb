"""A list of passes, the order they have to be in, and the way to run them."""
import functools
import inspect
import logging

from umbra.fx.passes._schedule import Schedule

__all__ = ["PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint", "this_before_that_pass_constraint"]

_log = logging.getLogger(__name__)


def inplace_wrapper(fn):
    """A pass that changes its argument as one that gives it back."""
    @functools.wraps(fn)
    def run(gm):
        fn(gm)
        return gm
    return run


def log_hook(fn, level=logging.INFO):
    """A pass that logs what it gives."""
    @functools.wraps(fn)
    def run(gm):
        result = fn(gm)
        _log.log(level, "Ran pass %s\n Return value: %s", fn, result)
        return result
    return run


def loop_pass(base_pass, n_iter=None, predicate=None):
    """A pass run `n_iter` times, or for as long as `predicate` says of what it gave."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @functools.wraps(base_pass)
    def run(source):
        output = source
        if n_iter is not None:
            for _ in range(n_iter):
                output = base_pass(output)
        else:
            while predicate(output):
                output = base_pass(output)
        return output
    return run


def _unwrapped(fn):
    return inspect.unwrap(fn)


def this_before_that_pass_constraint(this, that):
    """A condition on two passes: the second does not come before the first."""
    def holds(a, b):
        return not (_unwrapped(a) is _unwrapped(that) and _unwrapped(b) is _unwrapped(this))
    return holds


def these_before_those_pass_constraint(these, those):
    """The same of passes that share an inner one."""
    def holds(a, b):
        return not (a == those and b == these)
    return holds


class PassManager(Schedule):
    """Runs passes in order, each on what the one before gave, after their order was checked against the constraints."""

    @classmethod
    def build_from_passlist(cls, passes):
        return cls(passes)

    def remove_pass(self, _passes):
        """Removes passes by name."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target, _replacement):
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self):
        """Raises where two passes stand in an order that a constraint does not allow."""
        if self._validated:
            return
        if found := self._violation():
            (i, first), (k, second) = found
            raise RuntimeError(f"pass schedule constraint violated. Expected {first} before {second} but found {second} at index {k} and {first} at "
                               f"index{i} in pass list.")
        self._validated = True

    def __call__(self, source):
        self.validate()
        result = source
        for one in self.passes:
            result = one(result)
        return result
