"""Objects of dataclasses among the arguments and results of compiled functions: taken apart into their attributes, they are trees like lists and dicts."""
import collections
import dataclasses
import functools

from umbra.utils import _pytree as pytree

_MADE_IN_PYTHON = 1 << 9  # a flag of classes made by a class statement


class Opened:
    """Stands in a tree for an object that was taken apart; a tree that is built again has the object's like."""
    __slots__ = ("cls", "names", "values")

    def __init__(self, found, values):
        self.cls, self.names, self.values = type(found), tuple(vars(found)), values

    @staticmethod
    def made(cls, names, values):
        """An object of the class with these attributes."""
        found = object.__new__(cls)
        found.__dict__.update(zip(names, values))
        return found

    def _flatten(self):
        return self.values, (self.cls, self.names)

    def _flatten_with_keys(self):
        return [(pytree.GetAttrKey(name), value) for name, value in zip(self.names, self.values)], (self.cls, self.names)


pytree.register_pytree_node(Opened, Opened._flatten, lambda values, context: Opened.made(*context, values),
                            flatten_with_keys_fn=Opened._flatten_with_keys)


def opens(found):
    """Whether an object is its attributes: of a dataclass that keeps them in a dict, and compares by them."""
    cls = type(found)
    return dataclasses.is_dataclass(cls) and _opens_class(cls)


@functools.lru_cache(maxsize=1000)
def _opens_class(cls):
    bases = cls.__mro__[:-1]
    plain = all(base.__flags__ & _MADE_IN_PYTHON and not vars(base).get("__slots__") for base in bases)
    own = str(cls.__module__).split(".")[0] in ("umbra", "torch")
    return plain and not own and cls.__dictoffset__ != 0 and cls.__getattribute__ is object.__getattribute__ and cls.__eq__ is not object.__eq__


def opened(tree, stays=lambda found: False):
    """The tree with its objects taken apart, and these objects. One that is there twice, or of which `stays` is true, stays what it is."""
    counts, found = collections.Counter(), {}
    _count(tree, counts, found, stays)
    single = {key: part for key, part in found.items() if counts[key] == 1}
    return (_with_opened(tree, single, stays) if single else tree), list(single.values())


def _count(tree, counts, found, stays):
    for leaf in pytree.tree_iter(tree, stays):
        if not opens(leaf) or stays(leaf):
            continue
        counts[id(leaf)] += 1
        if counts[id(leaf)] == 1:
            found[id(leaf)] = leaf
            for value in vars(leaf).values():
                _count(value, counts, found, stays)


def _with_opened(tree, single, stays):
    def visit(leaf):
        if id(leaf) not in single:
            return leaf
        return Opened(leaf, [_with_opened(value, single, stays) for value in vars(leaf).values()])
    return pytree.tree_map(visit, tree, is_leaf=stays)


def classes_in(spec):
    """The classes of the objects that were taken apart."""
    found = [spec.context[0]] if spec.type is Opened else []
    for child in spec.children_specs:
        found += [cls for cls in classes_in(child) if cls not in found]
    return found
