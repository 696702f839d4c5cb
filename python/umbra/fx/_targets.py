"""Functions that graphs call besides operators: from their names to Python's functions and back."""
import importlib
import inspect
import operator
import sys
import types

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


# Where PyTorch has functions of the package that are written, or found first, in another module here.
_HOMES = {"_lowrank": ("pca_lowrank", "svd_lowrank"), "random": ("get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"),
          "_linalg_utils": ("eig", "lstsq", "matrix_rank", "solve"), "_tensor_str": ("set_printoptions",), "nn.functional": ("pad",),
          "nn.utils.convert_parameters": ("parameters_to_vector", "vector_to_parameters"), "utils.dlpack": ("from_dlpack",),
          "_higher_order_ops.while_loop": ("while_loop",)}
_HOME_OF = {name: "torch." + home for home, names in _HOMES.items() for name in names}


def _home(function, name, module):
    """The module of PyTorch's that a function of the package is found in, where it is written in another one here."""
    area = name.partition("_")[0]
    if module == "umbra" and area in ("linalg", "fft", "special") and area != name:
        return f"torch._C._{area}"
    if name in _HOME_OF and _is_found(function, name, "umbra", "umbra.nn.functional", "umbra.nn.utils"):
        return _HOME_OF[name]
    if module == "umbra":
        return None
    if module.startswith("umbra.func."):
        return "torch.func"
    homes = ("torch.functional", "torch.nn.functional", "torch")
    return next((home for home in homes if _is_found(function, name, "umbra" + home.removeprefix("torch"))), None)


def _is_found(function, name, *modules):
    return any(_are_one(getattr(sys.modules.get(module), name, None), function) for module in modules)


def _are_one(function, other):
    """Whether they are the same, or one is the other made known to classes and modes of users."""
    if function is None or other is None:
        return False
    return function is other or getattr(function, "__wrapped__", None) is other or getattr(other, "__wrapped__", None) is function


def _lambda_name(function):
    """What a lambda is assigned to where it is written, since a graph's source has to name it."""
    try:
        return inspect.getsource(function).split("=")[0].strip()
    except (OSError, TypeError) as error:
        raise RuntimeError("Unable to represent lambda") from error


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
    if base == "<lambda>" and isinstance(function, types.FunctionType):
        base = _lambda_name(function)
    if getattr(operator, base, None) is function:
        module = "operator"
    elif base in _OF_NN and getattr(sys.modules["umbra"]._C._nn, base, None) is function:
        module = "torch._C._nn"
    elif module == "umbra" or module.startswith("umbra."):
        module = _home(function, base, module) or "torch" + module.removeprefix("umbra")
    name = f"{module}.{base}"
    if not _are_one(_known.setdefault(name, function), function):
        name = f"{name}_{id(function):x}"
        _known[name] = function
    return name
