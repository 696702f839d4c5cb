"""Transforms of functions: their nesting, their results, what they refuse, and their capture."""
import json
import warnings

import nested_transforms
import pytest
from custom_functions import Cube

import umbra as torch
from umbra.func import functional_call, grad, grad_and_value, jacfwd, jacrev, jvp, vjp, vmap
from umbra.fx.experimental.proxy_tensor import make_fx

T = torch.tensor


# ---- nesting ----

with open(nested_transforms.EXPECTED) as _file:
    _EXPECTED = json.load(_file)


@pytest.mark.parametrize("name", _EXPECTED)
def test_transforms_nested_three_deep_in_every_order_give_pytorchs_values(name):
    function = nested_transforms.functions(torch)[name]
    wrong = []
    for order, want in zip(nested_transforms.orders(torch), _EXPECTED[name]):
        got, requires_grad = nested_transforms.value(torch, function, order)
        if requires_grad or abs(got - want) > 1e-7 + 1e-7 * abs(want):
            wrong.append((order, got, want))
    assert not wrong


def test_grad_of_vjp_is_not_lost():
    g = grad(lambda x: vjp(torch.sin, x)[1](torch.ones(()))[0])(T(0.5))
    assert torch.allclose(g, -T(0.5).sin())


def test_jacrev_of_jacrev_is_not_zero():
    j = jacrev(jacrev(lambda x: x ** 3))(T([1., 2.]))
    assert j.flatten().tolist() == [6, 0, 0, 0, 0, 0, 0, 12]


def test_results_over_plain_inputs_do_not_require_gradients():
    y, pull = vjp(lambda x: x ** 2, T([1., 2.]))
    assert not y.requires_grad and not pull(torch.ones(2))[0].requires_grad
    assert not jacrev(lambda x: x ** 2)(T([1., 2.])).requires_grad


def test_no_grad_outside_leaves_the_inside_alone():
    with torch.no_grad():
        assert grad(lambda x: (x * x).sum())(T([3.])).tolist() == [6]
        assert not torch.is_grad_enabled()


# ---- custom functions ----

def test_a_custom_function_is_differentiated_at_every_level():
    x = T(2.)
    assert grad(Cube.apply)(x).item() == 12
    assert grad(grad(Cube.apply))(x).item() == 12
    # the value of an inner transform belongs to the outer one's tape
    assert grad(lambda x: grad_and_value(Cube.apply)(x)[1])(x).item() == 12
    assert jvp(Cube.apply, (x,), (T(1.),))[1].item() == 12


def test_a_custom_function_is_batched_by_a_generated_rule():
    x = T([1., 2.])
    assert vmap(Cube.apply)(x).tolist() == [1, 8]
    assert vmap(grad(Cube.apply))(x).tolist() == [3, 12]
    assert grad(lambda x: vmap(Cube.apply)(x).sum())(x).tolist() == [3, 12]


