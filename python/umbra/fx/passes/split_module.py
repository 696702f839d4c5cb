"""A graph module taken apart into modules, as a callback says."""
import operator

from umbra._options import not_built
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import map_arg


class _Partition:
    def __init__(self, name):
        self.name, self.nodes = name, []
        self.inputs, self.outputs = {}, {}  # by node, in the order of their use
        self.depends_on = {}


def _partitions(graph, split_callback, affix):
    """By name; and the partition of each node that is in one. Inputs and attributes stay outside."""
    partitions, of = {}, {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        if affix is not None:
            name = f"{affix}_{name}"
        of[node] = partitions.setdefault(name, _Partition(f"submod_{name}"))
        of[node].nodes.append(node)
    return partitions, of


def _connect(graph, of):
    for node in graph.nodes:
        user = of.get(node)
        for used in node.all_input_nodes:
            maker = of.get(used)
            if maker is user:
                continue
            if maker is not None:
                maker.outputs.setdefault(used)
            if user is not None:
                user.inputs.setdefault(used)
                if maker is not None:
                    user.depends_on.setdefault(maker)


def _in_order(partitions):
    """Each after those it depends on."""
    ordered, remaining = [], list(partitions)
    while remaining:
        found = next((p for p in remaining if all(d in ordered for d in p.depends_on)), None)
        if found is None:
            raise RuntimeError("cycle exists between partitions!")
        remaining.remove(found)
        ordered.append(found)
    return ordered


def split_module(m, root_m, split_callback, qualname_map=None, keep_original_order=False, keep_original_node_name=False, keep_original_input_name=True,
                 *, partition_affix=None, tuple_return=False):
    """A module that calls one submodule, `submod_<name>`, for all nodes of which `split_callback(node)` gives that name. With `tuple_return` each gives
    a tuple; `qualname_map` is filled with where modules came from."""
    not_built("split_module", keep_original_input_name=(keep_original_input_name, True))
    partitions, of = _partitions(m.graph, split_callback, partition_affix)
    _connect(m.graph, of)
    order = _in_order(partitions.values())
    if keep_original_order:
        order = list(partitions.values())
        if any(order.index(d) > i for i, p in enumerate(order) for d in p.depends_on):
            raise RuntimeError("the partitions depend on each other in another order than that of the graph")
    whole, values, targets = Graph(), {}, {}

    def copy_here(nodes):
        for node in nodes:
            if node.op in ("placeholder", "get_attr") and node not in values:
                values[node] = whole.node_copy(node)
                if node.op == "get_attr":
                    targets[node.target] = _attribute(m, node.target)
    copy_here(m.graph.find_nodes(op="placeholder") if keep_original_order else m.graph.nodes)
    for partition in order:
        copy_here(partition.inputs)
        targets[partition.name] = _submodule(m, partition, qualname_map, keep_original_node_name, tuple_return)
        call = whole.call_module(partition.name, tuple(values[n] for n in partition.inputs))
        outputs = list(partition.outputs)
        if len(outputs) == 1 and not tuple_return:
            values[outputs[0]] = call
        else:
            for i, node in enumerate(outputs):
                values[node] = whole.call_function(operator.getitem, (call, i))
    output = m.graph.output_node()
    if output is not None:
        copy_here(output.all_input_nodes)
        whole.output(map_arg(output.args[0], lambda n: values[n]))
    return GraphModule(targets, whole)


def _submodule(m, partition, qualname_map, keep_names, tuple_return):
    graph, values, targets = Graph(), {}, {}
    for node in partition.inputs:
        values[node] = graph.placeholder(node.name, type_expr=node.type)
        values[node].meta = node.meta
    for node in partition.nodes:
        target = node.target
        if node.op == "call_module":
            target = target.replace(".", "_")
            targets[target] = _attribute(m, node.target)
            if qualname_map is not None:
                qualname_map[f"{partition.name}.{target}"] = node.target
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: values[n])
        values[node] = graph.create_node(node.op, target, tuple(args), dict(kwargs), node.name if keep_names else None)
        values[node].meta = node.meta
    outputs = tuple(values[n] for n in partition.outputs)
    graph.output(outputs[0] if len(outputs) == 1 and not tuple_return else outputs)
    return GraphModule(targets, graph)


def _attribute(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module
