"""functorch's names."""
from umbra._functorch.make_functional import (FunctionalModule, FunctionalModuleWithBuffers, combine_state_for_ensemble,  # noqa: F401
                                              make_functional, make_functional_with_buffers)
from umbra._modules import lazy_submodules
from umbra.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap  # noqa: F401
from umbra.fx.experimental.proxy_tensor import make_fx  # noqa: F401

__getattr__ = lazy_submodules(__name__)
