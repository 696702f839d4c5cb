"""In which modules the program is, in the forward and in the backward pass.

    with ModuleTracker() as tracker:
        model(x).sum().backward()      # hooks inside may look at tracker.parents
"""
import weakref

from umbra import _C
from umbra.autograd import Variable
from umbra.autograd.graph import register_multi_grad_hook
from umbra.nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from umbra.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


def _differentiable(values):
    return [value for value in tree_leaves(values) if isinstance(value, _C.Tensor) and value.requires_grad]


class ModuleTracker:
    """`parents` are the names of the modules that are being run, "Global" always among them: `Net`, `Net.layers.0`."""

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._seen = weakref.WeakSet()
        self._clears_up = set()  # backward passes at whose end the parents are forgotten

    @property
    def is_bw(self):
        """Whether a backward pass is running."""
        return _C._backward_pass() != 0

    def _name(self, module):
        if module not in self._names:
            self._names[module] = type(module).__name__
        if module not in self._seen:
            for name, child in module.named_children():
                self._names.setdefault(child, f"{self._names[module]}.{name}")
                self._name(child)  # lists of modules are never called themselves
            self._seen.add(module)
        return self._names[module]

    def _enter(self, name):
        if self.is_bw and (task := _C._backward_pass()) not in self._clears_up:
            # A module whose inputs need no gradient is never seen to end.
            self._clears_up.add(task)
            Variable._execution_engine.queue_callback(lambda: self._forget(task))
        self.parents.add(name)

    def _forget(self, task):
        self._clears_up.discard(task)
        self.parents = {"Global"}

    def _before_forward(self, module, args):
        name = self._name(module)
        self._enter(name)
        if inputs := _differentiable(args):
            register_multi_grad_hook(inputs, lambda gradients: self.parents.discard(name))

    def _after_forward(self, module, _, output):
        name = self._name(module)
        self.parents.discard(name)
        if outputs := _differentiable(output):
            register_multi_grad_hook(outputs, lambda gradients: self._enter(name))

    def __enter__(self):
        self._hooks = (register_module_forward_pre_hook(self._before_forward), register_module_forward_hook(self._after_forward, always_call=True))
        return self

    def __exit__(self, *exception):
        for hook in self._hooks:
            hook.remove()
