"""Options that torch has and that are built for some of their values only."""


def not_built(where, /, **options):
    """Refuses an option that has another value than the one that is built: `not_built("save", pickle_protocol=(given, 2))`."""
    for name, (value, built) in options.items():
        if value is not built and (type(value) is not type(built) or value != built):
            raise NotImplementedError(f"{where}({name}={value!r}) is not in Umbra yet")
