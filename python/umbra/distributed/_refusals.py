"""torch.distributed's other names: they can be imported, asked for and derived from; whoever calls one is told that there is one process.

Packages import them at their top, for branches that one process never takes.
"""
import enum
import functools
import importlib
import os
import types
from importlib.machinery import ModuleSpec

from umbra._modules import raise_missing, torch_name


@functools.cache
def distributed_names():
    """The classes and functions of torch.distributed's modules, by module; `_names.txt` lists them."""
    with open(os.path.join(os.path.dirname(__file__), "_names.txt")) as file:
        return {module: frozenset(names) for module, *names in map(str.split, file)}


def refusing(name):
    """A function that says that it is not here. `name`: without torch.distributed."""
    def refused(*args, **kwargs):
        raise RuntimeError(f"torch.distributed.{name} is not in Umbra, which has one process")
    refused.__name__ = refused.__qualname__ = name
    return refused


def refusing_class(name, base=object, **attributes):
    """A class that can be asked for and derived from, and of which there is no object."""
    def refused(self, *args, **kwargs):
        raise RuntimeError(f"torch.distributed.{name} is not in Umbra, which has one process")
    last = name.rpartition(".")[2]
    return type(base)(last, (base,), {"__init__": refused, "__module__": f"torch.distributed.{name}".removesuffix("." + last), **attributes})


def _choice(module, name):
    """The enum of this name that the modules of FSDP share, or None."""
    if not module.startswith("umbra.distributed.fsdp."):
        return None
    found = vars(importlib.import_module("umbra.distributed.fsdp.api")).get(name)
    return found if isinstance(found, enum.EnumMeta) else None


@functools.cache
def _stand_in(module, name):
    path = f"{torch_name(module)}.{name}".removeprefix("torch.distributed.")
    return (refusing_class if name.lstrip("_")[0].isupper() else refusing)(path)


def refusing_names(module):
    """A module's `__getattr__`: its submodules, and what torch's module of this name has besides."""
    def getattr_refusing(name):
        if f"{torch_name(module)}.{name}" in distributed_names():
            return importlib.import_module(f"{module}.{name}")
        if name in distributed_names().get(torch_name(module), ()):
            return _choice(module, name) or _stand_in(module, name)
        raise_missing(module, name)
    return getattr_refusing


class _RefusingModule:
    """Makes a module of nothing but such names."""

    def create_module(self, spec):
        module = types.ModuleType(spec.name, "A module of torch.distributed that is not here: what it has can be asked for.")
        module.__path__, module.__getattr__ = [], refusing_names(spec.name)
        return module

    def exec_module(self, module):
        """All is there."""


def refusing_spec(name):
    """That of a module of torch.distributed that is not written here, or None: `umbra.distributed.fsdp.wrap`."""
    if torch_name(name) not in distributed_names():
        return None
    return ModuleSpec(name, _RefusingModule(), is_package=True)
