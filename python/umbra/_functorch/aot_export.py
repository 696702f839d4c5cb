"""The graphs of ahead-of-time autograd by themselves: of a module with its state as inputs, or of a function of tensors."""
import dataclasses
import math

from umbra import _C
from umbra._C import Tensor
from umbra._functorch import config
from umbra._functorch.subclasses import has_subclasses
from umbra._higher_order_ops.effects import has_effects
from umbra._options import not_built
from umbra.autograd.grad_mode import _recording
from umbra.func.functionalization import _run as _functional
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.fx.graph_module import GraphModule
from umbra.nn.utils.stateless import _reparametrize_module
from umbra.utils import _pytree as pytree


@dataclasses.dataclass
class BackwardSignature:
    """Which outputs of a joint graph are gradients, and of what."""
    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


@dataclasses.dataclass
class GraphSignature:
    """What the inputs and outputs of an exported graph stand for, by the names of its nodes."""
    parameters: list
    buffers: list
    user_inputs: list
    user_outputs: list
    inputs_to_parameters: dict
    inputs_to_buffers: dict
    buffers_to_mutate: dict
    parameters_to_mutate: dict
    user_inputs_to_mutate: dict
    in_spec: object
    out_spec: object
    backward_signature: object = None
    input_tokens: list = dataclasses.field(default_factory=list)
    output_tokens: list = dataclasses.field(default_factory=list)


def _told_apart(inputs):
    """The inputs, a tensor that is given twice as two that share its memory; and whether there is one."""
    seen, apart = set(), []
    for value in inputs:
        if isinstance(value, Tensor) and id(value) in seen:
            value = value.detach().requires_grad_(value.requires_grad)
        seen.add(id(value))
        apart.append(value)
    return apart, any(a is not b for a, b in zip(apart, inputs))


def _graphs(function, inputs, decompositions, with_gradients):
    """The graph of a function from a list of tensors to one, and what is known of its inputs and outputs."""
    import umbra
    if config.functionalize_rng_ops:
        raise RuntimeError("Functionalized RNG is not currently supported in the aot_export workflow. Please file a github issue, or otherwise set "
                           "torch._functorch.config.functionalize_rng_ops = False.")
    if has_subclasses(inputs):
        raise RuntimeError("aot_export is not currently supported with traceable tensor subclass.")
    inputs, twice = _told_apart(inputs)
    with _recording(with_gradients):
        found = _C._aot_compile(function, "default", None, None, None, decompositions, False, 0, False).graphs(inputs)
    if len(set(found["arguments"])) != len(inputs):
        raise RuntimeError(f"Encountered {'duplicated' if twice else 'aliased'} inputs that are mutated in the graph you are trying to export.\n"
                           "This functionality is currently not supported. If needed, please file a github issue.")
    if len(found["primals"]) != len(inputs):
        raise NotImplementedError("export of a function that closes over tensors: make each an input")
    if any(primal["changes_metadata"] for primal in found["primals"]):
        raise RuntimeError("Found an input that received a metadata mutation, through e.g. a call to `.resize_()` or `.transpose_()`.\n"
                           "This is currently banned in the aot_export workflow. If you need this functionality, please file a github issue.")
    if not all(output["is_tensor"] for output in found["outputs"]):
        raise NotImplementedError("export of a function whose results are not all tensors")
    return GraphModule._wrap(found["joint"]), found


def _flat_results(result, message):
    if not isinstance(result, (tuple, list)):
        raise RuntimeError(message)
    return pytree.tree_flatten(result)


def _placeholders(module):
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _output_node(module):
    return next(node for node in module.graph.nodes if node.op == "output")


def _check_loss(outputs, loss):
    for i, output in enumerate(outputs):
        if i != loss and output["requires_grad"]:
            raise RuntimeError("Found an output of the forward that requires gradients, that was not the scalar loss.\nWe require all outputs to the "
                               "forward that are not the scalar loss to not require gradient,\nbecause we will only compute a backward graph "
                               "against the scalar loss.\nYou can fix this by calling .detach() on each of your forward outputs that is not the "
                               f"loss.\nYou specified that output index {loss} is the loss, but we found that\nthe output at index {i} requires "
                               "gradients.")
    shape = tuple(outputs[loss]["sizes"])
    if math.prod(shape) != 1:
        raise RuntimeError(f"We require the output marked as the loss (at index {loss}) to be a scalar, but it has shape torch.Size({list(shape)})")
    if not outputs[loss]["requires_grad"]:
        raise RuntimeError(f"The output at index {loss} was marked as the loss, but it does not require gradients")