def test_a_generated_rule_uses_the_functions_own_gradient():
    class Odd(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = 10

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, g * -1
    g = grad(lambda x, y: vmap(Odd.apply, (0, None))(x, y).sum(), argnums=(0, 1))(T([1., 2.]), T(3.))
    assert g[0].tolist() == [10, 10] and g[1].item() == -2


def test_a_custom_function_with_a_rule_of_its_own():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vmap(info, in_dims, x):
            assert info.batch_size == 3 and info.randomness == "error"
            return Twice.apply(x) + 0, in_dims[0]
    assert vmap(Twice.apply, in_dims=1, out_dims=1)(torch.ones(2, 3)).tolist() == [[2] * 3] * 2


def test_a_custom_function_without_setup_context_is_refused():
    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g
    with pytest.raises(RuntimeError, match="must override the setup_context"):
        grad(lambda x: Old.apply(x).sum())(T([1.]))

    class NoRule(Cube):
        generate_vmap_rule = False
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(NoRule.apply)(T([1.]))


# ---- vmap ----

def test_vmap_of_indices_that_differ():
    table = torch.arange(12.).view(4, 3)
    assert vmap(lambda i: table[i])(T([3, 0])).tolist() == [[9, 10, 11], [0, 1, 2]]
    rows, j = torch.arange(24.).view(2, 3, 4), T([[0, 2], [1, 1]])
    want = torch.stack([r[:, i] for r, i in zip(rows, j)])
    assert vmap(lambda r, j: r[:, j])(rows, j).tolist() == want.tolist()
    want = torch.stack([r[i, :, None, i] for r, i in zip(rows.unsqueeze(2).expand(2, 3, 2, 4), j)])
    assert vmap(lambda r, i: r[i, :, None, i])(rows.unsqueeze(2).expand(2, 3, 2, 4), j).tolist() == want.tolist()


def test_a_batched_tensor_tells_what_it_is():
    seen = []
    vmap(lambda x: (seen.append(repr(x)), x)[1])(torch.ones(2))
    assert seen == ["BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1., 1.])\n)"]
    seen.clear()
    grad(lambda x: (seen.append(repr(x * 2)), x.sum())[1])(T([1.]))
    assert seen == ["GradTrackingTensor(lvl=1, value=\n    tensor([2.])\n)"]


def test_a_tensor_that_escaped():
    kept = []
    vmap(lambda x: (kept.append(x), x)[1])(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        kept[0] + 1
    grad(lambda x: (kept.append(x * 2), x.sum())[1])(torch.ones(2))
    assert (kept[1] + 1).tolist() == [3, 3] and not (kept[1] + 1).requires_grad


def test_control_flow_on_a_batched_tensor_is_refused():
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda x: x if x > 0 else -x)(torch.ones(3))


def test_a_loop_says_so():
    with pytest.warns(UserWarning, match="There is a performance drop because we have not yet implemented the batching rule for aten::masked_scatter"):
        vmap(lambda m: torch.zeros(2).masked_scatter(m, torch.ones(2)))(T([[True, False], [True, True]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(lambda x: x.sum())(torch.ones(3, 2))


def test_batch_norm_of_unmapped_statistics_is_refused():
    mean, var = torch.zeros(3), torch.ones(3)
    with pytest.raises(RuntimeError, match="which will be updated in place, were not batched"):
        vmap(lambda x: torch.nn.functional.batch_norm(x, mean, var, training=True))(torch.ones(2, 4, 3))


# ---- capture ----

def test_per_sample_gradients_of_a_model_are_captured():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, x, y):
        return torch.nn.functional.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))
    per_sample = vmap(grad(loss), (None, 0, 0))
    x, y = torch.randn(5, 3), T([0, 1, 1, 0, 1])
    graph = make_fx(per_sample)(params, torch.randn(5, 3), T([1, 0, 1, 0, 0]))
    got, want = graph(params, x, y), [grad(loss)(params, x[i], y[i]) for i in range(5)]
    for name in params:
        assert torch.allclose(got[name], torch.stack([w[name] for w in want]), atol=1e-6)


def test_jacobians_are_captured_with_other_sizes():
    graph = make_fx(jacfwd(lambda x: (x ** 2).cumsum(0)), tracing_mode="symbolic")(torch.ones(3))
    x = T([1., 2., 3., 4.])
    assert torch.allclose(graph(x), jacrev(lambda x: (x ** 2).cumsum(0))(x))


def test_an_operator_that_takes_functions_inside_a_transform():
    f = grad(lambda x: torch.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: x.sum(), (x,)))
    assert f(T([1., 2.])).tolist() == [2, 4] and f(T([-1., -2.])).tolist() == [1, 1]


# ---- what belongs to the ordinary tape ----

def test_the_ordinary_tapes_calls_are_refused_inside():
    for call in (lambda x: x.clone().requires_grad_().sum(), lambda x: (x * 2).retain_grad(), lambda x: x.sum().backward()):
        with pytest.raises(RuntimeError, match="functorch transform"):
            grad(call)(T([1., 2.]))
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        grad(lambda x: (x.detach().numpy(), x.sum())[1])(T([1., 2.]))


