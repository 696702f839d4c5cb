"""Errors of capture, under the names that users of torch know."""
from umbra._C import TorchDynamoException, Unsupported, UserError  # noqa: F401


class InvalidBackend(TorchDynamoException):
    """A backend that nobody knows."""


class TorchRuntimeError(TorchDynamoException):
    """An operator that a captured function calls refused its arguments."""


class RecompileError(TorchDynamoException):
    """A call of a new kind, where `config.error_on_recompile` allows of one alone."""


class FailOnRecompileLimitHit(Exception):
    """A function was captured as often as it may be, and must not run as it is."""


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
