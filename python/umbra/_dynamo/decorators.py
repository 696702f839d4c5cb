"""Marks on tensors that say which of their sizes may vary. `export` and `torch.compile` go by them."""
import functools
import typing

from umbra._options import not_built
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass


class _DimRange(typing.NamedTuple):
    """The sizes that a marked dimension may have."""
    dim: int
    min: object
    max: object


def _mark(t, index, attribute, min=None, max=None):
    if not isinstance(index, (int, list, tuple)):
        raise AssertionError(f"Expected index to be int, list, or tuple, got {type(index)}")
    if not hasattr(t, attribute):
        setattr(t, attribute, set())
    for i in index if isinstance(index, (list, tuple)) else (index,):
        getattr(t, attribute).add(i)
        if min is not None or max is not None:
            if not hasattr(t, "_dynamo_dynamic_range"):
                t._dynamo_dynamic_range = set()
            t._dynamo_dynamic_range.add(_DimRange(i, min, max))
    t._has_dynamo_dim_marking = True


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """A size is a symbol, which the program may not fix, from `min` to `max`."""
    not_built("mark_dynamic", hint_override=(hint_override, None), specialize_on=(specialize_on or None, None))
    _mark(t, index, "_dynamo_dynamic_indices", min, max)


def maybe_mark_dynamic(t, index, *, min=None, max=None):
    """A size is a symbol, unless the program fixes it."""
    _mark(t, index, "_dynamo_weak_dynamic_indices", min, max)


def mark_static(t, index=None):
    """Sizes are those of the example, all of them where no index is given; other marks give way."""
    if not isinstance(t, type):
        _mark(t, list(range(t.dim())) if index is None else index, "_dynamo_static_indices")


def mark_unbacked(t, index, hint_override=None, strict=False, specialize_on=None, shape_id=None, min=None, max=None):
    """A size that one capture of `torch.compile` serves whatever it is, as far as the program does not go by it. `hint_override` is for compilers that
    try kernels out; `export` does not go by this mark."""
    if is_traceable_wrapper_subclass(t):
        raise AssertionError("not implemented yet")
    not_built("mark_unbacked", strict=(strict, False), specialize_on=(specialize_on or None, None), shape_id=(shape_id, None), min=(min, None), max=(max, None))
    _mark(t, index, "_dynamo_unbacked_indices")
    if hint_override and isinstance(index, int):
        t._dynamo_hint_overrides = {**getattr(t, "_dynamo_hint_overrides", {}), index: hint_override}


def mark_static_address(t, guard=False):
    """There is no graph that would keep an address."""


def marked_sizes(t):
    """What the marks of a tensor say of its dimensions: {dimension: ("DYNAMIC" | "AUTO" | "STATIC", min, max)}."""
    bounds = {one.dim: (one.min, one.max) for one in getattr(t, "_dynamo_dynamic_range", ())}
    marks = {}
    for attribute, hint in (("_dynamo_weak_dynamic_indices", "AUTO"), ("_dynamo_dynamic_indices", "DYNAMIC"), ("_dynamo_static_indices", "STATIC")):
        for i in getattr(t, attribute, ()):
            marks[i] = (hint, *(bounds.get(i, (None, None)) if hint != "STATIC" else (None, None)))
    return marks


class error_on_graph_break:
    """Inside of a function that is compiled, in a `with` or as a decorator: whether what its graphs would leave out is an error there, although the function
    was compiled without `fullgraph`."""

    def __init__(self, error_on_graph_break):
        self.error_on_graph_break = error_on_graph_break

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        error = exception[1]
        if error is not None and not hasattr(error, "_ends_call"):  # the innermost one decides
            error._ends_call = self.error_on_graph_break

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return call
