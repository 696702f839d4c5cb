"""Optimizer: groups of parameters, each with its options and state."""
import collections
import copy
import functools
import inspect
import warnings
from typing import Any, Callable, Dict, Iterable, Optional, Tuple, Union

import umbra
from umbra._C import Tensor
from umbra.autograd.grad_mode import _recording
from umbra.compiler import _in_compiled_call
from umbra.optim._real_parts import RealParts
from umbra.utils.hooks import add_hook


ParamsT = Union[Iterable[Tensor], Iterable[Dict[str, Any]], Iterable[Tuple[str, Tensor]]]  # what optimisers take
_global_step_pre_hooks, _global_step_post_hooks = collections.OrderedDict(), collections.OrderedDict()


class _RequiredParameter:
    """Stands for an option that has no default."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook):
    """`hook(optimizer, args, kwargs)` before each step of every optimiser."""
    return add_hook(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """`hook(optimizer, args, kwargs)` after each step of every optimiser."""
    return add_hook(_global_step_post_hooks, hook)


def _use_grad_for_differentiable(func):
    """For a `step` of the user's: it runs without recording."""
    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with _recording(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)
    return step


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Which implementation a step takes by default: neither, on the CPU."""
    return False, False


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


_DEVICES_WITH_FUSED_STEPS = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]
_OPTION_NAMES = {"lr": "learning rate", "eps": "epsilon value"}


def check_rate(lr):
    """A learning rate that is a tensor has one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_options(**options):
    """No option that is a size may be negative."""
    check_rate(options.get("lr"))
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {_OPTION_NAMES.get(name, name + ' value')}: {value}")


