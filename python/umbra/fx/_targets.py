"""Functions that graphs call besides operators: from their names to Python's functions and back."""
import importlib
import operator
import sys

from umbra._ops import OpOverloadPacket

_ROOTS = {"torch": "umbra", "_operator": "operator", "operator": "operator", "math": "math", "builtins": "builtins"}
_known = {}
# What PyTorch has among the built-in functions of networks, and not among those of tensors.
_OF_NN = ("avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "one_hot", "scaled_dot_product_attention", "softplus",
          "softshrink")
_WRITING = [getattr(operator, name) for name in dir(operator) if name in ("setitem", "delitem") or (name[0] == "i" and hasattr(operator, name[1:]))]
_EFFECTS = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "normal", "multinomial", "dropout",
            "manual_seed", "set_grad_enabled", "_assert", "_assert_is_none", "_assert_async", "_check", "_check_is_size", "_check_value")


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


def has_side_effects(function):
    """Whether a call stays in a graph though nobody uses its result."""
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None) or ""
    if module.startswith("umbra"):
        return name in _EFFECTS or (name.endswith("_") and not name.endswith("__"))
    return function in _WRITING


def _home(function, name):
    """The module of PyTorch's that a function of the package is found in, where it is written in another one here."""
    for home in ("torch.functional", "torch.nn.functional", "torch"):
        if getattr(sys.modules.get("umbra" + home.removeprefix("torch")), name, None) is function:
            return home
    return None


def name_of(function):
    """What graphs call a Python function; the function is remembered under it."""
    if isinstance(function, NamedFunction):
        return function._full_name
    if isinstance(function, OpOverloadPacket):
        return function.__qualname__
    module = getattr(function, "__module__", None) or "builtins"
    base = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    if "<locals>" in base:
        base = function.__name__
    if getattr(operator, base, None) is function:
        module = "operator"
    elif base in _OF_NN and getattr(sys.modules["umbra"]._C._nn, base, None) is function:
        module = "torch._C._nn"
    elif module.startswith("umbra.") and (home := _home(function, base)) is not None:
        module = home
    elif module == "umbra" or module.startswith("umbra."):
        module = "torch" + module.removeprefix("umbra")
    name = f"{module}.{base}"
    if _known.setdefault(name, function) is not function:
        name = f"{name}_{id(function):x}"
        _known[name] = function
    return name
