"""functionalize: a function without mutation and aliasing inside."""
from umbra import _C
from umbra.func.wrappers import same_name
from umbra.utils import _pytree as pytree


def functionalize(func, *, remove="mutations"):
    """`func` without mutation and aliasing inside; inputs that it writes are written by one copy each at the end. With `remove="mutations_and_views"`
    views become copies (`view_copy` and its like), so that nothing in the program shares memory."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
                           "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with "
                           "their out-of-place equivalents.\n     remove='mutations_and_views': In addition to the above, all aliasing "
                           "operators {view} will be replaced with their non-aliasing counterparts, {view}_copy.\n")

    @same_name(func)
    def call(*args, **kwargs):
        return _run(func, args, kwargs, False, copy_views=remove == "mutations_and_views")
    return call


def _run(func, args, kwargs, whole_composites, copy_views=False):
    """`whole_composites`: operators that are made of others are called as they are, where they neither write nor give views."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    result_spec = None

    def run(flat):
        nonlocal result_spec
        given, named = pytree.tree_unflatten(flat, spec)
        results, result_spec = pytree.tree_flatten(func(*given, **named))
        return results
    results = _C._functionalize(run, leaves, whole_composites, copy_views)
    return pytree.tree_unflatten(results, result_spec)
