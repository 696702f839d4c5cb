"""A graph taken apart by tags on its nodes."""
import dataclasses
import operator

from umbra import nn
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import map_arg
from umbra.fx.passes.tools_common import CALLABLE_NODE_OPS

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj, name):
    """An attribute by its dotted path; None where there is none."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj, attr, value):
    *owners, name = attr.split(".")
    for part in owners:
        obj = getattr(obj, part)
    setattr(obj, name, value)


@dataclasses.dataclass
class Component:
    """A part: its graph, and what it takes and gives, as nodes of the graph that it was part of."""
    graph: Graph
    order: int
    name: str
    input_placeholders: list = dataclasses.field(default_factory=list)
    orig_inputs: list = dataclasses.field(default_factory=list)
    orig_outputs: list = dataclasses.field(default_factory=list)
    getattr_maps: dict = dataclasses.field(default_factory=dict)
    constructor_args: list = dataclasses.field(default_factory=list)
    gm: object = None


class _Split:
    """One graph module on its way into parts."""

    def __init__(self, gm, tags, gives_tuples=False, made_class=GraphModule):
        self.gm, self.gives_tuples, self.made_class, self.names = gm, gives_tuples, made_class, {}
        self.parts = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
        self.of, self.copies = {}, {}

    def run(self):
        for node in self.gm.graph.nodes:
            if node.op in CALLABLE_NODE_OPS:
                self.add(node)
        output = self.gm.graph.output_node()
        for node in self.gm.graph.nodes:
            part = self.of.get(node)
            if part is not None and any(self.of.get(user) is not part for user in node.users):
                part.orig_outputs.append(node)
        for part in self.parts.values():
            results = tuple(self.copies[node] for node in part.orig_outputs)
            part.graph.output(results[0] if len(results) == 1 and not self.gives_tuples else results)
            part.gm = self.made_class(self.gm, part.graph, class_name=part.name)
        return self.main_module(output)

    def add(self, node):
        tag = getattr(node, "tag", None)
        if tag is None:
            raise AssertionError(f"Node {node} does not have a tag")
        part = self.of[node] = self.parts[tag]
        if node.op == "call_module":
            self.names[node.target] = f"{part.name}.{node.target}"

        def within(used):
            maker = self.of.get(used)
            if maker is not None and maker.order > part.order:
                raise AssertionError(f"{node} of part {part.name} uses {used}, which a later part makes")
            if maker is part:
                return self.copies[used]
            if used.op == "get_attr":
                self.names[used.target] = f"{part.name}.{used.target}"
                if used not in part.getattr_maps:
                    part.getattr_maps[used] = part.graph.get_attr(used.target)
                return part.getattr_maps[used]
            if used not in part.orig_inputs:
                part.orig_inputs.append(used)
                part.input_placeholders.append(part.graph.placeholder(used.name))
                part.input_placeholders[-1].meta = used.meta
            return part.input_placeholders[part.orig_inputs.index(used)]
        self.copies[node] = part.graph.node_copy(node, within)

    def main_module(self, output):
        graph, root, values = Graph(), nn.Module(), {}
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                values[node] = graph.node_copy(node)
            elif node.op == "get_attr" and output in node.users:
                values[node] = graph.get_attr(node.target)
                first = node.target.split(".")[0]
                setattr(root, first, getattr(self.gm, first))
        for part in self.parts.values():
            root.add_module(part.name, part.gm)
            call = graph.call_module(part.name, tuple(values[node] for node in part.orig_inputs))
            if len(part.orig_outputs) == 1 and not self.gives_tuples:
                values[part.orig_outputs[0]] = call
            else:
                for i, node in enumerate(part.orig_outputs):
                    values[node] = graph.call_function(operator.getitem, (call, i))
        graph.output(map_arg(output.args[0], lambda n: values[n]))
        graph._take_form(self.gm.graph)
        return self.made_class(root, graph)


def split_by_tags(gm, tags, return_fqn_mapping=False, return_tuple=False, GraphModuleCls=GraphModule):
    """A module of one submodule for each tag, in the order of `tags`; each call of `gm` has its tag in `node.tag`. With `return_fqn_mapping` it comes with
    a dict from the names of what the calls use (modules, parameters) to their names in it; with `return_tuple` each submodule gives a tuple."""
    split = _Split(gm, tags, return_tuple, GraphModuleCls)
    made = split.run()
    return (made, split.names) if return_fqn_mapping else made
