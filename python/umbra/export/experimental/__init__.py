"""What may still change: programs that compute gradients, and functions that are exported when they are first called.

    joint = _export_forward_backward(program)     # its outputs are the loss, the other results, and a gradient for each parameter
"""
import functools

from umbra import nn
from umbra._functorch.aot_export import aot_export_module
from umbra.export import graph_signature as signatures
from umbra.export._trace import export
from umbra.utils import _pytree as pytree

_Kind, _Result = signatures.InputKind, signatures.OutputKind


def _export_forward_backward(ep, joint_loss_index=0):
    """The program, functional and of core operators, with the gradients of one of its results, the loss, as further outputs."""
    if ep.range_constraints:
        raise NotImplementedError("_export_forward_backward of a program with dynamic sizes is not in Umbra yet: export it with sizes that are numbers")
    if ep.example_inputs is None:
        raise ValueError("the program has no example inputs, on which its gradients could be captured: set `example_inputs`")
    module = _with_constants_as_buffers(ep)
    args, kwargs = ep.example_inputs
    graph_module, found = aot_export_module(module, args, kwargs=kwargs, trace_joint=True, output_loss_index=joint_loss_index)
    _remove_detach_pass(graph_module)
    return ep._update(graph_module, _joint_signature(ep, graph_module, found)).run_decompositions()


def _with_constants_as_buffers(ep):
    """The program as a module that gives its results as a tuple; all tensors that it has are parameters and buffers."""
    module = ep.module(check_guards=False)
    for name in ep.graph_signature.lifted_tensor_constants:
        path, _, leaf = name.rpartition(".")
        owner = module.get_submodule(path)
        constant = getattr(owner, leaf)
        delattr(owner, leaf)
        owner.register_buffer(leaf, constant, persistent=False)
    nn.Module.register_forward_hook(module, lambda module, inputs, result: tuple(pytree.tree_leaves(result)))
    return module


def _remove_detach_pass(graph_module):
    """Results that are cut off from their history by several calls in a row are cut off by one."""
    from umbra import ops
    cuts = (ops.aten.detach.default, ops.aten.alias.default)
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and node.target in cuts and getattr(node.args[0], "target", None) in cuts:
            node.replace_input_with(node.args[0], node.args[0].args[0])
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()


def _joint_signature(ep, graph_module, found):
    """The signature of a joint graph, whose inputs get the names that they have in the program."""
    state = [*found.parameters, *found.buffers]
    known = {spec.target: spec for spec in ep.graph_signature.input_specs if spec.target is not None}
    user = [spec for spec in ep.graph_signature.input_specs if spec.kind is _Kind.USER_INPUT]
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    names, inputs = {}, []
    for node, spec in zip(placeholders, [*(known[name] for name in state), *user], strict=True):
        names[node.name] = spec.arg.name
        node.target = spec.arg.name
        node.name = node.target
        inputs.append(spec)
    graph_module.recompile()
    return signatures.ExportGraphSignature(inputs, _joint_results(graph_module, found, names))


def _joint_results(graph_module, found, names):
    backward = found.backward_signature
    written = {**{name: (_Result.BUFFER_MUTATION, target) for name, target in found.buffers_to_mutate.items()},
               **{name: (_Result.PARAMETER_MUTATION, target) for name, target in found.parameters_to_mutate.items()},
               **{name: (_Result.USER_INPUT_MUTATION, names[target]) for name, target in found.user_inputs_to_mutate.items()}}
    gradients = {**{name: (_Result.GRADIENT_TO_PARAMETER, target) for name, target in backward.gradients_to_parameters.items()},
                 **{name: (_Result.GRADIENT_TO_USER_INPUT, names[target]) for name, target in backward.gradients_to_user_inputs.items()}}
    results = []
    for place, node in enumerate(graph_module.graph.output_node().args[0]):
        end = len(written) + len(found.user_outputs)
        own = _Result.LOSS_OUTPUT if node.name == backward.loss_output else _Result.USER_OUTPUT
        kind, target = written[node.name] if place < len(written) else gradients[node.name] if place >= end else (own, None)
        results.append(signatures.OutputSpec(kind, signatures.TensorArgument(node.name), target))
    return results


def _sticky_export(forward_func, dynamic_shapes_callback=None):
    """A method of a module that is exported when it is first called; from then on calls are the program's.

        model.forward = _sticky_export(model.forward)
    """
    module = forward_func.__self__

    @functools.wraps(forward_func)
    def run(*args, **kwargs):
        if run._exported_artifact is None:
            shapes = dynamic_shapes_callback(*args, **kwargs) if dynamic_shapes_callback else None
            own = vars(module).pop("forward", None)
            try:
                program = export(module, args, kwargs, dynamic_shapes=shapes)
            finally:
                if own is not None:
                    module.forward = own
            run._exported_artifact = program.module()
        return run._exported_artifact(*args, **kwargs)
    run._exported_artifact = None
    return run