def check_betas(betas, foreach=False, capturable=False):
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    tensors = [isinstance(beta, Tensor) for beta in betas]
    if any(tensors) and not all(tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    if any(tensors) and foreach and not capturable:
        raise ValueError("betas[0] as a Tensor is not supported for capturable=False and foreach=True")


def decayed(parameter, gradient, group):
    """The gradient to descend along: turned round to maximize, with that of the weight decay."""
    if group["maximize"]:
        gradient = -gradient
    return gradient.add(parameter, alpha=group["weight_decay"]) if group["weight_decay"] != 0 else gradient


def keep_largest(largest, values, group):
    """Writes the larger of both to `largest`; a step that is differentiated needs what was there."""
    return largest.copy_(umbra.maximum(largest.clone() if group["differentiable"] else largest, values))


def check_implementation(foreach, fused, differentiable):
    """`foreach` and `fused` choose among implementations that give the same values, up to rounding: with `fused` a step is one operator, without
    it there is one way here. What excludes itself is refused."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def counter(parameter, group, value=0.0):
    """A number of the state that steps change: on the parameter's device where the step is to read nothing back from there."""
    dtype = umbra.float64 if umbra.get_default_dtype() == umbra.float64 else umbra.float32
    return umbra.tensor(float(value), dtype=dtype, device=parameter.device if group.get("capturable") or group.get("fused") else None)


def count_of(number, group):
    """What a step computes with: the number itself, or the tensor where nothing may be read back (`capturable`)."""
    return number if group["capturable"] else number.item()


def _stays_a_tensor(group, factor):
    """Whether a factor that is a tensor is computed with as one: nothing may be read back from its device, or its gradient is asked for."""
    return group.get("capturable") or (group["differentiable"] and factor.requires_grad)


def add_scaled(target, values, factor, group):
    """`target += factor * values`."""
    if isinstance(factor, Tensor):
        if _stays_a_tensor(group, factor):
            return target.add_(values * factor)
        factor = factor.item()
    return target.add_(values, alpha=factor)


def add_quotient(target, numerator, denominator, factor, group):
    """`target += factor * numerator / denominator`."""
    if isinstance(factor, Tensor):
        if _stays_a_tensor(group, factor):
            if group["differentiable"]:  # later steps change the state, whose values the gradients need
                numerator, denominator = numerator.clone(), denominator.clone()
            return target.add_(numerator * factor / denominator)
        factor = factor.item()
    return target.addcdiv_(numerator, denominator, value=factor)


def add_square(target, values, factor, group):
    """`target += factor * values ** 2`."""
    if isinstance(factor, Tensor):
        if _stays_a_tensor(group, factor):
            return target.add_(values * values * factor)
        factor = factor.item()
    return target.addcmul_(values, values, value=factor)


_CAPTURABLE_DEVICES = ["cuda", "xpu", "hpu", "privateuseone"]


def _with_step_hooks(step):
    """`step` with the hooks of its optimiser around it."""
    @functools.wraps(step)
    def wrapped(*args, **kwargs):
        self = args[0]  # hooks see it among the arguments too
        for hook in (*_global_step_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                args, kwargs = changed
        self._opt_called = True  # schedulers warn when they step first
        result = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_step_post_hooks.values()):
            hook(self, args, kwargs)
        return result
    wrapped._has_hooks = True
    return wrapped


def _as_parameter(value, parameter, group, key=None):
    """Loaded state in the type and on the device of its parameter. The count of steps stays as it is, unless the device counts."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(umbra.float32).to(parameter.device) if group.get("capturable") or group.get("fused") else value
        value = value.to(parameter.dtype) if parameter.is_floating_point() else value
        return value.to(parameter.device)
    if isinstance(value, dict):
        return {k: _as_parameter(v, parameter, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_parameter(v, parameter, group) for v in value)
    return value


class Optimizer:
    """Base of all optimisers: groups of parameters with options, state by parameter, hooks around steps."""
    OptimizerPreHook = Callable[["Optimizer", Tuple[Any, ...], Dict[Any, Any]], Optional[Tuple[Tuple[Any, ...], Dict[Any, Any]]]]
    OptimizerPostHook = Callable[["Optimizer", Tuple[Any, ...], Dict[Any, Any]], None]

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = collections.defaultdict(dict)
        self.param_groups = []
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError(f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}")
        if isinstance(params, set):
            warnings.warn("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                          "between runs. Please use a list instead. This will be an error in a future release.", FutureWarning, stacklevel=3)
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self):
        for kind in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"):
            setattr(self, f"_optimizer_{kind}_hooks", collections.OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self):
        """The class's `step` runs hooks from now on. Optimisers around others call it where they make no state of their own."""
        if not getattr(type(self).step, "_has_hooks", False):
            type(self).step = _with_step_hooks(type(self).step)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
        """Lists of tensors, those of one device and type together."""
        from umbra.utils._foreach_utils import _group_tensors_by_device_and_dtype
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def add_param_group(self, param_group):
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                            "change between runs. Please use a list instead.")
        given = [given] if isinstance(given, Tensor) else list(given)
        members = [p[1] if isinstance(p, tuple) else p for p in given]
        if any(isinstance(p, tuple) for p in given):
            if not all(isinstance(p, tuple) for p in given):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = [name for name, _ in given]
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            kind = "with" if "param_names" in group else "without"
            raise ValueError(f"all optimizer param groups should be with/without names. cannot add param group {kind} names to the optimizer")
        for parameter in members:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
            if not (parameter.is_leaf or parameter.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in members}) != len(members):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                          "see github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        group["params"] = members
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if group.get("fused") and group.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        if taken & {id(p) for p in members}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter.grad is None:
                    parameter.grad = None
                    continue
                gradient = parameter.grad  # stays the tensor that others may hold
                gradient.requires_grad_(False) if gradient.grad_fn is None else gradient.detach_()
                gradient.zero_()

    def step(self, closure=None):
        if type(self)._update is Optimizer._update:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with umbra.enable_grad():
                loss = closure()
        with _recording(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                if group.get("differentiable") and group.get("foreach"):
                    raise AssertionError("_foreach ops don't support autograd")
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update_one(parameter, group)
        return loss

    def _update_one(self, parameter, group):
        if group.get("fused") and not (parameter.is_floating_point() and parameter.device.type in _DEVICES_WITH_FUSED_STEPS):
            raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of supported devices: "
                               f"{_DEVICES_WITH_FUSED_STEPS} but {parameter.dtype} and {parameter.device.type}")
        state, values = self._state_of(parameter, group)
        gradient = umbra.view_as_real(parameter.grad) if parameter.is_complex() else parameter.grad
        if group.get("capturable") and not group.get("fused"):
            self._check_capturable(parameter, group)
        self._update(values, gradient, group, state)

    def _state_of(self, parameter, group):
        """What is kept of a parameter, made where there is nothing yet, and the parameter as real numbers."""
        if parameter.grad.is_sparse and self._sparse_refusal:
            raise RuntimeError(self._sparse_refusal.format(name=type(self).__name__))
        state, values = self.state[parameter] if self._needs_state(group) else {}, parameter
        if parameter.is_complex():
            state, values = RealParts(state, parameter), umbra.view_as_real(parameter)
        if not state:
            for name, first in self._first_state(values, group).items():
                state[name] = first
        return state, values

    _listed_state = ()  # what `_init_group` lists, by its names in the state

    def _init_group(self, group, params_with_grad, grads, *lists):
        """Appends a group's parameters that have gradients, these, and what is kept of each; whether one is complex. Steps that packages write for
        a class of ours begin with it."""
        members = [parameter for parameter in group["params"] if parameter.grad is not None]
        for parameter in members:
            self._state_of(parameter, group)
            state = self.state[parameter] if self._needs_state(group) else {}
            params_with_grad.append(parameter)
            grads.append(parameter.grad)
            for kept, name in zip(lists, self._listed_state):
                if name in state:
                    kept.append(state[name])
        return any(parameter.is_complex() for parameter in members)

    def _accelerator_graph_capture_health_check(self):
        """Nothing: steps are not captured in the graphs of an accelerator. Optimisers of packages call it."""

    _cuda_graph_capture_health_check = _optimizer_step_code = _accelerator_graph_capture_health_check

    def _check_capturable(self, parameter, group):
        """Steps that read nothing back are for accelerators; whatever is compiled may have them too."""
        devices = _CAPTURABLE_DEVICES + (["xla"] if self._captures_on_xla and not group.get("foreach") else [])
        if parameter.device.type not in devices and not _in_compiled_call():
            raise AssertionError(f"If capturable=True, {self._on_devices} must be on supported devices: {devices}.")

    _on_devices, _captures_on_xla = "params and state_steps", True

    _first_state = staticmethod(lambda parameter, group: {})  # what a parameter's state is before the first step
    _needs_state = staticmethod(lambda group: True)
    _sparse_refusal = "{name} does not support sparse gradients"  # None where a step takes them

    def _update(self, parameter, gradient, group, state):
        raise NotImplementedError

    def state_dict(self):
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: values for key, values in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict):
        """Takes over options and state. State is converted to the types and devices of the parameters; what fits already is shared."""
        state_dict = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        owners = {}
        for own, loaded in zip(self.param_groups, groups):
            if len(own["params"]) != len(loaded["params"]):
                raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
            owners.update((number, (parameter, loaded)) for number, parameter in zip(loaded["params"], own["params"]))
        state = collections.defaultdict(dict)
        for key, values in state_dict["state"].items():
            parameter, group = owners.get(key, (None, None))
            state[key if parameter is None else parameter] = values if parameter is None else _as_parameter(values, parameter, group)
        for own, loaded in zip(self.param_groups, groups):
            loaded["params"] = own["params"]
            if "param_names" in own:
                loaded.setdefault("param_names", own["param_names"])
        self.state, self.param_groups = state, groups
        self._complete()
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    # ---- hooks ----

    profile_hook_step = staticmethod(_with_step_hooks)

    def register_step_pre_hook(self, hook):
        """`hook(optimizer, args, kwargs)` before each step; what it returns takes the place of the arguments."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """`hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """`hook(optimizer)` before a state dict is made."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """`hook(optimizer, state_dict)`; what it returns takes the place of the state dict."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """`hook(optimizer, state_dict)` before loading; what it returns takes the place of the state dict."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """`hook(optimizer)` after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # Hooks belong to this object: copies and files do without.
    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()
        self._complete()

    _counts = ("step", "eta", "mu", "mu_product")  # parts of the state that were numbers once and are tensors now

    _later_options = {"amsgrad", "capturable", "centered", "decoupled_weight_decay", "differentiable", "foreach", "fused", "maximize", "nesterov"}

    def _complete(self):
        """What files of older versions do not have: options that came later, and counts as tensors."""
        if type(self)._update is Optimizer._update:  # a user's optimiser knows its own files
            return
        options = inspect.signature(type(self).__init__).parameters
        for group in self.param_groups:
            for name in self._later_options & self.defaults.keys():
                own, known = self.defaults[name], name in options and options[name].default is not inspect.Parameter.empty
                group.setdefault(name, options[name].default if known else own)
        for values in self.state.values():
            for name in self._counts:
                if isinstance(values, dict) and isinstance(values.get(name), (int, float)):
                    values[name] = umbra.tensor(float(values[name]))

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"\nParameter Group {i}" if i else f"Parameter Group {i}",
                      *(f"    {key}: {group[key]}" for key in sorted(group) if key != "params")]
        return "\n".join(lines + [")"])
