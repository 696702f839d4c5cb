"""Whether attention and encoder layers are one operator each where no gradients are needed."""
_fastpath = True


def get_fastpath_enabled():
    return _fastpath


def set_fastpath_enabled(value):
    global _fastpath
    _fastpath = value
