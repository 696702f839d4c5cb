"""How a loss is reduced, as texts, numbers and the two flags that came before them."""
from umbra.nn.functional._losses import _legacy_reduction, _reduction as get_enum


def legacy_get_string(size_average, reduce, emit_warning=True):
    return _legacy_reduction(True if size_average is None else size_average, reduce, "mean", emit_warning)


def legacy_get_enum(size_average, reduce, emit_warning=True):
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