def test_hooks_and_autograd_grad_work_inside():
    assert grad(lambda x: (x.register_hook(lambda g: g * 10), (x * 2).sum())[1])(T([1.])).tolist() == [20]
    g = grad(lambda x: torch.autograd.grad(x.sin().sum(), x, create_graph=True)[0].sum())(T([1.]))
    assert torch.allclose(g, -T([1.]).sin())


def test_gradients_of_many_cotangents_at_once():
    x = T([1., 2.], requires_grad=True)
    found, = torch.autograd.grad(x ** 2 * x.sum(), x, torch.eye(2), is_grads_batched=True)
    assert found.tolist() == [[7, 1], [4, 16]]


def test_jacobians_of_numbers_nest():
    x = torch.tensor(2.)
    for outer in (torch.func.jacrev, torch.func.jacfwd):
        for inner in (torch.func.jacrev, torch.func.jacfwd):
            assert outer(inner(lambda t: t ** 3))(x).item() == pytest.approx(12)


# ---- what PyTorch refuses ----

@pytest.mark.parametrize("transform", ["jacrev", "jacfwd", "hessian"])
def test_jacobians_are_of_real_numbers(transform):
    z = torch.tensor([1 + 2j])
    with pytest.raises(RuntimeError, match="Expected all inputs to be real but received complex tensor at flattened input idx: 0"):
        getattr(torch.func, transform)(lambda x: (x * x).real.sum())(z)
    with pytest.raises(RuntimeError, match="Expected all outputs to be real but received complex tensor at flattened input idx: 0"):
        getattr(torch.func, transform)(lambda x: x.sum() * 1j)(torch.ones(2))


def test_nothing_is_tracked_in_inference_mode_inside_a_transform():
    def half(x):
        with torch.inference_mode():
            y = x * 2
        return y
    x = torch.ones(2)
    assert torch.func.jvp(half, (x,), (x,))[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        torch.func.grad(lambda x: (half(x) * x).sum())(x)
    with torch.inference_mode():  # around a transform it does not count
        assert torch.func.grad(lambda x: (x * x).sum())(x).tolist() == [2, 2]
        assert torch.func.jvp(lambda x: x * x, (x,), (x,))[1].tolist() == [2, 2]


def test_requires_grad_is_an_attribute_of_leaves():
    def f(x):
        y = x * 2
        y.requires_grad = True
        return (y * y).sum()
    for call in (torch.func.grad(f), lambda x: f(x.requires_grad_())):
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
            call(torch.ones(2))
    assert torch.func.vmap(f)(torch.ones(2, 2)).tolist() == [8, 8]


def test_a_tangent_keeps_its_type():
    x, wide, complex_one = torch.ones(2), torch.full((2,), 1 + 1e-12, dtype=torch.float64), torch.full((2,), 2 + 3j)
    for f in (lambda x: x * 2, lambda x: x.sin(), lambda x: x.view(2, 1) + x.view(1, 2)):
        for tangent in (wide, complex_one):
            along = torch.func.jvp(f, (x,), (tangent,))[1]
            assert along.dtype == tangent.dtype
            real = torch.func.jvp(f, (x.double(),), (torch.ones(2, dtype=torch.float64),))[1]
            assert torch.allclose(along.to(torch.complex128), real * tangent[0].to(torch.complex128), rtol=1e-6)
    with pytest.raises((NotImplementedError, RuntimeError), match="type"):
        torch.func.jvp(lambda x: x.softmax(0), (x,), (wide,))


# ---- operators that take functions ----

def test_cond_with_a_batch_of_predicates_takes_each_elements_branch():
    from umbra.func import grad, jvp, vmap
    x = torch.tensor([[1., 2.], [-3., -4.]])

    def f(x):
        return torch.cond(x.sum() > 0, lambda x: {"a": x.sin(), "b": x + 1}, lambda x: {"a": x.cos(), "b": x - 1}, (x,))
    result = vmap(f)(x)
    assert torch.equal(result["a"], torch.stack([x[0].sin(), x[1].cos()])) and result["b"].tolist() == [[2, 3], [-4, -5]]
    expected = torch.stack([x[0].cos(), -x[1].sin()])
    assert torch.equal(vmap(grad(lambda y: f(y)["a"].sum()))(x), expected)
    assert torch.equal(grad(lambda x: vmap(f)(x)["a"].sum())(x), expected)
    assert torch.equal(jvp(lambda x: vmap(f)(x)["a"], (x,), (torch.ones(2, 2),))[1], expected)
    nested = vmap(vmap(f))(torch.stack([x, -x]))["b"]
    assert nested.tolist() == [[[2, 3], [-4, -5]], [[-2, -3], [4, 5]]]
    of_one = vmap(lambda p: torch.cond(p > 0, lambda x: x * 1, lambda x: -x, (x[0],)))(torch.tensor([1., -1.]))
    assert of_one.tolist() == [[1, 2], [-1, -2]]


def test_cond_with_a_batch_of_predicates_is_captured():
    from umbra.func import vmap
    from umbra.fx.experimental.proxy_tensor import make_fx
    f = vmap(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)))
    x = torch.tensor([[1., 2.], [-3., -4.]])
    graph = make_fx(f)(x)
    assert torch.equal(graph(-x), f(-x)) and "where" in graph.code