def _start_from_one(module, loss_node):
    """The gradient of the loss, an input of the joint graph, becomes ones: there the backward begins."""
    import umbra
    graph = module.graph
    (tangent,) = [node for node in graph.nodes if node.op == "placeholder" and node.name.startswith("tangents_")]
    with graph.inserting_before(min(tangent.users)) if tangent.users else graph.inserting_after(loss_node):
        ones = graph.create_node("call_function", umbra.ops.aten.ones_like.default, (loss_node,),
                                 {"pin_memory": False, "memory_format": umbra.preserve_format}, name="ones_like")
    ones.meta["val"] = tangent.meta["val"]
    tangent.replace_all_uses_with(ones)
    graph.erase_node(tangent)


def aot_export_module(mod, args, *, decompositions=None, trace_joint, output_loss_index=None, pre_dispatch=False, dynamic_shapes=None, kwargs=None):
    """The functional graph of a module's forward, with parameters and buffers as its first inputs, and its signature. With `trace_joint` it computes
    the gradients of one of the outputs, the loss, too."""
    not_built("aot_export_module", dynamic_shapes=(dynamic_shapes, None))
    if pre_dispatch and trace_joint:
        raise RuntimeError("pre_dispatch is not supported when trace_joint is True.")
    if trace_joint and output_loss_index is None:
        raise RuntimeError("If trace_joint=Trueit is required that one of your forward outputs must be a scalar loss.\n"
                           "You must specify the which (index) output is the loss with output_loss_index.")
    parameters, buffers = dict(mod.named_parameters(remove_duplicate=False)), dict(mod.named_buffers(remove_duplicate=False))
    names = [*parameters, *buffers]
    leaves, in_spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
    out_spec = None

    def run(tensors):
        nonlocal out_spec
        given, named = pytree.tree_unflatten(tensors[len(names):], in_spec)
        with _reparametrize_module(mod, dict(zip(names, tensors))):
            result = mod(*given, **named)
        flat, out_spec = _flat_results(result, "Graph output must be a (). This is so that we can avoid pytree processing of the outputs. Please change "
                                               "the module to have tuple outputs or use aot_module instead.")
        return flat
    inputs = [*parameters.values(), *buffers.values(), *leaves]
    module, found = _graphs(run, inputs, decompositions, trace_joint)
    if pre_dispatch:
        module = _graph_above_autograd(run, inputs, decompositions)
        if any(has_effects(node.target) for node in module.graph.nodes):
            raise NotImplementedError("aot_export_module(pre_dispatch=True) of a module with effects is not in Umbra yet")
        found["forward_outputs"] -= found["tokens"]
        found["tokens"] = 0
    for i, node in enumerate(_placeholders(module)[:found["tokens"] + len(inputs)]):
        node.target = f"arg{i}_1"
        node.name = node.target
    # The graph's own: tensors of the module come first.
    all_in = pytree.tree_structure(((*inputs[:len(names)], *args), dict(kwargs or {})))
    signature = _sign(module, found, list(parameters), list(buffers), all_in, out_spec)
    if found["backward_tokens"]:
        raise NotImplementedError("aot_export_module of a module whose backward has effects is not in Umbra yet")
    if trace_joint:
        _check_loss(found["outputs"], output_loss_index)
        if any(primal["tracked"] for primal in found["primals"]):
            raise RuntimeError("Found an input that is written in a way that needs a gradient: only the loss may need one in a joint graph")
        signature.backward_signature = _keep_gradients(module, found, list(parameters), output_loss_index)
    return module, signature


def _graph_above_autograd(function, inputs, decompositions):
    """The functional graph with the calls as they are above autograd: what is made of other operators stays whole, where it neither writes nor gives
    views. What the function writes to its inputs comes first among the results."""
    import umbra
    module = make_fx(lambda *args: tuple(_functional(lambda *values: function(list(values)), args, {}, True)), decomposition_table=decompositions,
                     tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True)(*inputs)
    graph, written = module.graph, {}
    for node in list(graph.nodes):
        if node.target is umbra.ops.aten.copy_.default:
            written[node.args[0]] = node.args[1]
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
    output = _output_node(module)
    output.args = ((*[written[node] for node in graph.nodes if node in written], *output.args[0]),)
    graph.eliminate_dead_code()
    module.recompile()
    return module


