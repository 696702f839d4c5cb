"""Parts of a graph made one call each."""
import operator

from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition"]


def topo_sort(nodes):
    """The nodes, each after those among them that it uses; an error where they use each other in a circle."""
    wanted, done, ordered = dict.fromkeys(nodes), set(), []

    def visit(node):
        """Without recursion: graphs can be thousands of nodes deep."""
        pending = [(node, iter(node.all_input_nodes))]
        open_nodes = {node}
        while pending:
            current, inputs = pending[-1]
            following = next((n for n in inputs if n in wanted and n not in done), None)
            if following is None:
                pending.pop()
                open_nodes.discard(current)
                done.add(current)
                ordered.append(current)
            elif following in open_nodes:
                raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
            else:
                open_nodes.add(following)
                pending.append((following, iter(following.all_input_nodes)))
    for node in wanted:
        if node not in done:
            visit(node)
    return ordered


def validate_partition(partition):
    """Whether the nodes can run as one: nothing outside that uses one of them is used by another."""
    inside = set(partition)
    pending, seen = [user for node in inside for user in node.users if user not in inside], set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        for user in node.users:
            if user in inside:
                return False
            pending.append(user)
    return True


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """The nodes as a module of their own; the values it takes, and those of its values that others use."""
    inside = set(nodes if partition_lookup_table is None else partition_lookup_table)
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph, copies = Graph(), {}
    inputs = list(dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in inside))
    if all(used.op == "placeholder" for used in inputs):
        inputs.sort()  # in the order in which the graph takes them
    for used in inputs:
        copies[used] = graph.placeholder(used.name, type_expr=used.type)
        copies[used].meta = used.meta
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copies[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    return GraphModule(gm, graph, class_name=module_name), tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs, insertion_point=None):
    """A call of a part behind `insertion_point`, or behind the last of the values that it gives; its nodes stay until they are erased."""
    if insertion_point is None and not orig_outputs:
        raise AssertionError("Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the last partition node as "
                             "insertion_point.")
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(max(orig_outputs) if insertion_point is None else insertion_point):
        call = gm.graph.call_module(name, tuple(orig_inputs))
    several = isinstance(sub_gm.graph.output_node().args[0], tuple)
    with gm.graph.inserting_before(call.next):
        for i, output in enumerate(orig_outputs):
            output.replace_all_uses_with(gm.graph.call_function(operator.getitem, (call, i)) if several else call, propagate_meta=True)
    return gm


def erase_nodes(gm, nodes):
    """Takes nodes out, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Each part as one call; the other nodes keep their order where they can."""
    from umbra.fx.passes.tools_common import stable_topological_sort
    fused = set()
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        if (twice := next((node for node in nodes if node in fused), None)) is not None:
            raise AssertionError(f"{twice} has been removed from owning graph")
        fused.update(nodes)
        part, inputs, outputs = fuse_as_graphmodule(gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple)
        insert_subgm(gm, part, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    return stable_topological_sort(gm)
