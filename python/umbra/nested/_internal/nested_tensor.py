"""How files describe jagged tensors."""
from umbra.nested._tensor import JaggedTensor

NestedTensor = JaggedTensor


def _rebuild_njt(parts):
    """A jagged tensor of what a file says: values, offsets, lengths, and which dimension is the ragged one."""
    made = JaggedTensor(parts["values"], parts["offsets"], parts.get("lengths"), parts.get("_ragged_idx", 1))
    return made.requires_grad_() if parts.get("requires_grad") else made
