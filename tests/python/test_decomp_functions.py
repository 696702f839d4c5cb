"""Decompositions compute what their operators compute, and take them out of graphs."""
import pytest

import umbra as torch
from umbra._decomp import get_decompositions
from umbra._decomp.decompositions import FUNCTIONS
from umbra.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def numbers(*shape):
    return torch.linspace(-3.5, 3.5, torch.Size(shape).numel()).reshape(shape)


def inside(*shape):
    return torch.linspace(0.1, 0.9, torch.Size(shape).numel()).reshape(shape)


X, Y, M = numbers(2, 4), numbers(2, 4).flip(0) * 0.7, numbers(4, 4)
SAMPLES = {
    aten.softplus_backward.default: (X, Y, 1.5, 2.0), aten.hardtanh_backward.default: (X, Y, -1.0, 2.0), aten.leaky_relu_backward.default: (X, Y, 0.2, False),
    aten._softmax_backward_data.default: (X, torch.softmax(Y, 1), 1, torch.float32), aten._log_softmax_backward_data.default: (X, torch.log_softmax(Y, 1), 1, torch.float32),
    aten._softmax.default: (X, 1, False), aten._log_softmax.default: (X, 1, False), aten.threshold_backward.default: (X, Y, 0.5),
    aten.log_sigmoid_backward.default: (X, Y, torch.exp(-Y.abs())), aten.sigmoid_backward.default: (X, inside(2, 4)), aten.tanh_backward.default: (X, inside(2, 4)),
    aten.binary_cross_entropy.default: (inside(2, 4), inside(2, 4).flip(1)), aten.addmm.default: (numbers(4), X, M), aten.addmv.default: (numbers(2), X, numbers(4)),
    aten.addr.default: (X, numbers(2), numbers(4)), aten.baddbmm.default: (numbers(2, 4, 4), numbers(2, 4, 3), numbers(2, 3, 4)),
    aten.addcmul.default: (X, Y, Y), aten.addcdiv.default: (X, Y, Y + 5), aten.lerp.Scalar: (X, Y, 0.3), aten.lerp.Tensor: (X, Y, inside(2, 4)),
    aten.rsub.Scalar: (X, 2.0, 3), aten.masked_fill.Scalar: (X, X > 0, 7.0), aten.masked_fill.Tensor: (X, X > 0, torch.tensor(7.0)),
    aten.logit.default: (inside(2, 4), 0.2), aten.constant_pad_nd.default: (X, [1, -1, 2, 0], 5.0), aten.t.default: (X,), aten.transpose.int: (X, 0, -1),
    aten.native_layer_norm.default: (X, [4], numbers(4), numbers(4), 1e-5),
}


def close(a, b):
    return a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", list(FUNCTIONS), ids=str)
def test_a_decomposition_computes_what_the_operator_computes(op):
    tensors = sum(str(a.type).startswith("Tensor") and a.default_value is None for a in op._schema.arguments)
    args = SAMPLES.get(op, (X, Y, M)[:tensors])
    expected = op(*args)
    graph = make_fx(lambda *a: op(*a), decomposition_table={op: FUNCTIONS[op]})(*args)
    found = graph(*args)
    if isinstance(expected, torch.Tensor):
        expected, found = (expected,), (found,)
    assert all(close(a, b) for a, b in zip(found, expected))
    assert all(node.target is not op for node in graph.graph.nodes)


def test_operators_outside_of_the_librarys_table_are_found_there():
    chosen = get_decompositions([aten.silu_backward, aten.addmm.default, aten.native_layer_norm])
    assert {aten.silu_backward.default, aten.addmm.default, aten.native_layer_norm.default} <= set(chosen)
