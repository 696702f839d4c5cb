"""Questions that captured code asks about its capture."""
import contextlib

_compiling = False
_exporting = False


def is_compiling():
    """True while a program is being captured by export or compile."""
    return _compiling


def is_exporting():
    return _exporting


def is_dynamo_compiling():
    return False


@contextlib.contextmanager
def _capturing(exporting=False):
    """For the functions that capture: is_compiling() holds inside."""
    global _compiling, _exporting
    before = _compiling, _exporting
    _compiling, _exporting = True, exporting
    try:
        yield
    finally:
        _compiling, _exporting = before


def disable(fn=None, recursive=True):
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn):
    return fn


def reset():
    """Nothing is kept between captures."""
