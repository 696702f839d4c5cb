"""Parts of programs that run in another mode than what surrounds them, as graphs call them."""
import umbra
from umbra._higher_order_ops.operator import NamedOperator
from umbra.utils.checkpoint import checkpoint


class WrapWithSetGradEnabled(NamedOperator):
    """`wrap_with_set_grad_enabled(enabled, part, *operands)`: the part with gradients switched on or off."""

    def __call__(self, enable_grad, wrapped_func, *args, **kwargs):
        with umbra.set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


class WrapWithAutocast(NamedOperator):
    """`wrap_with_autocast(device_type, dtype, enabled, cache_enabled, part, *operands)`: the part under autocast, or without it."""

    def __call__(self, device_type, dtype, enabled, cache_enabled, wrapped_func, *args, **kwargs):
        with umbra.autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


class Wrap(NamedOperator):
    """`wrap(function, *operands)`: the function's result."""

    def __call__(self, func, *args, **kwargs):
        return func(*args, **kwargs)


class WrapActivationCheckpoint(NamedOperator):
    """`function(*operands)`, run once more when gradients are computed instead of keeping what they need."""

    def __call__(self, function, *args, **kwargs):
        kwargs.setdefault("use_reentrant", False)
        return checkpoint(function, *args, **kwargs)


class HintsWrapper(NamedOperator):
    """`body(*args, **kwargs)`, with hints for whoever compiles it."""

    def __call__(self, body_fn, args, kwargs, hints):
        if not isinstance(args, tuple):
            raise RuntimeError(f"args must be a tuple, got {type(args)}")
        if not all(isinstance(value, (umbra.Tensor, int, float, bool)) for value in args):
            raise RuntimeError(f"args must be a tuple of tensors, ints, floats, or bools, got {args}")
        if not isinstance(kwargs, dict):
            raise RuntimeError(f"kwargs must be a dict, got {type(kwargs)}")
        if kwargs:
            raise RuntimeError(f"kwargs except for hints are not supported, got {kwargs}")
        if not isinstance(hints, dict):
            raise RuntimeError(f"hints must be a dict, got {type(hints)}")
        for name, value in hints.items():
            if not isinstance(name, str):
                raise RuntimeError(f"hints key must be a str, got {name}.")
            if not isinstance(value, (int, float, bool, str)):
                raise RuntimeError(f"hints must be a dict containing int, float, bool or str value, got value {value} for key {name}.")
        return body_fn(*args, **kwargs)


wrap = Wrap("wrap")
wrap_activation_checkpoint = WrapActivationCheckpoint("wrap_activation_checkpoint")
tag_activation_checkpoint = WrapActivationCheckpoint("tag_activation_checkpoint")
hints_wrapper = HintsWrapper("hints_wrapper")
wrap_with_set_grad_enabled = WrapWithSetGradEnabled("wrap_with_set_grad_enabled")
wrap_with_autocast = WrapWithAutocast("wrap_with_autocast")
