"""What the transforms share: levels as scopes, and trees of tensors in and out of them."""
from umbra import _C
from umbra._C import Tensor
from umbra.utils import _pytree as pytree


def map_tensors(function, tree):
    """`function` of each tensor of a tree; other leaves stay."""
    return pytree.tree_map(lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def name_of(function):
    """How messages call a function."""
    return getattr(function, "__name__", None) or repr(function)


def same_name(function):
    """Gives what a transform makes of a function the function's name, documentation and annotations."""
    def apply(call):
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
            value = getattr(function, attribute, None)
            if value is not None:
                setattr(call, attribute, value)
        call.__wrapped__ = function
        return call
    return apply


def debug_unwrap(tensor, *, recurse=True):
    """The tensor inside a transform's wrapper, for looking at; with `recurse`, inside all of them."""
    while (facts := _C._describe_wrapper(tensor)) is not None:
        tensor = facts[3]
        if not recurse:
            break
    return tensor
