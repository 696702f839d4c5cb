"""Nested arguments of graphs."""
from umbra.utils import _pytree as pytree

_flatteners = {}  # how an object of a class comes apart along a structure; also where it is a Proxy


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """How graphs take an object of a class apart: `flatten_fn_spec(object, spec)` gives its children, `flatten_fn_exact_match_spec(object, spec)` says
    whether it has those children and no others."""
    _flatteners[cls] = flatten_fn_spec, flatten_fn_exact_match_spec


register_pytree_flatten_spec(dict, lambda tree, spec: [tree[key] for key in spec.context], lambda tree, spec: len(tree) == len(spec.children()))
for _cls in (list, tuple):
    register_pytree_flatten_spec(_cls, lambda tree, spec: [tree[i] for i in range(len(spec.children()))], lambda tree, spec: len(tree) == len(spec.children()))


def _flattener(spec):
    if spec.type in _flatteners:
        return _flatteners[spec.type]
    if hasattr(spec.type, "_fields") or getattr(spec.type, "__name__", "") == "namedtuple":  # a named tuple
        return _flatteners[tuple]
    raise RuntimeError(f"{spec.type} does not have a flatten_fn_spec associated with it. Please register one with "
                       "torch.fx._pytree.register_pytree_flatten_spec. If you have serialized your model, make sure that any custom pytrees have been "
                       "registered before loading it.")


def tree_flatten_spec(tree, spec):
    """The leaves of a tree, or of a Proxy for one, that has the structure of `spec`."""
    if spec.is_leaf():
        return [tree]
    flatten, matches = _flattener(spec)
    children = flatten(tree, spec)  # an error of Python's where an entry is missing
    if isinstance(tree, (dict, list, tuple)) and matches is not None and not matches(tree, spec):
        raise ValueError(f"the graph was made for {spec}, which {len(tree)} entries are not")
    return [leaf for child, child_spec in zip(children, spec.children()) for leaf in tree_flatten_spec(child, child_spec)]


def tree_flatten(tree):
    return pytree.tree_flatten(tree)
