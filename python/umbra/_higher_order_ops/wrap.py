"""Parts of programs that run in another mode than what surrounds them, as graphs call them."""
import umbra
from umbra._higher_order_ops.operator import NamedOperator


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


wrap_with_set_grad_enabled = WrapWithSetGradEnabled("wrap_with_set_grad_enabled")
wrap_with_autocast = WrapWithAutocast("wrap_with_autocast")
