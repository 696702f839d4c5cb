"""The backward graph: its nodes, and hooks on what is saved for it."""
from typing import NamedTuple

from umbra import _C
from umbra._C import _AutogradNode as Node


class saved_tensors_hooks:
    """Tensors saved inside are kept as what `pack_hook` makes of them, and read through `unpack_hook`."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        message = _C._saved_tensor_hooks_disabled()
        if message is not None:
            raise RuntimeError(message)
        _C._push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *exception):
        _C._pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks:
    def __init__(self, error_message):
        self.message = error_message

    def __enter__(self):
        self._before = _C._saved_tensor_hooks_disabled()
        _C._disable_saved_tensor_hooks(self.message)

    def __exit__(self, *exception):
        _C._disable_saved_tensor_hooks(self._before)


class GradientEdge(NamedTuple):
    node: Node
    output_nr: int


def get_gradient_edge(tensor):
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(tensor.grad_fn, tensor.output_nr)
