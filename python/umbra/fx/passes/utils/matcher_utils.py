"""Finding one graph in another."""
import copy
import dataclasses

from umbra._C import Node, Tensor
from umbra.fx.passes.utils.fuser_utils import validate_partition


@dataclasses.dataclass
class InternalMatch:
    """A place where the pattern was found: `nodes_map` has what stands for each node of the pattern."""
    anchors: list
    nodes_map: dict = dataclasses.field(default_factory=dict)
    placeholder_nodes: list = dataclasses.field(default_factory=list)
    returning_nodes: list = dataclasses.field(default_factory=list)
    name_node_map: dict = dataclasses.field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes))


def _attribute(node):
    value = node.graph.owning_module
    for part in node.target.split("."):
        value = getattr(value, part, None)
    return value


def _arguments(node):
    """The arguments of a call in the order of the operator's schema, with its defaults; of other calls what they are given."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or node.op != "call_function":
        return list(node.args), dict(node.kwargs)
    arguments = list(node.args)
    for parameter in schema.arguments[len(arguments):]:
        arguments.append(node.kwargs.get(parameter.name, parameter.default_value))
    return arguments, {}


class SubgraphMatcher:
    """Looks for a pattern, from its results to its inputs. Values inside a match are used nowhere else but by the match, unless the pattern gives them
    as results. `ignore_literals`: numbers of the pattern stand for any; `match_placeholder`: its inputs stand for inputs alone."""

    def __init__(self, pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=False):
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op not in ("output", "placeholder") and not node.users and not node.is_impure():
                raise ValueError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = list(output.all_input_nodes)
        # What is used by the output alone comes last in the pattern: the search starts there.
        self.pattern_anchors = [output] if match_output else [n for n in self.pattern_returning_nodes if len(n.users) == 1]

    # ---- nodes and arguments ----

    def _attributes_are_equal(self, pattern_node, node):
        a, b = _attribute(pattern_node), _attribute(node)
        return type(a) is type(b) if isinstance(a, Tensor) or isinstance(b, Tensor) else a == b

    def _nodes_are_equal(self, pattern_node, node):
        if not self.match_placeholder and pattern_node.op == "placeholder":
            return True
        if pattern_node.op != node.op:
            return False
        if pattern_node.op in ("placeholder", "output"):
            return True
        if pattern_node.op == "get_attr":
            return self._attributes_are_equal(pattern_node, node)
        return pattern_node.target == node.target

    def _match_values(self, pattern_value, value, match):
        """An argument of the pattern and one of the graph: nodes, nests of them, literals."""
        if isinstance(pattern_value, Node):
            if isinstance(value, Node):
                return self._match_nodes(pattern_value, value, match)
            if pattern_value.op != "placeholder" or self.match_placeholder:
                return False
            if pattern_value in match.nodes_map:
                return match.nodes_map[pattern_value] == value
            match.nodes_map[pattern_value] = value
            return True
        if isinstance(value, Node):
            return False
        if isinstance(pattern_value, (list, tuple)):
            return (isinstance(value, (list, tuple)) and len(pattern_value) == len(value)
                    and all(self._match_values(a, b, match) for a, b in zip(pattern_value, value)))
        if isinstance(pattern_value, dict):
            return (isinstance(value, dict) and pattern_value.keys() == value.keys()
                    and all(self._match_values(pattern_value[key], value[key], match) for key in pattern_value))
        if isinstance(pattern_value, slice):
            return isinstance(value, slice) and all(self._match_values(getattr(pattern_value, part), getattr(value, part), match)
                                                    for part in ("start", "stop", "step"))
        return self.ignore_literals or (type(pattern_value) is type(value) and pattern_value == value)

    def _match_nodes(self, pattern_node, node, match):
        if pattern_node in match.nodes_map:
            return match.nodes_map[pattern_node] is node
        if any(known is node for known in match.nodes_map.values()) or not self._nodes_are_equal(pattern_node, node):
            return False
        saved = copy.copy(match)
        match.nodes_map[pattern_node] = node
        if pattern_node.op == "placeholder":
            return True
        same = all(self._match_values(a, b, match) for a, b in zip(_arguments(pattern_node), _arguments(node)))
        if not same:
            match.nodes_map = saved.nodes_map
        return same

    # ---- whole matches ----

    def _is_contained(self, nodes_map):
        inside = {node for node in nodes_map.values() if isinstance(node, Node)}
        for pattern_node, node in nodes_map.items():
            if pattern_node.op == "placeholder" or pattern_node in self.pattern_returning_nodes or not isinstance(node, Node):
                continue
            if any(user not in inside for user in node.users):
                return False
        return True

    def _extend(self, matches, pattern_anchor, graph):
        extended = []
        for match in matches:
            for node in graph.nodes:
                tried = copy.copy(match)
                if self._match_nodes(pattern_anchor, node, tried):
                    tried.anchors = [*match.anchors, pattern_anchor]
                    extended.append(tried)
        return extended

    def match(self, graph, node_name_match=""):
        """All places where the pattern is found, in the order of the graph; without overlaps unless these are wanted."""
        matches = [InternalMatch([])]
        for anchor in self.pattern_anchors:
            matches = self._extend(matches, anchor, graph)
        unused = [n for n in self.pattern_placeholder_nodes if not n.users]
        found, taken = [], set()
        for match in matches:
            if not match.nodes_map or not self._is_contained(match.nodes_map):
                continue
            if node_name_match and not any(isinstance(n, Node) and node_name_match in n.name for n in match.nodes_map.values()):
                continue
            inside = {n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output") and isinstance(n, Node)}
            if not validate_partition(inside):  # an input of the match is made of one of its own values
                continue
            if self.remove_overlapping_matches and inside & taken:
                continue
            taken |= inside
            match.placeholder_nodes = [match.nodes_map[p] for p in self.pattern_placeholder_nodes if p not in unused]
            match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
            found.append(match)
        return found
