"""Calling a module with other tensors in place of its own."""
import contextlib


def _owner(module, path):
    holder, _, name = path.rpartition(".")
    return module.get_submodule(holder), name


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False, stack_weights=False):
    """Inside, the named tensors stand in for the module's parameters and buffers."""
    saved = []
    try:
        for path, tensor in parameters_and_buffers.items():
            owner, name = _owner(module, path)
            holder = owner._parameters if name in owner._parameters else owner._buffers
            saved.append((holder, name, holder.get(name), tensor))
            holder[name] = tensor
        yield
    finally:
        for holder, name, before, given in reversed(saved):
            if holder.get(name) is not given:  # a forward that assigned a buffer: the caller sees the new one
                parameters_and_buffers[name] = holder.get(name)
            holder[name] = before


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, dict(parameters_and_buffers), tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
