"""Checkpoints: each operator runs as often as the policy says, in the surroundings that it had the first time."""
import functools

import pytest

import umbra
import umbra as torch
from call_log import CallLog
from umbra.functorch.compile import aot_function, min_cut_rematerialization_partition, nop
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def block(x, w):
    return umbra.relu(x @ w).sin().sum()


def calls_of(policy, function=block):
    """How often the product and the sine run, forward and backward; gradients are those without a checkpoint."""
    umbra.manual_seed(0)
    x, w = umbra.randn(3, 3, requires_grad=True), umbra.randn(3, 3, requires_grad=True)
    with CallLog() as log:
        checkpoint(function, x, w, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy)).backward()
    expected = umbra.autograd.grad(function(x, w), (x, w))
    assert all(umbra.allclose(p.grad, g) for p, g in zip((x, w), expected))
    return log.seen.count("aten.mm.default"), log.seen.count("aten.sin.default")


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
    with pytest.raises(ValueError, match="specific OpOverload"):
        create_selective_checkpoint_contexts([umbra.ops.aten.mm])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_autocast_is_what_it_was(use_reentrant):
    weight = torch.full((3, 3), 0.1)
    x = torch.full((3, 3), 1.001, requires_grad=True)
    seen = []

    def block(value):
        product = torch.mm(value, weight)
        seen.append(product.dtype)
        return product.float().exp()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = checkpoint(block, x, use_reentrant=use_reentrant).sum()
    loss.backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


def test_reentrant_checkpoints_lead_to_all_leaves():
    a = torch.ones(2, requires_grad=True)
    for differentiate in (lambda b: torch.autograd.grad(b, a), lambda b: b.backward(inputs=[a])):
        with pytest.raises(RuntimeError, match=r"When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad\(\)"):
            differentiate(checkpoint(torch.exp, a, use_reentrant=True).sum())
    checkpoint(torch.exp, a, use_reentrant=True).sum().backward()
    assert torch.equal(a.grad, a.detach().exp())


def other_the_second_time(first, second):
    functions = iter((first, second))
    return lambda x: next(functions)(x)


def test_what_differs_the_second_time_is_told():
    from umbra.utils.checkpoint import set_checkpoint_early_stop
    short, long = (lambda x: x.sin().exp()), (lambda x: x.sin().exp().sin())
    a = torch.ones(1, requires_grad=True)
    with set_checkpoint_early_stop(False), pytest.raises(RuntimeError, match="trying to save more tensors during recomputation"):
        checkpoint(other_the_second_time(short, long), a, use_reentrant=False).backward()
    checkpoint(other_the_second_time(short, long), a, use_reentrant=False).backward()  # what is needed is the same
    with pytest.raises(RuntimeError, match="(?s)aten.exp.default.*You are seeing this error because you passed `debug=True`"):
        checkpoint(other_the_second_time(long, short), a, use_reentrant=False, debug=True).backward()


def test_what_is_computed_again_is_given_once():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.saved_tensors[0])
            if again:
                ctx.saved_tensors
            return g, None
    seen, again = [], False
    a, b = torch.ones(1, requires_grad=True), torch.ones(1)
    checkpoint(Twice.apply, a, b, use_reentrant=False).backward()
    assert seen[0] is b
    again = True
    with pytest.raises(RuntimeError, match="Unpack is being triggered for a tensor that was already unpacked once"):
        checkpoint(Twice.apply, a, b, use_reentrant=False).backward()


@pytest.mark.parametrize("function", [
    lambda x: torch.nn.functional.dropout(x.sin(), 0.5).exp(),
    lambda x: (x.sin() * torch.zeros(32).bernoulli_(0.5)).exp(),
])
@pytest.mark.parametrize("options", [{}, {"context_fn": functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.sin.default])}])
def test_a_captured_checkpoint_draws_random_numbers_once(function, options):
    for capture in (lambda f: torch.compile(f, backend="aot_eager"), lambda f: aot_function(f, nop, partition_fn=min_cut_rematerialization_partition)):
        x = torch.ones(32, requires_grad=True)
        y = capture(lambda x: checkpoint(function, x, use_reentrant=False, **options))(x)
        y.sum().backward()
        assert torch.equal(y != 1, x.grad != 0)


