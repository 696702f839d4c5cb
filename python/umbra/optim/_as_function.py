"""An optimiser's step as a function of lists of tensors: what `torch.optim.adam.adam` and its like are."""
import inspect

import umbra
from umbra.optim._real_parts import RealParts

_FLAGS = {"foreach": None, "fused": None, "grad_scale": None, "found_inf": None, "has_sparse_grad": False, "has_complex": False, "capturable": False,
          "differentiable": False, "maximize": False, "decoupled_weight_decay": False}
_PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}


def _signature(lists, flags, options):
    parameter = inspect.Parameter
    return inspect.Signature([
        *(parameter(name, parameter.POSITIONAL_OR_KEYWORD) for name in lists),
        *(parameter(name, parameter.POSITIONAL_OR_KEYWORD, default=_FLAGS[name]) for name in flags),
        *(parameter(name, parameter.KEYWORD_ONLY) for name in options)])


def as_function(optimizer, name, state, flags, options, gradients="grads"):
    """The step of `optimizer` over parameters, gradients and the lists of `state`, which maps their names to those in an optimiser's state.
    `flags` may be left out; `options` are given by name. As in PyTorch the caller switches recording off."""
    signature = _signature(("params", gradients, *state), flags.split(), options.split())
    step_of = optimizer.__new__(optimizer)
    if "_listed_state" not in optimizer.__dict__:
        optimizer._listed_state = tuple(state.values())

    def step(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if given.get("grad_scale") is not None or given.get("found_inf") is not None:
            raise NotImplementedError(f"torch.optim.{name}.{name} with grad_scale or found_inf is not in Umbra yet")
        group = {**_FLAGS, "decoupled_weight_decay": optimizer.__dict__.get("_decoupled", False), **given, **{pair: tuple(given[end] for end in ends) for pair, ends in _PAIRS.items() if ends[0] in given}}
        for i, (parameter, gradient) in enumerate(zip(given["params"], given[gradients])):
            kept = {key: given[list_name][i] for list_name, key in state.items() if len(given[list_name]) > i}
            if gradient.is_sparse and optimizer._sparse_refusal:
                raise RuntimeError(optimizer._sparse_refusal.format(name=optimizer.__name__))
            if parameter.is_complex():
                step_of._update(umbra.view_as_real(parameter), umbra.view_as_real(gradient), group, RealParts(kept, parameter))
            else:
                step_of._update(parameter, gradient, group, kept)
            for list_name, key in state.items():  # a first step makes what was None
                if len(given[list_name]) > i and given[list_name][i] is not kept[key]:
                    given[list_name][i] = kept[key]

    step.__name__ = step.__qualname__ = name
    step.__module__, step.__signature__ = optimizer.__module__, signature
    step.__doc__ = f"The step of {optimizer.__name__} over lists of parameters, gradients and what is kept about each."
    return step
