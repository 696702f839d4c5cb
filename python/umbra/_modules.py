"""Submodules that are loaded when they are first used."""
import importlib


def lazy_submodules(package):
    """A module's `__getattr__` that imports `package.name` on demand."""
    def getattr_module(name):
        if not name.startswith("__"):
            try:
                return importlib.import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        raise AttributeError(f"module '{package}' has no attribute '{name}'")
    return getattr_module
