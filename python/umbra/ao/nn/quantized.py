"""Operators as modules, so that a model's quantisation can observe what they give."""
import umbra
from umbra.nn import Identity, Module


class FloatFunctional(Module):
    """`f.add(x, y)` for `x + y`; the result passes `activation_post_process`, which observes it."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the forward. Please use the underlying operation")

    def add(self, x, y):
        return self.activation_post_process(umbra.add(x, y))

    def add_scalar(self, x, y):
        return umbra.add(x, y)

    def mul(self, x, y):
        return self.activation_post_process(umbra.mul(x, y))

    def mul_scalar(self, x, y):
        return umbra.mul(x, y)

    def cat(self, x, dim=0):
        return self.activation_post_process(umbra.cat(x, dim=dim))

    def add_relu(self, x, y):
        return self.activation_post_process(umbra.add(x, y).relu())

    def matmul(self, x, y):
        return self.activation_post_process(umbra.matmul(x, y))
