"""Calling a module with other tensors in place of its own."""
import contextlib

from umbra._C import Tensor
from umbra._options import not_built


def _owner(module, path):
    holder, _, name = path.rpartition(".")
    return module.get_submodule(holder), name


def _own_tensors(module):
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _with_tied_names(module, given):
    """`given`, with each tensor under all the names that the module has for what it replaces."""
    names = {}
    for path, tensor in _own_tensors(module).items():
        names.setdefault(id(tensor), []).append(path)
    tied = {path: group for group in names.values() if len(group) > 1 for path in group}
    out = dict(given)
    for path, tensor in given.items():
        group = tied.get(path, ())
        if any(out.get(other, tensor) is not tensor for other in group):
            raise ValueError(f"functional_call got multiple values for keys {sorted(other for other in group if other in given)}, which are tied. "
                             "Consider using tie_weights=False")
        out.update((other, tensor) for other in group)
    return out


def _check_names(module, given):
    own = _own_tensors(module)
    problems = []
    for what, names in (("Unexpected key(s)", given.keys() - own.keys()), ("Missing key(s)", own.keys() - given.keys())):
        if names:
            problems.append(f"\n\t{what}: " + ", ".join(f"'{name}'" for name in sorted(names)) + ".")
    if problems:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:" + "".join(problems))


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False, stack_weights=False):
    """Inside, the named tensors stand in for the module's parameters and buffers."""
    not_built("_reparametrize_module", stack_weights=(stack_weights, False))
    given = _with_tied_names(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_names(module, given)
    saved = []
    try:
        for path, tensor in given.items():
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"{tensor} is not an instance of torch.Tensor")
            owner, name = _owner(module, path)
            holder = owner._parameters if name in owner._parameters else owner._buffers
            saved.append((holder, name, name in holder, holder.get(name), tensor, path))
            holder[name] = tensor
        yield
    finally:
        for holder, name, known, before, tensor, path in reversed(saved):
            if holder.get(name) is not tensor:  # a forward that assigned a buffer: the caller sees the new one
                parameters_and_buffers[path] = holder.get(name)
            if known:
                holder[name] = before
            else:
                holder.pop(name, None)


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Calls the module with the given tensors in place of its own. Weights that are tied are replaced under all their names; `strict`: every
    parameter and buffer is given, and nothing else."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, dict(parameters_and_buffers), tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
