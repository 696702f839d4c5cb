"""A module's tensors and children by their names, put in each other's place."""
from umbra._C import Tensor
from umbra.nn.utils.stateless import _missing as _MISSING, _Place


def _checked_name(name, kind):
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def set_tensor(module, name, tensor):
    """Puts a tensor where the module keeps the one of this name."""
    _checked_name(name, "tensor")
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    _Place(module, name).swap(tensor)


def swap_tensor(module, name, tensor, allow_missing=False):
    """Puts a tensor where the module keeps the one of this name, and gives that one. `_MISSING` stands for none."""
    _checked_name(name, "tensor")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    place = _Place(module, name)
    if name not in place.values and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    return place.swap(tensor)


def swap_submodule(module, name, submodule):
    """Puts a child in the place of the one of this name, and gives that one."""
    _checked_name(name, "submodule")
    if name not in module._modules:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    before, module._modules[name] = module._modules[name], submodule
    return before
