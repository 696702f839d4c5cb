"""Hooks: the handle that takes one away, and hooks on the gradients that pass through a module."""
import itertools
import os
import sys
import warnings
import weakref

from umbra import _C
from umbra._C import Tensor
from umbra.autograd.function import Function


class RemovableHandle:
    """Takes a hook away again."""
    _ids = itertools.count()

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks, self.id = hooks_dict, next(self._ids)
        self.marks = (extra_dict,) if isinstance(extra_dict, dict) else tuple(extra_dict or ())

    @property
    def hooks_dict_ref(self):
        return weakref.ref(self.hooks)

    def remove(self):
        for kept in (self.hooks, *self.marks):
            kept.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class _KeptElsewhere:
    """Stands for the hooks of a tensor, which it keeps itself."""

    def __init__(self, handle):
        self.handle = handle

    def pop(self, *_):
        self.handle.remove()


def handle_of(hook):
    """The handle of a hook that a tensor or a node keeps."""
    return RemovableHandle(_KeptElsewhere(hook))


def add_hook(hooks, hook, prepend=False, marks=()):
    """Adds a hook to an ordered dict of them, and its number to each of the dicts that mark what it is; gives the handle that takes it away."""
    handle = RemovableHandle(hooks, extra_dict=list(marks))
    hooks[handle.id] = hook
    for marked in marks:
        marked[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _level_of_caller():
    """How many frames above the caller the first one is that is no part of this package, as warnings count them."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


class BackwardHook:
    """One call of a module whose gradients are watched.

    The tensors among its arguments and results go through a node each, which changes nothing on the way forward and shows the gradients on
    the way back. Hooks are called as hook(module, grad_input, grad_output), pre-hooks as hook(module, grad_output).
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.input_count = 0
        self.watches_inputs = False

    def setup_input_hook(self, args):
        self.input_count = len(args)
        args, self.watches_inputs = _pass_through(self._at_inputs, args)
        return args

    def setup_output_hook(self, result):
        if isinstance(result, tuple):
            return _pass_through(self._at_outputs, result, as_they_come=True)[0]
        if not isinstance(result, Tensor):
            warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                          f"{type(result)}", stacklevel=5)
            return result
        return _pass_through(self._at_outputs, (result,), as_they_come=True)[0][0]

    def _at_outputs(self, grad_outputs):
        for hook in self.pre_hooks:
            replaced = hook(self.module, grad_outputs)
            if replaced is not None:
                grad_outputs = _expect_count(replaced, len(grad_outputs), "Backward pre hook returned an invalid number of grad_output")
        self.grad_outputs = grad_outputs
        if not self.watches_inputs:
            if self.hooks:
                warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
                              "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                              "register_full_backward_hook for more details.", stacklevel=_level_of_caller())
            for hook in self.hooks:
                replaced = hook(self.module, (None,) * self.input_count, grad_outputs)
                if replaced is not None and not (isinstance(replaced, tuple) and all(part is None for part in replaced)):
                    raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None for all "
                                       "gradients.")
        return grad_outputs

    def _at_inputs(self, grad_inputs):
        if self.grad_outputs is None:  # the backward pass did not come through the module's results
            return grad_inputs
        for hook in self.hooks:
            replaced = hook(self.module, grad_inputs, self.grad_outputs)
            if replaced is not None:
                grad_inputs = _expect_count(replaced, len(grad_inputs), "Backward hook returned an invalid number of grad_input")
        self.grad_outputs = None
        return grad_inputs


class BackwardHookFunction(Function):
    """Hands tensors on unchanged; `see` is shown the gradients, zeros where there is none, and says what goes on."""

    @staticmethod
    def forward(ctx, see, *tensors):
        ctx.see = see
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *(ctx.see(gradients) if ctx.see else gradients))


def _pass_through(see, values, as_they_come=False):
    """The values, their tensors through a gate if any needs a gradient; and whether one does. `as_they_come` shows the gradients that are there,
    before there are zeros in place of the others."""
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not (_C.is_grad_enabled() and any(values[i].requires_grad for i in positions)):
        return values, False

    def see_all(gradients):
        spread = [None] * len(values)
        for i, gradient in zip(positions, gradients):
            spread[i] = gradient
        replaced = see(tuple(spread))
        return tuple(replaced[i] for i in positions)
    gated = BackwardHookFunction.apply(None if as_they_come else see_all, *[values[i] for i in positions])
    if as_they_come:
        next(tensor.grad_fn for tensor in gated if tensor.requires_grad).register_prehook(see_all)
    passed = list(values)
    for i, tensor in zip(positions, gated):
        passed[i] = tensor
    return (type(values)(*passed) if hasattr(values, "_fields") else tuple(passed)), True


def _expect_count(gradients, count, complaint):
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    if len(gradients) != count:
        raise RuntimeError(f"{complaint}, got {len(gradients)}, but expected {count}")
    return gradients


def unserializable_hook(function):
    """Marks a hook that is not to be saved with its tensor."""
    function.__torch_unserializable__ = True
    return function
