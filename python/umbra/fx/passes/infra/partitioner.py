"""Parts of a graph that a backend takes, as large as they can be without waiting for one another, each made one call."""
import operator

from umbra._ops import OpOverload
from umbra.fx._targets import name_of
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import map_arg


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
                    nodes |= parts.pop(other)
                    home = min(home, other)
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
        part_of = {node: part for part in partitions for node in part.nodes}
        names = {part: f"{prefix}{i}" for i, part in enumerate(partitions)}
        graph, values, done, pending = Graph(), {}, set(), list(self.graph_module.graph.nodes)
        fused = {part: self._extract(part) for part in partitions}
        while pending:
            waiting = []
            for node in pending:
                part = part_of.get(node)
                inputs = fused[part][1] if part else node.all_input_nodes
                if part in done:
                    continue
                if any(i not in values for i in inputs):
                    waiting.append(node)
                elif part is None:
                    values[node] = graph.node_copy(node, values.__getitem__)
                else:
                    self._call(graph, names[part], *fused[part], values)
                    done.add(part)
            if len(waiting) == len(pending):
                raise AssertionError("the partitions wait for one another")
            pending = waiting
        for part, name in names.items():
            self.graph_module.add_submodule(name, fused[part][0])
        self.graph_module.graph = graph
        self.graph_module.recompile()
        return self.graph_module

    def _extract(self, part):
        """(module of the part, nodes it is given, nodes it gives)."""
        graph, values = Graph(), {}
        inputs = list(dict.fromkeys(i for node in part.nodes for i in node.all_input_nodes if i not in part.nodes))
        outputs = [node for node in part.nodes if any(user not in part.nodes for user in node.users)]
        for node in inputs:
            values[node] = graph.placeholder(node.name)
            values[node].meta = node.meta
        for node in part.nodes:
            values[node] = graph.node_copy(node, values.__getitem__)
        graph.output(values[outputs[0]] if len(outputs) == 1 else tuple(values[node] for node in outputs))
        return GraphModule(self.graph_module, graph), inputs, outputs

    @staticmethod
    def _call(graph, name, _, inputs, outputs, values):
        call = graph.call_module(name, tuple(map_arg(inputs, values.__getitem__)))
        if len(outputs) == 1:
            values[outputs[0]] = call
            call.meta = outputs[0].meta
            return
        for i, node in enumerate(outputs):
            values[node] = graph.call_function(operator.getitem, (call, i))
            values[node].meta = node.meta

    def partition_and_fuse(self, prefix="fused_"):
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _name(target):
    """What PyTorch calls a function: torch.relu, _operator.getitem, torch.ops.aten.add.Tensor."""
    if isinstance(target, OpOverload):
        return f"torch.ops.{target}"
    name = name_of(target)
    return "_" + name if name.startswith("operator.") else name.removeprefix("builtins.")
