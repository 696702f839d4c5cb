"""What a capture knows of itself while it runs: its fake mode, where its values come from."""
import threading

from umbra._modules import lazy_submodules
from umbra.utils._contextlib import uninterrupted

__getattr__ = lazy_submodules(__name__)

_thread = threading.local()


class Source:
    """Where a value of a captured program comes from; `name` is the expression by which guards find it again."""

    @property
    def name(self):
        raise NotImplementedError

    def is_ephemeral(self):
        return False


class ChainedSource(Source):
    """A value that is found through another one."""

    def __init__(self, base):
        self.base = base

    def is_ephemeral(self):
        return self.base.is_ephemeral()


class TracingContext:
    """What is known while a program is captured."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    @staticmethod
    def try_get():
        """The context of the capture that runs on this thread, or None."""
        return getattr(_thread, "context", None)

    @staticmethod
    def get():
        context = TracingContext.try_get()
        if context is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return context


@uninterrupted
def tracing(context):
    """Makes a context the thread's."""
    before = TracingContext.try_get()
    _thread.context = context
    try:
        yield context
    finally:
        _thread.context = before


def active_fake_mode():
    """The mode that factories make fake tensors in, or None."""
    from umbra import _C
    from umbra._subclasses.fake_tensor import _mode_object
    return _mode_object(_C._active_fake_mode())


def detect_fake_mode(inputs=None):
    """The one mode of a capture: of its context, of the thread, of the fake tensors among the inputs. Two are an error."""
    from umbra._subclasses.fake_tensor import FakeTensor
    from umbra.utils import _pytree as pytree
    found = []
    context = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        found.append((context.fake_mode, "tracing context", 0))
    active = active_fake_mode()
    if active is not None:
        found.append((active, "active fake mode", 0))
    for i, leaf in enumerate(pytree.tree_leaves(inputs)):
        if isinstance(leaf, FakeTensor):
            found.append((leaf.fake_mode, "fake tensor input", i))
    for mode, kind, i in found[1:]:
        if mode is not found[0][0]:
            raise AssertionError(f"fake mode ({found[0][0]}) from {found[0][1]} {found[0][2]} doesn't match mode ({mode}) from {kind} {i}")
    return found[0][0] if found else None
