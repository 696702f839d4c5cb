"""What modules keep in files: state dicts, their hooks, and loading them."""
import collections
import warnings
from typing import Any, NamedTuple

from umbra._C import Tensor
from umbra.nn.modules import _conversion, _hooks
from umbra.nn.parameter import Parameter, is_lazy
from umbra.utils.hooks import add_hook

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    missing_keys: list
    unexpected_keys: list

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class _ChangesInPlace:
    """A hook on state dicts that gives nothing back."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, *args):
        if self.hook(*args) is not None:
            raise RuntimeError("state_dict post-hook must return None")


class HasState:
    """The part of a Module that knows its state: parameters and persistent buffers by their names, here and below."""

    def get_extra_state(self):
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _has_extra_state(self):
        return type(self).get_extra_state is not HasState.get_extra_state

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state():
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False) -> dict[str, Any]:
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                          FutureWarning, stacklevel=2)
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args):])
        if destination is None:
            destination = collections.OrderedDict()
            destination._metadata = collections.OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if result is not None:
                destination = result
        return destination

    def register_state_dict_post_hook(self, hook):
        """`hook(module, state_dict, prefix, local_metadata)`, which may change the dict but not put another in its place."""
        return add_hook(self._state_dict_hooks, _ChangesInPlace(hook))

    def _register_state_dict_hook(self, hook):
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        return add_hook(self._load_state_dict_pre_hooks, _hooks.HookOfModule(hook, self))

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return add_hook(self._load_state_dict_pre_hooks, _hooks.HookOfModule(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook):
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Loads what this module itself has; classes that keep something else override it."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = {name: p for name, p in self._parameters.items() if p is not None}
        own.update((name, b) for name, b in self._buffers.items() if b is not None and name not in self._non_persistent_buffers_set)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_entry(name, value, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not HasState.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra:
                    continue
                first, *rest = key[len(prefix):].split(".", 1)
                if (rest and first not in self._modules) or (not rest and first not in own):
                    unexpected_keys.append(key)

    def _load_entry(self, name, value, key, given, assign, error_msgs):
        """One parameter or buffer from what the file has under its key; what is amiss becomes a message."""
        import umbra
        if not isinstance(given, Tensor):
            error_msgs.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                              f"but received {type(given)}")
            return
        lazy = is_lazy(value)  # then it has no sizes; those of a lazy `given` are refused when they are asked for
        if lazy and is_lazy(given):
            return
        if not lazy and value.dim() == 0 and given.shape == (1,):  # files of the time before single numbers
            given = given[0]
        if not lazy and given.shape != value.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
                              f"model is {value.shape}.")
            return
        if value.is_meta and not given.is_meta and not assign:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
                          "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
                          "module instead of copying them in place?)", stacklevel=2)
        try:
            with umbra.no_grad():
                self._load_tensor(name, value, given, assign)
        except Exception as error:  # all that cannot be loaded is named in one error
            action = "swapping" if umbra.__future__.get_swap_module_params_on_conversion() else "copying"
            error_msgs.append(f'While {action} the parameter named "{key}", whose dimensions in the model are {value.size()} and whose dimensions in '
                              f"the checkpoint are {given.size()}, an exception occurred : {error.args}.")

    def _load_tensor(self, name, value, given, assign):
        """Puts what is given in the place of a parameter or buffer, or its elements into it."""
        import umbra
        if umbra.__future__.get_swap_module_params_on_conversion():
            _conversion.load_by_exchange(value, given, assign)
            return
        if not assign:
            value.copy_(given)
            return
        if isinstance(value, Parameter):
            given = given.requires_grad_(value.requires_grad) if isinstance(given, Parameter) else Parameter(given, value.requires_grad)
        setattr(self, name, given)

    def load_state_dict(self, state_dict, strict=True, assign=False) -> _IncompatibleKeys:
        if not isinstance(state_dict, collections.abc.Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        _load(self, collections.OrderedDict(state_dict), "", metadata, assign, missing, unexpected, errors)
        if strict:
            if unexpected:
                errors.insert(0, "Unexpected key(s) in state_dict: " + ", ".join(f'"{key}"' for key in unexpected) + ". ")
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: " + ", ".join(f'"{key}"' for key in missing) + ". ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)


def _load(module, state_dict, prefix, metadata, assign, missing, unexpected, errors):
    """Loads a module and its children, each from the entries below its own prefix."""
    local = dict(metadata.get(prefix[:-1], {})) if metadata else {}
    if assign:
        local["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state_dict, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state_dict.items() if key.startswith(below)}
            _load(child, part, below, metadata, assign, missing, unexpected, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, _IncompatibleKeys(missing, unexpected)) is not None:
            raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                                 "incompatible_keys need to be modified, it should be done inplace.")
