"""vmap under the names that it had before torch.func."""
from umbra._options import not_built
from umbra.func import vmap  # noqa: F401
from umbra.utils import _pytree


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """vmap of a function some of whose results may be None, which stay so, if that is allowed."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)
    not_built("torch._vmap_internals._vmap", out_dims=(out_dims, 0))

    def mapped(*args):
        found = []

        def tensors_of(*one):
            leaves, spec = _pytree.tree_flatten(func(*one))
            found.append((leaves, spec))
            return tuple(leaf for leaf in leaves if leaf is not None)
        batched = iter(vmap(tensors_of, in_dims)(*args))
        leaves, spec = found[0]
        return _pytree.tree_unflatten([None if leaf is None else next(batched) for leaf in leaves], spec)
    return mapped