def test_a_policy_is_asked_once_for_each_call():
    asked = []

    def policy(context, op, *args, **kwargs):
        asked.append((str(op), context.is_recompute))
        return CheckpointPolicy.MUST_SAVE if len(asked) % 2 else CheckpointPolicy.PREFER_RECOMPUTE  # another answer each time

    def function(x):
        return ((x @ x).sin() @ x).sin()
    x, y = (torch.full((2, 2), 0.3, requires_grad=True) for _ in range(2))
    checkpoint(function, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)).sum().backward()
    function(y).sum().backward()
    assert torch.allclose(x.grad, y.grad)
    assert asked == [("aten.mm.default", False), ("aten.sin.default", False)] * 2


def test_a_tensor_that_two_gradients_need_is_computed_again_once():
    """`where` gives both of its values a gradient by one condition."""
    def function(x):
        return umbra.where(x > 0, x.sin(), x * 2)
    x = umbra.randn(3, requires_grad=True)
    function(x).sum().backward()
    expected, x.grad = x.grad, None
    checkpoint(function, x, use_reentrant=False).sum().backward()
    assert umbra.equal(x.grad, expected)


def test_tangents_keep_their_history_where_hooks_keep_copies():
    def tangent(x):
        return umbra.func.jvp(lambda z: z.sin() * z.sum(-1, keepdim=True), (x,), (umbra.ones_like(x),))[1]
    x = umbra.randn(2, 3, requires_grad=True)
    expected, = umbra.autograd.grad(tangent(x).sum(), x)
    with umbra.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        result = tangent(x)
    assert umbra.allclose(umbra.autograd.grad(result.sum(), x)[0], expected)
    assert umbra.allclose(umbra.autograd.grad(checkpoint(tangent, x, use_reentrant=False).sum(), x)[0], expected)


def test_a_checkpointed_function_may_take_gradients_of_its_own():
    layer = umbra.nn.Linear(3, 3)

    def forces(x):
        z = x.detach().requires_grad_()
        return x + umbra.autograd.grad(layer(z).tanh().square().sum(), z, create_graph=True)[0]
    x = umbra.randn(2, 3, requires_grad=True)
    expected = umbra.autograd.grad(forces(x).sin().sum(), [x, layer.weight])
    found = umbra.autograd.grad(checkpoint(forces, x, use_reentrant=False).sin().sum(), [x, layer.weight])
    assert all(umbra.allclose(a, b) for a, b in zip(found, expected))


def test_a_selective_checkpoint_inside_another_gets_its_inputs_before_it_counts_calls():
    def inner(y):
        z = y.clone()
        z[0] = 0
        return checkpoint(lambda q: (q * q).exp(), z, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts([torch.ops.aten.mul.Tensor]))

    def gradient(call):
        x = torch.arange(3.0).requires_grad_()
        call(x).sum().backward()
        return x.grad.tolist()
    whole = lambda x: checkpoint(inner, x, use_reentrant=False)  # noqa: E731
    assert gradient(whole) == gradient(inner) == gradient(aot_function(whole, nop))


def targets(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_a_compiled_checkpoint_keeps_its_inputs_alone():
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph

    def f(x, w, v):
        return checkpoint(lambda x, w, v: ((x @ w).sigmoid().exp() @ v).tanh(), x, w, v, use_reentrant=False).sum()

    def gradients(call):
        inputs = [torch.full(size, 0.1, requires_grad=True) for size in ((8, 4), (4, 16), (16, 4))]
        call(*inputs).backward()
        return [x.grad for x in inputs]
    expected = gradients(f)
    found = gradients(aot_function(f, keep, keep, partition_fn=min_cut_rematerialization_partition))
    assert all(torch.allclose(a, b) for a, b in zip(found, expected))
    forward, backward = graphs
    saved = forward.graph.output_node().args[0][1:]
    assert {str(node) for node in saved} <= {"primals_1", "primals_2", "primals_3"} and targets(forward).count("aten.mm.default") == 2
    assert targets(backward).count("aten.mm.default") == 6


def test_what_a_policy_keeps_is_saved_and_the_rest_is_computed_in_the_backward():
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph
    contexts = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    x = torch.full((2, 2), 0.5, requires_grad=True)
    f = lambda x: checkpoint(lambda x: (x.sin() @ x).sigmoid().exp(), x, use_reentrant=False, context_fn=contexts)  # noqa: E731
    aot_function(f, keep, keep, partition_fn=min_cut_rematerialization_partition)(x).sum().backward()
    forward, backward = graphs
    assert targets(forward).count("aten.sigmoid.default") == targets(backward).count("aten.sigmoid.default") == 1
    assert targets(backward).count("aten.mm.default") == 2 and "aten.sin.default" in targets(backward)


def test_gradients_inside_the_function_leave_a_checkpoint_in_the_forward():
    def f(x):
        y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False)
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]

    def gradient(call):
        x = torch.full((2, 2), 0.5, requires_grad=True)
        call(x).sum().backward()
        return x.grad
    assert torch.allclose(gradient(aot_function(f, nop, partition_fn=min_cut_rematerialization_partition)), gradient(f))


