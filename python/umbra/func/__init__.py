"""Transforms of functions."""
import functools

from umbra import _C
from umbra.nn.utils.stateless import functional_call  # noqa: F401
from umbra.utils import _pytree as pytree


def functionalize(func, *, remove="mutations"):
    """`func` without mutation and aliasing inside; inputs that it writes are written by one copy each at the end."""
    if remove == "mutations_and_views":
        raise NotImplementedError("functionalize(remove='mutations_and_views'): graphs of *_copy operators are not made yet; views stay views")
    if remove != "mutations":
        raise RuntimeError(f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
                           "     remove=\"mutations\": all inplace and out= operators will be removed from the program, and replaced with "
                           "their out-of-place equivalents.\n     remove=\"mutations_and_views\": In addition to the above, all aliasing "
                           "operators {view} will be replaced with their non-aliasing counterparts, {view}_copy.\n")

    @functools.wraps(func) if hasattr(func, "__name__") else lambda call: call
    def call(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        result_spec = None

        def run(flat):
            nonlocal result_spec
            given, named = pytree.tree_unflatten(flat, spec)
            results, result_spec = pytree.tree_flatten(func(*given, **named))
            return results
        results = _C._functionalize(run, leaves)
        return pytree.tree_unflatten(results, result_spec)
    return call


def _differentiable(tree):
    return pytree.tree_map(lambda t: t.detach().requires_grad_() if hasattr(t, "requires_grad_") else t, tree)


def vjp(func, *primals, has_aux=False):
    """`func(*primals)` and the function from cotangents of the result to gradients of the primals."""
    import umbra
    with umbra.enable_grad():
        tracked = _differentiable(primals)
        result = func(*tracked)
        output, aux = result if has_aux else (result, None)
    outputs, _ = pytree.tree_flatten(output)
    leaves, spec = pytree.tree_flatten(tracked)

    def pull_back(cotangents, retain_graph=True, create_graph=None):
        grads = umbra.autograd.grad(outputs, leaves, pytree.tree_leaves(cotangents), retain_graph=True, create_graph=umbra.is_grad_enabled(),
                                    allow_unused=True)
        return spec.unflatten([umbra.zeros_like(p) if g is None else g for g, p in zip(grads, leaves)])
    plain = pytree.tree_map(lambda t: t.detach() if hasattr(t, "detach") else t, output)
    return (plain, pull_back, aux) if has_aux else (plain, pull_back)


def grad_and_value(func, argnums=0, has_aux=False):
    import umbra
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def call(*args, **kwargs):
        outer = umbra.is_grad_enabled()
        with umbra.enable_grad():
            given = list(args)
            for i in positions:
                given[i] = pytree.tree_map(lambda t: (t.view_as(t) if t.requires_grad else t.detach().requires_grad_()), args[i])
            result = func(*given, **kwargs)
            output, aux = result if has_aux else (result, None)
            if output.dim() != 0:
                raise RuntimeError(f"Expected f(*args) to return a scalar tensor, got tensor with {output.dim()} dims. Maybe you wanted to use the vjp "
                                   "or jacrev APIs instead?")
            wanted = given[argnums] if isinstance(argnums, int) else tuple(given[i] for i in positions)
            leaves, spec = pytree.tree_flatten(wanted)
            nested = any(leaf.requires_grad for leaf in pytree.tree_leaves(args) if hasattr(leaf, "requires_grad"))
            grads = umbra.autograd.grad([output], leaves, create_graph=nested and outer, allow_unused=True)
        gradients = spec.unflatten([umbra.zeros_like(p) if g is None else g for g, p in zip(grads, leaves)])
        output = output if nested else output.detach()
        return (gradients, (output, aux)) if has_aux else (gradients, output)
    return call


def grad(func, argnums=0, has_aux=False):
    """The gradient of a function with a scalar result."""
    both = grad_and_value(func, argnums, has_aux)

    def call(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients
    return call


def jacrev(func, argnums=0, *, has_aux=False):
    """The Jacobian, a row for each element of the result."""
    import umbra

    def call(*args):
        given = list(args)
        x = given[argnums]

        def of_argument(value):
            given[argnums] = value
            return func(*given)
        output, pull_back = vjp(of_argument, x)
        rows = []
        for i in range(output.numel()):
            unit = umbra.zeros(output.numel(), dtype=output.dtype)
            unit[i] = 1
            rows.append(pull_back(unit.reshape(output.shape))[0])
        return umbra.stack(rows).reshape((*output.shape, *x.shape)) if rows else umbra.zeros((*output.shape, *x.shape))
    return call
