"""Errors of capture, under the names that users of torch know."""
import opcode

from umbra._C import TorchDynamoException, Unsupported, UserError  # noqa: F401


class InvalidBackend(TorchDynamoException):
    """A backend that nobody knows."""


class BackendCompilerFailed(TorchDynamoException):
    """What a backend raised while it compiled a graph."""

    def __init__(self, backend, error):
        self.backend_name, self.inner_exception = getattr(backend, "__name__", "?"), error
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(error).__name__}: {error}")


class TorchRuntimeError(TorchDynamoException):
    """An operator that a captured function calls refused its arguments."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """A function that an operator takes (cond, scan and their like) does what such functions must not."""


class RecompileError(TorchDynamoException):
    """A call of a new kind, where `config.error_on_recompile` allows of one alone."""


class FailOnRecompileLimitHit(Exception):
    """A function was captured as often as it may be, and must not run as it is."""


def operator_refusal(error):
    """What to raise for an error in a captured function: one of the library's own, which comes of no `raise` in Python, is an operator's refusal."""
    raised = _is_raised(_last_frame(error))
    return error if raised or type(error) is not RuntimeError else refused_without_data(error)


def observed(error):
    """What to raise for an exception that leaves a function of which all has to be captured. What the library refuses by name stays what it is."""
    if isinstance(error, NotImplementedError) and not _is_raised(_last_frame(error)):
        return error
    found = Unsupported(f"Observed exception\n  Explanation: the function ends with {type(error).__name__}: {error}\n  Hint: without fullgraph=True it runs as it "
                        "is, and raises that")
    found.__cause__ = error
    return found


def _last_frame(error):
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _is_raised(trace):
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"]


def is_of_users_code(error):
    """Whether Python code outside the library raised an error, by `raise` or since it does not make sense: no operator did."""
    trace = _last_frame(error)
    inside = trace.tb_frame.f_globals.get("__name__", "").split(".")[0] == "umbra"
    return not inside and (_is_raised(trace) or isinstance(error, (AttributeError, NameError, KeyError, ZeroDivisionError)))


def refused_without_data(error):
    """An error of a run on tensors without data."""
    return TorchRuntimeError(f"RuntimeError when making fake tensor call\n  Explanation: {error}")


class UserErrorType:
    """Kinds of user errors; kept for code that raises them."""
    DYNAMIC_CONTROL_FLOW = "dynamic_control_flow"
    ANTI_PATTERN = "anti_pattern"
    STANDARD_LIBRARY = "standard_library"
    CONSTRAINT_VIOLATION = "constraint_violation"
    DYNAMIC_DIM = "dynamic_dim"
    INVALID_INPUT = "invalid_input"
    INVALID_OUTPUT = "invalid_output"


UserError.msg = UserError.message = property(str)


def user_error(kind, text):
    """A UserError that knows its kind."""
    error = UserError(text)
    error.error_type = getattr(UserErrorType, kind)
    return error