def _sign(module, found, parameters, buffers, in_spec, out_spec):
    inputs = [node.name for node in _placeholders(module)]
    outputs = [node.name for node in _output_node(module).args[0][:found["forward_outputs"]]]
    tokens, inputs = inputs[:found["tokens"]], inputs[found["tokens"]:]
    last_tokens, outputs = outputs[:found["tokens"]], outputs[found["tokens"]:]
    kinds = [*[("parameter", name) for name in parameters], *[("buffer", name) for name in buffers]]
    kinds += [("input", name) for name in inputs[len(kinds):len(found["primals"])]]
    changed = {"parameter": {}, "buffer": {}, "input": {}}
    written = [kind for kind, primal in zip(kinds, found["primals"]) if primal["written"]]
    for output, (kind, name) in zip(outputs, written):
        changed[kind][output] = name
    return GraphSignature(parameters, buffers, [name for kind, name in kinds if kind == "input"], outputs[len(written):],
                          dict(zip(inputs, parameters)), dict(zip(inputs[len(parameters):], buffers)), changed["buffer"], changed["parameter"],
                          changed["input"], in_spec, out_spec, input_tokens=tokens, output_tokens=last_tokens)


def _keep_gradients(module, found, parameters, loss):
    """Leaves the gradients of what needs one among the outputs of a joint graph, and says which is which."""
    count = found["forward_outputs"]
    node = _output_node(module)
    outputs = list(node.args[0])
    loss_node = outputs[found["tokens"] + sum(primal["written"] for primal in found["primals"]) + loss]
    inputs = [n.name for n in _placeholders(module)[found["tokens"]:]]
    signature = BackwardSignature({}, {}, loss_node.name)
    kept = outputs[:count]
    for i, (primal, gradient) in enumerate(zip(found["primals"], outputs[count:])):
        if not primal["requires_grad"]:
            continue
        kept.append(gradient)
        if gradient is not None and i < len(parameters):
            signature.gradients_to_parameters[gradient.name] = parameters[i]
        elif gradient is not None:
            signature.gradients_to_user_inputs[gradient.name] = inputs[i]
    node.args = (tuple(kept),)
    _start_from_one(module, loss_node)
    module.recompile()
    return signature


def _of_primals_and_tangents(module, found):
    """The joint graph as a function of (primals, tangents) that gives (outputs, gradients)."""
    primals, output = len(found["primals"]), _output_node(module)
    results = list(output.args[0])
    output.args = (results,)
    count = found["forward_outputs"]
    in_spec = pytree.tree_structure(([0] * primals, [0] * (len(_placeholders(module)) - primals)))
    out_spec = pytree.tree_structure(((0,) * count, (0,) * (len(results) - count)))
    module.graph._set_pytree(["primals", "tangents"], None, True)
    object.__setattr__(module, "_specs", (in_spec, out_spec))
    module._in_spec, module._out_spec = in_spec, out_spec
    module.recompile()
    return module


def aot_export_joint_simple(func, args, *, trace_joint, num_params_buffers=0, decompositions=None):
    """The graph of a function of tensors that writes none of them: by itself, or with its gradients as a function of (primals, tangents)."""
    if pytree.tree_structure(tuple(args)) != pytree.tree_structure((0,) * len(args)):
        raise RuntimeError("aot_export_joint_simple requires individual inputs not to be pytrees.")

    def run(tensors):
        return _flat_results(func(*tensors), "aot_export_joint_simple requires outputs to be a single list/tuple.")[0]
    module, found = _graphs(run, list(args), decompositions, trace_joint)
    if found["tokens"] or found["backward_tokens"]:
        raise RuntimeError("aot_export_joint_simple does not support effects: the graph would take and give tokens.")
    if any(primal["written"] for primal in found["primals"]):
        raise RuntimeError("aot_export_joint_simple does not support input mutations.")
    if any(output["aliases_input"] for output in found["outputs"]):
        raise RuntimeError("aot_export_joint_simple does not support outputs that alias inputs.")
    differentiable = any(node.op == "placeholder" and node.name.startswith("tangents_") for node in module.graph.nodes)
    return _of_primals_and_tangents(module, found) if differentiable else module
