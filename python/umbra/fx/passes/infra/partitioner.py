"""Parts of a graph that a backend takes, as large as they can be without waiting for one another, each made one call."""
import operator

from umbra._ops import OpOverload
from umbra.fx._targets import name_of
from umbra.fx.passes.utils.fuser_utils import fuse_by_partitions


class Partition:
    """Nodes that go together; the values of `nodes` are not used."""

    def __init__(self, id=None, nodes=None):
        self.id = id
        self.nodes = dict.fromkeys(nodes or ())

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node):
        self.nodes[node] = None

    def remove_node(self, node):
        del self.nodes[node]

    def size(self):
        return len(self.nodes)


class _Parts:
    """Nodes in parts, none of which waits for itself by way of what is outside of it."""

    def __init__(self, graph):
        self.graph = graph
        self.nodes, self.part_of = {}, {}  # the nodes of a part, by its number, and the part of a node
        self.made = {}  # when the latest node of a part came, by its number
        self._reach = {}  # the nodes that need each node, directly or not
        for node in reversed(list(graph.nodes)):
            self._reach[node] = set(node.users).union(*(self._reach[user] for user in node.users))

    def add(self, node):
        number = len(self.part_of)
        self.nodes[number], self.part_of[node], self.made[number] = {node}, number, number
        return number

    def latest_first(self):
        """All parts, that of the graph's last node first."""
        return sorted(self.nodes, key=self.made.get)

    def join(self, candidates):
        """The first of these parts takes in the others where it can; of two the larger one gives the number."""
        first, *others = list(dict.fromkeys(candidates)) or [None]
        for other in others:
            together = self.nodes[first] | self.nodes[other]
            if self._waits_for_itself(together):
                continue
            kept, gone = (other, first) if len(self.nodes[first]) < len(self.nodes[other]) else (first, other)
            self.nodes[kept] = together
            self.made[kept] = min(self.made[first], self.made[other])
            self.part_of.update(dict.fromkeys(self.nodes.pop(gone), kept))
            first = kept

    def _waits_for_itself(self, nodes):
        seen, pending = set(), [user for node in nodes for user in node.users if user not in nodes]
        while pending:
            node = pending.pop()
            if node in nodes:
                return True
            if node in seen:
                continue
            seen.add(node)
            if not nodes.isdisjoint(self._reach[node]):
                return True
            for member in self.nodes[self.part_of[node]] if node in self.part_of else (node,):  # a part runs as one
                pending += [user for user in member.users if user not in seen]
        return False

    def in_order(self):
        """(number, nodes) of all parts: the nodes in the graph's order, then items of results that follow those results into their part."""
        places = {node: place for place, node in enumerate(self.graph.nodes)}
        parts = {number: dict.fromkeys(sorted(nodes, key=places.get)) for number, nodes in self.nodes.items()}
        while moved := self._items_elsewhere():
            for node, number in moved.items():
                if node in self.part_of:
                    del parts[self.part_of.pop(node)][node]
                if number is not None:
                    parts[number][node] = None
                    self.part_of[node] = number
        return sorted(parts.items())

    def _items_elsewhere(self):
        """Nodes that take an item of a result that is used in no other way, and are not in its part."""
        moved = {}
        for node in self.graph.nodes:
            if all(user.op == "call_function" and user.target is operator.getitem for user in node.users):
                moved |= {user: self.part_of.get(node) for user in node.users if self.part_of.get(user) != self.part_of.get(node)}
        return moved


class CapabilityBasedPartitioner:
    def __init__(self, graph_module, operator_support, allows_single_node_partition=False, non_compute_ops=None, allowed_single_node_partition_ops=None,
                 skip_horizontal_fusion=False):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_supported(self, node):
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self):
        """The supported nodes in parts that can each run as one call."""
        parts = _Parts(self.graph_module.graph)
        for node in reversed(list(self.graph_module.graph.nodes)):
            made = parts.add(node) if node.op not in ("placeholder", "output") and self._is_supported(node) else None
            if not self.skip_horizontal_fusion:
                parts.join([*(() if made is None else (made,)), *parts.latest_first()])
            elif made is not None:
                parts.join([made, *(parts.part_of[user] for user in node.users if user in parts.part_of)])
        found = [Partition(number, nodes) for number, nodes in parts.in_order() if nodes]
        return found if self.allows_single_node_partition else [part for part in found if self._computes_enough(part)]

    def _computes_enough(self, part):
        names = [_name(node.target) for node in part.nodes if node.op == "call_function"]
        no_computation = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        return sum((name not in no_computation) + (name in self.allowed_single_node_partition_ops) for name in names) > 1

    def remove_bookend_non_compute_ops(self, partitions):
        """Takes `non_compute_ops` out of the beginnings and ends of partitions: there they only bring values in and out."""
        for part in partitions:
            border = True
            while border:
                border = [n for n in part.nodes if n.op == "call_function" and _name(n.target) in self.non_compute_ops
                          and not (any(i in part.nodes for i in n.all_input_nodes) and any(u in part.nodes for u in n.users))]
                for node in border:
                    part.remove_node(node)

    def fuse_partitions(self, partitions, prefix="fused_"):
        """The graph module with each part as one call of a module `fused_0`, `fused_1`, ..."""
        fuse_by_partitions(self.graph_module, [list(part.nodes) for part in partitions], prefix)
        self.graph_module.recompile()
        return self.graph_module

    def partition_and_fuse(self, prefix="fused_"):
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _name(target):
    """What PyTorch calls a function: torch.relu, _operator.getitem, torch.ops.aten.add.Tensor."""
    if isinstance(target, OpOverload):
        return f"torch.ops.{target}"
    name = name_of(target)
    return "_" + name if name.startswith("operator.") else name.removeprefix("builtins.")
