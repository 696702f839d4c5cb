"""TorchScript's names. Scripted functions and modules stay what they are and run as Python, as in PyTorch when PYTORCH_JIT=0 is set; graphs,
files and traces of TorchScript are refused."""
import builtins
import contextlib
import typing

from umbra._jit_internal import Final, export, ignore, is_scripting, unused  # noqa: F401
from umbra.nn import Module


class ScriptFunction:
    """What PyTorch makes of a scripted function. There are none here."""

    def __init__(self):
        raise NotImplementedError("torch.jit.ScriptFunction is not in Umbra yet")


class ScriptModule(Module):
    """Base of modules that are written to be scripted; here a module like any other."""


class RecursiveScriptModule(ScriptModule):
    """What PyTorch makes of a scripted module. There are none here."""

    def __init__(self):
        raise NotImplementedError("torch.jit.RecursiveScriptModule is not in Umbra yet")


class Error(RuntimeError):
    """What PyTorch raises from scripted code."""


Attribute = typing.NamedTuple("Attribute", [("value", typing.Any), ("type", typing.Any)])


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, module or class itself: it runs as Python."""
    return obj


def script_if_tracing(fn):
    """The function itself."""
    return fn


def script_method(fn, _rcb=None):
    """The method itself."""
    return fn


def interface(obj):
    """The class itself: interfaces are for the compiler."""
    return obj


def annotate(the_type, the_value):
    """The value: types are for the compiler."""
    return the_value


def isinstance(obj, target_type):
    """Whether a value is of a type that a type annotation names."""
    origin = typing.get_origin(target_type)
    return builtins.isinstance(obj, origin or target_type)


def is_tracing():
    """Whether torch.jit.trace is at work: it is not there."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """Nothing here is optimised that could be left alone."""
    yield


def enable_onednn_fusion(enabled):
    """There is no fuser of scripted graphs."""


def onednn_fusion_enabled():
    return False


def set_fusion_strategy(strategy):
    """There is no fuser of scripted graphs."""
    return []


def _not_built(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"torch.jit.{name} is not in Umbra yet")
    refuse.__name__ = refuse.__qualname__ = name
    return refuse


trace, trace_module, save, load, freeze, optimize_for_inference, fork, wait = map(
    _not_built, ("trace", "trace_module", "save", "load", "freeze", "optimize_for_inference", "fork", "wait"))
