"""The backward graph: its nodes, and hooks on what is saved for it."""
import contextlib
import functools
from typing import Any, NamedTuple

import umbra
from umbra import _C
from umbra._C import _AutogradNode as Node
from umbra.utils._contextlib import whole


@whole
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
    """What backward needs is kept on the CPU while the scope lasts."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


@whole
class disable_saved_tensors_hooks(contextlib.ContextDecorator):
    """Hooks of saved tensors are refused in the scope, with this message."""

    def __init__(self, error_message):
        self.message = error_message

    def __enter__(self):
        if _C._has_saved_tensor_hooks():
            raise RuntimeError(self.message)
        self._before = _C._saved_tensor_hooks_disabled()
        _C._disable_saved_tensor_hooks(self.message)

    def __exit__(self, *exception):
        _C._disable_saved_tensor_hooks(self._before)


class _MultiHook:
    """Hooks on several tensors that go together."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls `fn` with the gradients of all tensors, None for those that take no part, when a backward pass has computed them; with the first one that is
    there where `mode` is "any"."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = [_C._as_captured(tensor) for tensor in tensors]
    nodes = [_history(tensor) for tensor in tensors]
    passes = {}  # by backward pass: the gradients that are there
    if mode == "any":
        seen = set()

        def first(gradient):
            task = _C._backward_pass()
            if task not in seen:
                seen.clear()
                seen.add(task)
                fn(gradient)
        return _MultiHook([tensor.register_hook(first) for tensor in tensors])

    def collect(place, gradient):
        task = _C._backward_pass()
        found = passes.setdefault(task, {})
        found[place] = gradient
        if len(found) == sum(_C._will_engine_execute_node(node) for node in nodes):
            fn([passes[task].get(i) for i in range(len(tensors))])
            del passes[task]
    return _MultiHook([tensor.register_hook(functools.partial(collect, i)) for i, tensor in enumerate(tensors)])


def _history(tensor):
    """The node that a tensor's gradient flows into."""
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    import umbra
    with umbra.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]


class GradientEdge(NamedTuple):
    """Where gradients flow: a node, and which of its outputs. `ownership_token` is what else the place is to keep alive."""
    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor):
    """Where the gradient of a tensor flows to."""
    tensor = _C._as_captured(tensor)
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    if node is None:  # a leaf: what adds to its .grad
        with umbra.enable_grad():
            node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return GradientEdge(node, tensor.output_nr)


def queue_callback(callback):
    """Calls `callback()` when the backward pass that is running has ended."""
    if not _C._backward_pass():
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _C._after_backward(callback)


def increment_version(tensor):
    """Tells autograd that the tensor, or each of several, was written by something it does not see."""
    try:
        tensors = (tensor,) if isinstance(tensor, umbra.Tensor) else list(tensor)
    except TypeError:
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input") from None
    for written in tensors:
        if not isinstance(written, umbra.Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        _C._increment_version(written)


def __getattr__(name):
    if name != "allow_mutation_on_saved_tensors":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from umbra.autograd._saved_mutation import allow_mutation_on_saved_tensors  # needs modes, which need this module
    return allow_mutation_on_saved_tensors
