"""functorch's names. Its transforms are those of torch.func, and warn that they are found there."""
import functools
import warnings

from umbra import func
from umbra._functorch.make_functional import (FunctionalModule, FunctionalModuleWithBuffers, combine_state_for_ensemble,  # noqa: F401
                                              make_functional, make_functional_with_buffers)
from umbra._modules import lazy_submodules
from umbra.func import jvp  # noqa: F401  (which does not warn)
from umbra.fx.experimental.proxy_tensor import make_fx  # noqa: F401



def _deprecated(name, home):
    transform = getattr(func, name)

    @functools.wraps(transform)
    def forward(*args, **kwargs):
        warnings.warn(f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated as of PyTorch 2.0 "
                      f"and will be deleted in a future version of PyTorch >= 2.3. Please use `{home}.{name}` instead; see the PyTorch 2.0 release notes "
                      "and/or the `torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
                      FutureWarning, stacklevel=2)
        return transform(*args, **kwargs)
    return forward


vmap = _deprecated("vmap", "torch")
functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, vjp = (
    _deprecated(_name, "torch.func") for _name in ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "vjp"))

__getattr__ = lazy_submodules(__name__)
