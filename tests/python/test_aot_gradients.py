"""What a compiled function leaves to autograd: gradients, the backward that is compiled, and the histories of what it gives."""
import pytest
import umbra as torch
from aot_inputs import leaf, plain, weights
from umbra.functorch.compile import aot_function, aot_module, default_partition, min_cut_rematerialization_partition, nop

# ---- gradients ----

def test_gradients_of_any_strides_are_taken():
    def function(x):
        return (x * 2).view(4).view(2, 2)
    expected, x = leaf(2, 2), leaf(2, 2)
    function(expected).t().reshape(4).mul(weights(plain(4))).sum().backward()
    y = aot_function(function, nop)(x)
    y.t().reshape(4).mul(weights(plain(4))).sum().backward()
    assert x.grad.tolist() == expected.grad.tolist()


def test_the_backward_is_compiled_when_it_is_needed():
    compiled = []
    y = aot_function(lambda x: x * 2, nop, lambda module, _: compiled.append(module) or module)(leaf(3))
    assert not compiled
    y.sum().backward()
    assert len(compiled) == 1


@pytest.mark.parametrize("arrange", [lambda x: x, lambda x: x.transpose(0, 1), lambda x: x.permute(2, 1, 0)])
@pytest.mark.parametrize("needs_grad", [False, True])
def test_dropout_draws_in_the_order_in_which_its_input_lies(arrange, needs_grad):
    def drop(x):
        return torch.nn.functional.dropout(x, 0.5)
    x = arrange(torch.randn(3, 4, 5)).requires_grad_(needs_grad)
    torch.manual_seed(1)
    want = drop(x)
    torch.manual_seed(1)
    assert torch.equal(aot_function(drop, nop)(x), want)
    torch.manual_seed(1)
    output, mask = torch.native_dropout(x, 0.5, True)
    assert torch.equal(output, want) and mask.stride() == x.stride()


def test_gradients_are_computed_in_the_order_of_the_arguments_names():
    backward = []

    def keep(graph, inputs):
        backward.append(graph)
        return graph
    x, y = leaf(3), leaf(3)
    aot_function(lambda x, y: x * y, nop, keep)(x, y).sum().backward()
    assert [str(node.args[1]) for node in backward[0].graph.nodes if node.op == "call_function"] == ["primals_1", "primals_2"]


# ---- the backward ----

class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, count):
        ctx.count = count
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.count.add_(1)
        return grad * ctx.count[0], None


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_writes_of_the_backward_reach_their_tensor(partition):
    seen = []
    for function in (Counting.apply, aot_function(Counting.apply, nop, partition_fn=partition)):
        x, count = leaf(2), torch.zeros(2)
        y = function(x, count)
        at_first = count.tolist()
        y.sum().backward(retain_graph=True)
        count.mul_(10)
        y.sum().backward()  # what it holds by then
        seen.append((at_first, count.tolist(), x.grad.tolist(), count._version))
    assert seen[0] == seen[1] == ([0.0, 0.0], [11.0, 11.0], [12.0, 12.0], 3)


class Keeping(torch.autograd.Function):
    """Its own argument, a view of it or a product, by what is asked for."""
    @staticmethod
    def forward(ctx, x, w, what):
        ctx.save_for_backward(x, w)
        ctx.what = what
        return {"itself": lambda: w, "view": lambda: w.view(2, 1), "product": lambda: x * w}[what]()

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad.reshape(2) * w, grad.reshape(2) * x * 10, None


@pytest.mark.parametrize("what", ["itself", "view", "product"])
def test_a_function_with_its_own_gradient_is_given_what_is_closed_over(what):
    def gradients(compiled):
        x, w = leaf(2), leaf(2)
        function = compiled(lambda x: Keeping.apply(x, w, what) * x)
        return [g.tolist() for g in torch.autograd.grad(function(x).sum(), (x, w))]
    expected = gradients(lambda f: f)
    for compiled in (lambda f: aot_function(f, nop), lambda f: torch.compile(f, backend="aot_eager", fullgraph=True),
                     lambda f: torch.compile(f, backend="aot_eager", dynamic=True)):
        assert gradients(compiled) == expected


def product(x, w):
    return Keeping.apply(x, w, "product")


