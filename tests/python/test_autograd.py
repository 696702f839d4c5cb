"""Differentiation from Python: passes, modes, hooks, custom functions, forward mode."""
import pytest

import umbra
from umbra.autograd import Function, forward_ad


def test_grad_and_backward():
    x = umbra.tensor([1., 2.], requires_grad=True)
    y = (x * x).sum()
    g, = umbra.autograd.grad(y, x, retain_graph=True)
    assert g.tolist() == [2, 4] and x.grad is None
    y.backward()
    assert x.grad.tolist() == [2, 4]
    assert y.grad_fn.name() == "SumBackward0" and type(y.grad_fn).__name__ == "SumBackward0"
    assert y.grad_fn.next_functions[0][0].name() == "MulBackward0" and x.is_leaf and not y.is_leaf


def test_second_derivative():
    x = umbra.tensor(3., requires_grad=True)
    g, = umbra.autograd.grad(x ** 3, x, create_graph=True)
    assert umbra.autograd.grad(g, x)[0].item() == 18


def test_no_grad_forms():
    x = umbra.ones(2, requires_grad=True)

    @umbra.no_grad()
    def f():
        return x * 2

    @umbra.no_grad
    def g():
        return x * 2
    assert not f().requires_grad and not g().requires_grad
    with umbra.no_grad():
        assert not (x * 2).requires_grad
        with umbra.enable_grad():
            assert (x * 2).requires_grad
    with umbra.set_grad_enabled(False):
        assert not umbra.is_grad_enabled()
    with umbra.inference_mode():
        assert umbra.ones(1).is_inference() and umbra.is_inference_mode_enabled()


def test_hooks():
    x = umbra.ones(2, requires_grad=True)
    seen = []
    handle = x.register_hook(lambda grad: seen.append(grad.tolist()))
    y = x * 3
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    assert seen == [[6, 6]] and x.grad.tolist() == [6, 6]
    handle.remove()
    (x * 1).sum().backward()
    assert len(seen) == 1
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    x.sum().backward()
    assert seen[-1] == [8, 8]


def test_an_exception_in_a_hook_comes_out_as_itself():
    class Mine(Exception):
        pass

    def hook(grad):
        raise Mine("mine")
    x = umbra.ones(1, requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(Mine, match="mine"):
        (x * 2).backward()


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        assert ctx.saved_tensors[0].tolist() == [1, 2]
        assert ctx.needs_input_grad == (True, False)
        return grad * ctx.factor, None


def test_custom_function():
    x = umbra.tensor([1., 2.], requires_grad=True)
    y = Scale.apply(x, 5)
    assert y.grad_fn.name() == "ScaleBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_custom_function_with_setup_context_and_two_results():
    class Split(Function):
        @staticmethod
        def forward(x):
            return x * 2, x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, a, b):
            return a * 2
    x = umbra.ones(2, requires_grad=True)
    a, b = Split.apply(x)
    assert a.requires_grad and not b.requires_grad
    a.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_custom_function_errors():
    class Short(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad
    a, b = umbra.ones(1, requires_grad=True), umbra.ones(1)
    with pytest.raises(RuntimeError, match="returned an incorrect number of gradients \\(expected 2, got 1\\)"):
        Short.apply(a, b).backward()


def test_saved_tensor_hooks():
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t.detach() * 10
    x = umbra.ones(2, requires_grad=True)
    with umbra.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 10):
        y = x.exp().sum()
    y.backward()
    assert packed and [round(v, 4) for v in x.grad.tolist()] == [2.7183, 2.7183]


@pytest.mark.parametrize("join", [lambda y: umbra.cat([y, y]), lambda y: umbra.hstack([y, y.double()]), lambda y: umbra.block_diag(y, y[0]),
                                  lambda y: umbra.cat([y, umbra.ones(0), y], -1)])
def test_tensors_that_were_joined_may_be_written(join):
    x = umbra.ones(2, 3, requires_grad=True)
    y = x * 1
    joined = join(y)
    with umbra.no_grad():
        y.mul_(2)
    (joined * 3).sum().backward()
    z = umbra.ones(2, 3, requires_grad=True)
    (join(z) * 3).sum().backward()
    assert umbra.equal(x.grad, z.grad)