def test_branches_for_a_batch_of_predicates_must_fit():
    from umbra.func import vmap
    for wrong in (lambda x: x[:1] * 1, lambda x: (x * 1).int(), lambda x: (x, x)):
        with pytest.raises(Exception, match="expected same|Unmatched"):
            vmap(lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, wrong, (x,)))(torch.ones(2, 2))


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.squeeze_(0), lambda x: x.unsqueeze_(1), lambda x: x.transpose_(0, 1).mul_(2)])
def test_vmap_of_what_changes_sizes_in_place_equals_a_loop(change):
    x = torch.arange(24.0).reshape(4, 1, 6)
    expected = torch.stack([change(row.clone()) for row in x])
    assert torch.equal(vmap(lambda row: change(row.clone()))(x), expected)


def test_forward_mode_of_a_complex_convolution_is_the_convolution_of_the_tangent():
    torch.manual_seed(0)
    x, t = torch.randn(1, 2, 5, dtype=torch.complex64), torch.randn(1, 2, 5, dtype=torch.complex64)
    w = torch.randn(3, 2, 3, dtype=torch.complex64)
    tangent = jvp(lambda x: torch.nn.functional.conv1d(x, w), (x,), (t,))[1]
    torch.testing.assert_close(tangent, torch.nn.functional.conv1d(t, w))


