"""functorch's experiments."""
from umbra._modules import lazy_submodules
from umbra.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_  # noqa: F401
from umbra.func.vmapping import chunk_vmap  # noqa: F401

__getattr__ = lazy_submodules(__name__)
