"""What a graph computes of its attributes alone, computed once."""
import operator

import umbra
from umbra._C import Tensor
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import map_arg
from umbra.fx._symbolic_trace import symbolic_trace
from umbra.nn import Module, Parameter, ParameterList

_FOLDED = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(GraphModule):
    """A graph whose constant part runs before the first call, and gives the attributes that the rest uses."""

    def __init__(self, root, graph, const_subgraph=None, device_for_folded_attrs="cuda"):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self):
        """Computes the constants, once."""
        if self.has_folding_been_run:
            raise AssertionError("the constants have been computed already")
        self.has_folding_been_run = True
        if self.const_subgraph_module is None:
            return
        results = self.const_subgraph_module()

        def as_parameter(value):
            if not isinstance(value, Tensor):
                return value
            return Parameter(value.detach(), requires_grad=value.requires_grad)
        if isinstance(results, tuple):
            setattr(self, _FOLDED, ParameterList([as_parameter(r) for r in results]))
        else:
            setattr(self, _FOLDED, as_parameter(results))


def _constant_nodes(graph, skip):
    """Nodes that follow from attributes alone, and compute something."""
    constant = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "output") or node.is_impure() or (skip is not None and skip(node)):
            continue
        if node.op == "get_attr" or (node.all_input_nodes and all(used in constant for used in node.all_input_nodes)):
            constant[node] = None
    return constant


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """The module with what it computes of its attributes alone in `const_subgraph_module`, which runs once, before the first call."""
    module = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(module.graph, skip_folding_node_fn)
    folded = [n for n in constant if n.op != "get_attr" and any(user not in constant for user in n.users)]
    if not folded:
        return FoldedGraphModule(module, module.graph, None, device_for_folded_attrs)
    constants, values = Graph(), {}
    needed, stack = set(), list(folded)
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += node.all_input_nodes
    for node in module.graph.nodes:
        if node in needed:
            values[node] = constants.node_copy(node, lambda n: values[n])
    results = tuple(values[n] for n in folded)
    constants.output(results if len(results) > 1 else results[0])
    rest = _rest(module.graph, needed, folded)
    root = _Root(module, Parameter(umbra.empty(0)) if len(folded) == 1 else ParameterList())
    return FoldedGraphModule(root, rest, constants, device_for_folded_attrs)


class _Root(Module):
    """A module's attributes, and the place where the constants will be."""

    def __init__(self, module, place):
        super().__init__()
        self.__dict__.update({key: value for key, value in module.__dict__.items() if key not in ("_handle", "_graph", "_compiled", "_specs")})
        # A copy: the module itself gets no new attributes.
        self._parameters, self._modules = dict(self._parameters), dict(self._modules)
        setattr(self, _FOLDED, place)


def _rest(graph, needed, folded):
    """The graph that takes its constants from one attribute."""
    rest, values = Graph(), {}
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    for node in inputs:
        values[node] = rest.node_copy(node)
    for node in graph.nodes:  # attributes that both parts use
        if node.op == "get_attr" and node in needed and any(user not in needed for user in node.users):
            values[node] = rest.node_copy(node)
    constants = rest.get_attr(_FOLDED)
    if len(folded) == 1:
        values[folded[0]] = constants
    else:
        for i, node in enumerate(folded):
            values[node] = rest.call_function(operator.getitem, (constants, i))
    for node in folded:
        values[node].meta.update(node.meta)
    for node in graph.nodes:
        if node in values or (node in needed and all(user in needed for user in node.users)):
            continue
        if node.op == "output":
            rest.output(map_arg(node.args[0], lambda n: values[n]))
        else:
            values[node] = rest.node_copy(node, lambda n: values[n])
    return rest