def test_a_gradient_inside_of_a_checkpoint_computes_what_is_kept_so_far_whether_or_not_it_stops_early():
    from umbra.utils.checkpoint import set_checkpoint_early_stop

    def cube(x):
        return x.sin().exp().sin()

    def slope(x):
        y = checkpoint(cube, x, use_reentrant=False).sum()
        return torch.autograd.grad(y, x, create_graph=True)[0]
    x = torch.tensor([0.3, 0.5], requires_grad=True)
    expected = torch.autograd.grad(torch.autograd.grad(cube(x).sum(), x, create_graph=True)[0].sum(), x)[0]
    for stops in (True, False):
        with set_checkpoint_early_stop(stops):
            found = torch.autograd.grad(checkpoint(slope, x, use_reentrant=False).sum(), x)[0]
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("policy", [CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD])
def test_what_is_offloaded_is_kept(policy):
    sine = umbra.ops.aten.sin.default
    assert calls_of(lambda _, op, *args, **kwargs: policy if op is sine else CheckpointPolicy.MUST_RECOMPUTE) == (4, 1)


@pytest.mark.parametrize("respected,packed", [(True, 2), (False, 1)])
def test_what_a_policy_keeps_goes_through_saved_tensor_hooks_where_that_is_wanted(respected, packed):
    log = []

    def pack(tensor):
        log.append("pack")
        return tensor * 1

    def unpack(tensor):
        log.append("unpack")
        return tensor
    x = torch.tensor([0.3, 0.5], requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, [umbra.ops.aten.sin.default])
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=contexts, respect_saved_tensors_hooks=respected)
    y.sum().backward()
    assert log == ["pack"] * packed + ["unpack"] * packed
    torch.testing.assert_close(x.grad, (x.cos() * x.sin().exp()).detach())


def test_hooks_around_a_policy_ask_for_a_choice():
    contexts = functools.partial(create_selective_checkpoint_contexts, [umbra.ops.aten.sin.default])
    with torch.autograd.graph.save_on_cpu(), pytest.warns(FutureWarning, match="respect_saved_tensors_hooks"):
        checkpoint(torch.sin, torch.ones(2, requires_grad=True), use_reentrant=False, context_fn=contexts)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(torch.sin, torch.ones(2, requires_grad=True), use_reentrant=True, respect_saved_tensors_hooks=True)


def test_a_checkpoint_runs_inside_of_vmap_and_jvp():
    x = umbra.ones(2, 3, requires_grad=True)
    part = functools.partial(checkpoint, lambda y: y.sin().sum(), use_reentrant=False)
    umbra.vmap(part)(x).sum().backward()
    value, tangent = umbra.func.jvp(part, (umbra.ones(3),), (umbra.ones(3),))
    assert umbra.allclose(x.grad, x.detach().cos()) and umbra.allclose(tangent, umbra.ones(3).cos().sum())
    assert umbra.allclose(value, umbra.ones(3).sin().sum())


def test_a_checkpoint_inside_of_grad_is_refused_by_its_hooks():
    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        umbra.func.grad(lambda y: checkpoint(lambda z: z.sin().sum(), y, use_reentrant=False))(umbra.ones(3))


def test_a_recorded_region_of_autocast_ends_where_what_is_computed_again_stops():
    layer = torch.nn.Linear(4, 4)

    def region(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x).float() + x

    recorded = make_fx(region, pre_dispatch=True)(torch.ones(2, 4))
    assert "_enter_autocast" in recorded.code
    x = torch.ones(2, 4, requires_grad=True)
    checkpoint(recorded, x, use_reentrant=False).sum().backward()
    assert not torch.is_autocast_enabled("cpu") and torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0