def test_in_place_change_of_a_saved_tensor_is_an_error():
    x = umbra.ones(2, requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    with umbra.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_forward_mode():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(umbra.tensor([1., 2.]), umbra.tensor([1., 0.]))
        assert forward_ad.unpack_dual(x * x).tangent.tolist() == [2, 0]
    assert forward_ad.unpack_dual(umbra.ones(1)).tangent is None


def test_data_and_detach():
    x = umbra.ones(2, requires_grad=True)
    assert not x.data.requires_grad and x.data.data_ptr() == x.data_ptr()
    x.data = umbra.zeros(3)
    assert x.shape == (3,) and x.requires_grad
    assert not x.detach().requires_grad


def test_grad_assignment_is_checked():
    x = umbra.ones(2, requires_grad=True)
    x.grad = umbra.ones(2)
    x.grad = None
    with pytest.raises(RuntimeError, match=r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"):
        x.grad = umbra.ones(3)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = umbra.ones(2, dtype=umbra.float64)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with device type 'meta' to a tensor with device type 'cpu'"):
        x.grad = umbra.ones(2, device="meta")
    with pytest.raises(TypeError):
        x.grad = 1


def test_a_variable_of_a_tensor_is_another_one_of_the_same_values():
    x = umbra.ones(2, requires_grad=True)
    variable = umbra.autograd.Variable(x)
    assert variable is not x and not variable.requires_grad and variable.data_ptr() == x.data_ptr()
    assert umbra.autograd.Variable(x, requires_grad=True).is_leaf
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False


# ---- what torch reports of a backward pass ----

def test_anomaly_detection_names_the_function():
    def nan_at_zero():
        x = umbra.zeros(1, requires_grad=True)
        (x.sqrt() * 0).sum().backward()

    with umbra.autograd.set_detect_anomaly(True):
        assert umbra.is_anomaly_enabled()
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."):
            nan_at_zero()
    assert not umbra.is_anomaly_enabled()
    nan_at_zero()
    with umbra.autograd.detect_anomaly(check_nan=False):
        nan_at_zero()
    with umbra.autograd.detect_anomaly():
        x = umbra.ones(2, requires_grad=True)
        (x * x).sum().backward()


def test_hook_that_changes_the_size_is_named():
    def wrong(gradient):
        return umbra.ones(3)
    x = umbra.ones(2, requires_grad=True)
    x.register_hook(wrong)
    with pytest.raises(RuntimeError, match="hook 'wrong' has changed the size of value"):
        (x * 2).sum().backward()


def test_node_of_a_custom_function_is_its_context():
    class Product(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.note = "kept"
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    x, y = umbra.ones(2, requires_grad=True), umbra.ones(2)
    out = Product.apply(x, y)
    saved = out.grad_fn.saved_tensors
    assert saved[0].tolist() == [1, 1] and len(saved) == 2
    assert out.grad_fn.note == "kept" and out.grad_fn.needs_input_grad == (True, False)
    with pytest.raises(AttributeError):
        out.grad_fn.nothing
    with pytest.raises(AttributeError):
        (x * 2).grad_fn.saved_tensors
    out.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.grad_fn.saved_tensors


def test_names_of_nodes_without_an_operator():
    x = umbra.ones(4, requires_grad=True)
    y = x.clone()
    y[0:2].mul_(2)
    assert y.grad_fn.name() == "torch::autograd::CopySlices" and type(y.grad_fn).__name__ == "CopySlices"
    assert "grad_fn=<CopySlices>" in repr(y)
    leaf = x.expand_as(x).grad_fn.next_functions[0][0]
    assert leaf.name() == "torch::autograd::AccumulateGrad" and leaf.variable is x


def test_pack_hooks_get_inputs_as_they_are():
    seen = []

    def pack(tensor):
        seen.append(tensor)
        return tensor
    x, y = umbra.ones(2, requires_grad=True), umbra.ones(2, requires_grad=True)
    with umbra.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = (x * y).sum()
    assert any(t is x for t in seen) and any(t is y for t in seen)
    out.backward()
    assert x.grad.tolist() == [1, 1]


def test_no_inputs_to_differentiate():
    x = umbra.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="`inputs` argument to `grad\\(\\)` cannot be empty"):
        umbra.autograd.grad(x.sum(), [])


def test_custom_operator_must_not_return_its_input():
    for name, function in (("same", lambda x: x), ("view", lambda x: x.view(-1))):
        def kernel(x: umbra.Tensor) -> umbra.Tensor:
            return function(x)
        op = umbra.library.custom_op(f"aliases::{name}", kernel, mutates_args=())
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            op(umbra.ones(2))


def test_a_node_is_one_object_while_it_is_held():
    x = umbra.ones(2, requires_grad=True)
    y = x.exp()
    assert y.grad_fn is y.grad_fn
    assert (y * 2).grad_fn.next_functions[0][0] is y.grad_fn
    assert y.grad_fn.next_functions[0][0] is y.grad_fn.next_functions[0][0]
    a, b = umbra.ones(2, requires_grad=True).unbind(0)
    assert a.grad_fn is b.grad_fn
    assert isinstance(y.grad_fn, umbra.autograd.graph.Node)


def test_metadata_lives_as_long_as_its_node():
    y = umbra.ones(2, requires_grad=True).exp()
    y.grad_fn.metadata["note"] = 5
    assert y.grad_fn.metadata == {"note": 5}
    with pytest.raises(AttributeError, match="has no attribute 'note'"):
        y.grad_fn.note = 1


def test_the_context_of_a_custom_function_is_its_node():
    seen = []

    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 3
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            seen.append((ctx.note, ctx.metadata["tag"], ctx.name()))
            return grad * ctx.factor
    x = umbra.ones(2, requires_grad=True)
    y = Scale.apply(x)
    y.grad_fn.note, y.grad_fn.factor = "kept", 5
    y.grad_fn.metadata["tag"] = 7
    assert y.grad_fn.note == "kept"
    y.sum().backward()
    assert seen == [("kept", 7, "ScaleBackward")] and x.grad.tolist() == [5, 5]


@pytest.mark.parametrize("result", [3.0, "text", [1], {}])
def test_a_backward_gives_tensors_or_none(result):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return result
    x = umbra.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=rf"expected Variable or None \(got {type(result).__name__}\)"):
        Bad.apply(x).sum().backward()


def test_a_hook_that_packs_must_not_write():
    x = umbra.ones(1, requires_grad=True)
    with umbra.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
            (x * 1).exp()


def test_nodes_show_what_they_saved_until_it_is_freed():
    x = umbra.tensor([2.], requires_grad=True)
    y = x.exp()
    node = y.grad_fn
    assert node._saved_result.tolist() == y.tolist()
    assert (x * x).grad_fn._saved_other is x
    assert (x * umbra.ones(1)).grad_fn._saved_self is None
    assert x.sum(0, keepdim=True).grad_fn._saved_self_sym_sizes == (1,)
    with pytest.raises(AttributeError):
        node._saved_other
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        node._saved_result


def test_numpy_needs_no_detach_where_nothing_is_recorded():
    x = umbra.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with umbra.no_grad():
        assert x.numpy().tolist() == [1, 1]
    with umbra.inference_mode():
        assert x.numpy().tolist() == [1, 1]


def test_several_weights_at_once():
    x, unused = umbra.tensor([1., 2.], requires_grad=True), umbra.ones(1, requires_grad=True)
    rows = umbra.tensor([[1., 0.], [0., 1.], [1., 1.]])
    found = umbra.autograd.grad(x * x, [x, unused], rows, is_grads_batched=True, allow_unused=True)
    assert found[0].tolist() == [[2, 0], [0, 4], [2, 4]] and found[1] is None


def test_jacobians_and_hessians():
    functional = umbra.autograd.functional
    x, y = umbra.tensor([1., 2.]), umbra.tensor([[3.], [4.]])
    by_x, by_y = functional.jacobian(lambda a, b: a * b.squeeze(1), (x, y))
    assert by_x.tolist() == [[3, 0], [0, 4]] and by_y.tolist() == [[[1], [0]], [[0], [2]]] and not by_x.requires_grad
    assert functional.jacobian(lambda a: umbra.ones(2), x).tolist() == [[0, 0], [0, 0]]
    assert functional.hessian(lambda a: (a ** 3).sum(), x).tolist() == [[6, 0], [0, 12]]
    mixed = functional.hessian(lambda a, b: (a ** 2 * b.squeeze(1)).sum(), (x, y))
    assert mixed[0][0].tolist() == [[6, 0], [0, 8]] and mixed[0][1].squeeze(2).tolist() == [[2, 0], [0, 4]]
    ones = umbra.ones(2)
    assert functional.vjp(lambda a: a ** 2, x, umbra.tensor([1., 10.]))[1].tolist() == [2, 40]
    assert functional.jvp(lambda a: a ** 2, x, ones)[1].tolist() == [2, 4]
    assert functional.vhp(lambda a: (a ** 3).sum(), x, ones)[1].tolist() == [6, 12]
    assert functional.hvp(lambda a: (a ** 3).sum(), x, ones)[1].tolist() == [6, 12]
    leaf = x.clone().requires_grad_()
    assert functional.jacobian(lambda a: a ** 2, leaf, create_graph=True).requires_grad
    for call, error, text in [(lambda: functional.jacobian(lambda a: a, [x]), TypeError, "inputs given to jacobian must be either a Tensor"),
                              (lambda: functional.jacobian(lambda a: 3, x), TypeError, "outputs of the user-provided function"),
                              (lambda: functional.jacobian(lambda a: umbra.ones(2), x, strict=True), RuntimeError, "does not require gradients"),
                              (lambda: functional.hessian(lambda a: a ** 2, x), RuntimeError, "should contain a single element"),
                              (lambda: functional.vjp(lambda a: a ** 2, x), RuntimeError, "The vector v can only be None"),
                              (lambda: functional.jvp(lambda a: a, x, umbra.ones(3)), RuntimeError, "v has invalid size")]:
        with pytest.raises(error, match=text):
            call()


def second_derivatives(function, x):
    x = x.clone().requires_grad_()
    weights = umbra.arange(1.0, x.numel() + 1, dtype=x.dtype).reshape(x.shape)
    slope, = umbra.autograd.grad(function(x).sum(), x, create_graph=True)
    return umbra.autograd.grad((slope * weights).sum(), x)[0]


def test_second_derivatives_of_products_with_zeros():
    x = umbra.tensor([0.0, 2.0, 0.0, 3.0], dtype=umbra.double)
    assert second_derivatives(lambda t: t.prod(), x).tolist() == [18, 0, 6, 0]
    assert second_derivatives(lambda t: t.prod(0), x).tolist() == [18, 0, 6, 0]


def test_second_derivatives_of_running_sums_of_exponentials():
    # The slopes of each running sum add up to one, so that equal weights leave nothing to change.
    x = umbra.tensor([0.3, -0.4, 1.0], dtype=umbra.double, requires_grad=True)
    slope, = umbra.autograd.grad(x.logcumsumexp(0).sum(), x, create_graph=True)
    assert umbra.autograd.grad(slope.sum(), x)[0].abs().max() < 1e-12


@pytest.mark.parametrize("values", [[0., 0., 0., 2.], [0., 0., 3., 2.], [0., 5., 3., 2.], [1., 5., 3., 2.]])
def test_captured_derivatives_of_scattered_products_where_zeros_meet(values):
    from umbra.fx.experimental.proxy_tensor import make_fx
    weights = umbra.tensor([[1., 2., 3., 4.], [4., 3., 2., 1.]], dtype=umbra.double)

    def derivatives(product):
        def function(x):
            first, = umbra.autograd.grad(product(x), x, create_graph=True)
            second, = umbra.autograd.grad((first * weights[0]).sum(), x, create_graph=True)
            return first, second, umbra.autograd.grad((second * weights[1]).sum(), x)[0]
        return function

    def scattered(x):
        return umbra.ones(1, dtype=umbra.double).scatter_reduce(0, umbra.zeros(4, dtype=umbra.int64), x, "prod").sum()
    x = umbra.tensor(values, dtype=umbra.double, requires_grad=True)
    captured = make_fx(derivatives(scattered), tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    for found, expected in zip(captured(x), derivatives(lambda x: x[0] * x[1] * x[2] * x[3])(x)):
        assert umbra.allclose(found, expected)


def test_no_second_derivative_of_scattered_products_where_zeros_meet():
    source = umbra.tensor([0.0, 0.0, 2.0], dtype=umbra.double, requires_grad=True)
    out = umbra.ones(2, dtype=umbra.double).scatter_reduce(0, umbra.tensor([0, 0, 1]), source, "prod")
    assert umbra.autograd.grad(out.sum(), source, retain_graph=True)[0].tolist() == [0, 0, 1]
    with pytest.raises(RuntimeError, match="Double backward is unsupported"):
        umbra.autograd.grad(out.sum(), source, create_graph=True)


def test_second_derivatives_of_activations_far_out():
    x = umbra.tensor([-1000.0, 1000.0], dtype=umbra.double)
    assert second_derivatives(lambda t: umbra.celu(t, 0.5), x).tolist() == [0, 0]


def test_gradients_flow_between_places_of_a_graph():
    x = umbra.ones(3, requires_grad=True)
    y = x * 2
    edge = umbra.autograd.graph.get_gradient_edge(y)
    result = (y ** 2).sum()
    (found,) = umbra.autograd.grad(result, [edge], retain_graph=True)
    assert found.tolist() == [4, 4, 4]
    (found,) = umbra.autograd.grad([edge], [x], [umbra.full((3,), 5.0)], retain_graph=True)
    assert found.tolist() == [10, 10, 10]
    other = umbra.autograd.graph.get_gradient_edge(umbra.ones(3, requires_grad=True) * 1)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        umbra.autograd.grad(result, [other], retain_graph=True)
    assert umbra.autograd.grad(result, [other], allow_unused=True) == (None,)


def test_what_is_saved_may_be_written_where_that_is_allowed():
    x = umbra.ones(3, requires_grad=True)
    with umbra.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        loss = (y ** 2).sum() + (y[1:] ** 3).sum()
        y[1:].mul_(5)
        y.zero_()
        loss.backward()
        late = (x.clone() ** 2).sum()
    assert x.grad.tolist() == [2, 5, 5]
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        late.backward()


def test_callbacks_wait_for_the_end_of_a_backward_pass():
    seen, x = [], umbra.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: umbra.autograd.graph.queue_callback(lambda: seen.append("end")))
    x.register_hook(lambda gradient: seen.append("x"))
    y.sum().backward()
    assert seen == ["x", "end"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass."):
        umbra.autograd.graph.queue_callback(lambda: None)


def test_a_write_that_autograd_did_not_see_can_be_told():
    x = umbra.ones(3, requires_grad=True)
    y = x.clone()
    loss = (y ** 2).sum()
    umbra.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_hook_after_accumulation_may_end_with_a_write():
    x = umbra.zeros(3, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda parameter: parameter.sub_(parameter.grad))
    x.sum().backward()
    assert x.tolist() == [-1, -1, -1]
    x.register_post_accumulate_grad_hook(lambda parameter: parameter.detach())
    with pytest.raises(RuntimeError, match="Tensor post accumulate grad hooks should return None."):
        x.sum().backward()


def test_an_input_that_is_given_back_and_saved_by_setup_context_is_refused():
    class Keep(umbra.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2, x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad, other):
            return grad * 2 + other
    for call in (Keep.apply, lambda x: umbra.func.grad(lambda y: Keep.apply(y)[0].sum())(x)):
        with pytest.raises(RuntimeError, match="returned as-is as output is being saved"):
            call(umbra.ones(2))


def test_a_result_that_a_function_saved_has_its_history_in_backward():
    seen = []

    class Double(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(y, x)
            return y

        @staticmethod
        def backward(ctx, gradient):
            y, x = ctx.saved_tensors
            seen.append((y.requires_grad, type(y.grad_fn).__name__, x.is_leaf))
            with umbra.enable_grad():
                slope, = umbra.autograd.grad((y * y).sum(), y)
            return gradient * slope
    x = umbra.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert seen == [(True, "DoubleBackward", True)] and x.grad.tolist() == [4.0, 4.0]


def test_a_leaf_that_is_a_view_is_not_written_to():
    x = umbra.arange(4.).reshape(2, 2).requires_grad_()
    for write in (lambda: x.add_(1), lambda: x[0].add_(1), lambda: x.__setitem__(0, 1), lambda: x.__setitem__([0, 1], 1)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation."):
            write()
    assert x.is_leaf and x._version == 0
    (x * x).sum().backward()
    assert x.grad.tolist() == [[0, 2], [4, 6]]


def test_nodes_of_custom_functions_say_where_their_class_is():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
    y = Twice.apply(umbra.ones(1, requires_grad=True))
    assert repr(y.grad_fn).startswith("<torch.autograd.function.TwiceBackward object at ") and repr(y) == "tensor([2.], grad_fn=<TwiceBackward>)"