@pytest.mark.parametrize("inner", [product, lambda x, w: torch.tanh(x * w), lambda x, w: torch.func.jvp(lambda v: v * w, (x,), (x,))[1]])
def test_a_derivative_inside_of_the_function_by_what_is_closed_over(inner):
    def gradients(compiled):
        x, w = leaf(2), leaf(2)

        def function(x):
            y = inner(x, w)
            found, = torch.autograd.grad(y.sum(), w, create_graph=True, allow_unused=True)
            return y if found is None else found * y
        result = compiled(function)(x)
        return [result.tolist()] + [g.tolist() for g in torch.autograd.grad(result.sum(), (x, w))]
    expected = gradients(lambda f: f)
    assert gradients(lambda f: aot_function(f, nop)) == gradients(lambda f: torch.compile(f, backend="aot_eager", fullgraph=True)) == expected


def test_a_backward_pass_inside_of_the_function_to_what_is_closed_over_is_no_part_of_a_graph():
    x, w = leaf(2), leaf(2)

    def function(x):
        (x * w).sum().backward(inputs=[w])
        return x * w
    with pytest.raises(NotImplementedError, match="calls backward"):
        aot_function(function, nop)(x)
    with pytest.warns(UserWarning, match="calls backward"):
        torch.compile(function, backend="aot_eager")(x)
    assert w.grad.tolist() == x.tolist()


def test_an_input_written_forward_and_backward():
    def function(x, count):
        count.add_(100)
        return Counting.apply(x, count)
    for call in (function, aot_function(function, nop)):
        x, count = leaf(2), torch.zeros(2)
        y = call(x, count)
        assert count.tolist() == [100.0, 100.0]
        y.sum().backward()
        assert count.tolist() == [101.0, 101.0] and x.grad.tolist() == [101.0, 101.0]


def test_a_gradient_of_a_gradient_is_refused_when_it_is_asked_for():
    x = leaf(2)
    (g,) = torch.autograd.grad(aot_function(lambda x: (x ** 3).sum(), nop)(x), x, create_graph=True)
    assert torch.allclose(g.detach(), 3 * x.detach() ** 2) and g.requires_grad
    with pytest.raises(RuntimeError, match="double backward"):
        g.sum().backward()


# ---- histories ----

def test_a_change_of_metadata_that_changes_nothing_is_no_part_of_the_history():
    x = leaf(3, 4)
    for t in (x, x.clone()):
        history = t.grad_fn
        assert torch.equal(aot_function(lambda t: t.squeeze_() * 2, nop)(t), x * 2)
        assert t.grad_fn is history


def test_a_function_that_enables_gradients_has_them_where_they_are_off():
    def f(x):
        plain = x * 2
        with torch.enable_grad():
            return plain, x * 3, x.view(-1)
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        plain, product, view = aot_function(f, nop)(x)
    assert not plain.requires_grad and product.requires_grad and view.requires_grad
    (product + view).sum().backward()
    assert x.grad.tolist() == [4, 4]
    with torch.no_grad():
        assert not aot_function(lambda x: x * 2, nop)(x).requires_grad


class ViewWithOwnGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 2) * 3


class DetachedWithOwnGradient(ViewWithOwnGradient):
    @staticmethod
    def forward(ctx, x):
        return x.detach()


@pytest.mark.parametrize("function", [ViewWithOwnGradient.apply, DetachedWithOwnGradient.apply, lambda x: ViewWithOwnGradient.apply(x).view(2, 2),
                                      lambda x: [ViewWithOwnGradient.apply(x), x.t()]])
def test_a_view_that_a_custom_function_made_goes_back_by_that_function(function):
    def gradient(call):
        x = torch.ones(2, 2, requires_grad=True)
        result = call(x)
        sum(part.sum() for part in (result if isinstance(result, list) else [result])).backward()
        return x.grad.tolist()
    assert gradient(aot_function(function, nop)) == gradient(function)


@pytest.mark.parametrize("part", [lambda x: x.unbind(0)[0], lambda x: x.split(1)[1]])
def test_a_view_among_several_whose_base_was_written_has_no_history_to_give(part):
    def function(x):
        view = part(x)
        x.mul_(2)
        return view
    compiled = aot_function(function, fw_compiler=nop)
    assert torch.equal(compiled(plain(3)), function(plain(3)))
    with pytest.raises(RuntimeError, match="returns multiple views"):
        compiled(leaf(3) * 1)


