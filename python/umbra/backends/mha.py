"""The fast path of MultiheadAttention for inference, which is not there."""
_fastpath = True


def get_fastpath_enabled():
    return _fastpath


def set_fastpath_enabled(value):
    global _fastpath
    _fastpath = value
