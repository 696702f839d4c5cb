"""The classes of results with names, such as `max(values=..., indices=...)`; each is made when it is first returned."""
from umbra import _C


def __getattr__(name):
    try:
        return _C._return_types[name]
    except KeyError:
        raise AttributeError(f"module 'umbra.return_types' has no attribute '{name}'") from None
