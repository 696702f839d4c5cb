"""Functions that graphs call besides operators: from their names to Python's functions and back."""
import importlib
import operator

_ROOTS = {"torch": "umbra", "_operator": "operator", "operator": "operator", "math": "math", "builtins": "builtins"}
_known = {}


class NamedFunction:
    """A function that a graph names and this process does not have: it can be printed, not called."""

    def __init__(self, name):
        self.__module__, _, self.__name__ = name.rpartition(".")
        self.__qualname__ = self.__name__
        self._full_name = name

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self._full_name} cannot be called here")

    def __repr__(self):
        return self._full_name


def resolve(name):
    """The Python function that a graph calls `name`: operator.getitem, torch.sym_max, torch.ops.higher_order.cond."""
    if name not in _known:
        _known[name] = _find(name)
    return _known[name]


def _find(name):
    first, *rest = name.split(".")
    try:
        value = importlib.import_module(_ROOTS.get(first, first)) if rest else getattr(importlib.import_module("builtins"), first)
        for part in rest:
            value = getattr(value, part)
        return value
    except (ImportError, AttributeError):
        return NamedFunction(name)


def name_of(function):
    """What graphs call a Python function; the function is remembered under it."""
    if isinstance(function, NamedFunction):
        return function._full_name
    module = getattr(function, "__module__", None) or "builtins"
    base = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    if getattr(operator, base, None) is function:
        module = "operator"
    elif module == "umbra" or module.startswith("umbra."):
        module = "torch" + module.removeprefix("umbra")
    name = f"{module}.{base}"
    if _known.setdefault(name, function) is not function:
        name = f"{name}_{id(function):x}"
        _known[name] = function
    return name