def test_second_derivatives_of_products_see_two_zeros():
    index, start = torch.tensor([0, 0, 0]), torch.tensor([2.0])

    def product(x):
        return torch.scatter_reduce(start, 0, index, x, "prod").sum()

    zeros = torch.tensor([0.0, 0.0, 3.0])
    captured = make_fx(torch.func.hessian(product))(torch.tensor([1.0, 2.0, 3.0]))
    for result in (torch.func.hessian(product)(zeros), captured(zeros)):
        assert result.tolist() == [[0, 6, 0], [6, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("change", [lambda t: t.t_(), lambda t: t.transpose_(0, 1), lambda t: t.unsqueeze_(0), lambda t: t.unsqueeze_(-1), lambda t: t.squeeze_()])
def test_a_change_of_metadata_under_vmap_reaches_the_caller(change):
    batch = torch.arange(6.0).reshape(1, 2, 3).repeat(2, 1, 1)
    rows = [change(row.clone()) for row in batch]
    result = vmap(change)(batch)
    assert torch.equal(result, torch.stack(rows)) and torch.equal(batch, result)


@pytest.mark.parametrize("dim, change, shape", [
    (1, lambda t: t.t_(), (4, 2, 1)), (1, lambda t: t.unsqueeze_(0), (1, 1, 2, 4)), (1, lambda t: t.squeeze_(), (2, 4)),
    (2, lambda t: t.t_(), (4, 1, 2)), (2, lambda t: t.unsqueeze_(-1), (1, 4, 2, 1)), (2, lambda t: t.squeeze_(), (4, 2))])
def test_the_batch_dimension_stays_among_its_neighbours(dim, change, shape):
    x = torch.arange(8.0).reshape([1, 2, 4] if dim == 1 else [1, 4, 2])
    rows = [change(row.clone()) for row in x.unbind(dim)]
    assert torch.equal(vmap(change, in_dims=dim)(x), torch.stack(rows)) and x.shape == shape


def test_a_change_of_metadata_reaches_through_nested_vmaps():
    x = torch.arange(12.0).reshape(2, 1, 2, 3)
    result = vmap(vmap(lambda t: t.t_()))(x)
    assert x.shape == (2, 1, 3, 2) and torch.equal(result, x)


def test_a_compiled_function_inside_a_transform_is_the_function():
    f = torch.compile(lambda x: (x.sin() * x).sum(), backend="eager")
    x = torch.randn(3, 2)
    assert torch.allclose(vmap(grad(f))(x), vmap(grad(lambda x: (x.sin() * x).sum()))(x))


@pytest.mark.parametrize("training", [False, True])
def test_statistics_of_instance_norm_are_written_inside_a_derivative(training):
    def module():
        made = torch.nn.InstanceNorm1d(3, track_running_stats=True).train(training)
        made.running_mean.fill_(0.5)
        return made
    x = torch.arange(24.0).reshape(2, 3, 4) ** 2
    eager, transformed = module(), module()
    leaf = x.clone().requires_grad_()
    (eager(leaf) ** 3).sum().backward()
    found = torch.func.grad(lambda x: (transformed(x) ** 3).sum())(x)
    assert torch.allclose(found, leaf.grad, rtol=1e-4, atol=1e-4)
    assert torch.allclose(transformed.running_mean, eager.running_mean) and torch.allclose(transformed.running_var, eager.running_var)
    result, derive = torch.func.vjp(module(), x)
    assert torch.allclose(result, module()(x)) and derive(result)[0].shape == x.shape
    result, tangent = torch.func.jvp(module(), (x,), (torch.ones_like(x),))
    assert torch.allclose(result, module()(x)) and tangent.shape == x.shape


def test_a_captured_tensor_is_written_by_an_alias_alone_and_without_a_derivative():
    captured = torch.zeros(3)

    def writing(part, contents):
        def function(x):
            part(captured).copy_(contents(x))
            return (captured * x).sum()
        return function
    parts = {"itself": lambda t: t, "a view": lambda t: t.view(3), "a part": lambda t: t[:], "detached": lambda t: t.detach()}
    for part in parts.values():
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            torch.func.grad(writing(part, lambda x: torch.ones(3)))(torch.ones(3))
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            torch.func.jvp(writing(part, lambda x: torch.ones(3)), (torch.ones(3),), (torch.ones(3),))
    for alias in (torch.ops.aten.alias, lambda t: torch.ops.aten.alias(t).view(3)):
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):  # the derivative would be lost
            torch.func.grad(writing(alias, lambda x: x))(torch.ones(3))
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            torch.func.jvp(writing(alias, lambda x: x), (torch.ones(3),), (torch.ones(3),))
    assert captured.tolist() == [0, 0, 0]
    assert torch.func.grad(writing(torch.ops.aten.alias, lambda x: torch.full((3,), 2.0)))(torch.ones(3)).tolist() == [2, 2, 2]


def test_elements_of_a_batch_get_another_size():
    def resized(x, sizes):
        y = x.clone()
        y.resize_(sizes)
        return y * 1
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.func.vmap(lambda x: resized(x, (4, 3)))(x).tolist() == x.reshape(2, 4, 3).tolist()
    assert torch.func.vmap(lambda x: resized(x, (12,)))(x).shape == (2, 12)


@pytest.mark.parametrize("name", ["associative_scan", "scan", "map"])
def test_operators_whose_course_follows_from_sizes_are_captured_inside_transforms(name):
    from umbra._higher_order_ops import associative_scan, map, scan
    from umbra.fx.experimental.proxy_tensor import make_fx
    function = {"associative_scan": lambda v: associative_scan(lambda a, b: a * b, v, dim=0, combine_mode="generic"),
                "scan": lambda v: scan(lambda c, x: (c + x.sin(), c * x), v.sum() * 0, v)[1],
                "map": lambda v: map(lambda r, y: r.sin() * y, v, torch.tensor(2.0))}[name]
    x = torch.arange(1.0, 7).reshape(2, 3)
    by_row = torch.stack([function(row) for row in x])

    def gradient(v):
        return torch.func.grad(lambda v: function(v).sum())(v)
    rows = [row.clone().requires_grad_() for row in x]
    for row in rows:
        function(row).sum().backward()
    for transformed, expected in ((torch.func.vmap(function), by_row), (torch.func.vmap(gradient), torch.stack([row.grad for row in rows]))):
        module = make_fx(lambda x: transformed(x))(x)
        assert torch.allclose(transformed(x), expected) and torch.allclose(module(x), expected)
        assert torch.allclose(module(x + 1), transformed(x + 1))


def test_branches_are_captured_inside_vmap():
    from umbra.fx.experimental.proxy_tensor import make_fx

    def function(x, p):
        return torch.cond(p, lambda x: x.sin(), lambda x: x.cos() * 2, (x,))
    x = torch.arange(1.0, 7).reshape(2, 3)
    module = make_fx(lambda x, p: torch.func.vmap(lambda row: function(row, p))(x))(x, torch.tensor(True))
    assert torch.allclose(module(x, torch.tensor(True)), x.sin()) and torch.allclose(module(x, torch.tensor(False)), x.cos() * 2)
    module = make_fx(lambda x, p: torch.func.grad(lambda x: function(x, p).sum())(x))(x, torch.tensor(True))
    assert torch.allclose(module(x, torch.tensor(True)), x.cos()) and torch.allclose(module(x, torch.tensor(False)), x.sin() * -2)


def test_counts_are_made_for_one_element_of_a_batch_after_the_other():
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert vmap(lambda row: row.bincount(minlength=8))(x).tolist() == [[0, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0]]
        with pytest.raises(RuntimeError, match="equal size"):
            vmap(lambda row: row.bincount())(x)


def test_the_steps_of_vmap_can_be_replaced(monkeypatch):
    """Packages with containers of tensors of their own do so."""
    from umbra._functorch import vmap as steps

    class Box:
        def __init__(self, value):
            self.value = value

    plain = steps._process_batched_inputs
    monkeypatch.setattr(steps, "_process_batched_inputs", lambda in_dims, args, func: plain(in_dims, tuple(a.value for a in args), func))
    monkeypatch.setattr(steps, "_unwrap_batched", lambda result, out_dims, level, size, func: Box(
        steps._maybe_remove_batch_dim("f", result, level, size, out_dims)))
    assert vmap(lambda x: x.sum())(Box(torch.ones(3, 2))).value.tolist() == [2.0, 2.0, 2.0]


def test_a_tensor_that_left_its_vmap_is_no_result_of_another():
    kept = []
    vmap(lambda x: kept.append(x) or x)(torch.arange(3.0))
    with pytest.raises(Exception):
        vmap(lambda x: kept[0] + 0, out_dims=0)(torch.arange(3.0)).tolist()


def test_modules_become_functions_in_functorchs_form():
    from umbra.functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers
    norm = torch.nn.BatchNorm1d(3)
    function, params, buffers = make_functional_with_buffers(norm)
    assert [type(p) for p in params] == [torch.nn.Parameter] * 2 and len(buffers) == 3
    assert torch.equal(function(params, buffers, torch.ones(2, 3)), torch.zeros(2, 3)) and buffers[2] == 1
    with pytest.raises(RuntimeError, match="`model` has buffers"):
        make_functional(norm)
    function, params = make_functional(torch.nn.Linear(2, 1))
    gradient = grad(lambda p, x: function(p, x).sum())(params, torch.ones(4, 2))
    assert gradient[0].tolist() == [[4.0, 4.0]] and gradient[1].tolist() == [4.0]
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    function, params, buffers = combine_state_for_ensemble(models)
    x = torch.ones(4, 2)
    torch.testing.assert_close(vmap(function, (0, 0, None))(params, buffers, x), torch.stack([model(x) for model in models]).detach())


# ---- chunks and switches ----

def test_chunks_of_the_same_randomness_draw_the_same_numbers():
    torch.manual_seed(0)
    drawn = vmap(lambda x: x * 0 + torch.rand(2), randomness="same", chunk_size=2)(torch.zeros(5))
    after = torch.rand(1)
    torch.manual_seed(0)
    assert drawn.tolist() == [torch.rand(2).tolist()] * 5 and after.tolist() == torch.rand(1).tolist()


def test_chunk_vmap_takes_the_number_of_chunks():
    from umbra.functorch.experimental import chunk_vmap
    sizes = []

    def f(x, y):
        sizes.append(None)
        return x * y, {"a": x}
    x, y = torch.arange(14.).reshape(2, 7), T([1., 2.])
    got, want = (v(f, in_dims=(1, None), out_dims=(0, 1))(x, y) for v in (lambda *a, **k: chunk_vmap(*a, chunks=3, **k), vmap))
    assert torch.equal(got[0], want[0]) and torch.equal(got[1]["a"], want[1]["a"]) and len(sizes) == 3 + 1
    with pytest.raises(RuntimeError, match="greater than 0"):
        chunk_vmap(f, in_dims=(1, None), chunks=0)(x, y)


def test_jacrev_may_write_its_rows_into_one_tensor():
    def f(x, y):
        return {"a": x ** 2 * y.sum(), "b": y * 3}
    x, y = T([1., 2., 3.]), T([4., 5.])
    want = jacrev(f, argnums=(0, 1))(x, y)
    for chunk_size in (1, 2, 10, None):
        got = jacrev(f, argnums=(0, 1), chunk_size=chunk_size, _preallocate_and_copy=True)(x, y)
        assert all(torch.equal(a, b) for key in want for a, b in zip(got[key], want[key]))


def test_forward_mode_can_be_switched_off():
    from umbra.autograd import forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(T([2.]), T([1.]))
        with forward_ad._set_fwd_grad_enabled(False):
            assert not forward_ad._is_fwd_grad_enabled()
            y = x * 3
        assert forward_ad.unpack_dual(y).tangent is None and forward_ad.unpack_dual(x * 3).tangent == 3
    with forward_ad._set_fwd_grad_enabled(False):  # a level that is opened inside is followed
        assert jvp(torch.sin, (T(0.),), (T(1.),))[1] == 1 and not forward_ad._is_fwd_grad_enabled()


def test_new_tensors_of_no_elements_with_strides():
    made = vmap(lambda x: x.new_empty_strided([0, 2, 0], [12, 4, 1]))(torch.ones(7, 3))
    assert made.shape == (7, 0, 2, 0) and made.stride() == (0, 12, 4, 1)
    assert vmap(lambda x: x.new_empty_strided([3, 2], [1, 3]))(torch.ones(7)).stride() == (6, 1, 3)


def test_the_derivative_of_a_sum_of_some_rows_follows_the_sum():
    """Fewer indices than rows of what is added: forward mode needs no gradient formula, which takes as many."""
    x, none = torch.arange(9.0).view(3, 3), torch.zeros(2, 3, dtype=torch.int64)
    values, tangents = torch.func.jvp(lambda x: x.scatter_add(0, none, x), (x,), (x + 1,))
    assert torch.equal(values, x.scatter_add(0, none, x)) and torch.equal(tangents, (x + 1).scatter_add(0, none, x + 1))


def test_a_joined_tensor_without_elements_keeps_its_gradient_under_vmap():
    full, empty = torch.ones(3, 2), torch.ones(3, 0, requires_grad=True)
    joined = vmap(lambda a, b: torch.cat([a, b]))(full, empty)
    assert joined.requires_grad and joined.shape == (3, 2)
    joined.sum().backward()
    assert empty.grad.shape == (3, 0)
    images = vmap(lambda a, b: torch.cat([a, b]))(torch.ones(3, 2, 4), empty)  # of another rank: PyTorch leaves it out
    assert images.shape == (3, 2, 4)
