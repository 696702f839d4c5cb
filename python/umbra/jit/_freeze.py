"""Freezing: parameters and attributes become constants of a module's methods."""
import warnings

from umbra import _C
from umbra._options import not_built
from umbra.jit._script_module import ScriptModule, wrap_object


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a module in evaluation mode whose methods have its tensors as constants; results are the same."""
    _deprecated_freeze()
    not_built("torch.jit.freeze", optimize_numerics=(bool(optimize_numerics), True))
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
    not_built("torch.jit.optimize_for_inference", other_methods=(other_methods, None))
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    return freeze(mod.eval()) if mod.training else freeze(mod)
