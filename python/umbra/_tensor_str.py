"""Printing of tensors; the layout of the elements is C++ (umbra/core/print.h)."""
import contextlib
import sys

from umbra import _C
from umbra._C import Tensor
from umbra._tensor import _SPARSE

_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, 2**62, 3, 80)}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors are printed: digits, from how many elements on they are summarised and what of them is shown, the length of a line,
    scientific notation. `profile` is "default", "short" or "full"."""
    if profile in _PROFILES:  # others are let pass, as in PyTorch
        defaults = _PROFILES[profile]
        precision, threshold, edgeitems, linewidth = (
            given if given is not None else default
            for given, default in zip((precision, threshold, edgeitems, linewidth), defaults))
    if threshold is not None:
        threshold = int(min(threshold, 2**62))
    _C._set_print_options(precision, threshold, edgeitems, linewidth, sci_mode)


def get_printoptions():
    return _C._get_print_options()


class _PrintOptions:
    """The options that are in force, as attributes: `PRINT_OPTS.precision`."""

    def __getattr__(self, name):
        options = get_printoptions()
        if name not in options:
            raise AttributeError(f"there is no option of printing called {name!r}")
        return options[name]

    def __repr__(self):
        options = get_printoptions()
        names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
        return f"__PrinterOptions({', '.join(f'{name}={options[name]!r}' for name in names)})"

    def __setattr__(self, name, value):
        getattr(self, name)
        set_printoptions(**{name: value})


PRINT_OPTS = _PrintOptions()


@contextlib.contextmanager
def printoptions(**kwargs):
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def _parameter_class():
    """Parameter, if anybody has used it yet: printing a tensor does not load nn."""
    module = sys.modules.get("umbra.nn.parameter")
    return module.Parameter if module is not None else None


def _wrapper_str(kind, level, dim, value):
    """A tensor of a transform shows the one inside."""
    inside = "\n".join("    " + line for line in repr(value).splitlines())
    if kind == "batched":
        return f"BatchedTensor(lvl={level}, bdim={dim}, value=\n{inside}\n)"
    return f"GradTrackingTensor(lvl={level}, value=\n{inside}\n)"


def _sparse_facts(tensor, derivatives):
    """What stands behind the size of a sparse tensor: what is not the usual."""
    usual = (_C.get_default_dtype(), _C.complex128 if _C.get_default_dtype() == _C.float64 else _C.complex64, _C.int64, _C.bool)
    facts = [] if tensor.dtype in usual else [f"dtype={tensor.dtype}"]
    facts.append(f"layout={tensor.layout}")
    return [*facts, *derivatives]


def _tensor_str(self, indent):
    """The elements alone, without "tensor(...)"; lines after the first are indented."""
    head = "x" * (indent - 1)  # and the parenthesis after it
    text = _C._format_tensor(self.detach(), head, [])
    text = text[len(head) + 1:].split(", dtype=")[0].split(", size=")[0].removesuffix(")")
    return text if indent > 0 else text.replace("\n ", "\n")


def _facts(tensor):
    """What stands behind the elements of a tensor: its history, and its tangent in forward mode."""
    fact = _C._grad_fact(tensor)
    facts = [fact] if fact else []
    forward_mode = sys.modules.get("umbra.autograd.forward_ad")
    tangent = forward_mode.unpack_dual(tensor).tangent if forward_mode is not None else None
    return facts if tangent is None else [*facts, f"tangent={tangent!r}"]


def _str(tensor, *, tensor_contents=None):
    _C._end_capture_for_text(tensor)
    wrapper = _C._describe_wrapper(tensor)
    if wrapper is not None and tensor_contents is None:
        return _wrapper_str(*wrapper)
    parameter = _parameter_class()
    head = "tensor" if type(tensor) in (Tensor, parameter) else type(tensor).__name__
    facts = _facts(tensor)
    with _C._NoModes():
        if tensor_contents is not None:
            text = f"{head}({tensor_contents})"
        elif tensor.layout in _SPARSE:
            from umbra import sparse
            text = sparse.describe(tensor, head, _sparse_facts(tensor, facts))
        else:
            text = _C._format_tensor(tensor, head, facts)
    if parameter is None or not isinstance(tensor, parameter):
        return text
    return f"Parameter containing:\n{text}" if type(tensor) is parameter else f"Parameter({text})"
