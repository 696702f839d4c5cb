"""Hooks of modules: those of one module, those of all, and a call of a module with hooks around it."""
import collections
import warnings
import weakref

from umbra._C import Tensor
from umbra.utils.hooks import BackwardHook, add_hook


class _Hooks:
    """The hooks of one kind that all modules share; those with an attribute of their own are known by their numbers."""

    def __init__(self):
        self.hooks = collections.OrderedDict()
        self.with_kwargs, self.always_called = {}, {}

    def add(self, hook, with_kwargs=False, always_call=False):
        return add_hook(self.hooks, hook, marks=[self.with_kwargs] * with_kwargs + [self.always_called] * always_call)


forward, forward_pre, backward, backward_pre = _Hooks(), _Hooks(), _Hooks(), _Hooks()
parameter_registration, buffer_registration, module_registration = _Hooks(), _Hooks(), _Hooks()
AROUND_CALLS = tuple(kind.hooks for kind in (forward, forward_pre, backward, backward_pre))
_full_backward = None  # whether the global backward hooks are of the full kind


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """`hook(module, args, output)` after the forward of every module; what it returns takes the place of the output."""
    return forward.add(hook, with_kwargs, always_call)


def register_module_forward_pre_hook(hook):
    """`hook(module, args)` before the forward of every module; what it returns takes the place of the arguments."""
    return forward_pre.add(hook)


def _add_backward(hook, full):
    global _full_backward
    if backward.hooks and _full_backward is not full:
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them.")
    _full_backward = full
    return backward.add(hook)


def register_module_backward_hook(hook):
    """`hook(module, grad_input, grad_output)` at the last operator of every module. `register_module_full_backward_hook` sees whole modules."""
    return _add_backward(hook, False)


def register_module_full_backward_hook(hook):
    """`hook(module, grad_input, grad_output)` when the gradients of a module's inputs are known."""
    return _add_backward(hook, True)


def register_module_full_backward_pre_hook(hook):
    """`hook(module, grad_output)` before the backward of every module."""
    return backward_pre.add(hook)


def register_module_parameter_registration_hook(hook):
    """`hook(module, name, parameter)` for each parameter that is registered; what it returns takes its place."""
    return parameter_registration.add(hook)


def register_module_buffer_registration_hook(hook):
    """`hook(module, name, buffer)` for each buffer that is registered; what it returns takes its place."""
    return buffer_registration.add(hook)


def register_module_module_registration_hook(hook):
    """`hook(module, name, child)` for each child that is registered; what it returns takes its place."""
    return module_registration.add(hook)


def registered(kind, module, name, value):
    """What the hooks of a kind of registration make of a value."""
    for hook in list(kind.hooks.values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


class HookOfModule:
    """A hook that is told its module, which it does not keep alive; it can be saved with the module."""

    def __init__(self, hook, module):
        self.__setstate__({"hook": hook, "module": module})

    def __call__(self, *args):
        return self.hook(self._module(), *args)

    def __getstate__(self):
        return {"hook": self.hook, "module": self._module()}

    def __setstate__(self, state):
        self.hook, self._module = state["hook"], weakref.ref(state["module"])


# ---- a call with hooks around it ----

def _backward_hooks(module):
    """Hooks of the full kind, and of the kind that sees the last operator only."""
    shared, own = list(backward.hooks.values()), list(module._backward_hooks.values())
    full = [*(shared if _full_backward else []), *([] if module._is_full_backward_hook is False else own)]
    last = [*([] if _full_backward else shared), *(own if module._is_full_backward_hook is False else [])]
    return full, last


def _before(module, args, kwargs):
    for key, hook in (*forward_pre.hooks.items(), *module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            result = hook(module, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}.")
                args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def _after(module, key, hook, args, kwargs, output):
    with_kwargs = key in forward.with_kwargs or key in module._forward_hooks_with_kwargs
    result = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
    return output if result is None else result


def _has_own(module):
    return module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks


def call_with_hooks(module, args, kwargs, forward_call=None):
    """`(forward_call or module.forward)(*args, **kwargs)` with all hooks of the module and of modules in general."""
    if module._stands_for_another and not _has_own(module):
        return (forward_call or module.forward)(*args, **kwargs)
    output, called = None, set()
    try:
        args, kwargs = _before(module, args, kwargs)
        full, last = module._get_backward_hooks()
        pre = module._get_backward_pre_hooks()
        watch = BackwardHook(module, full, pre) if full or pre else None
        if watch:
            args = watch.setup_input_hook(args)
        output = (forward_call or module.forward)(*args, **kwargs)
        for key, hook in (*forward.hooks.items(), *module._forward_hooks.items()):
            called.add(key)
            output = _after(module, key, hook, args, kwargs, output)
    except Exception:
        _call_always(module, called, args, kwargs, output)
        raise
    if watch:
        output = watch.setup_output_hook(output)
    _watch_last_operator(module, last, args, output)
    return output


def _call_always(module, called, args, kwargs, output):
    """After an error: the hooks that are called in any case. Their own errors would hide it."""
    for key, hook in (*forward.hooks.items(), *module._forward_hooks.items()):
        if key not in called and (key in forward.always_called or key in module._forward_hooks_always_called):
            try:
                _after(module, key, hook, args, kwargs, output)
            except Exception as error:
                warnings.warn(f"module forward hook with ``always_call=True`` raised an exception that was silenced as another error was raised in "
                              f"forward: {error}", stacklevel=3)


def _first_tensor(output):
    while not isinstance(output, Tensor):
        if isinstance(output, dict):
            output = next((value for value in output.values() if isinstance(value, Tensor)), None)
        elif isinstance(output, (list, tuple)) and output:
            output = output[0]
        else:
            return None
    return output


def _watch_last_operator(module, hooks, args, output):
    tensor = _first_tensor(output) if hooks else None
    if tensor is None or tensor.grad_fn is None:
        return

    def watcher(hook):
        return lambda grad_inputs, grad_outputs: hook(module, grad_inputs, grad_outputs)
    for hook in hooks:
        tensor.grad_fn.register_hook(watcher(hook))
    _warn_of_missing(args, output, tensor.grad_fn)


def _warn_of_missing(args, output, node):
    """Says where the last operator's gradients are not those of the module."""
    outputs = (output,) if isinstance(output, Tensor) else output
    if not _are_tensors(outputs):
        _warn_of_hook("hooks on a Module that does not return a single Tensor or a tuple of Tensors", "of the grad_output")
    elif not _are_tensors(args):
        _warn_of_hook("hooks on a Module that does not take as input a single Tensor or a tuple of Tensors", "of the grad_input")
    elif len({value.grad_fn for value in outputs} - {None}) > 1:
        _warn_of_hook("hook when outputs are generated by different autograd Nodes", "grad_output")
    elif {value.grad_fn for value in args} - {None} != {following for following, _ in node.next_functions}:
        _warn_of_hook("hook when the forward contains multiple autograd Nodes", "grad_input")


def _are_tensors(values):
    return isinstance(values, tuple) and all(isinstance(value, Tensor) for value in values)


def _warn_of_hook(what, missing):
    article = "" if what.startswith("hooks") else "a "
    warnings.warn(f"Using {article}non-full backward {what} is deprecated and will be removed in future versions. This hook will be missing some {missing}. "
                  "Please use register_full_backward_hook to get the documented behavior.", FutureWarning, stacklevel=4)
