"""Settings of a module that are others for a while."""
import contextlib
import sys


def patcher(module):
    """The `patch` of a module of settings, as PyTorch's have it: `patch("name", value)`, `patch({"name": value})`, `patch(name=value)`, around a block
    or a function."""
    settings = sys.modules[module]

    @contextlib.contextmanager
    def changed(values):
        before = {name: getattr(settings, name) for name in values}
        vars(settings).update(values)
        try:
            yield
        finally:
            vars(settings).update(before)

    def patch(name=None, value=None, /, **values):
        if isinstance(name, dict):
            values = {**name, **values}
        elif name is not None:
            values[name] = value
        for key in values:
            if key.startswith("_") or not hasattr(settings, key):
                raise AttributeError(f"{module.replace('umbra', 'torch', 1)}.{key} does not exist")
        return changed(values)
    return patch
