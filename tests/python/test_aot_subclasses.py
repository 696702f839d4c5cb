"""Compiled functions of tensor classes: graphs of the plain tensors inside, gradients between the wrappers."""
import pytest

import umbra
from umbra import nn, tensor
from umbra.functorch.compile import aot_function, aot_module, aot_module_simplified, min_cut_rematerialization_partition, nop
from umbra.utils import _pytree as pytree
from umbra.utils._python_dispatch import return_and_correct_aliasing


class Scaled(umbra.Tensor):
    """Values times a number, which is no tensor: what is computed has the number 1."""

    @staticmethod
    def __new__(cls, values, scale):
        return umbra.Tensor._make_wrapper_subclass(cls, values.shape, dtype=values.dtype, strides=values.stride(), requires_grad=values.requires_grad)

    def __init__(self, values, scale):
        self.values_, self.scale = values, scale

    def __tensor_flatten__(self):
        return ["values_"], {"scale": self.scale}

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Scaled(inner["values_"], context["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def plain(t):
            return t.values_ * t.scale
        args, kwargs = pytree.tree_map_only(Scaled, plain, args), pytree.tree_map_only(Scaled, plain, kwargs or {})
        return pytree.tree_map_only(umbra.Tensor, lambda t: Scaled(t, 1.), func(*args, **kwargs))


class Pair(umbra.Tensor):
    """Two tensors of one shape."""

    @staticmethod
    def __new__(cls, a, b):
        return umbra.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, strides=a.stride(), storage_offset=a.storage_offset(),
                                                   requires_grad=a.requires_grad)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        a, b = (func(*pytree.tree_map_only(Pair, lambda t: getattr(t, name), args), **pytree.tree_map_only(Pair, lambda t: getattr(t, name), kwargs))
                for name in ("a", "b"))
        out = pytree.tree_map(lambda x, y: Pair(x, y) if isinstance(x, umbra.Tensor) else x, a, b)
        return return_and_correct_aliasing(func, args, kwargs, out)


def pair(requires_grad=False):
    return Pair(tensor([1., 2.]), tensor([3., 4.])).requires_grad_(requires_grad)


def lists(p):
    return p.a.tolist(), p.b.tolist()


def recorded(f, **options):
    graphs = []

    def compiler(graph, _):
        graphs.append(graph)
        return graph
    return aot_function(f, compiler, **options), graphs


def test_graphs_are_of_the_tensors_inside():
    f, graphs = recorded(lambda x, y: x.sin() * y)
    x, y = pair(True), umbra.ones(2, requires_grad=True)
    f(x, y).sum().backward()
    assert [sum(n.op == "placeholder" for n in g.graph.nodes) for g in graphs] == [3, 7]
    assert umbra.allclose(x.grad.a, tensor([1., 2.]).cos()) and umbra.allclose(x.grad.b, tensor([3., 4.]).cos())
    assert umbra.allclose(y.grad.a, tensor([1., 2.]).sin())


def test_what_a_class_keeps_beside_its_tensors_is_guarded():
    f, graphs = recorded(lambda x: x * x)
    for scale in (2., 3.):
        x = Scaled(umbra.ones(2), scale).requires_grad_()
        result = f(x)
        result.sum().backward()
        assert result.values_.tolist() == [scale ** 2] * 2 and x.grad.values_.tolist() == [2 * scale] * 2
    assert len(graphs) == 4


def test_wrappers_of_wrappers():
    f, graphs = recorded(lambda x: (x * x).sum())
    x = Pair(pair(), pair()).requires_grad_()
    f(x).backward()
    assert lists(x.grad.a) == ([2., 4.], [6., 8.]) and [sum(n.op == "placeholder" for n in g.graph.nodes) for g in graphs] == [4, 8]


def test_a_function_of_plain_tensors_gives_a_wrapper():
    f, _ = recorded(lambda a, b: (Pair(a * 2, b * 3), a + b))
    for _ in range(2):
        wrapper, plain = f(umbra.ones(2), umbra.ones(2))
        assert lists(wrapper) == ([2., 2.], [3., 3.]) and plain.tolist() == [2., 2.]


def test_writes_to_wrappers_are_seen_by_autograd():
    def f(x):
        x.mul_(2)
        return x.sin()
    compiled, _ = recorded(f)
    leaf, other = pair(True), pair(True)
    x, y = leaf * 1, other * 1
    (compiled(x).sum() + x.sum()).backward()
    (f(y).sum() + y.sum()).backward()
    assert lists(x) == lists(y) == ([2., 4.], [6., 8.]) and umbra.allclose(leaf.grad.a, other.grad.a)
    plain = pair()
    compiled(plain)
    assert lists(plain) == ([2., 4.], [6., 8.])


def test_views_of_arguments_are_views():
    f, _ = recorded(lambda x: (x.view(1, 2), x))
    leaf = pair(True)
    x = leaf * 1
    view, same = f(x)
    assert same is x and view._base is x
    view.mul_(3)
    x.sum().backward()
    assert lists(leaf.grad) == ([3., 3.], [3., 3.]) and lists(x) == ([3., 6.], [9., 12.])


def test_results_without_a_gradient_count_as_zeros():
    f = aot_function(lambda x: (x * 2, x * x), nop, partition_fn=min_cut_rematerialization_partition)
    x = pair(True)
    _, squares = f(x)
    squares.sum().backward()
    assert lists(x.grad) == ([2., 4.], [6., 8.])


def test_a_module_with_wrappers_as_parameters():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(pair())

        def forward(self, x):
            return x * self.w
    model = Model()
    aot_module(model, nop)(umbra.ones(2) * 3).sum().backward()
    assert lists(model.w.grad) == ([3., 3.], [3., 3.])


def test_one_wrapper_given_twice():
    f, _ = recorded(lambda x, y: x * y)
    x = pair(True)
    f(x, x).sum().backward()
    assert lists(x.grad) == ([2., 4.], [6., 8.])


def test_what_is_refused():
    f, _ = recorded(lambda x, y: (x.mul_(2), x + y)[1])
    x = pair(True) * 1
    with pytest.raises(RuntimeError, match="Encountered aliased inputs"):
        f(x, x.view(2))
    g, _ = recorded(lambda x: x * 2)
    with pytest.raises(AssertionError, match="incorrect subclass metadata"):
        g(pair(True)).backward(umbra.ones(2))


def test_a_detached_wrapper_needs_no_gradient():
    x = pair(True)
    assert not x.detach().requires_grad and x.clone().requires_grad
    x.detach().mul_(2)
    assert x._version == 1


def test_a_module_compiled_for_wrappers():
    class Model(nn.Module):
        def forward(self, x):
            return (x * x,)
    f = aot_module_simplified(Model(), (pair(True),), nop)
    x = pair(True)
    f(x)[0].sum().backward()
    assert lists(x.grad) == ([2., 4.], [6., 8.])


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_gradients_of_a_wrapper_that_is_closed_over_are_not_lost():
    weight = Pair(tensor([1., 2.]), tensor([3., 4.])).requires_grad_()

    def function(x):
        return (x * weight).sum()
    with pytest.raises(NotImplementedError, match="closes over"):
        aot_function(function, nop)(umbra.ones(2))
    umbra.compile(function, backend="aot_eager")(umbra.full((2,), 3.)).backward()
    assert weight.grad.a.tolist() == [3, 3] and weight.grad.b.tolist() == [3, 3]


def test_a_function_of_wrappers_sees_whether_gradients_are_recorded():
    call = aot_function(lambda x: x * (2 if umbra.is_grad_enabled() else 3), nop)
    x = Pair(umbra.ones(1), umbra.ones(1))
    with umbra.no_grad():
        assert call(x).a.tolist() == [3]
    assert call(x).a.tolist() == [2]


def test_a_gradient_of_another_class_is_changed_by_its_class():
    class Coerced(Pair):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_dispatch__(func, types, args, kwargs)
            return pytree.tree_map(lambda x: Coerced(x.a, x.b) if type(x) is Pair else x, out)

        def __coerce_same_metadata_as_tangent__(self, context, expected=None):
            return self.a if expected is umbra.Tensor else self
    h, _ = recorded(lambda p, x: (p * 2, x * 3))
    p, x = pair(True), tensor([1., 2.], requires_grad=True)
    umbra.autograd.backward(list(h(p, x)), [Pair(tensor([1., 1.]), tensor([1., 1.])), Coerced(tensor([1., 10.]), tensor([5., 6.]))])
    assert x.grad.tolist() == [3., 30.] and lists(p.grad) == ([2., 2.], [2., 2.])


def test_a_gradient_of_a_result_that_shows_elements_several_times():
    f, _ = recorded(lambda p, x: (p * x).expand(3, 2))
    p, x = pair(True), tensor([2., 3.])
    f(p, x).sum().backward()
    assert lists(p.grad) == ([6., 9.], [6., 9.])


def test_products_of_wrappers_with_vectors_have_a_vector_s_size():
    p, m = pair(), Pair(umbra.eye(2), 2 * umbra.eye(2))
    f, _ = recorded(lambda p, m: p @ m)
    for product in (p @ m, f(p, m)):
        assert product.shape == (2,) and lists(product) == ([1., 2.], [6., 8.])


def test_a_wrapper_that_a_compiled_function_gives_another_size():
    def function(p):
        p.mul_(2)
        p.unsqueeze_(0)
        return p + 1
    f, _ = recorded(function)
    for _ in range(2):
        p, q = pair(), pair()
        result, expected = f(p), function(q)
        assert result.shape == p.shape == p.a.shape == p.b.shape == (1, 2)
        assert lists(p) == lists(q) and lists(result) == lists(expected)
    with pytest.raises(NotImplementedError, match="changes the sizes"):
        f(pair(True) * 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_compile_captures_whole_functions_of_tensor_classes_with_gradients(backend):
    def function(x, y):
        return (x * y).sin() + x.sum()

    def call(f):
        x, y = (Pair(umbra.arange(3.) + i, umbra.arange(3.) * 2).requires_grad_() for i in range(2))
        result = f(x, y)
        result.sum().backward()
        return [part for t in (result, x.grad, y.grad) for part in (t.a, t.b)]
    for expected, found in zip(call(function), call(umbra.compile(function, backend=backend, fullgraph=True))):
        assert umbra.allclose(expected, found)


def test_torch_compile_of_a_module_whose_parameter_is_of_a_tensor_class():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(Pair(umbra.ones(2), umbra.full((2,), 3.)))

        def forward(self, x):
            return self.w * x
    module = Scale()
    compiled = umbra.compile(module, backend="aot_eager", fullgraph=True)
    compiled(Pair(umbra.arange(2.), umbra.ones(2))).sum().backward()
    assert module.w.grad.a.tolist() == [0, 1] and module.w.grad.b.tolist() == [1, 1]


def test_attributes_that_a_captured_function_gives_a_wrapper_are_refused():
    def function(x):
        x.note = 3
        return x * 2
    with pytest.raises(umbra._dynamo.exc.Unsupported, match="attributes"):
        umbra.compile(function, backend="eager", fullgraph=True)(Pair(umbra.ones(1), umbra.ones(1)))


def square_pair(requires_grad=False):
    return Pair(umbra.arange(4.).view(2, 2), umbra.ones(2, 2)).requires_grad_(requires_grad)


@pytest.mark.parametrize("function", [lambda x, y: x.copy_(y) * 2, lambda x, y: (x.t().add_(y).sin(), x.detach() * y)[0], lambda x, y: x.add_(y).mul_(y)])
def test_an_argument_that_gets_a_history_by_a_write_keeps_it(function):
    def call(f):
        x, w = square_pair(), square_pair(requires_grad=True)
        result = f(x, w)
        assert x.requires_grad
        gradient, = umbra.autograd.grad((result * 3 + x).sum(), w)
        return x.a, x.b, result.a, gradient.a, gradient.b
    for expected, found in zip(call(function), call(umbra.compile(function, backend="aot_eager", fullgraph=True))):
        assert umbra.allclose(expected, found)


def test_results_that_are_views_of_an_argument_are_such_without_gradients_too():
    compiled = umbra.compile(lambda x: (x.t(), x.view(-1)[1:], x.detach()), backend="aot_eager", fullgraph=True)
    x, w = square_pair(), tensor([3.], requires_grad=True)
    turned, part, detached = compiled(x)
    assert turned._base is x and part._base is x and detached._base is None
    part.mul_(w)
    assert x.a.tolist() == [[0, 3], [6, 9]] and detached.a.tolist() == x.a.tolist()
    assert x.requires_grad and umbra.autograd.grad(x.sum(), w)[0].a.tolist() == [6]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("computed", [False, True])
def test_a_detached_argument_is_given_back_in_its_memory(computed, written):
    def function(x, w):
        if written:
            x[0].mul_(2)
        return x * w, x.detach()
    x = square_pair()
    x = x.requires_grad_() * 1 if computed else x
    before, (_, detached) = x.a.clone(), aot_function(function, nop)(x, tensor([3.], requires_grad=True))
    detached.zero_()
    assert not detached.requires_grad and before.abs().sum() > 0 and x.a.abs().sum() == 0


def test_a_detached_part_of_a_wrapper_that_is_computed_is_refused():
    with pytest.raises(NotImplementedError, match="gives back a detached part of an argument"):
        aot_function(lambda x: (x * 2, x.view(-1).detach()), nop)(square_pair().requires_grad_() * 1)


class TripledView(umbra.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


@pytest.mark.parametrize("function", [TripledView.apply, lambda x: TripledView.apply(x).view(-1)])
def test_a_view_that_a_custom_function_makes_of_a_wrapper_keeps_its_gradient(function):
    for compiled in (aot_function(function, nop), umbra.compile(function, backend="aot_eager")):
        x = pair(True)
        compiled(x).sum().backward()
        assert lists(x.grad) == ([3, 3], [3, 3])
    with pytest.raises(NotImplementedError, match="a view that a custom function made"):
        aot_function(function, nop)(pair(True) * 1)
    x = pair(True)
    compiled(x * 1).sum().backward()
    assert lists(x.grad) == ([3, 3], [3, 3])


@pytest.mark.parametrize("mode", [umbra.no_grad, umbra.enable_grad, umbra.inference_mode])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_function_of_wrappers_sees_whether_they_require_gradients(requires_grad, mode):
    compiled = umbra.compile(lambda x: x * 2 if x.requires_grad else x * 3, backend="aot_eager", fullgraph=True)
    with mode():
        assert lists(compiled(pair(requires_grad)))[0] == ([2, 4] if requires_grad else [3, 6])


@pytest.mark.parametrize("mode", [umbra.no_grad, umbra.enable_grad])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_write_to_a_wrapper_is_a_version_of_it(requires_grad, mode):
    def write(x):
        with umbra.no_grad():
            x.detach().add_(1)
        return x * 2
    x = pair(requires_grad)
    before = x._version
    with mode():
        result = umbra.compile(write, backend="aot_eager", fullgraph=True)(x)
    assert x._version > before and lists(result) == ([4, 6], [8, 10])
    x, w = pair(), pair(True)
    product = x * w
    umbra.compile(write, backend="aot_eager", fullgraph=True)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_what_a_function_does_besides_is_done_once_for_each_kind_of_wrapper():
    done = []
    def function(x):
        if x.requires_grad:
            done.append(x.shape)
        return x * 2
    compiled = umbra.compile(function, backend="aot_eager")
    for requires_grad in (False, True, True):
        compiled(pair(requires_grad))
    assert len(done) == 2


def test_torch_compile_runs_what_it_cannot_capture_of_a_later_kind_of_wrapper():
    w = pair(True)
    compiled = umbra.compile(lambda x: x * w if x.requires_grad else x * 2, backend="aot_eager")
    assert lists(compiled(pair())) == ([2, 4], [6, 8])
    assert lists(compiled(pair(True))) == ([1, 4], [9, 16])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_wrappers_that_share_memory_later_are_not_taken_for_others(requires_grad):
    def function(x, y, w):
        x.mul_(2)
        return (x + y) * w
    captured, compiled = aot_function(function, nop), umbra.compile(function, backend="aot_eager")
    w = tensor([1., 1.], requires_grad=requires_grad)
    assert lists(captured(pair(), pair(), w)) == lists(compiled(pair(), pair(), w)) == ([3, 6], [9, 12])
    for _ in range(2):
        memory = umbra.ones(3)
        x, y = Pair(memory[:2], umbra.ones(2)), Pair(memory[1:], umbra.ones(2))
        with pytest.raises(RuntimeError, match="Encountered aliased inputs that are mutated"):
            captured(x, y, w)
        assert lists(compiled(x, y, w)) == ([4, 3], [3, 3])


def test_what_is_done_besides_is_done_once_for_each_kind_of_plain_argument_beside_a_wrapper():
    done = []
    def function(x, y):
        if y.dtype == umbra.float64:
            done.append(y.shape)
        return x * 2 + y.sum().float()
    compiled = umbra.compile(function, backend="aot_eager")
    for dtype in (umbra.float32, umbra.float64, umbra.float64):
        compiled(pair(), umbra.ones(2, dtype=dtype))
    assert len(done) == 2


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("compiler", [lambda f: aot_function(f, nop), lambda f: umbra.compile(f, backend="aot_eager")])
def test_functions_of_wrappers_are_captured_for_each_kind_of_autocast(compiler, requires_grad):
    def function(x, w):
        with umbra.autocast("cpu", enabled=False):
            exact = x @ w
        return exact, x @ w
    compiled = compiler(function)
    x, w = Pair(umbra.randn(3, 3), umbra.randn(3, 3)).requires_grad_(requires_grad), umbra.randn(3, 3)
    for enabled, dtype in ((True, umbra.bfloat16), (False, umbra.bfloat16), (True, umbra.float16)):
        with umbra.autocast("cpu", dtype, enabled=enabled):
            found, expected = compiled(x, w), function(x, w)
        for one, other in zip(found, expected):
            assert one.dtype == other.dtype and umbra.equal(one.a, other.a) and umbra.equal(one.b, other.b)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_one_wrapper_twice_among_the_results(requires_grad):
    a, b, c = aot_function(lambda x: [y := x * 2, x, y], nop)(x := pair(requires_grad))
    assert a is c and b is x and lists(a) == ([2, 4], [6, 8])


def test_hooks_of_wrappers_that_no_result_depends_on_are_not_called():
    called, x, unused = [], pair(True), pair(True)
    for t in (x, unused):
        t.register_hook(called.append)
    aot_function(lambda x, y: x * 2, nop)(x, unused).sum().backward()
    assert len(called) == 1 and called[0].a.tolist() == [2, 2] and unused.grad is None


class Weight(Scaled):
    """One whose products are plain."""

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Weight(inner["values_"], context["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (umbra.ops.aten.t.default, umbra.ops.aten.detach.default, umbra.ops.aten.alias.default):
            return return_and_correct_aliasing(func, args, kwargs or {}, Weight(func(args[0].values_), args[0].scale))
        args, kwargs = pytree.tree_map_only(Weight, lambda w: w.values_ * w.scale, (args, kwargs or {}))
        return func(*args, **kwargs)


@pytest.mark.parametrize("function, most", [
    (lambda w, x: x @ w.t(), 3), (lambda w, x: (x.mul_(2) @ w.t()).relu() * x.shape[0], 3), (lambda w, x: (x[1:], (x @ w.t()).sum(0)), 3),
    (lambda w, x: (x @ w.t(), w.t()), 7)])
@pytest.mark.parametrize("order", [1, -1])
def test_sizes_of_plain_arguments_beside_wrappers_are_symbols_where_results_are_plain(function, most, order):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph
    weight = Weight(umbra.arange(6.).view(3, 2), 0.5)
    compiled = umbra.compile(lambda *given: function(*given[::order]), backend=backend, fullgraph=True)
    for size in (4, 3, 2, 5, 1, 7, 6):
        x, y = (umbra.ones(size, 2).cumsum(0) for _ in range(2))
        found, expected = compiled(*(weight, x)[::order]), function(weight, y)
        found, expected = ((value,) if isinstance(value, umbra.Tensor) else value for value in (found, expected))
        for a, b in zip(found, expected):
            assert type(a) is type(b) and a.shape == b.shape and umbra.equal(a * 1, b * 1)
            assert a._base is {id(y): x, id(weight): weight}.get(id(b._base))
        assert umbra.equal(x, y)
    assert len(graphs) <= most
