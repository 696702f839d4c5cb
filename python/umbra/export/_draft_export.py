"""Drafts of programs: where export would refuse, a draft goes by the example, and a report says what it went by."""
import enum
import re
import warnings

from umbra._dynamo.exc import UserError
from umbra._library.examples import drafted
from umbra.export._trace import run_export
from umbra.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection
from umbra.utils import _pytree as pytree


class FailureType(enum.IntEnum):
    """What a draft met that an export would have refused."""
    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self):
        return self.name


class FailureReport:
    """One thing that keeps a program from being exported soundly."""

    def __init__(self, failure_type, data, xfail=False):
        self.failure_type, self.data, self.xfail = failure_type, data, xfail

    def __repr__(self):
        return f"FailureReport(failure_type={self.failure_type}, xfail={self.xfail}, data={self.data})"

    def print(self):
        """What happened, where, and what to do about it."""
        where = f"\n    It was asked here:\n{self.data['stack']}" if self.data.get("stack") else ""
        if self.failure_type is FailureType.DATA_DEPENDENT_ERROR:
            return (f"Data dependent error.\n    When exporting, the value of `{self.data['expr']}` was not known; the example inputs say that it holds.{where}\n"
                    f"    The program asserts it when it runs. Add `torch._check({self.data['expr']})` to the code, or let the program decide with torch.cond.")
        if self.failure_type is FailureType.MISSING_FAKE_KERNEL:
            return (f"Missing fake kernel.\n    torch.ops.{self.data['op']} is missing a fake kernel implementation.\n"
                    "    The example's results stand for it; register one with `register_fake` (torch.library).")
        if self.failure_type is FailureType.MISMATCHED_FAKE_KERNEL:
            return (f"Mismatched fake kernel.\n    torch.ops.{self.data['op']} has a fake kernel implementation, but it has incorrect behavior, based on "
                    f"the real kernel.\n    The reason for the mismatch is: {self.data['reason']}.")
        return (f"Guard added.\n    {self.data['expr']}\n    The dynamic shapes were changed to:\n    dynamic_shapes = {self.data['new_dynamic_shapes']}\n"
                "    Dim.AUTO lets export find such relations by itself.")


class DraftExportReport:
    """What a draft went by."""

    def __init__(self, failures, str_to_filename, expressions_created, op_profiles):
        self.failures, self.str_to_filename = failures, str_to_filename
        self.expressions_created, self.op_profiles = expressions_created, op_profiles

    def successful(self):
        """Whether the program is as sound as an exported one."""
        return all(failure.xfail for failure in self.failures)

    def __repr__(self):
        return f"DraftExportReport({self.failures})"

    def __str__(self):
        if self.successful():
            line = "#" * 94
            return (f"\x1b[32m\n{line}\nCongratulations: No issues are found during export, and it was able to soundly produce a graph.\n"
                    f"You can now change back to torch.export.export()\n{line}\n\x1b[0m")
        issues = "\n".join(f"{i}. {failure.print()}\n" for i, failure in enumerate(self.failures, 1))
        return f"WARNING: {len(self.failures)} issue(s) found during export, and it was not able to soundly produce a graph.\n\n{issues}"

    def apply_suggested_fixes(self):
        raise NotImplementedError("Not implemented yet")


def draft_export(mod, args, kwargs=None, *, dynamic_shapes=None, preserve_module_call_signature=(), strict=False,
                 prefer_deferred_runtime_asserts_over_guards=False):
    """`export` that goes on where it would refuse: named dimensions that turn out related or fixed become automatic ones, and questions about data are
    answered by the example inputs and asserted. `program._report` says where."""
    options = {"preserve_module_call_signature": preserve_module_call_signature, "strict": strict,
               "prefer_deferred_runtime_asserts_over_guards": prefer_deferred_runtime_asserts_over_guards}
    answers, kernels = [], []

    def report(kind, data):
        if not any(known.data["op"] == data["op"] for known in kernels):
            kernels.append(FailureReport(FailureType[kind], data))

    def run():
        del answers[:]
        return _run(mod, args, kwargs, dynamic_shapes, answers, options)

    program, failures = drafted(run, report)
    failures = [FailureReport(FailureType.DATA_DEPENDENT_ERROR, {"expr": text, "stack": stack}) for text, stack in answers] + kernels + failures
    program._report, program._is_draft = DraftExportReport(failures, {}, {}, {}), True
    if failures:
        warnings.warn(f"{len(failures)} issue(s) found during export, and it was not able to soundly produce a graph: print(program._report)", stacklevel=2)
    return program


def _run(mod, args, kwargs, dynamic_shapes, answers, options):
    """The program, and the guards that had to be added for it."""
    failures = []
    try:
        program = run_export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, draft=answers, **options)
    except UserError as error:
        if dynamic_shapes is None or not str(error).startswith("Constraints violated"):
            raise
        del answers[:]
        shapes = _automatic(mod, args, dict(kwargs or {}), dynamic_shapes)
        program = run_export(mod, args, kwargs, dynamic_shapes=shapes, draft=answers, **options)
        failures = [FailureReport(FailureType.GUARD_ADDED, {"expr": text, "new_dynamic_shapes": shapes}) for text in _violations(str(error))]
    return program, failures


def _violations(message):
    """The violated constraints that an error lists, one text each."""
    return [text.strip() for text in re.findall(r"^  - (.+)$", message.partition("Suggested fixes:")[0], flags=re.MULTILINE)]


def _automatic(mod, args, kwargs, dynamic_shapes):
    """The same shapes with automatic dimensions in the place of named ones."""
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)

    def automatic(dim):
        return Dim.AUTO(min=dim.min, max=dim.max) if isinstance(dim, Dim) else Dim.AUTO if dim == Dim.DYNAMIC else dim
    return pytree.tree_map(automatic, dynamic_shapes, is_leaf=lambda value: isinstance(value, Dim))
