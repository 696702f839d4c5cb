"""Dimensions split, joined and moved by a pattern of their names."""
import math
import re

import umbra

_ELLIPSIS = "..."


def _side(text, pattern):
    """One side of a pattern as a list: names, and tuples of the names that stand in parentheses."""
    groups, open_group = [], None
    for token in re.findall(r"\.\.\.|\(|\)|[^\s()]+", text):
        if token == "(":
            if open_group is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            open_group = []
        elif token == ")":
            if open_group is None:
                raise ValueError(f"Invalid pattern '{pattern}': unbalanced parentheses")
            groups.append(tuple(open_group))
            open_group = None
        elif token not in (_ELLIPSIS, "1") and not token.isidentifier():
            raise ValueError(f"Invalid axis identifier '{token}' in pattern '{pattern}'")
        elif open_group is not None:
            open_group.append(token)
        else:
            groups.append(token)
    if open_group is not None:
        raise ValueError(f"Invalid pattern '{pattern}': unbalanced parentheses")
    return groups


def _names(groups):
    return [name for group in groups for name in (group if isinstance(group, tuple) else (group,)) if name != "1"]


def _parse(pattern):
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_side(text, pattern) for text in pattern.split("->"))
    for groups in (left, right):
        for name in _names(groups):
            if _names(groups).count(name) > 1:
                raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    if set(_names(left)) != set(_names(right)):
        raise ValueError("Identifiers only on one side of rearrange expression (should be on both): "
                         f"{set(_names(left)) ^ set(_names(right))}")
    return left, right


def _sizes_of(group, size, known):
    """The sizes of the names in a group that stands for a dimension; one of them may follow from the others."""
    unknown = [name for name in group if name != "1" and name not in known]
    if len(unknown) > 1:
        raise ValueError(f"Could not infer sizes for {unknown}")
    rest = math.prod(known.get(name, 1) for name in group)
    if unknown:
        if rest == 0 or size % rest:
            raise ValueError(f"Shape mismatch: {size} can't be divided by {rest}")
        known = {**known, unknown[0]: size // rest}
    elif rest != size:
        raise ValueError(f"Shape mismatch: {size} != {rest} for {group}")
    return known


def _dimensions(groups, dots):
    """The names that each dimension of a side is made of, those that the dots stand for among them."""
    def spread(names):
        return [x for name in names for x in (dots if name == _ELLIPSIS else [name])]

    out = []
    for group in groups:
        out += [[name] for name in dots] if group == _ELLIPSIS else [spread(group if isinstance(group, tuple) else (group,))]
    return out


def rearrange(tensor, pattern, **axes_lengths):
    """Moves, joins and splits dimensions: `rearrange(images, "b (h s) w c -> b c h (s w)", s=2)`. A list of tensors is stacked first."""
    if isinstance(tensor, (list, tuple)):
        tensor = umbra.stack(list(tensor))
    left, right = _parse(pattern)
    unused = axes_lengths.keys() - set(_names(left))
    if unused:
        raise ValueError(f"Identifiers not found in rearrange expression: {set(unused)}")
    many = tensor.dim() - sum(group != _ELLIPSIS for group in left)  # dimensions that the dots stand for
    if many < 0 or many > 0 and _ELLIPSIS not in left:
        raise ValueError(f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor ({tensor.dim()})")
    dots = [f"...{i}" for i in range(many)]
    known, flat = dict(axes_lengths), []
    for names, size in zip(_dimensions(left, dots), tensor.shape):
        known = _sizes_of(names, size, known)
        flat += [name for name in names if name != "1"]
    targets = _dimensions(right, dots)
    moved = tensor.reshape([known[name] for name in flat]).permute([flat.index(name) for names in targets for name in names if name != "1"])
    return moved.reshape([math.prod(known.get(name, 1) for name in names) for names in targets])
