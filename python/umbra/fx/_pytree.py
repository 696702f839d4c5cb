"""Nested arguments of graphs."""
from umbra.utils import _pytree as pytree


def tree_flatten_spec(tree, spec):
    """The leaves of a tree that has to have the structure of `spec`; dicts may have their keys in another order."""
    return spec.flatten_up_to(tree) if not spec.is_leaf() else [tree]


def tree_flatten(tree):
    return pytree.tree_flatten(tree)
