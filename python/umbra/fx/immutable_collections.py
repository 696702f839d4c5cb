"""Lists and dicts that cannot be changed: what a node's arguments are, so that changes go through the node."""
from umbra.utils import _pytree as pytree

_HELP = ("If you are attempting to modify the kwargs or args of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy "
         "to the node:\n\n    new_args = ...  # copy and mutate args\n    node.args = new_args")


def _refusing(self, *args, **kwargs):
    raise TypeError(f"'{type(self).__name__}' object does not support mutation. {_HELP}")


class immutable_list(list):
    """A list that cannot be changed."""

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that cannot be changed."""

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)


for _class, _names in ((immutable_list, "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"),
                       (immutable_dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update")):
    for _name in _names.split():
        setattr(_class, _name, _refusing)

pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda x, _: immutable_list(x),
                            serialized_type_name="torch.fx.immutable_collections.immutable_list",
                            flatten_with_keys_fn=pytree._list_flatten_with_keys)
pytree.register_pytree_node(immutable_dict, lambda x: (list(x.values()), list(x)), lambda x, keys: immutable_dict(zip(keys, x)),
                            serialized_type_name="torch.fx.immutable_collections.immutable_dict",
                            flatten_with_keys_fn=pytree._dict_flatten_with_keys)
