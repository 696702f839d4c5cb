"""The classes of results with names, such as `max(values=..., indices=...)`; each is made when it is first returned or asked for."""
from umbra import _C
from umbra._modules import raise_missing


def __getattr__(name):
    if not name.startswith("__"):
        _C._make_return_type(name)
    if name in _C._return_types:
        return _C._return_types[name]
    raise_missing(__name__, name)
