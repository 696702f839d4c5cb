"""What nodes get besides their calls: metadata that a program sets while it is being recorded."""
import contextlib
import functools
import threading

from umbra import _C
from umbra._options import not_built

__all__ = ["annotate", "annotate_fn", "current_meta", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta", "set_stack_trace"]


class _State(threading.local):
    def __init__(self):
        self.meta, self.preserve, self.custom = {}, False, {}


_state = _State()


def __getattr__(name):
    if name == "current_meta":
        return _state.meta
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextlib.contextmanager
def preserve_node_meta(enable=True):
    """Within it, nodes that are recorded take over the current metadata."""
    before = _state.preserve, _state.meta
    _state.preserve, _state.meta = enable, dict(_state.meta)
    try:
        yield
    finally:
        _state.preserve, _state.meta = before


def has_preserved_node_meta():
    return _state.preserve


@contextlib.contextmanager
def annotate(annotation_dict):
    """Within it, what is traced has these entries in `node.meta["custom"]`; inner ones come before outer ones."""
    if _C._is_tracing():
        raise NotImplementedError("fx.traceback.annotate inside a capture (make_fx, export) is not in Umbra yet")
    before = _state.custom
    _state.custom = {**before, **annotation_dict}
    try:
        yield
    finally:
        _state.custom = before


def current_annotations():
    """The entries that `annotate` has set."""
    return dict(_state.custom)


def annotate_fn(annotation_dict):
    """The same for calls of a function."""
    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with annotate(annotation_dict):
                return function(*args, **kwargs)
        return call
    return decorate


@contextlib.contextmanager
def set_current_meta(node, pass_name=""):
    """Within it, the current metadata are those of a node."""
    not_built("set_current_meta", pass_name=(pass_name, ""))
    before = _state.meta
    if _state.preserve and node.meta:
        _state.meta = dict(node.meta)
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta():
    return _state.meta


def set_stack_trace(stack):
    if _state.preserve and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack():
    """The current node's lines, or those of the program that is running."""
    import traceback
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])
