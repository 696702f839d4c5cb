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
        """From the last node to the first, each is joined with the parts of its users, then with any other, where no part comes to wait for itself."""
        reach = self._reached()
        parts, part_of = {}, {}

        def waits(nodes):
            """Whether something outside is needed by one of the nodes and needs another."""
            after = set().union(*(reach[n] for n in nodes)) - nodes
            return any(reach[outside] & nodes for outside in after)

        def circular(nodes):
            """The same by way of other parts, each of which runs as one."""
            if waits(nodes):
                return True
            seen, pending = set(), [n for n in set().union(*(reach[n] for n in nodes)) - nodes]
            while pending:
                node = pending.pop()
                if node in seen:
                    continue
                seen.add(node)
                if node in nodes:
                    return True
                group = parts[part_of[node]] if node in part_of else ()
                pending += [r for member in group for r in reach[member] if r not in seen] + list(group)
            return False
        number = 0
        for node in reversed(list(self.graph_module.graph.nodes)):
            if not self._is_supported(node) or node.op in ("placeholder", "get_attr", "output"):
                continue
            nodes, home = {node}, number
            number += 1
            mates = list(dict.fromkeys(part_of[user] for user in node.users if user in part_of))
            if not self.skip_horizontal_fusion:
                mates += [other for other in parts if other not in mates]
            for other in mates:
                if other in parts and not circular(nodes | parts[other]):
                    joined = parts.pop(other)
                    home = other if len(nodes) < len(joined) else home  # the larger one takes the other in
                    nodes |= joined
            parts[home] = nodes
            part_of.update(dict.fromkeys(nodes, home))
        order = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        found = [Partition(i, sorted(nodes, key=order.get)) for i, nodes in sorted(parts.items())]
        return [part for part in found if self._is_worth_it(part)]

    def _reached(self):
        """The nodes that need each node, directly or not."""
        reach = {}
        for node in reversed(list(self.graph_module.graph.nodes)):
            reach[node] = set(node.users).union(*(reach[user] for user in node.users))
        return reach

    def _is_worth_it(self, part):
        if all(n.op == "call_function" and n.target is operator.getitem for n in part.nodes):
            return False  # items of what is no part
        if self.allows_single_node_partition:
            return True
        computing = [n for n in part.nodes if n.op == "call_function" and _name(n.target) not in (*self.non_compute_ops, "_operator.getitem")
                     or n.op in ("call_module", "call_method")]
        allowed = any(n.op == "call_function" and _name(n.target) in self.allowed_single_node_partition_ops for n in computing)
        return len(computing) > 1 or allowed

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
