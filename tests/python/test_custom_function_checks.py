"""What autograd.Function asks of users' methods and hands them, and of tangents above all."""
import pytest
import umbra as torch
import umbra.autograd.forward_ad as forward_ad
from umbra.autograd import Function


def function_of(forward, jvp):
    return type("Own", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp), "backward": staticmethod(lambda ctx, *g: g)})


def tangents(function, *args):
    with forward_ad.dual_level():
        results = function.apply(*[forward_ad.make_dual(a, torch.ones_like(a)) if isinstance(a, torch.Tensor) else a for a in args])
        return [forward_ad.unpack_dual(r).tangent for r in (results if isinstance(results, tuple) else (results,))]


def written(ctx, x):
    ctx.mark_dirty(x)
    return x.add_(1)


def not_differentiable(ctx, x):
    other = x * 3
    ctx.mark_non_differentiable(other)
    return x * 2, other


@pytest.mark.parametrize("forward, jvp, text", [
    (lambda ctx, x: x.view_as(x), lambda ctx, g: g.clone(), "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."),
    (lambda ctx, x: x.view_as(x), lambda ctx, g: g.clone().view_as(g), "A custom Function is returning a view but the jvp is not returning a view of the given grad input."),
    (lambda ctx, x: x, lambda ctx, g: g, "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."),
    (written, lambda ctx, g: g.clone(), "An inplace custom Function is not modifying the forward mode gradients inplace."),
    (written, lambda ctx, g: g.mul_(2).clone(), "An inplace custom Function is not returning the forward mode gradients as-is."),
    (not_differentiable, lambda ctx, g: (g, g), "Function's jvp returned a gradient at position 1, but  the corresponding forward output is not a differentiable Tensor."),
    (lambda ctx, x: (x * 2, x * 3), lambda ctx, g: g, "Function's jvp returned an invalid number of forward gradients (expected 2 but got 1)"),
    (lambda ctx, x: x * 2, lambda ctx, g: 3, "expected Variable or None (got int) for grad output 0.")])
def test_tangents_that_are_refused(forward, jvp, text):
    with pytest.raises(RuntimeError) as error:
        tangents(function_of(forward, jvp), torch.ones(2))
    assert str(error.value).startswith(text)


def test_tangents_that_are_taken():
    assert tangents(function_of(lambda ctx, x: x.view_as(x), lambda ctx, g: g.view_as(g)), torch.ones(2))[0].tolist() == [1, 1]
    assert tangents(function_of(written, lambda ctx, g: g.mul_(2)), torch.ones(2))[0].tolist() == [2, 2]
    assert tangents(function_of(not_differentiable, lambda ctx, g: (g, None)), torch.ones(2))[1] is None


def test_one_gradient_alone():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp' for a custom Function is not allowed."):
        Both.apply(torch.ones(1, requires_grad=True)).backward()


def test_defaults_reach_setup_context():
    class Scaled(Function):
        @staticmethod
        def forward(x, factor=3):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None
    x = torch.ones(1, requires_grad=True)
    Scaled.apply(x).backward()
    assert x.grad.tolist() == [3]


def test_what_is_written_and_not_differentiable_has_no_history():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            return x.mul_(2), y * 2

        @staticmethod
        def backward(ctx, *g):
            return g
    a, b = Doubled.apply(torch.ones(1, requires_grad=True).clone(), torch.ones(1, requires_grad=True))
    assert a.grad_fn is None and not a.requires_grad and b.requires_grad


def test_an_argument_that_is_handed_back_keeps_its_class():
    class Own(torch.Tensor):
        pass

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g
    assert type(Same.apply(torch.ones(1).as_subclass(Own))) is Own
    assert type(Same.apply(torch.nn.Parameter(torch.ones(1)))) is torch.Tensor
    assert Same._backward_cls.__name__ == "SameBackward"


def test_instances_are_a_thing_of_the_past():
    class Old(Function):
        pass
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Old()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated."):
        instance(torch.ones(1))


def test_a_view_of_a_view_from_no_grad_says_so():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        view = x.view(-1)
    with pytest.raises(RuntimeError, match="Output 0 of View is a view of a view which was created in no_grad mode and is being modified inplace"):
        view.view(-1).add_(1)


class KeepsTwice(torch.autograd.Function):
    seen = []

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.save_for_forward(y)
        return x * y

    @staticmethod
    def jvp(ctx, x_tangent, y_tangent):
        KeepsTwice.seen.append(ctx.saved_tensors)
        return x_tangent * ctx.saved_tensors[0]

    @staticmethod
    def backward(ctx, gradient):
        KeepsTwice.seen.append(ctx.saved_tensors)
        return None, gradient * ctx.saved_tensors[0]


def test_what_is_saved_for_forward_mode_does_not_take_the_place_of_what_backward_saved():
    x, y = torch.tensor(3.0), torch.tensor(5.0, requires_grad=True)
    KeepsTwice.apply(x, y).backward()
    assert y.grad.item() == 3
    with forward_ad.dual_level():
        out = KeepsTwice.apply(forward_ad.make_dual(x, torch.tensor(1.0)), y.detach())
        assert forward_ad.unpack_dual(out).tangent.item() == 5
    assert [len(saved) for saved in KeepsTwice.seen] == [1, 1]


