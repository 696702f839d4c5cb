"""A function with a derivative of its own, in both modes and under vmap."""
import umbra as torch


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x ** 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx, t):
        return t * 3 * ctx.saved_tensors[0] ** 2
