"""Parts of a graph made one call each."""
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule

__all__ = ["fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition"]


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
    graph, copies, inputs = Graph(), {}, []
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside and used not in copies:
                copies[used] = graph.placeholder(used.name)
                copies[used].meta = used.meta
                inputs.append(used)
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copies[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    return GraphModule(gm, graph, class_name=module_name), tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs):
    """A call of a part, in the place of the values that it gives; its nodes stay until they are erased."""
    import operator
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    last = max(orig_outputs)
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, tuple(orig_inputs))
    given = sub_gm.graph.output_node().args[0]
    with gm.graph.inserting_after(call):
        for i, output in enumerate(orig_outputs):
            replacement = gm.graph.call_function(operator.getitem, (call, i)) if isinstance(given, tuple) else call
            output.replace_all_uses_with(replacement, propagate_meta=True)
    gm.graph.eliminate_dead_code()
    return gm


def legalize_graph(gm):
    """Puts the nodes of a graph into an order in which each comes after those that it uses."""
    from umbra.fx.passes import tools_common
    return tools_common.legalize_graph(gm)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Each part as one call."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        part, inputs, outputs = fuse_as_graphmodule(gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple)
        insert_subgm(gm, part, inputs, outputs)
        for node in reversed(nodes):
            if not node.users and not node._erased:
                gm.graph.erase_node(node)
    return legalize_graph(gm)
