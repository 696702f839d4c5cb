"""Structures of arguments: keywords in the order of a program, and structures that are alike."""


def reorder_kwargs(user_kwargs, spec):
    """The keyword arguments of a call in the order that a program's structure of arguments, `((*args), {**kwargs})`, has them in."""
    keywords = spec.child(1).context
    if set(keywords) != set(user_kwargs):
        raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(user_kwargs)} but expected {keywords}")
    return {name: user_kwargs[name] for name in keywords}


def is_equivalent(spec1, spec2, equivalence_fn):
    """Whether two structures have the same form, where `equivalence_fn(type1, context1, type2, context2)` says whether two containers count as one kind."""
    if not equivalence_fn(spec1.type, spec1.context, spec2.type, spec2.context) or spec1.num_children != spec2.num_children:
        return False
    return all(is_equivalent(one, other, equivalence_fn) for one, other in zip(spec1.children_specs, spec2.children_specs))
