"""States of models and optimisers by the names of the parameters, whatever wraps the model. There is one process, so every tensor is whole."""
import collections
import dataclasses

import umbra
from umbra.distributed._refusals import refusing_names


@dataclasses.dataclass
class StateDictOptions:
    """How a state is given and taken."""
    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _bare(name):
    """A name without those of the wrappers on the way: of DistributedDataParallel and of compiled modules."""
    return name.replace("_orig_mod.", "")


def _names(model):
    """The names of what is in the model's state, by the names that the state has for them."""
    wrapped = [f"{path}." if path else "" for path, module in model.named_modules() if isinstance(module, umbra.nn.parallel.DistributedDataParallel)]

    def bare(name):
        for prefix in reversed(wrapped):
            if name.startswith(prefix + "module."):
                name = prefix + name[len(prefix) + len("module."):]
        return _bare(name)
    return {name: bare(name) for name in [*model.state_dict(), *(name for name, _ in model.named_parameters(remove_duplicate=False))]}


def _prefixes(model, submodules):
    return tuple(f"{_bare(path)}." for path, module in model.named_modules() if submodules and module in submodules)


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of the model, or of some of its modules."""
    options = options or StateDictOptions()
    names, prefixes = _names(model), _prefixes(model, submodules)
    frozen = {name for name, parameter in model.named_parameters(remove_duplicate=False) if not parameter.requires_grad}
    state = collections.OrderedDict()
    # What is called otherwise than in the model's own state comes last, as in torch.
    for name, value in sorted(model.state_dict().items(), key=lambda item: names[item[0]] != item[0]):
        if prefixes and not names[name].startswith(prefixes) or options.ignore_frozen_params and name in frozen:
            continue
        key = names[name]
        if prefixes and not options.keep_submodule_prefixes:
            key = key[len(next(prefix for prefix in prefixes if key.startswith(prefix))):]
        state[key] = value.cpu() if options.cpu_offload and isinstance(value, umbra.Tensor) else value
    return dict(state) if prefixes or options.full_state_dict or options.cpu_offload else state


def _optimizers(optimizers):
    return (optimizers,) if isinstance(optimizers, umbra.optim.Optimizer) else tuple(optimizers)


def _given(optimizers):
    if not _optimizers(optimizers):
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    return _optimizers(optimizers)


def _begin_state(optimizer):
    """Makes the state of an optimiser that has taken no step yet, by a step that moves nothing."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if optimizer.state or any(parameter.grad is not None for parameter in parameters):
        return
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = umbra.zeros_like(parameter)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = umbra.tensor(0.0) if isinstance(rate, umbra.Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _names_by_parameter(model):
    names = _names(model)
    found = {}
    for name, parameter in model.named_parameters():
        found.setdefault(id(parameter), names[name])
    return found


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of the optimisers in one, by the names of the model's parameters."""
    options = options or StateDictOptions()
    names, prefixes = _names_by_parameter(model), _prefixes(model, submodules)
    whole = {"state": {}, "param_groups": []}
    for optimizer in _given(optimizers):
        _begin_state(optimizer)
        state = optimizer.state_dict()
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        by_place = {place: names[id(parameter)] for place, parameter in enumerate(parameters)}
        wanted = {place: name for place, name in by_place.items() if not prefixes or name.startswith(prefixes)}
        for place, name in wanted.items():
            if place in state["state"]:
                whole["state"][name] = {key: value.cpu() if options.cpu_offload and isinstance(value, umbra.Tensor) else value
                                        for key, value in state["state"][place].items()}
        for group in state["param_groups"]:
            whole["param_groups"].append({**group, "params": [by_place[place] for place in group["params"]]})
    return _flattened(whole) if options.flatten_optimizer_state_dict else whole


def _flattened(whole):
    flat = {f"state.{name}.{key}": value for name, values in whole["state"].items() for key, value in values.items()}
    for group in whole["param_groups"]:
        flat.update({f"param_groups.{name}.{key}": value for name in group["params"] for key, value in group.items() if key != "params"})
    return flat


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """Those of the model and of its optimisers."""
    return (get_model_state_dict(model, submodules=submodules, options=options),
            get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options) if _optimizers(optimizers) else {})


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Puts a state into the model; gives the names that are missing and that are not expected."""
    options = options or StateDictOptions()
    if not model_state_dict:
        return umbra.nn.modules.module._IncompatibleKeys([], [])
    own = {bare: name for name, bare in _names(model).items()}
    return model.load_state_dict({own.get(name, name): value for name, value in model_state_dict.items()}, strict=options.strict)


def _value_of(state, name, key, flat):
    return state[f"state.{name}.{key}"] if flat else state["state"][name][key]


def _group_of(state, group, names, flat):
    """The options of a group, which is found by one of its parameters."""
    if flat:
        return {key: state.get(f"param_groups.{names[0]}.{key}", value) for key, value in group.items() if key != "params"} if names else {}
    for other in state["param_groups"]:
        if names and names[0] in other["params"]:
            return {key: value for key, value in other.items() if key != "params"}
    raise ValueError("loaded state dict has a different number of parameter groups")


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Puts a state by names into the optimisers."""
    options = options or StateDictOptions()
    names, flat = _names_by_parameter(model), options.flatten_optimizer_state_dict
    for optimizer in _given(optimizers):
        _begin_state(optimizer)
        current = optimizer.state_dict()
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        by_place = {place: names[id(parameter)] for place, parameter in enumerate(parameters)}
        for group in current["param_groups"]:
            group.update(_group_of(optim_state_dict, group, [by_place[place] for place in group["params"]], flat))
        for place, values in current["state"].items():
            for key in values:
                values[key] = _value_of(optim_state_dict, by_place[place], key, flat)
        optimizer.load_state_dict(current)


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Puts states into the model and its optimisers."""
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


__getattr__ = refusing_names(__name__)
