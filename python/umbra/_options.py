"""Options that torch has and that are built for some of their values only."""


def checked_bool(function, name, value):
    """A switch that is a bool, of Python or of NumPy; anything else is refused, numbers too."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{function}(): argument '{name}' (position 1) must be bool, not {type(value).__name__}")
    return bool(value)


def not_built(where, /, **options):
    """Refuses an option that has another value than the one that is built: `not_built("save", pickle_protocol=(given, 2))`."""
    for name, (value, built) in options.items():
        if value is not built and (type(value) is not type(built) or value != built):
            raise NotImplementedError(f"{where}({name}={value!r}) is not in Umbra yet")
