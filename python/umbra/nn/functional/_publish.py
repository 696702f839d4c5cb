"""What makes a file's functions those of torch.nn.functional."""
import types

from umbra.overrides import overridable


def publish(names):
    """The public functions of a file: classes and modes of users hear of their calls, and they say that they are the package's own."""
    for name, value in list(names.items()):
        if isinstance(value, types.FunctionType) and not name.startswith("_") and value.__module__ == names["__name__"]:
            value.__module__ = "umbra.nn.functional"
            names[name] = overridable(value)
