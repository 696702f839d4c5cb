"""Tensors to call compiled functions with, of values that differ, and weights that tell the elements of a gradient apart."""
import umbra as torch


def leaf(*shape):
    return (torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 4 + 0.5).requires_grad_()


def plain(*shape):
    return leaf(*shape).detach()


def weights(x):
    return torch.arange(float(x.numel())).reshape(x.shape) + 1
