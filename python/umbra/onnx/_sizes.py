"""Which sizes may vary, in the ways that torch.onnx.export takes it."""
import inspect

from umbra import Tensor
from umbra.export import Dim
from umbra.utils import _pytree


def bound(model, args, kwargs):
    """The arguments by the names of their parameters, in their order."""
    return inspect.signature(getattr(model, "forward", model)).bind(*args, **(kwargs or {})).arguments


def from_axes(arguments, dynamic_axes, input_names, output_names):
    """dynamic_axes (names of inputs to axes, with or without names for these) as dynamic_shapes."""
    leaves, spec = _pytree.tree_flatten(dict(arguments))
    names = _names_of_leaves(arguments, input_names or ())
    unknown = [name for name in dynamic_axes if name not in names and name not in (output_names or ())]
    if unknown:
        raise ValueError(f"dynamic_axes has names that are no inputs or outputs: {unknown}")
    shapes = [_axes(dynamic_axes.get(name)) for name in names]
    return _pytree.tree_unflatten(shapes, spec) if leaves else None


def _names_of_leaves(arguments, input_names):
    """What each tensor is called: by the caller, or as its parameter."""
    names, given = [], iter(input_names)
    for parameter, value in arguments.items():
        for leaf in _pytree.tree_leaves(value):
            names.append(next(given, parameter) if isinstance(leaf, Tensor) else None)
    return names


def _axes(axes):
    if axes is None:
        return None
    if not isinstance(axes, (dict, list)):
        raise ValueError("Unsupported dynamic_axes format. Please provide a dict or a list.")
    if any(not isinstance(axis, int) for axis in axes):
        raise ValueError("The axis in dynamic_axes must be in the form of: dict[int, str] or list[int].")
    return dict(axes) if isinstance(axes, dict) else dict.fromkeys(axes, Dim.DYNAMIC)


def without_names(shapes):
    """dynamic_shapes as torch.export takes them: a size that has only a name is one that varies."""
    if isinstance(shapes, str):
        return Dim.DYNAMIC
    if isinstance(shapes, dict):
        return {key: without_names(value) for key, value in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        return type(shapes)(without_names(value) for value in shapes)
    return shapes


def names_of_axes(arguments, shapes):
    """For each leaf of the arguments, the names of its axes that have one."""
    if isinstance(shapes, dict):
        pairs = [(value, shapes.get(name)) for name, value in arguments.items()]
    else:
        pairs = [(value, shapes[i] if shapes and i < len(shapes) else None) for i, value in enumerate(arguments.values())]
    return [names for value, part in pairs for names in _leaf_names(value, part)]


def _leaf_names(value, shapes):
    children = _children(value, shapes)
    if children is None:
        axes = shapes.items() if isinstance(shapes, dict) else enumerate(shapes or ())
        return [{axis: name for axis, dim in axes if (name := dim if isinstance(dim, str) else getattr(dim, "__name__", None))}]
    return [names for child, part in children for names in _leaf_names(child, part)]


def _children(value, shapes):
    """What a container holds, each beside its shapes; None for a leaf. Containers of other kinds have no names."""
    if isinstance(value, dict):
        return [(child, shapes.get(key) if isinstance(shapes, dict) else None) for key, child in value.items()]
    if isinstance(value, (list, tuple)):
        return [(child, shapes[i] if shapes else None) for i, child in enumerate(value)]
    leaves = _pytree.tree_leaves(value)
    return None if len(leaves) == 1 and leaves[0] is value else [(leaf, None) for leaf in leaves]
