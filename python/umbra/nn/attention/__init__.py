"""Which attention kernel is used. There is one for each device here; the choice is accepted and changes nothing but speed elsewhere."""
import contextlib
import enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self):
        return self.value

    __index__ = __int__


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}")
    yield {}


def __getattr__(name):
    from umbra._modules import lazy_submodules
    return lazy_submodules(__name__)(name)
