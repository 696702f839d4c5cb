"""Calls of modules whose signatures a program keeps: they take and give what the modules took and gave, nests and all."""
import operator

from umbra.export.graph_signature import ConstantArgument
from umbra.fx import _pytree as fx_pytree
from umbra.utils import _pytree as pytree


def keep_signature(builder, call, signature, computed):
    """Ends a call's graph such that its module can be called as the original was, and calls it so."""
    results = _results(call, signature, computed)
    _take_arguments(builder, call, signature, results)
    spec = _spec(call.graph, call, signature.out_spec)
    call.graph.output(call.graph.call_function(pytree.tree_unflatten, (tuple(results), spec)))
    _call(builder, call, signature, computed)


def _results(call, signature, computed):
    """What the module returns, leaf by leaf."""
    by_name = {node.name: node for node in call.values}
    known = {argument.name for argument in signature.outputs if not isinstance(argument, ConstantArgument)}
    for node in computed:
        written = _written(node)
        if node.name not in known and written not in call.inputs and written.op != "placeholder":
            raise RuntimeError(f"unflatten: {node.name} leaves module {call.name} by another way than its result, so its signature cannot be kept")
    return [argument.value if isinstance(argument, ConstantArgument) else call.values[by_name[argument.name]] for argument in signature.outputs]


def _written(node):
    """The tensor that a chain of calls in place has written, which their results are."""
    while node.op == "call_function" and getattr(getattr(node.target, "_schema", None), "is_mutable", False) and node.target._opname.endswith("_"):
        node = node.args[0]
    return node


def _take_arguments(builder, call, signature, results):
    """Parameters in the form of the original's, taken apart at the start of the graph."""
    _read_written(builder, call, signature)
    old = {node: call.values[node] for node in call.inputs}
    arguments, keywords = signature.in_spec.children_specs
    positional = [call.graph.placeholder(f"_positional_arg_{i}") for i in range(arguments.num_children)]
    named = {key: call.graph.placeholder(key) for key in keywords.context}
    ahead = [*positional, *named.values(), *call.attributes.values()]
    anchor = next(node for node in call.graph.nodes if node not in ahead)
    for node in ahead:
        anchor.prepend(node)
    with call.graph.inserting_before(anchor):
        spec = _spec(call.graph, call, signature.in_spec)
        flat = call.graph.call_function(fx_pytree.tree_flatten_spec, ((tuple(positional), named), spec))
        places = {argument.name: i for i, argument in enumerate(signature.inputs) if not isinstance(argument, ConstantArgument)}
        for node, here in old.items():
            if node.name not in places:
                raise RuntimeError(f"unflatten: module {call.name} uses {node.name}, which is none of its arguments, so its signature cannot be kept")
            leaf = call.graph.create_node("call_function", operator.getitem, (flat, places[node.name]), name=node.name)
            leaf.meta = dict(here.meta)
            here.replace_all_uses_with(leaf)
            results[:] = [leaf if result is here else result for result in results]
            call.values[node] = leaf
    for here in old.values():
        call.graph.erase_node(here)


def _read_written(builder, call, signature):
    """A buffer that an earlier call has written is no argument: the module reads it as its own."""
    names = {argument.name for argument in signature.inputs if not isinstance(argument, ConstantArgument)}
    for node in [given for given in call.inputs if given.name not in names and _written(given).name in builder.aliases]:
        here = call.values[node]
        own = builder._value(call, _written(node))
        here.replace_all_uses_with(own)
        call.values[node] = own
        call.inputs.remove(node)
        call.graph.erase_node(here)


def _spec(graph, call, spec):
    """A tree spec as an attribute of the call's module."""
    name = f"_spec_{sum(key.startswith('_spec_') for key in call.subgraphs)}"
    call.subgraphs[name] = spec
    return graph.get_attr(name)


def _call(builder, call, signature, computed):
    parent = call.parent
    by_name = {node.name: node for node in builder.program.graph.nodes}
    given = [argument.value if isinstance(argument, ConstantArgument) else builder._value(parent, by_name[argument.name])
             for argument in signature.inputs]
    spec = _spec(parent.graph, parent, signature.in_spec)
    tree = parent.graph.call_function(pytree.tree_unflatten, (given, spec))
    arguments = parent.graph.call_function(operator.getitem, (tree, 0))
    keywords = parent.graph.call_function(operator.getitem, (tree, 1))
    positional, named = signature.in_spec.children_specs
    args = tuple(parent.graph.call_function(operator.getitem, (arguments, i)) for i in range(positional.num_children))
    kwargs = {key: parent.graph.call_function(operator.getitem, (keywords, key)) for key in named.context}
    node = parent.graph.call_module(builder.kept_module(call), args, kwargs)
    flat = parent.graph.call_function(fx_pytree.tree_flatten_spec, (node, _spec(parent.graph, parent, signature.out_spec)))
    places = {argument.name: i for i, argument in enumerate(signature.outputs)}
    for result in computed:
        if result.name not in places:  # an argument or buffer that the call has written: it is there already
            parent.values[result] = builder._value(parent, _written(result))
            continue
        parent.values[result] = parent.graph.call_function(operator.getitem, (flat, places[result.name]))
        parent.values[result].meta = dict(result.meta)
