"""A graph module taken apart into modules, as a callback says."""
import operator

from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import map_arg
from umbra.nn import Module


class _Partition:
    def __init__(self, name):
        self.name, self.nodes = name, []
        self.inputs, self.outputs = {}, {}  # by node, in the order of their use
        self.depends_on, self.users = {}, {}


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
                    maker.users.setdefault(user)


def _in_order(partitions):
    """Each after those it depends on: the last of those that can come is next, and behind it what it was the last dependency of."""
    waits = {p: set(p.depends_on) for p in partitions}
    ready = [p for p, others in waits.items() if not others]
    ordered = []
    while ready:
        ordered.append(ready.pop())
        for user in ordered[-1].users:
            waits[user].discard(ordered[-1])
            if not waits[user]:
                ready.append(user)
    if len(ordered) != len(waits):
        raise RuntimeError("cycle exists between partitions!")
    return ordered


def split_module(m, root_m, split_callback, qualname_map=None, keep_original_order=False, keep_original_node_name=False, keep_original_input_name=True,
                 *, partition_affix=None, tuple_return=False):
    """A module that calls one submodule, `submod_<name>`, for all nodes of which `split_callback(node)` gives that name. With `tuple_return` each gives
    a tuple; `qualname_map` is filled with where modules came from. Without `keep_original_input_name` the submodules' inputs are `arg_0`, `arg_1`, ..."""
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
                if node.op == "placeholder":
                    values[node] = whole.node_copy(node)
                    continue
                values[node] = whole.get_attr(node.target, type_expr=node.type)
                values[node].meta = dict(node.meta)
                targets[node.target] = _attribute(m, node.target)
    copy_here(m.graph.find_nodes(op="placeholder") if keep_original_order else m.graph.nodes)
    for partition in order:
        targets[partition.name] = _submodule(m, partition, qualname_map, keep_original_node_name, keep_original_input_name, tuple_return)
        copy_here(partition.inputs)
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
    result = GraphModule(targets, whole)
    result.meta["partition_names"] = {partition.name for partition in partitions.values()}
    return result


def _submodule(m, partition, qualname_map, keep_names, keep_input_names, tuple_return):
    graph, values, targets = Graph(), {}, {}
    modules = {node: _attribute(m, node.target) for node in partition.inputs if node.op == "get_attr"}
    modules = {node: attribute for node, attribute in modules.items() if isinstance(attribute, Module)}  # of operators that take functions
    for node in modules:
        del partition.inputs[node]
    for i, node in enumerate(partition.inputs):
        values[node] = graph.placeholder(node.name if keep_input_names else f"arg_{i}", type_expr=node.type)
    for node, attribute in modules.items():
        values[node] = graph.get_attr(node.target)
        targets[node.target] = attribute
    for node, value in values.items():
        value.meta = dict(node.meta)
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
