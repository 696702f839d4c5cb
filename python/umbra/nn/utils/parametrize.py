"""Parameters that are computed from others: a module's tensor becomes what functions make of the tensors kept in its place."""
import copy
from collections.abc import Sequence
from contextlib import contextmanager

import umbra
from umbra.nn.modules.container import ModuleDict, ModuleList
from umbra.nn.parameter import Parameter

_cache_users = 0
_cache = {}


@contextmanager
def cached():
    """Within it, each parametrised tensor is computed once."""
    global _cache_users
    _cache_users += 1
    try:
        yield
    finally:
        _cache_users -= 1
        if not _cache_users:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_made(made):
    if not isinstance(made, umbra.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")


def _check_first(made, dtype, shape):
    """The first parametrization of a tensor must leave its type and sizes."""
    _check_made(made)
    for what, before, after in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
        if before != after:
            raise ValueError(f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n"
                             f"unparametrized {what}: {before}\nparametrized {what}: {after}")


def _check_further(module, tensor_name, parametrization):
    """So must each further one, and what it makes when it is set."""
    value, name = getattr(module, tensor_name), f"module.{tensor_name}"
    made = parametrization(value)
    _check_made(made)
    for what in ("dtype", "shape"):
        if getattr(made, what) != getattr(value, what):
            raise ValueError(f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is enabled.\n"
                             f"{name}.{what}: {getattr(value, what)}\nparametrization({name}).{what}: {getattr(made, what)}")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, umbra.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        if getattr(back, what) != getattr(value, what):
            raise ValueError(f"The tensor returned by parametrization.right_inverse must have the same {what} as {name}, unless the `unsafe` flag is "
                             f"enabled.\n{name}.{what}: {getattr(value, what)}\nreturned {what}: {getattr(back, what)}")


class ParametrizationList(ModuleList):
    """The functions of one tensor, applied one after the other to what is kept: `original`, or `original0`, `original1`, ..."""

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        kept, dtype, shape = original, original.dtype, original.shape  # `original` may get the data of what is kept
        with umbra.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        kept = module.right_inverse(kept)
                    except NotImplementedError:
                        pass
        if not isinstance(kept, (umbra.Tensor, Sequence)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(kept).__name__}")
        self.is_tensor = isinstance(kept, umbra.Tensor)
        self.ntensors = 1 if self.is_tensor else len(kept)
        if self.is_tensor:
            self._keep_one(original, kept)
        else:
            for i, part in enumerate(kept):
                if not isinstance(part, umbra.Tensor):
                    raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                                     f"{i} of the sequence with type {type(part).__name__}.")
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _check_first(self(), dtype, shape)

    def _keep_one(self, original, kept):
        if original.dtype != kept.dtype:
            raise ValueError("When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                             f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {kept.dtype}")
        if kept is not original:
            with umbra.no_grad():
                original.set_(kept)
        _register(self, "original", original)

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Keeps what the functions make `value` of."""
        with umbra.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            if len(values) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(values)}.")
            for original, new in zip(self._originals(), values, strict=True):
                if not isinstance(new, umbra.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
                if original.dtype != new.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {new.dtype} while `original` has dtype {original.dtype}")
                original.set_(new)

    def forward(self):
        functions = list(self)
        value = functions[0](*self._originals())
        for function in functions[1:]:
            value = function(value)
        return value


def is_parametrized(module, tensor_name=None):
    """Whether a tensor of the module, or any, is computed from others."""
    lists = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(lists, ModuleDict):
        return False
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def type_before_parametrizations(module):
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def _inject_class(module):
    """The module gets a class of its own, which has the properties."""
    def refuse_state(self):
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(). See:\n"
                           "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
                           "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")
    def copy_deeply(self, memo):
        if id(self) not in memo:
            memo[id(self)] = made = self.__new__(type(self))
            made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return memo[id(self)]

    cls = type(module)
    own = {"__getstate__": refuse_state, "__deepcopy__": getattr(cls, "__deepcopy__", copy_deeply)}
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), own)


def _inject_property(module, name):
    def read(self):
        functions = self.parametrizations[name]
        if not _cache_users:
            return functions()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = functions()
        return _cache[key]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)
    setattr(type(module), name, property(read, write))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on `module.tensor_name` is what `parametrization` makes of the tensor that is there."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    functions = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module.parametrizations[tensor_name] = functions
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """The tensor is a plain one again: as it was computed last, or as it was kept."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    functions = module.parametrizations[tensor_name]
    if functions.is_tensor:
        original = functions.original
        if leave_parametrized:
            with umbra.no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Gives `to_module` the parametrizations of another module, of one tensor or of all, and the tensors that they are computed from."""
    if is_parametrized(from_module):
        lists = from_module.parametrizations
        for name in list(lists) if tensor_name is None else [tensor_name]:
            functions = lists[name]
            if not hasattr(to_module, name):  # a place to be parametrized
                setattr(to_module, name, Parameter(functions.original if functions.is_tensor else getattr(from_module, name)))
            for function in functions:
                register_parametrization(to_module, name, function)
            target = to_module.parametrizations[name]
            for kept in ["original"] if functions.is_tensor else [f"original{i}" for i in range(functions.ntensors)]:
                setattr(target, kept, getattr(functions, kept))
    return to_module
