"""Where one layer meets another: right, or refused by name."""
import pytest

import umbra
from umbra import tensor
from umbra._functorch.aot_autograd import aot_function
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.experimental.proxy_tensor import make_fx


def exported(function, *args):
    class Model(umbra.nn.Module):
        def forward(self, *inputs):
            return function(*inputs)
    return umbra.export.export(Model(), args).module()


def compiled(function):
    return aot_function(function, lambda graph, _: graph)


class Sine(umbra.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0].cos()


def test_an_exported_custom_function_is_differentiated_through_its_calls():
    x = umbra.arange(3.).requires_grad_()
    exported(lambda x: Sine.apply(x) + x, umbra.ones(3))(x).sum().backward()
    assert umbra.allclose(x.grad, umbra.arange(3.).cos() + 1)


class HundredTimes(umbra.autograd.Function):
    """A square whose gradient is not that of its calls."""
    @staticmethod
    def forward(ctx, x):
        assert not umbra.is_grad_enabled()
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 100 * ctx.saved_tensors[0]


def test_derivatives_inside_an_exported_program_are_those_of_its_custom_functions():
    def force(x):
        energy = HundredTimes.apply(x.sin()).sum()
        return umbra.autograd.grad(energy, x, create_graph=True)[0]

    x = umbra.arange(3.).requires_grad_()
    program = exported(force, umbra.ones(3).requires_grad_())
    assert umbra.allclose(program(x), force(x))
    assert not any("set_grad_enabled" in str(node.target) for node in program.graph.nodes)


def test_data_is_part_of_an_exported_program():
    assert exported(lambda x: x.data * x, umbra.ones(3))(umbra.full((3,), 4.)).tolist() == [16.] * 3


def test_a_literal_that_is_written_through_data_has_the_new_value():
    def function(x):
        c = tensor([1., 2., 3.])
        c.data.mul_(10)
        return x * c.sum().item()
    assert make_fx(function, tracing_mode="fake")(umbra.ones(3))(umbra.ones(3)).tolist() == function(umbra.ones(3)).tolist() == [60.] * 3


def test_a_literal_that_is_written_unknown_values_through_data_or_at_random_is_not_known_any_more():
    def through_data(x):
        c = tensor([1., 2., 3.])
        c.data.mul_(x)
        return x * c.sum().item()

    def at_random(x):
        return x * tensor([1., 2., 3.]).uniform_().sum().item()
    for function in (through_data, at_random):
        with pytest.raises(RuntimeError, match="_local_scalar_dense"):
            make_fx(function)(umbra.ones(3))
        graph = make_fx(function, tracing_mode="fake")(umbra.ones(3))  # reads what the run gives
        umbra.manual_seed(1)
        want = function(umbra.full((3,), 2.))
        umbra.manual_seed(1)
        assert umbra.equal(graph(umbra.full((3,), 2.)), want)


def test_a_leaf_that_is_a_view_stays_a_leaf_as_a_fake():
    x = umbra.arange(4.).view(2, 2).requires_grad_()
    fake = FakeTensorMode().from_tensor(x)
    assert fake.requires_grad and fake.is_leaf
    assert make_fx(lambda x: x * 2 if x.requires_grad else x * 3, tracing_mode="fake")(x)(umbra.ones(2, 2)).tolist() == [[2., 2.], [2., 2.]]


def test_a_gradient_that_cannot_be_differentiated_says_so():
    from umbra.autograd.function import once_differentiable

    class Twice(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            return gradient * 2
    x = tensor([3.], requires_grad=True)
    gradient, = umbra.autograd.grad(Twice.apply(x) * x, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.backward()


def test_hooks_on_saved_tensors_see_the_run_and_not_the_capture():
    x, packed = umbra.arange(3.).requires_grad_(), []
    with umbra.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(1), t * 2)[1], lambda t: t):
        y = compiled(lambda x: x.sin())(x)
    y.sum().backward()
    assert len(packed) == 1 and umbra.allclose(x.grad, (umbra.arange(3.) * 2).cos())


def test_a_compiled_function_inside_a_transform_is_refused():
    with pytest.raises(NotImplementedError, match="inside a transform"):
        umbra.func.grad(lambda x: compiled(lambda y: y.sin() * y)(x).sum())(umbra.ones(3))


def test_a_power_with_a_modulus_and_dirty_tensors_that_are_not_returned_are_refused():
    with pytest.raises(TypeError):
        make_fx(lambda x: x * pow(x.shape[0], 2, 7), tracing_mode="symbolic")(umbra.ones(5))

    class Dirty(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient
    with pytest.raises(RuntimeError, match="marked as dirty"):
        Dirty.apply(umbra.ones(2, requires_grad=True) * 1)


def test_a_user_class_as_a_result_of_a_captured_function_is_refused():
    class Box(umbra.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return umbra.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return Box(func(*(a.inner if isinstance(a, Box) else a for a in args), **(kwargs or {})))
    with pytest.raises(NotImplementedError, match="user's class"):
        make_fx(lambda x: Box(x) * 2)(umbra.ones(2))
