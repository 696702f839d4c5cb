"""Freezing: parameters and attributes become constants of a module's methods."""
import warnings

from umbra import _C
from umbra._options import not_built
from umbra.jit._script_module import ScriptModule, wrap_object


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a module in evaluation mode whose methods have its tensors as constants; results are the same."""
    _deprecated_freeze()
    if not isinstance(optimize_numerics, bool):  # either way: no pass here changes numbers
        raise TypeError("optimize_numerics has to be a bool")
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    preserved = [*(preserved_attrs or ())]
    return wrap_object(_C._jit_freeze(mod._c, preserved))


def _deprecated_freeze():
    warnings.warn("`torch.jit.freeze` is deprecated. Please use `torch.compile` instead.", FutureWarning, stacklevel=3)


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Has nothing to do: frozen modules run as they are."""
    not_built("torch.jit.run_frozen_optimizations", optimize_numerics=(bool(optimize_numerics), True), preserved_methods=(preserved_methods, None))
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("a ScriptModule is expected")


def optimize_for_inference(mod, other_methods=None):
    """The frozen module; there are no further passes."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    if not hasattr(mod, "training"):  # frozen already
        return mod
    return freeze(mod.eval() if mod.training else mod, other_methods)
