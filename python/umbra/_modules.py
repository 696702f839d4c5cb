"""What a module does when it is asked for a name that it does not have: load a submodule, find an operator, or say what is missing.

Every module here that torch has too says of torch's other names that they are not in Umbra yet; `_torch_names.txt` lists them. `_torch_all.txt` has what
`from module import *` gives in torch.
"""
import dis
import functools
import importlib
import importlib.machinery
import os
import sys

from umbra import _C


class NotInUmbraYet(AttributeError):
    """A name of torch's that Umbra does not have. An AttributeError, so that hasattr() says no."""


def _lines(file_name):
    """What the lists of torch's names hold: a line is a module and its names."""
    with open(os.path.join(os.path.dirname(__file__), file_name)) as file:
        return [line.split() for line in file if not line.startswith("#")]


@functools.cache
def torch_names():
    """PyTorch's public names by module, `torch.Tensor` among them: {"torch.fft": {"fft", ...}, ...}."""
    return {module: frozenset(names) for module, *names in _lines("_torch_names.txt")}


@functools.cache
def _names_of_all():
    """The `__all__` of torch's modules, of those that have one."""
    return {module: names for module, *names in _lines("_torch_all.txt")}


def names_for_star(module):
    """What `from module import *` gives: the names of torch's `__all__` that are here."""
    return [name for name in _names_of_all()[torch_name(module)] if hasattr(sys.modules[module], name)]


@functools.cache
def _classes():
    """The classes among them, by the module they are in."""
    classes = {}
    for path in torch_names():
        owner, _, last = path.rpartition(".")
        if last[0].isupper():
            classes.setdefault(owner, []).append(path)
    return classes


def torch_name(module):
    """`torch.nn` for `umbra.nn`."""
    return "torch" + module.removeprefix("umbra")


def is_module_of_torch(name):
    """Whether torch has a module of this name, which an operator (`aten::random`) must not hide."""
    return f"torch.{name}" in torch_names()


def _is_import(frame):
    """Whether a frame is at `from module import name`."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _asking_frame():
    """The frame that asks a module for a name, which its `__getattr__` hands to raise_missing()."""
    frame = sys._getframe(3)
    return frame.f_back if frame.f_code.co_name == "getattr_with_all" else frame


def raise_missing(module, name):
    """For a module's `__getattr__`: the error for a name that is not there."""
    text = f"{torch_name(module)}.{name} is not in Umbra yet"
    known = name in torch_names().get(torch_name(module), ())
    if not known:
        text = f"module '{module}' has no attribute '{name}'"
    elif _is_import(_asking_frame()):
        # Python replaces the text of an AttributeError here.
        raise ImportError(f"cannot import name '{name}' from '{torch_name(module)}': {text}", name=module) from None
    raise (NotInUmbraYet if known else AttributeError)(text, name=name, obj=sys.modules.get(module)) from None


_OPTIONAL = {"lazy_submodules", "tensorboard"}  # no name of torch's; what needs another package


def names_of(package, others=()):
    """What `dir(package)` says: the names that are there, and the submodules and others that are loaded on demand."""
    module = sys.modules[package]
    with_parts = (part for folder in module.__path__ for part in os.listdir(folder))
    parts = {part.partition(".")[0] for part in with_parts if part.endswith(".py") or "." not in part}
    shown = {part for part in parts if not part.startswith("_")} | set(others)
    return sorted({*vars(module), *shown} - _OPTIONAL)


def lazy_submodules(package):
    """A module's `__getattr__` that imports `package.name` on demand; `dir(package)` knows these names, too."""
    sys.modules[package].__dir__ = lambda: names_of(package)

    def getattr_module(name):
        if not name.startswith("__"):
            try:
                return importlib.import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        raise_missing(package, name)
    return getattr_module


def add_operators(module, names, prefix=""):
    """Puts the operators `prefix` + name into a module, under their names."""
    for name in names:
        if _C._overload_names(f"aten::{prefix}{name}"):
            setattr(sys.modules[module], name, _C._find_function(f"aten::{prefix}{name}", 1))


class _MissingMethod:
    """Stands on a class for a method that torch has and Umbra has not."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def __get__(self, instance, owner=None):
        raise NotInUmbraYet(f"{self.owner}.{self.name} is not in Umbra yet", name=self.name, obj=instance)


def raise_missing_method(cls, name):
    """For a class's own `__getattr__`: the error, if the name is that of a missing method."""
    for base in cls.__mro__:
        if isinstance(base.__dict__.get(name), _MissingMethod):
            base.__dict__[name].__get__(None)


def mark_missing_methods(module):
    """Marks the missing methods of those of a module's classes that torch's list has."""
    for path in _classes().get(torch_name(module.__name__), ()):
        cls = getattr(module, path.rpartition(".")[2])
        for name in torch_names()[path]:
            if not hasattr(cls, name):
                setattr(cls, name, _MissingMethod(path, name))


def hide_other_methods(cls, path):
    """Takes from a class the operators that are no methods in torch: code asks `hasattr(x, "copy")` to tell tensors from arrays."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, _C.Method) and not name.startswith("_") and name not in torch_names()[path]:
            delattr(cls, name)


# ---- modules: those that are here, and those that are not ----

def _getattr_of(module):
    """The `__getattr__` of a module that has none of its own."""
    if module.startswith("umbra.distributed."):
        from umbra.distributed._refusals import refusing_names
        return refusing_names(module)

    def getattr_missing(name):
        raise_missing(module, name)
    return getattr_missing


def _with_all(module, find):
    """A module's `__getattr__` that knows `__all__` besides. It is asked for, since it takes names that are loaded on demand."""
    def getattr_with_all(name):
        return names_for_star(module) if name == "__all__" else find(name)
    return getattr_with_all


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        mark_missing_methods(module)
        find = module.__dict__.get("__getattr__") or _getattr_of(module.__name__)
        if "__all__" not in module.__dict__ and torch_name(module.__name__) in _names_of_all():
            find = _with_all(module.__name__, find)
        module.__getattr__ = find


def _is_probe():
    """Whether importlib.util.find_spec asks, which wants None for an answer."""
    frame = sys._getframe(3)
    return frame.f_code.co_filename.endswith(("importlib.util>", "importlib/util.py"))


class _Finder:
    def find_spec(self, name, path=None, target=None):
        root, _, rest = name.partition(".")
        if not rest or not (root == "umbra" or root == "torch" and sys.modules.get("torch") is sys.modules["umbra"]):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path) if root == "umbra" else None
        if spec is None:
            torch_module = "torch." + rest
            if root == "umbra" and rest.startswith("distributed.") and not rest.startswith("distributed._refusals"):
                from umbra.distributed._refusals import refusing_spec
                return refusing_spec(name)
            if torch_module in torch_names() and not _is_probe():
                raise ModuleNotFoundError(f"{torch_module} is not in Umbra yet", name=name)
            return None
        if type(spec.loader) is importlib.machinery.SourceFileLoader and torch_name(name) in torch_names():
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install_finder():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
