"""How a joint graph is cut in two."""


def default_partition(joint_module, joint_inputs, *, num_fwd_outputs, **_):
    """Keeps every forward value that the backward reads."""
    raise NotImplementedError("hand default_partition to aot_function as its partition_fn")


def min_cut_rematerialization_partition(joint_module, joint_inputs, compiler="inductor", *, num_fwd_outputs, **_):
    """Keeps the least bytes; pointwise operators and views are computed again in the backward."""
    raise NotImplementedError("hand min_cut_rematerialization_partition to aot_function as its partition_fn")


def partitioner_name(partition_fn):
    names = {default_partition: "default", min_cut_rematerialization_partition: "min_cut"}
    if partition_fn not in names:
        raise NotImplementedError(f"partition_fn={partition_fn!r}: only default_partition and min_cut_rematerialization_partition are in Umbra yet")
    return names[partition_fn]
