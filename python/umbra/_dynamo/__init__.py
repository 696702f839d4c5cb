"""Names of torch._dynamo that code asks for. Umbra captures a program by running it: there is no bytecode analysis."""
from umbra._modules import lazy_submodules
from umbra.compiler import is_compiling  # noqa: F401

__getattr__ = lazy_submodules(__name__)


def reset():
    """Nothing is kept between captures."""


def is_dynamo_compiling():
    return False


def disable(fn=None, recursive=True, **kwargs):
    """What is captured runs as it is; the function stays itself."""
    return fn if fn is not None else lambda function: function


def mark_dynamic(tensor, index, *, min=None, max=None, **kwargs):
    """Asks export to make a dimension a symbol."""
    marked = tensor.__dict__.setdefault("_dynamo_dynamic_indices", set())
    for i in index if isinstance(index, (list, tuple)) else (index,):
        marked.add(i)


maybe_mark_dynamic = mark_dynamic


def mark_static(tensor, index=None):
    marked = tensor.__dict__.setdefault("_dynamo_static_indices", set())
    for i in range(tensor.dim()) if index is None else index if isinstance(index, (list, tuple)) else (index,):
        marked.add(i)
