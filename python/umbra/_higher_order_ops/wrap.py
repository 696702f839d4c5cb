"""Parts of programs that run in another mode than what surrounds them, as graphs call them."""
import umbra


class WrapWithSetGradEnabled:
    """`wrap_with_set_grad_enabled(enabled, part, *operands)`: the part with gradients switched on or off."""

    __name__ = __qualname__ = _name = "wrap_with_set_grad_enabled"
    __module__ = "torch.ops.higher_order"

    def __call__(self, enable_grad, wrapped_func, *args, **kwargs):
        with umbra.set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)

    def name(self):
        return self._name

    def __repr__(self):
        return f"torch.ops.higher_order.{self._name}"

    def __str__(self):
        return self._name

    def __deepcopy__(self, memo):
        return self


wrap_with_set_grad_enabled = WrapWithSetGradEnabled()
