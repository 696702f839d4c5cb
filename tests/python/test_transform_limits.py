"""What transforms of functions refuse, and what they take after all: results, hooks, writes, randomness."""
import pytest

import umbra as torch
from umbra.func import functionalize, grad, jacfwd, jacrev, jvp, vjp, vmap
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.utils._python_dispatch import TorchDispatchMode

T = torch.tensor


@pytest.mark.parametrize("aux", [3, None, ["text"], {"a": 2}])
def test_what_a_function_gives_besides_is_tensors(aux):
    calls = [lambda: grad(lambda x: (x.sum(), aux), has_aux=True)(torch.ones(2)), lambda: vjp(lambda x: (x * 1, aux), torch.ones(2), has_aux=True),
             lambda: jvp(lambda x: (x * 1, aux), (torch.ones(2),), (torch.ones(2),), has_aux=True)]
    for call in calls:
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            call()


def test_reverse_mode_takes_no_hooks_on_what_is_saved():
    def hooks():
        return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)

    def inside(x):
        with hooks():
            return x.sin().sum()
    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        grad(inside)(torch.ones(2))
    with hooks():
        for call in (lambda: grad(lambda x: x.sum())(torch.ones(2)), lambda: vjp(torch.sin, torch.ones(2))):
            with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
                call()
        assert jvp(torch.sin, (torch.zeros(2),), (torch.ones(2),))[1].tolist() == [1, 1]
    assert grad(lambda x: x.sum())(torch.ones(2)).tolist() == [1, 1]


def test_forward_mode_is_not_nested_but_by_transforms():
    from umbra.autograd import forward_ad
    with forward_ad.dual_level():
        for call in (forward_ad.enter_dual_level, lambda: jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))):
            with pytest.raises(RuntimeError, match="Nested forward mode AD"):
                call()
    assert jvp(lambda x: jvp(torch.sin, (x,), (torch.ones(2),))[1], (torch.zeros(2),), (torch.ones(2),))[1].tolist() == [0, 0]


def test_tangents_of_a_base_are_those_of_its_views_too():
    start = torch.zeros(2, 3)

    def write(y):
        x = start.clone()
        view = x[0]
        x.copy_(y)
        return view, x, view * 2

    tangent = torch.full((2, 3), 2.0)
    _, (view, base, twice) = torch.func.jvp(write, (torch.ones(2, 3),), (tangent,))
    assert view.tolist() == [2, 2, 2] and base.tolist() == tangent.tolist() and twice.tolist() == [4, 4, 4]

    def write_through_a_view(y):
        x = start.clone()
        first, second = x[0], x[0]
        first.add_(y[0])
        return second

    assert torch.func.jvp(write_through_a_view, (torch.ones(2, 3),), (tangent,))[1].tolist() == [2, 2, 2]
    def write_new(y):
        x = torch.zeros_like(y)
        view = x[0]
        x.copy_(y)
        return view

    rows, along = torch.ones(4, 2, 3), torch.full((4, 2, 3), 2.0)
    _, views = torch.func.vmap(lambda y, t: torch.func.jvp(write_new, (y,), (t,)))(rows, along)
    assert views.tolist() == [[2, 2, 2]] * 4


def test_a_batch_does_not_make_matrices_of_rows():
    rows = torch.rand(3, 3)
    for function in (torch.linalg.svd, torch.linalg.qr, torch.linalg.lu, torch.linalg.lu_factor, torch.linalg.cholesky, torch.linalg.eigh,
                     torch.linalg.inv, torch.linalg.det, torch.linalg.svdvals, torch.geqrf, torch.tril, torch.triu):
        with pytest.raises(RuntimeError, match="2 (or more )?dimensions"):
            torch.vmap(function)(rows)


def test_results_of_transformed_functions_are_checked():
    x = torch.ones(3)
    for nothing in ((), [], None):
        with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
            torch.func.vjp(lambda x: nothing, x)
        with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
            torch.func.jvp(lambda x: nothing, (x,), (x,))


def test_a_tangent_lies_in_memory_as_its_tensor_does():
    x, tangent = (torch.arange(12.0).reshape(3, 4) / 7).t(), torch.arange(12.0).reshape(4, 3)
    first = lambda x: x.sin().as_strided([4], [1], 0)  # noqa: E731  the first column
    value, change = torch.func.jvp(first, (x,), (tangent,))
    torch.testing.assert_close(value, x[:, 0].sin())
    torch.testing.assert_close(change, x[:, 0].cos() * tangent[:, 0])
    cube = lambda x: (first(x) ** 3).sum()  # noqa: E731
    torch.testing.assert_close(torch.func.hessian(cube)(x), torch.func.jacrev(torch.func.jacrev(cube))(x))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, tangent)
        assert torch.autograd.forward_ad.unpack_dual(dual).tangent.stride() == x.stride()
    part = torch.ones(5)[2:4]
    torch.testing.assert_close(torch.func.jvp(lambda x: x.as_strided([2], [1], 2), (part,), (torch.arange(2.0),))[1], torch.arange(2.0))


