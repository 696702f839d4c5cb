"""Transforms of functions: derivatives, batching, functional modules. Levels and rules are C++ (umbra/transform)."""
from umbra.func._rearrange import rearrange  # noqa: F401
from umbra.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp  # noqa: F401
from umbra.func.functionalization import functionalize  # noqa: F401
from umbra.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state  # noqa: F401
from umbra.func.vmapping import vmap  # noqa: F401
from umbra.func.wrappers import debug_unwrap  # noqa: F401

__all__ = [
    "grad", "grad_and_value", "vmap", "replace_all_batch_norm_modules_", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "vjp", "functional_call", "stack_module_state", "debug_unwrap", "rearrange",
]