def detached_whole(x):
    view = x.detach()
    x.t_()
    return view, x


def detached_part(x):
    view = x.detach()[0]
    x.t_()
    x.mul_(2)
    return view, x


def detached_beside_a_view(x):
    view, apart = x[0], x.detach()
    x.unsqueeze_(0)
    return view, apart, x * 1


def only_detached(x):
    view = x.view(-1).detach()
    x.t_()
    return view,


@pytest.mark.parametrize("function", [detached_whole, detached_part, detached_beside_a_view, only_detached])
def test_what_was_detached_stays_so_when_its_input_becomes_a_view_of_itself(function):
    def call(f):
        x = leaf(2, 3)
        results = f(x * 1)
        wanted = [t for t in results if t.requires_grad]
        if wanted:
            sum(t.square().sum() for t in wanted).backward()
        return [(t.requires_grad, t.tolist()) for t in results], x.grad is None or x.grad.tolist()
    assert call(aot_function(function, fw_compiler=nop)) == call(function)


def test_gradient_edges_of_closed_over_tensors():
    from umbra.autograd.graph import get_gradient_edge
    p = torch.tensor([1., 2.], requires_grad=True)
    w = p * 2
    functions = [lambda x, t=t: torch.autograd.grad((x * t * t).sum(), get_gradient_edge(t), create_graph=True)[0] for t in (p, w)]
    functions.append(lambda x: torch.autograd.grad((x * w * x).sum(), (get_gradient_edge(x), w), create_graph=True)[0])
    for function in functions:
        for run in (aot_function(function, nop), torch.compile(function, backend="aot_eager")):
            x = torch.tensor([3., 4.], requires_grad=True)
            got, expected = run(x), function(x)
            assert torch.equal(got, expected)
            for a, b in zip(torch.autograd.grad(got.sum(), (x, p), retain_graph=True), torch.autograd.grad(expected.sum(), (x, p), retain_graph=True)):
                assert torch.allclose(a, b)


@pytest.mark.parametrize("of_module", [False, True])
def test_hooks_on_closed_over_tensors_are_those_of_the_program(of_module):
    leaf, x = torch.tensor([1., 2.], requires_grad=True), torch.tensor([3., 4.], requires_grad=True)
    w = leaf * 2

    def hooked(x):
        w.register_hook(lambda gradient: gradient * 10)
        return x * w

    class Net(torch.nn.Module):
        def forward(self, x):
            return hooked(x)
    (aot_module(Net(), nop) if of_module else aot_function(hooked, nop))(x).sum().backward(retain_graph=True)
    assert leaf.grad.tolist() == [60, 80] and x.grad.tolist() == [2, 4]
    leaf.grad = None
    (w * 1).sum().backward()
    assert leaf.grad.tolist() == [2, 2]


def test_hooks_of_several_tensors_see_one_that_is_closed_over():
    from umbra.autograd.graph import register_multi_grad_hook
    w, seen = torch.tensor([1., 2.], requires_grad=True) * 2, []

    def function(x):
        register_multi_grad_hook([w, x], lambda gradients: seen.append([gradient.shape for gradient in gradients]))
        return x * w
    aot_function(function, nop)(torch.ones(2, requires_grad=True)).sum().backward()
    assert seen == [[(2,), (2,)]]


def test_a_hook_of_what_a_closed_over_leaf_accumulates_is_refused():
    w = torch.ones(2, requires_grad=True)

    def function(x):
        w.register_post_accumulate_grad_hook(print)
        return x * w
    with pytest.raises(NotImplementedError, match="closes over"):
        aot_function(function, nop)(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("way", [lambda m: torch.compile(m, backend="aot_eager"), lambda m: aot_module(m, nop)])
def test_hooks_of_parameters_that_no_result_depends_on_are_not_called(way):
    module, called = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()), []
    module.register_parameter("unused", torch.nn.Parameter(torch.ones(2)))
    for parameter in module.parameters():
        parameter.register_hook(lambda g: called.append(g.shape))
    way(module)(torch.ones(1, 2)).sum().backward()
    assert sorted(called) == [(2,), (2, 2)] and module.unused.grad is None
    assert all(p.grad is not None for p in module[0].parameters())
