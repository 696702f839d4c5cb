"""Calling a module with other tensors in place of its own."""
import contextlib
import itertools
import warnings

from umbra import _C
from umbra._C import Tensor
from umbra._options import not_built
from umbra.nn.parameter import Parameter
from umbra.utils._contextlib import uninterrupted


class _Place:
    """Where a module keeps a tensor: among its parameters or buffers, or as an attribute, which may not be there yet."""

    def __init__(self, module, path):
        holder, _, self.name = path.rpartition(".")
        if not self.name:
            raise KeyError('tensor name can\'t be empty string ""')
        for part in holder.split(".") if holder else ():
            if part in module._modules:  # a method of that name would hide it
                module = module._modules[part]
                continue
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
        self.module = module
        if self.name in module._parameters:
            self.values = module._parameters
        elif self.name in module._buffers:
            self.values = module._buffers
        else:
            self.values = module.__dict__
            present = getattr(module, self.name, None)
            if present is not None and not isinstance(present, Tensor):
                raise TypeError(f"attribute `{self.name}`: {present} is not an instance of torch.Tensor")

    def swap(self, value):
        """Puts a value there and gives the one before, `_missing` where there is none."""
        if isinstance(value, Parameter) and self.values is self.module.__dict__ and self.name not in self.values:
            self.values = self.module._parameters  # as if it had been set
        before = self.values.pop(self.name, _missing) if value is _missing else self.values.get(self.name, _missing)
        if value is not _missing:
            self.values[self.name] = value
        return before


_missing = object()


def _named_tensors(module):
    return itertools.chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False))


def _with_tied_names(module, given):
    """The tensors under all names of those they stand in for: of tied ones it is enough to give one."""
    names_of = {}
    for name, tensor in _named_tensors(module):
        names_of.setdefault(id(tensor), []).append(name)
    tied = dict(given)
    for names in names_of.values():
        named = [name for name in names if name in given]
        if len({id(given[name]) for name in named}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(named)}, which are tied. Consider using tie_weights=False")
        tied.update((name, given[named[0]]) for name in names if named)
    return tied


def _check_names(module, given):
    known = [name for name, _ in _named_tensors(module)]
    unexpected, missing = sorted(set(given) - set(known)), sorted(set(known) - set(given))
    lines = [f"\n\t{kind} key(s): {', '.join(map(repr, names))}." for kind, names in (("Unexpected", unexpected), ("Missing", missing)) if names]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:" + "".join(lines))


@uninterrupted
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False, stack_weights=False):
    """Inside, the named tensors stand in for the module's parameters and buffers. What the module put in their places meanwhile
    is in `parameters_and_buffers` afterwards."""
    not_built("_reparametrize_module", stack_weights=(stack_weights, False))
    given = _with_tied_names(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        _check_names(module, given)
    swapped = []
    try:
        for path, tensor in given.items():
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"{tensor!r} is not an instance of torch.Tensor")
            place = _Place(module, path)
            swapped.append((path, place, place.swap(tensor)))
        yield
    finally:
        for path, place, before in reversed(swapped):
            after = place.swap(before)
            if path in parameters_and_buffers and after is not parameters_and_buffers[path]:
                parameters_and_buffers[path] = after


@uninterrupted
def _standing_in(module, named):
    """The same on this thread alone: the others see the module as it is. For captures, where what asks a module's `__dict__` itself finds the tensors that
    are there, which are then closed over."""
    holders = {}
    for path in named:
        holder, _, name = path.rpartition(".")
        part = module.get_submodule(holder)
        holders.setdefault(id(part), (part, {}))[1].setdefault(name, []).append(path)
    with contextlib.ExitStack() as stack:
        swapped = {}
        for part, names in holders.values():
            seen = [{name: named[names[name][-1]] if name in names else value for name, value in getattr(part, kind).items()} for kind in _KINDS]
            if _C._enter_stand_ins(part, *seen):
                stack.callback(_leave, part, names, seen, named)
            else:
                swapped.update((path, named[path]) for paths in names.values() for path in paths)
        with _reparametrize_module(module, swapped) if swapped else contextlib.nullcontext():
            yield
        named.update((path, tensor) for path, tensor in swapped.items() if tensor is not named[path])


def _leave(part, names, seen, named):
    """Other threads see what was changed besides the stand-ins; what was put in the places of these is in `named`."""
    _C._leave_stand_ins(part)
    after = {name: value for members in seen for name, value in members.items() if name in names}
    for name, paths in names.items():
        for path in paths:
            if after.get(name, _missing) is not named[path]:
                named[path] = after.get(name, _missing)
    for kind, members in zip(_KINDS, seen):
        own = getattr(part, kind)
        for name in own.keys() - members.keys() - names.keys():
            del own[name]
        own.update((name, value) for name, value in members.items() if name not in names and own.get(name, _missing) is not value)


_KINDS = ("_parameters", "_buffers")


def _one_dict(parameter_and_buffer_dicts):
    if isinstance(parameter_and_buffer_dicts, dict):
        return parameter_and_buffer_dicts
    dicts = parameter_and_buffer_dicts
    if not isinstance(dicts, (tuple, list)):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}")
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for d in dicts for name, tensor in d.items()}


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """`torch.func.functional_call` under its old name."""
    warnings.warn("`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. "
                  "Please use `torch.func.functional_call` instead which is a drop-in replacement.", FutureWarning, stacklevel=2)
    from umbra.func.modules import functional_call as call
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
