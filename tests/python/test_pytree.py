"""Nested containers as trees."""
import collections
import dataclasses
import enum

import pytest

import umbra
import umbra.utils._pytree as pytree
from umbra._export.utils import register_dataclass_as_pytree_node
from umbra.fx.immutable_collections import immutable_dict, immutable_list

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("tree, leaves", [
    (1, [1]), ((1, 2), [1, 2]), ([1, (2, 3)], [1, 2, 3]), ({"b": 1, "a": [2]}, [1, 2]), (Point(1, 2), [1, 2]), (None, [None]), ((), []),
    (collections.OrderedDict(x=1, y=2), [1, 2]), (collections.deque([1, 2]), [1, 2]), (umbra.Size([1, 2]), [1, 2]),
])
def test_round_trip(tree, leaves):
    flat, spec = pytree.tree_flatten(tree)
    assert flat == leaves and pytree.tree_unflatten(flat, spec) == tree and spec.num_leaves == len(leaves)
    if not isinstance(tree, Point):
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_text_of_specs():
    spec = pytree.tree_structure({"b": 1, "a": (2, 3)})
    assert repr(spec) == "TreeSpec(dict, ['b', 'a'], [*,\n  TreeSpec(tuple, None, [*,\n    *])])"
    assert pytree.treespec_dumps(pytree.tree_structure((1,))) == (
        '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]')


def test_maps():
    assert pytree.tree_map(lambda a, b: a + b, (1, {"x": 2}), (10, {"x": 20})) == (11, {"x": 22})
    assert pytree.tree_map_only(int, str, [1, 2.0]) == ["1", 2.0]
    with pytest.raises(ValueError):
        pytree.tree_map(lambda a, b: a, (1, 2), (1,))


def test_paths():
    pairs, _ = pytree.tree_flatten_with_path({"a": [1, Point(2, 3)]})
    assert [pytree.keystr(path) for path, _ in pairs] == ["['a'][0]", "['a'][1].x", "['a'][1].y"]


def test_registered_classes():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: int
    pytree.register_dataclass(Pair, serialized_type_name="test.Pair")
    assert pytree.tree_map(lambda v: v + 1, Pair(1, 2)) == Pair(2, 3)
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, lambda pair: ((), None), lambda values, context: Pair(0, 0))
    with pytest.warns(UserWarning, match="is already registered as pytree node. Overwriting the previous registration."):
        pytree.register_dataclass(Pair, drop_field_names=["b"])
    assert pytree.tree_leaves(Pair(1, 2)) == [1]


def test_prefix():
    spec = pytree.tree_structure(((1, 2), 3))
    assert pytree._broadcast_to_and_flatten((0, 1), spec) == [0, 0, 1]
    assert pytree._broadcast_to_and_flatten((0, 1, 2), spec) is None


def test_fields_of_a_dataclass_that_are_none_may_be_leaves():
    @dataclasses.dataclass
    class Fields:
        x: int
        y: int = None

    register_dataclass_as_pytree_node(Fields, return_none_fields=True, serialized_type_name="test_pytree.Fields")
    leaves, spec = pytree.tree_flatten(Fields(3))
    assert leaves == [3, None] and spec.context == [["x", "y"], []] and pytree.tree_unflatten(leaves, spec) == Fields(3)


class Colour(enum.Enum):
    RED = 1


def test_members_of_enums_are_keys_in_files():
    spec = pytree.tree_structure({Colour.RED: 1, "b": 2})
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_a_file_that_names_an_enum_imports_nothing():
    text = pytree.treespec_dumps(pytree.tree_structure({Colour.RED: 1})).replace(Colour.__module__, "antigravity")
    with pytest.raises(NotImplementedError, match="antigravity:Colour, which is not there"):
        pytree.treespec_loads(text)


def test_containers_that_cannot_be_changed_have_paths():
    paths = [path for path, _ in pytree.tree_flatten_with_path(immutable_list([1, immutable_dict(a=2)]))[0]]
    assert [pytree.keystr(path) for path in paths] == ["[0]", "[1]['a']"]


def test_registering_by_the_old_name_warns():
    class Box:
        pass
    with pytest.warns(FutureWarning, match="_register_pytree_node` is deprecated"):
        pytree._register_pytree_node(Box, lambda box: ((), None), lambda values, context: Box())
    pytree._deregister_pytree_node(Box)
