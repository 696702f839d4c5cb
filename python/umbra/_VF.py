"""Functions of tensors by their plain names, for code that goes around what torch.nn.functional adds.

    from umbra import _VF
    out, hidden, cells = _VF.lstm(x, (h, c), weights, True, 1, 0.0, False, False, False)
"""


def __getattr__(name):
    import umbra
    function = None if name.startswith("__") else getattr(umbra, name, None)
    if callable(function) and not isinstance(function, type):
        return function
    raise AttributeError(f"module 'umbra._VF' has no attribute {name!r}", name=name)
