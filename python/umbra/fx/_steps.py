"""A graph as a function of Python's: what `SourceInterpreter` does node by node, without looking at the nodes in each call.

The function is made of the graph and not of its source: what nodes call and the constants that they take are the very objects, whatever text they have.
"""
import keyword

from umbra.fx.node import Node


def function_of(graph, fetch):
    """A function of the module and values for the placeholders, which gives what the output takes; `fetch` gives what a dotted path names in the module.
    None for a graph that has no such function."""
    nodes = list(graph.nodes)
    if not nodes or nodes[-1].op != "output" or any(node.op == "call_method" and not node.args for node in nodes):
        return None
    return _Writer(nodes, fetch).function()


def _is_name(text):
    return text.isidentifier() and not keyword.iskeyword(text)


class _Writer:
    def __init__(self, nodes, fetch):
        self.nodes, self.objects = nodes, {"fetch": fetch}
        self.values = {node: f"v{i}" for i, node in enumerate(nodes)}

    def function(self):
        parameters = ["module"] + [self.values[node] for node in self.nodes if node.op == "placeholder"]
        lines = [f"def forward({', '.join(parameters)}):"]
        last_uses = self.last_uses()
        for node in self.nodes:
            if node.op == "output":
                lines.append(f" return {self.argument(node.args[0])}")
            elif node.op != "placeholder":
                lines.append(f" {self.values[node]} = {self.call(node)}")
            if node in last_uses and node.op != "output":
                lines.append(f" {' = '.join(last_uses[node])} = None")
        exec(compile("\n".join(lines), "<graph>", "exec"), self.objects)
        return self.objects["forward"]

    def last_uses(self):
        """The values that nothing needs any more after a node has run."""
        found, seen = {}, set()
        for node in reversed(self.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    found.setdefault(node, []).append(self.values[used])
        return found

    def call(self, node):
        arguments = [self.argument(value) for value in node.args]
        if node.op == "get_attr":
            return f"fetch(module, {node.target!r})"
        if node.op == "call_method":
            instance, *arguments = arguments
            target = f"{instance}.{node.target}" if _is_name(node.target) else f"{self.constant(getattr)}({instance}, {node.target!r})"
        else:
            target = self.constant(node.target) if node.op == "call_function" else f"fetch(module, {node.target!r})"
        arguments += [f"{key}={self.argument(value)}" if _is_name(key) else f"**{{{key!r}: {self.argument(value)}}}" for key, value in node.kwargs.items()]
        return f"{target}({', '.join(arguments)})"

    def argument(self, value):
        if isinstance(value, Node):
            return self.values[value]
        if isinstance(value, tuple):
            items = "".join(self.argument(item) + ", " for item in value)
            return f"{self.constant(type(value))}({items})" if hasattr(value, "_fields") else f"({items})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.argument, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.constant(key)}: {self.argument(item)}' for key, item in value.items())}}}"
        if isinstance(value, slice):
            parts = ", ".join(map(self.argument, (value.start, value.stop, value.step)))
            return f"{self.constant(slice)}({parts})"
        return self.constant(value)

    def constant(self, value):
        name = f"c{len(self.objects)}"
        self.objects[name] = value
        return name
