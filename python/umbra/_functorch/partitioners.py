"""How a joint graph is cut in two."""
from umbra import _C
from umbra._options import not_built
from umbra.fx.graph_module import GraphModule


def default_partition(joint_module, _, *, num_fwd_outputs, static_lifetime_input_indices=None, static_lifetime_input_nodes=None):
    """The forward and the backward graph of a joint graph; every forward value that the backward reads is kept. Joint graphs have their gradients'
    inputs named `tangents_...`."""
    not_built("default_partition", static_lifetime_input_indices=(static_lifetime_input_indices, None),
              static_lifetime_input_nodes=(static_lifetime_input_nodes, None))
    return _cut("default", joint_module, num_fwd_outputs)


def min_cut_rematerialization_partition(joint_module, _, compiler="inductor", *, num_fwd_outputs, static_lifetime_input_indices=None):
    """The same with the least bytes kept; pointwise operators and views are computed again in the backward."""
    not_built("min_cut_rematerialization_partition", compiler=(compiler, "inductor"),
              static_lifetime_input_indices=(static_lifetime_input_indices, None))
    return _cut("min_cut", joint_module, num_fwd_outputs)


def _cut(name, joint_module, num_fwd_outputs):
    joint_module._update_handle()
    primals = sum(node.op == "placeholder" and not node.name.startswith("tangents_") for node in joint_module.graph.nodes)
    forward, backward = _C._aot_cut(joint_module._handle, name, primals, num_fwd_outputs)
    return GraphModule._wrap(forward), GraphModule._wrap(backward)


def partitioner(partition_fn):
    """A partition function as compiled functions take it: a name, or a function of (joint graph, number of primals, number of forward outputs)."""
    names = {default_partition: "default", min_cut_rematerialization_partition: "min_cut"}
    if partition_fn in names:
        return names[partition_fn]

    def cut(handle, primals, forward_outputs):
        joint = GraphModule._wrap(handle)
        values = [node.meta.get("val") for node in joint.graph.nodes if node.op == "placeholder"]
        parts = partition_fn(joint, (values[:primals], values[primals:]), num_fwd_outputs=forward_outputs)
        for part in parts:
            part._update_handle()
        return tuple(part._handle for part in parts)
    return cut
