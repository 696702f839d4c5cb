"""Modules as functions of their tensors, in functorch's old form: `func, params, buffers = make_functional_with_buffers(model)`.

torch.func.functional_call and stack_module_state are the new one.
"""
import copy

import umbra
from umbra.nn import Module
from umbra.func.modules import functional_call


def _names(named):
    """Names of tensors by the first name of each: tied ones have several."""
    first, table = {}, {}
    for name, tensor in named:
        table.setdefault(first.setdefault(id(tensor), name), []).append(name)
    return table


def _by_name(table, tensors):
    return {name: tensor for names, tensor in zip(table.values(), tensors) for name in names}


def _taken_from(model, disable_autograd_tracking):
    """A copy of the model, and tensors like its parameters and buffers for the caller to hold."""
    parameters = _names(model.named_parameters(remove_duplicate=False))
    buffers = _names(model.named_buffers(remove_duplicate=False))
    stateless = copy.deepcopy(model)
    params = tuple(dict(model.named_parameters())[name] for name in parameters)
    if disable_autograd_tracking:
        params = tuple(p.detach() for p in params)
    return stateless, parameters, buffers, params, tuple(dict(model.named_buffers())[name] for name in buffers)


class FunctionalModuleWithBuffers(Module):
    """Calls a module with other parameters and buffers in the place of its own: `f(params, buffers, *args)`."""

    def __init__(self, stateless_model, param_names, buffer_names, param_names_map, buffer_names_map):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(model, disable_autograd_tracking=False):
        stateless, parameters, buffers, params, values = _taken_from(model, disable_autograd_tracking)
        return FunctionalModuleWithBuffers(stateless, tuple(parameters), tuple(buffers), parameters, buffers), params, values

    def forward(self, params, buffers, *args, **kwargs):
        values = _by_name(self.all_names_map, (*params, *buffers))
        return functional_call(self.stateless_model, values, args, kwargs)


class FunctionalModule(Module):
    """Calls a module with other parameters in the place of its own: `f(params, *args)`."""

    def __init__(self, stateless_model, param_names, names_map):
        super().__init__()
        self.stateless_model, self.param_names, self.names_map = stateless_model, param_names, names_map

    @staticmethod
    def _create_from(model, disable_autograd_tracking=False):
        stateless, parameters, _, params, _ = _taken_from(model, disable_autograd_tracking)
        return FunctionalModule(stateless, tuple(parameters), parameters), params

    def forward(self, params, *args, **kwargs):
        return functional_call(self.stateless_model, _by_name(self.names_map, params), args, kwargs)


def make_functional(model, disable_autograd_tracking=False):
    """`(func, params)` of a module without buffers."""
    if list(model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """`(func, params, buffers)` of a module."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """`(func, params, buffers)` of modules of one class, their tensors stacked along a new first dimension."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*(make_functional_with_buffers(model, disable_autograd_tracking=True) for model in models))
    return functions[0], tuple(map(umbra.stack, zip(*params))), tuple(map(umbra.stack, zip(*buffers)))
