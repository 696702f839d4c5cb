"""Pruning: a mask over a parameter. `name_orig` is the parameter, `name_mask` the mask, and `name` is their product, made before each forward."""
import abc
import numbers

import umbra
from umbra.nn.utils.convert_parameters import parameters_to_vector


# ---- how much ----

def _check_amount(amount):
    """A share of the elements or a number of them."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and float(amount) > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount, size):
    """How many of `size` elements are pruned."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount


def _check_dim(t, dim):
    """A structured method prunes slices along a dimension that the tensor has."""
    if t.dim() <= 1:
        raise ValueError(f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims")
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _other_dims(t, dim):
    return [d for d in range(t.dim()) if d != dim % t.dim()]


# ---- methods ----

class BasePruningMethod(abc.ABC):
    """What decides which elements of a parameter are pruned, and the hook that applies the mask."""

    _tensor_name: str
    PRUNING_TYPE = None

    def __call__(self, module, _):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for elements of these scores, within a mask that is there already."""

    def apply_mask(self, module):
        """The parameter with its pruned elements zero."""
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = getattr(module, self._tensor_name + "_mask"), getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes the module's parameter; a method that is there already and this one make a container."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} vs "
                                 f"{original.shape}")
        key, earlier = _hook_of(module, name)
        if earlier is not None:
            method = PruningContainer(*(earlier if isinstance(earlier, PruningContainer) else (earlier,)), method)
        mask = method.compute_mask(importance_scores, default_mask=_mask_so_far(module, name, original))
        if earlier is not None:
            del module._forward_pre_hooks[key]
        else:
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A tensor with elements pruned, outside any module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}")
        return t * self.compute_mask(importance_scores, default_mask=umbra.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module):
        """Makes the pruned values the parameter; they stay pruned."""
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(self._tensor_name + "_orig")
        original.data = weight.data
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


def _hook_of(module, name):
    """The key and the method of the module's pruning of that parameter, or (None, None)."""
    found = [(key, hook) for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
    if len(found) > 1:
        raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer.")
    return found[0] if found else (None, None)


def _mask_so_far(module, name, original):
    mask = getattr(module, name + "_mask", None)
    return (umbra.ones_like(original) if mask is None else mask).detach().clone(memory_format=umbra.contiguous_format)


class PruningContainer(BasePruningMethod):
    """Methods one after another, each over what the ones before have left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if not args:
            return
        methods = args if len(args) > 1 or isinstance(args[0], BasePruningMethod) else args[0]
        self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Adds a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                             f"Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":  # the slices of which something is left
            kept = mask.sum(dim=_other_dims(t, method.dim)) != 0
            left = tuple(kept if d == method.dim % t.dim() else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        out = mask.clone()
        out[left] = method.compute_mask(t[left], default_mask=mask[left]).to(dtype=out.dtype)
        return out


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes that many elements, wherever they stand: `_chosen` says which."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count, mask = _count(self.amount, t.nelement()), default_mask.clone(memory_format=umbra.contiguous_format)
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _chosen(self, t, count):
        return umbra.topk(umbra.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to zero."""

    def _chosen(self, t, count):
        return umbra.topk(umbra.abs(t).reshape(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _slices_mask(t, dim, kept):
    """Ones in the slices along `dim` that are kept."""
    mask = umbra.zeros_like(t)
    mask[tuple(kept if d == dim % t.dim() else slice(None) for d in range(t.dim()))] = 1
    return mask


class RandomStructured(BasePruningMethod):
    """Prunes slices along a dimension at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        _check_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if not count:
            return default_mask
        drawn = umbra.rand(size)
        kept = drawn > umbra.kthvalue(drawn, k=count).values
        return default_mask * _slices_mask(t, self.dim, kept).to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along a dimension whose norm is least."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t, default_mask):
        _check_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        norms = umbra.norm(t, p=self.n, dim=_other_dims(t, self.dim))
        kept = umbra.topk(norms, k=size - count, largest=True).indices
        if not count:
            return default_mask
        return default_mask * _slices_mask(t, self.dim, kept).to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


# ---- as functions ----

def identity(module, name):
    """Prepares a parameter for pruning; nothing is pruned."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes elements of a parameter at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of a parameter with the least absolute values, or the least scores."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes slices of a parameter at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices of a parameter with the least norms of order n."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes a parameter by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several parameters, (module, name) each, as if they were one."""
    parameters = list(parameters)
    if importance_scores is None:
        importance_scores = {}
    elif not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores = parameters_to_vector([importance_scores.get((module, name), getattr(module, name)) for module, name in parameters])
    masks = parameters_to_vector([getattr(module, name + "_mask", umbra.ones_like(getattr(module, name))) for module, name in parameters])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}')
    container.add_pruning_method(method)
    final, start = container.compute_mask(scores, masks), 0
    for module, name in parameters:
        parameter = getattr(module, name)
        custom_from_mask(module, name, mask=final[start:start + parameter.numel()].view_as(parameter))
        start += parameter.numel()


def remove(module, name):
    """Makes pruning permanent: the parameter has its pruned values, and the mask goes."""
    key, method = _hook_of(module, name)
    if method is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    method.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module):
    """Whether a parameter of the module, or of one inside it, is pruned."""
    return any(isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values())
