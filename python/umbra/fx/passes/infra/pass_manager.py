"""Passes one after the other, again and again until none changes anything."""
import functools
import inspect

from umbra.fx.graph_module import GraphModule
from umbra.fx.passes._schedule import Schedule
from umbra.fx.passes.infra.pass_base import PassResult
from umbra.nn import Module


def pass_result_wrapper(fn):
    """A function that changes a module in place, or gives another, as a pass."""
    if fn is None:
        return None

    @functools.wraps(fn) if hasattr(fn, "__name__") else lambda g: g
    def call(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, Module):
            return PassResult(result, True)
        raise AssertionError(f"expected a module, a PassResult or nothing of the pass {fn}, got {type(result)}")
    if not hasattr(fn, "__name__"):
        call.__name__ = str(type(fn))
    return call


def this_before_that_pass_constraint(this, that):
    """The constraint that `this` does not run after `that`."""
    return lambda a, b: not (a == that and b == this)


def _topological_sort_passes(passes, constraints):
    """The passes in an order that keeps all constraints; an error where there is none."""
    remaining, ordered = list(passes), []
    while remaining:
        def may_come_next(candidate):
            return all(constraint(candidate, other) for constraint in constraints for other in remaining if other is not candidate)
        found = next((p for p in remaining if may_come_next(p)), None)
        if found is None:
            raise RuntimeError(f"Circular dependency detected within the following passes: {remaining}")
        remaining.remove(found)
        ordered.append(found)
    return ordered


class PassManager(Schedule):
    """Runs passes in an order that keeps the constraints, up to `steps` times."""

    def __init__(self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False):
        super().__init__(passes, constraints)
        self.steps = steps or 1
        self.run_checks_after_each_pass, self.suppress_check_failures = run_checks_after_each_pass, suppress_check_failures

    def validate_constraints(self):
        """Raises where the passes stand in an order that a constraint forbids."""
        if self._validated:
            return
        if found := self._violation():
            (i, first), (k, second) = found
            raise RuntimeError(f"pass schedule constraint violated. Expected {first} before {second} but found {first} at index {i} and {second} at "
                               f"index {k} in pass list.")
        self._validated = True

    def solve_constraints(self):
        """Puts the passes into an order that keeps all constraints; an error where there is none."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check):
        """A function of the module that raises where it is not well formed: run after the passes, or after each."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        """Replaced by `add_checks`."""

    def __call__(self, module):
        if not self._validated:
            self.solve_constraints()
        self._checked(module)
        ever_modified = False
        for _ in range(self.steps):
            modified = False
            for fn in self.passes:
                result = self._run(fn, module)
                module = result.graph_module
                modified = modified or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self._checked(module)
            ever_modified = ever_modified or modified
            if not modified:
                break
        return PassResult(module, ever_modified)

    def _run(self, fn, module):
        name = getattr(fn, "__name__", type(fn).__name__)
        try:
            result = fn(module)
            if not isinstance(result, PassResult):
                raise TypeError(f"The result of the pass {name} should be type PassResult. Please wrap it with pass_result_wrapper()")
        except Exception as error:
            before = [getattr(one, "__name__", type(one).__name__) for one in self.passes[:self.passes.index(fn)]]
            raise Exception(f"An error occurred when running the '{name}' pass after the following passes: {before}") from error
        return result

    def _checked(self, module):
        try:
            self.check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise
