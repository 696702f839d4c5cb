"""Passes in an order, and what is asked of the order: what both pass managers are."""


class Schedule:
    """A list of passes, and constraints: functions of two passes, whether the first may stand before the second."""

    def __init__(self, passes=None, constraints=None):
        self.passes, self.constraints = list(passes or []), list(constraints or [])
        self._validated = not self.constraints

    def add_pass(self, _pass):
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        self.constraints.append(constraint)
        self._validated = False

    def _violation(self):
        """Two passes in an order that a constraint does not allow, each with its place; None where there are none."""
        for constraint in self.constraints:
            for i, first in enumerate(self.passes):
                for k, second in enumerate(self.passes[i + 1:], i + 1):
                    if not constraint(first, second):
                        return (i, first), (k, second)
        return None
