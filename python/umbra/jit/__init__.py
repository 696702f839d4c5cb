"""Programs of TorchScript: traced, compiled from source, saved and loaded.

    traced = umbra.jit.trace(model, example)
    print(traced.graph)
    umbra.jit.save(traced, "model.pt")
"""
import contextlib

from umbra import _C
from umbra.jit._annotations import (  # noqa: F401
    Attribute, Final, Future, _overload, _overload_method, _unwrap_optional, annotate, export, fork, ignore, interface, is_scripting, isinstance, unused, wait)
from umbra.jit._script_module import RecursiveScriptClass, RecursiveScriptModule, ScriptMethod, ScriptModule  # noqa: F401
from umbra.jit._trace import (  # noqa: F401
    ScriptFunction, TopLevelTracedModule, TracedModule, TracerWarning, TracingCheckError, _get_trace_graph, is_tracing, trace, trace_module)


class Error(RuntimeError):
    """What a compiled program raised."""


from umbra.jit import frontend  # noqa: E402, F401
from umbra.jit._freeze import freeze, optimize_for_inference, run_frozen_optimizations  # noqa: E402, F401
from umbra.jit._compile_modules import script_method  # noqa: E402, F401
from umbra.jit._script import CompilationUnit, script, script_if_tracing  # noqa: E402, F401
from umbra.jit._serialization import load, save  # noqa: E402, F401

__all__ = ["Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule", "annotate", "enable_onednn_fusion", "export", "fork",
           "freeze", "ignore", "interface", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing",
           "set_fusion_strategy", "trace", "trace_module", "unused", "wait"]

_fork, _wait, _script_if_tracing = fork, wait, script_if_tracing
TracingCheckError.__module__ = TracerWarning.__module__ = "torch.jit._trace"


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """Has no effect on results: programs run as they are."""
    before = _C._get_graph_executor_optimize(should_optimize)
    try:
        yield
    finally:
        _C._get_graph_executor_optimize(before)


@contextlib.contextmanager
def fuser(name):
    """Names a fuser of PyTorch's; programs here are not fused, and results are the same."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise ValueError(f"unrecognized fuser option (name: {name})")
    yield


def set_fusion_strategy(strategy):
    """Takes PyTorch's strategies; there is no fuser, so results do not depend on them."""
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC") or not int(depth) == depth:
            raise RuntimeError(f"unknown fusion strategy ({kind!r}, {depth!r})")
    return list(strategy)


def enable_onednn_fusion(enabled):
    """There is no fuser: only switching it off is taken."""
    if enabled:
        raise NotImplementedError("torch.jit.enable_onednn_fusion(True) is not in Umbra yet")


def onednn_fusion_enabled():
    """Whether scripts are fused by oneDNN: never, they are interpreted."""
    return False
