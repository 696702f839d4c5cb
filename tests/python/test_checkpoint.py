"""Checkpoints that keep some results: each operator runs as often as the policy says."""
import functools

import pytest

import umbra
from umbra.utils._python_dispatch import TorchDispatchMode
from umbra.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


def block(x, w):
    return umbra.relu(x @ w).sin().sum()


def calls_of(policy, function=block):
    """How often the product and the sine run, forward and backward; gradients are those without a checkpoint."""
    umbra.manual_seed(0)
    x, w = umbra.randn(3, 3, requires_grad=True), umbra.randn(3, 3, requires_grad=True)
    with Count() as count:
        checkpoint(function, x, w, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy)).backward()
    expected = umbra.autograd.grad(function(x, w), (x, w))
    assert all(umbra.allclose(p.grad, g) for p, g in zip((x, w), expected))
    return count.calls.count("aten.mm.default"), count.calls.count("aten.sin.default")


def test_a_policy_says_what_is_kept():
    aten = umbra.ops.aten
    assert calls_of([aten.mm.default]) == (3, 1)  # once forward, twice for its gradients; the sine's own result is not needed
    assert calls_of(lambda context, op, *args, **kwargs: CheckpointPolicy.MUST_RECOMPUTE) == (4, 1)
    assert calls_of(lambda context, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE) == (3, 1)
    assert calls_of([aten.max.dim, aten.mm.default], lambda x, w: (x @ w).max(0)[0].exp().sum()) == (3, 0)


def test_what_is_kept_is_given_once():
    x = umbra.ones(3, 3, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, [umbra.ops.aten.mm.default])
    result = checkpoint(lambda x: (x @ x).sin().sum(), x, use_reentrant=False, context_fn=contexts)
    result.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="extra time"):
        result.backward()
    with pytest.raises(ValueError, match="specific overload"):
        create_selective_checkpoint_contexts([umbra.ops.aten.mm])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)