def test_elements_that_share_memory_are_written_with_their_tangents():
    def write(x):
        whole = x.expand(2, 3)
        whole.zero_()
        return x * 1, whole * 1
    values, changes = torch.func.jvp(write, (torch.ones(1, 3),), (torch.ones(1, 3),))
    assert all(not t.any() for t in (*values, *changes))


def test_an_ensemble_is_of_models_that_need_the_same_gradients():
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    second.weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="weight from each model to have the same .requires_grad"):
        torch.func.stack_module_state([first, second])


def test_a_jacobian_row_by_row_needs_no_batching_rule():
    class Selects(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            x, = ctx.saved_tensors
            out = torch.zeros_like(x)
            out[gradient.nonzero()[:, 0]] = 2 * x[gradient.nonzero()[:, 0]]  # vmap has no rule for nonzero
            return out
    x = torch.arange(1.0, 4.0)
    assert torch.equal(torch.func.jacrev(Selects.apply, chunk_size=1)(x), torch.diag(2 * x))


def test_what_a_function_says_it_returns_stands_in_its_graph():
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    for function in (doubled, torch.func.functionalize(doubled)):
        assert "-> torch.Tensor:" in torch.fx.experimental.proxy_tensor.make_fx(function)(torch.ones(2)).code


def test_forward_mode_of_a_spread_that_is_zero_and_of_the_gradient_of_a_group_norm():
    assert jvp(lambda x: x.std(), (torch.ones(3),), (torch.arange(3.0),))[1] == 0
    x, weight = torch.arange(12.0).sin().reshape(2, 2, 3).double(), torch.tensor([1.0, 2.0]).double()
    cube = lambda x: (torch.nn.functional.group_norm(x, 1, weight) ** 3).sum()  # noqa: E731
    torch.testing.assert_close(torch.func.hessian(cube)(x), jacrev(jacrev(cube))(x))


def test_each_element_of_a_batch_drops_and_draws_its_own_where_the_input_has_no_batch():
    torch.manual_seed(0)
    x, batch = torch.full((4, 5), 3.0), torch.arange(6.0)
    drops = (torch.nn.functional.dropout, torch.nn.functional.alpha_dropout, lambda x, training: torch.nn.functional.feature_alpha_dropout(x, training=training))
    for drop in drops:
        different = torch.func.vmap(lambda b: drop(x, training=True) + 0 * b, randomness="different")(batch)
        assert different.shape == (6, 4, 5) and len({tuple(row.flatten().tolist()) for row in different}) > 1
        same = torch.func.vmap(lambda b: drop(x, training=True) + 0 * b, randomness="same")(batch)
        assert all(torch.equal(row, same[0]) for row in same)
        assert torch.equal(torch.func.vmap(lambda b: drop(x, training=False) + b, randomness="different")(batch), x + batch.view(6, 1, 1))
    kept = torch.func.vmap(lambda b: torch.nn.functional.dropout(x, 0.5), randomness="different")(batch)
    assert set(kept.flatten().tolist()) == {0.0, 6.0}


def test_normal_numbers_around_batched_means_and_deviations():
    torch.manual_seed(0)
    means, deviations = torch.arange(12.0).view(3, 4), torch.full((3,), 1e-6)
    around = torch.func.vmap(torch.normal, in_dims=(1, None), randomness="different")
    assert torch.allclose(around(means, deviations), means.t(), atol=1e-4)
    assert torch.allclose(torch.func.vmap(torch.normal, randomness="different")(means, deviations), means, atol=1e-4)
    assert torch.allclose(torch.func.vmap(lambda m: torch.normal(m, 1e-6), in_dims=1, randomness="different")(means), means.t(), atol=1e-4)
    spread = torch.func.vmap(lambda s: torch.normal(torch.zeros(2), s), randomness="different")(torch.tensor([0.0, 1.0, 1.0]))
    assert not spread[0].any() and not torch.equal(spread[1], spread[2])
    drawn = torch.func.vmap(lambda _: torch.normal(0.0, torch.ones(2)), randomness="different")(torch.ones(3))
    assert len({tuple(row.tolist()) for row in drawn}) == 3
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor"):
        torch.func.vmap(torch.normal, randomness="same")(means, deviations)


def test_a_step_of_meta_learning_by_squared_distances_is_differentiated():
    x, y, start = torch.arange(24.0).reshape(2, 4, 3) / 24, torch.ones(2, 4, 1), torch.full((3, 1), 0.1)
    loss = lambda w, x, y: torch.nn.functional.mse_loss(torch.tanh(x @ w), y)  # noqa: E731
    after_a_step = lambda w, x, y: loss(w - 0.1 * grad(loss)(w, x, y), x, y)  # noqa: E731
    together = grad(lambda w: vmap(after_a_step, (None, 0, 0))(w, x, y).mean())(start)
    apart = (grad(after_a_step)(start, x[0], y[0]) + grad(after_a_step)(start, x[1], y[1])) / 2
    assert torch.allclose(together, apart)


@pytest.mark.parametrize("write", [lambda t: t.add_(1), lambda t: t.unsqueeze_(0), lambda t: t.copy_(torch.ones(()))])
@pytest.mark.parametrize("transform", [grad, jacfwd, jacrev, lambda f: lambda x: jvp(f, (x,), (x,))[1], lambda f: grad(lambda x: grad(f)(x).sum())])
def test_a_tensor_made_of_numbers_inside_a_transform_may_be_written(transform, write):
    def function(x):
        made = torch.tensor(0.5)
        write(made)
        return (x * x * made).sum()
    x = torch.tensor([1.0, 2.0])
    plain = torch.tensor(0.5)
    write(plain)
    assert torch.allclose(transform(function)(x), transform(lambda x: (x * x * plain).sum())(x))


def test_forward_mode_gives_the_function_views_of_its_arguments():
    def function(x):
        x.mul_(2)
        x.unsqueeze_(0)
        return x.sin()
    x = torch.ones(2, 3)
    jvp(function, (x,), (torch.ones(2, 3),))
    assert x.shape == (2, 3) and torch.equal(x, 2 * torch.ones(2, 3))
    jacfwd(function)(x)
    assert x.shape == (2, 3)


@pytest.mark.parametrize("outer, x", [(lambda f: grad(lambda x: f(x).sum()), T([1., 2.])), (jacfwd, T([1., 2.])), (jacrev, T([1., 2.])),
                                      (vmap, T([[1., 2.], [3., 4.]]))])
def test_functional_jacobians_by_forward_mode_inside_of_others(outer, x):
    function = lambda x: (x * x).sum(-1)  # noqa: E731
    assert torch.allclose(outer(functionalize(jacfwd(function)))(x), outer(jacfwd(function))(x))
    names = [str(node.target) for node in make_fx(functionalize(jacfwd(function)))(torch.ones(2)).graph.nodes]
    assert "aten.copy.default" not in names and "aten.as_strided.default" not in names


@pytest.mark.parametrize("function", [lambda x: x + 2, lambda x: 2 - x, lambda x: torch.add(x, 2, alpha=3), lambda x: x + 1j, lambda x: x + True,
                                      lambda x: torch.cat([x, x]) - 1.5])
def test_numbers_in_forward_mode_are_numbers_to_the_modes_below(function):
    class PassOn(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    x, t = T([1., 2.]), T([1., 3.])
    expected = jvp(function, (x,), (t,))
    with PassOn():
        found = jvp(function, (x,), (t,))
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(found, expected))


def test_data_inside_transforms():
    def assigned(x, value):
        x.data = value
        return (x * x).sum()
    with pytest.raises(RuntimeError, match="accessing `data` under vmap transform is not allowed"):
        torch.vmap(lambda x: x.data)(torch.ones(2))
    with pytest.raises(RuntimeError, match="mutating directly with `.data` under vmap"):
        torch.vmap(lambda x: assigned(x, torch.ones(3)))(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="mutating directly with `.data` under vmap"):
        torch.vmap(lambda x: assigned(torch.zeros(3), x))(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="mutating directly with `.data` inside functorch transform"):
        torch.func.grad(lambda x: assigned(x * 2, torch.ones(3)))(torch.ones(3))
    assert torch.func.grad(lambda x: (x.data * x).sum())(torch.full((2,), 3.0)).tolist() == [3, 3]


def test_a_dual_tensor_is_not_made_of_a_batch():
    def tangent(x):
        with torch.autograd.forward_ad.dual_level():
            return torch.autograd.forward_ad.unpack_dual(torch.autograd.forward_ad.make_dual(x, x).sin()).tangent
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::_make_dual"):
        vmap(tangent)(torch.ones(2, 3))


def test_a_custom_function_takes_no_tensor_by_name_under_vmap():
    class Add(torch.autograd.Function):
        @staticmethod
        def forward(x, *, y):
            return x + y
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        vmap(Add.apply)(torch.ones(3), y=torch.ones(3))


def test_gradients_of_a_batch_that_are_no_numbers_are_found():
    per_sample = vmap(grad(lambda x: x.sqrt().sum()))
    with torch.autograd.set_detect_anomaly(True):
        for f, x in ((per_sample, -torch.ones(3)), (vmap(per_sample), -torch.ones(2, 3))):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."):
                f(x)
            assert f(x.abs()).equal(torch.full_like(x, 0.5))