def test_a_result_that_is_no_tensor_has_its_place_among_gradients():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            ctx.factor = factor
            return x * factor, factor, y * factor

        @staticmethod
        def backward(ctx, of_x, of_factor, of_y):
            assert of_factor is None
            return of_x * ctx.factor, None, of_y * ctx.factor
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    first, factor, last = Scaled.apply(x, 3.0, y)
    assert factor == 3.0 and last.output_nr == 2
    first.grad_fn.register_prehook(lambda given: (given[0] * 2, None, given[2]))
    (first + last).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0] and y.grad.tolist() == [3.0, 3.0]


def test_what_cannot_have_a_tangent_gets_none():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x.clone(), n.clone()

        @staticmethod
        def jvp(ctx, x_tangent, n_tangent):
            assert n_tangent is None
            return x_tangent, None
    with forward_ad.dual_level():
        out, _ = Both.apply(forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0)), torch.tensor(3))
        assert forward_ad.unpack_dual(out).tangent.item() == 1


class TestArgumentsAndResults:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            assert type(ctx).__name__ == "SquareBackward"
            return 2 * ctx.saved_tensors[0] * gradient

    def test_arguments_by_name(self):
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        self.Square.apply(x=x).sum().backward()
        assert x.grad.tolist() == [2, 6]

    def test_numbers_are_not_saved(self):
        assert self.Square.apply(3) == 9

        class SavesNumber(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)
                return x * 1

        with pytest.raises(TypeError, match="can only save variables, but argument 0 is of type int"):
            SavesNumber.apply(torch.ones(1, requires_grad=True))

    def test_a_list_is_one_result(self):
        class Listed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return [x * 2]

        result = Listed.apply(torch.ones(2, requires_grad=True))
        assert isinstance(result, list) and not result[0].requires_grad


def test_a_rule_of_vmap_that_gives_a_number_for_a_batch():
    class Summed(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x.sum(), 0
    with pytest.raises(ValueError, match="0 dimensions"):
        torch.vmap(Summed.apply)(torch.ones(3, 2))


@pytest.mark.parametrize("out_dims", [(0, 0, 0), (0,), [0, 0], ((0, 0), 0)])
def test_dimensions_of_a_vmap_rule_that_do_not_fit_its_results(out_dims):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.clone(), x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return (x.clone(), x.clone()), out_dims

    with pytest.raises(RuntimeError, match=r"returned an incompatible \(output, out_dims\) tuple"):
        torch.vmap(Twice.apply)(torch.ones(2, 3))


def test_a_complex_gradient_of_a_real_input_is_refused():
    turning = type("Turning", (Function,), {"forward": staticmethod(lambda ctx, x: x * 1), "backward": staticmethod(lambda ctx, g: g * 1j)})
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="TurningBackward returned a complex gradient at index 0"):
        turning.apply(x).sum().backward()
    assert x.grad is None


def test_a_tensor_has_one_tangent_of_a_level():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
            forward_ad.make_dual(dual, torch.ones(2))


def test_a_written_view_is_the_only_result():
    class Added(Function):
        @staticmethod
        def forward(ctx, x, y):
            x.add_(y)
            ctx.mark_dirty(x)
            return x, x + y

        @staticmethod
        def backward(ctx, first, second):
            return first + second, first + 2 * second

    leaf, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, second = Added.apply(leaf.clone(), y)
    (first * second).sum().backward()
    assert leaf.grad.tolist() == [5.0, 5.0] and y.grad.tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another Tensor"):
        Added.apply(leaf.clone().view_as(leaf), y)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Added.apply(leaf, y)


def test_what_backward_saved_is_not_there_for_tangents():
    seen = []

    class Copied(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def jvp(ctx, tangent):
            seen.append(ctx.saved_tensors)
            return tangent

    with forward_ad.dual_level():
        Copied.apply(forward_ad.make_dual(torch.ones(1), torch.ones(1)))
    assert seen == [()]


@pytest.mark.parametrize("materialize", [True, False])
def test_outputs_without_a_derivative_get_zeros_in_backward(materialize):
    seen = []

    class Parts(Function):
        @staticmethod
        def forward(ctx, x):
            sign, place = x.sign(), x.argmax()
            ctx.mark_non_differentiable(sign)
            ctx.set_materialize_grads(materialize)
            return x * 2, sign, place

        @staticmethod
        def backward(ctx, grad, *others):
            seen.extend(others)
            return grad * 2
    x = torch.tensor([1., -2.], requires_grad=True)
    Parts.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]
    if materialize:
        assert [g.tolist() for g in seen] == [[0, 0], 0] and [g.dtype for g in seen] == [torch.float32, torch.int64]
    else:
        assert seen == [None, None]


def test_outputs_that_have_no_derivative_get_nothing_in_backward_where_the_context_says_so():
    seen = []

    class Parts(Function):
        @staticmethod
        def forward(ctx, x):
            sign = x.sign()
            ctx.mark_non_differentiable(sign)
            ctx._materialize_non_diff_grads = False
            with pytest.raises(TypeError, match="expected .bool."):
                ctx._materialize_non_diff_grads = 3
            return x * 2, sign, x * 3

        @staticmethod
        def backward(ctx, grad, *others):
            seen.extend(others)
            return grad * 2
    x = torch.tensor([1., -2.], requires_grad=True)
    Parts.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2] and seen[0] is None and seen[1].tolist() == [0, 0]
