"""Optimizer: groups of parameters, each with its options and state."""
import collections
import copy

import umbra
from umbra._C import Tensor
from umbra._options import not_built


class Optimizer:
    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = collections.defaultdict(dict)
        self.param_groups = []
        if isinstance(params, Tensor):
            raise TypeError(f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}")
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        group = dict(param_group)
        given = group["params"]
        members = [given] if isinstance(given, Tensor) else [p[1] if isinstance(p, tuple) else p for p in given]
        for parameter in members:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
            if not parameter.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        group["params"] = members
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        if group.get("fused") and group.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        not_built(type(self).__name__, **{name: (group.get(name, False), False) for name in ("capturable", "differentiable")})
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        if taken & {id(p) for p in members}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                parameter.grad = None if set_to_none else parameter.grad.detach().zero_()

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with umbra.enable_grad():
                loss = closure()
        with umbra.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(parameter, parameter.grad, group, self.state[parameter])
        return loss

    def _update(self, parameter, gradient, group, state):
        raise NotImplementedError

    def state_dict(self):
        numbers = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]})
        return {"state": {numbers[id(p)]: values for p, values in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict):
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        parameters = {}
        for own, loaded in zip(self.param_groups, groups):
            if len(own["params"]) != len(loaded["params"]):
                raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
            parameters.update(zip(loaded["params"], own["params"]))
            own.update((k, v) for k, v in loaded.items() if k != "params")
        self.state = collections.defaultdict(dict)
        for number, values in state_dict["state"].items():
            self.state[parameters[number]] = copy.deepcopy(values)

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}", *(f"    {key}: {group[key]}" for key in sorted(group) if key != "params")]
        return "\n".join(lines + [")"])
