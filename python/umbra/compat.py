"""Umbra under torch's own module names, for code that was written for torch.

    import umbra
    umbra.compat.install()
    import torch                                   # is umbra
    from torch.export import export, Dim           # is umbra.export
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys

# Where a torch name leads: torch.x is umbra.x, functorch.x is umbra.functorch.x.
_ROOTS = {"torch": "umbra", "functorch": "umbra.functorch"}
# Modules that torch has inside its extension module, which is no package: they have to stand ready.
_INSIDE_THE_EXTENSION = {"torch._C._functorch": "umbra._functorch.levels"}


def _target(name):
    root, _, rest = name.partition(".")
    if root not in _ROOTS:
        return None
    return _ROOTS[root] + ("." + rest if rest else "")


class _AliasLoader(importlib.abc.Loader):
    """Gives the module that exists already under its own name; its spec stays its own."""

    def __init__(self, target):
        self._target = target

    def create_module(self, spec):
        module = importlib.import_module(self._target)
        self._own_spec = module.__spec__
        _serve_loaded(self._target + ".", spec.name + ".")
        return module

    def exec_module(self, module):
        module.__spec__ = self._own_spec


class _AliasFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        target = _target(name)
        if target is None:
            return None
        try:
            found = importlib.util.find_spec(target)
        except ModuleNotFoundError:
            found = None
        if found is None and target not in sys.modules:
            return None
        is_package = found is not None and found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(name, _AliasLoader(target), is_package=is_package)


    def find_distributions(self, context):
        """What importlib.metadata says of torch: packages ask it for the version."""
        if context.name == "torch":
            yield _TorchDistribution()


class _TorchDistribution(importlib.metadata.Distribution):
    def read_text(self, filename):
        from umbra import version
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version.__version__}\nSummary: Umbra under the name of torch\n"

    def locate_file(self, path):
        import os
        return os.path.join(os.path.dirname(os.path.dirname(__file__)), path)


_finder = _AliasFinder()


# Classes of the extension module that torch has at its top: packages tell tensors by the module of their class.
_CLASSES_AT_THE_TOP = ("Tensor", "dtype", "device", "Size", "Generator", "layout", "memory_format", "finfo", "iinfo", "SymInt", "SymFloat", "SymBool")


# Those of tensors that are written in Python: packages look where the class of what they are given comes from.
_CLASSES_OF_PARAMETERS = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")


def _name_classes(umbra, module):
    for name in _CLASSES_AT_THE_TOP:
        getattr(umbra, name).__module__ = module
    for name in _CLASSES_OF_PARAMETERS:
        getattr(umbra.nn.parameter, name).__module__ = f"{module}.nn.parameter"


def _serve_loaded(own, name):
    """Modules that are loaded already, under their other names too: an import would put them into their packages, where torch.export.unflatten, say,
    is a function."""
    for loaded, module in list(sys.modules.items()):
        if loaded.startswith(own):
            sys.modules.setdefault(name + loaded[len(own):], module)


def install():
    """Serves umbra as torch and functorch from now on. An error where the real torch is loaded already."""
    import umbra
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not umbra:
        raise RuntimeError("umbra.compat.install(): the real torch is loaded already; call install() before it is imported")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    sys.modules["torch"] = umbra
    _serve_loaded("umbra.", "torch.")
    for name, target in _INSIDE_THE_EXTENSION.items():
        sys.modules[name] = importlib.import_module(target)
    umbra.__name__ = "torch"  # some packages compare it
    _name_classes(umbra, "torch")


def uninstall():
    """Takes the names back; modules that were imported under them stay as they are for those who hold them."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    sys.modules["umbra"].__name__ = "umbra"
    _name_classes(sys.modules["umbra"], "umbra")
    for name in [n for n in sys.modules if n.partition(".")[0] in _ROOTS]:
        del sys.modules[name]
