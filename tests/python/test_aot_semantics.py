"""A compiled function against the function itself: outputs and what they alias, writes, gradients, versions."""
import itertools

import pytest

import umbra as torch
from umbra.functorch.compile import aot_function, aot_module, aot_module_simplified, default_partition, min_cut_rematerialization_partition, nop


def leaf(*shape):
    return (torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 4 + 0.5).requires_grad_()


def plain(*shape):
    return leaf(*shape).detach()


def weights(x):
    return torch.arange(float(x.numel())).reshape(x.shape) + 1


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors_in(item)]
    return []


def aliases(tensors):
    """Which of the tensors are one object, and which share memory."""
    return [[(a is b, a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()) for b in tensors] for a in tensors]


def attempt(action):
    """What the action gives, or how it fails."""
    try:
        return action()
    except RuntimeError as error:
        return str(error)[:60]


def observe(function, make, change_outputs):
    """Everything a caller can see of one call."""
    leaves, inputs = make()
    before = [t._version for t in inputs]
    outputs = tensors_in(function(*inputs))
    everything = outputs + list(inputs)
    seen = {"aliases": aliases(everything), "written": [t._version > v for t, v in zip(inputs, before)]}
    if change_outputs:
        seen["changed"] = [attempt(lambda: t.mul_(3).tolist()) for t in outputs if t.is_floating_point()]
    seen["values"] = [t.detach().tolist() for t in everything]
    seen["requires_grad"] = [attempt(lambda: t.requires_grad) for t in everything]
    seen["is_leaf"] = [attempt(lambda: t.is_leaf) for t in everything]
    for t, requires_grad in zip(everything, seen["requires_grad"]):
        if requires_grad is True:
            seen.setdefault("backward", []).append(attempt(lambda: (t * weights(t)).sum().backward(retain_graph=True)))
    seen["gradients"] = [None if t.grad is None else t.grad.tolist() for t in leaves]
    return seen


def compare(function, make, partition=default_partition):
    for change_outputs, dynamic in itertools.product((False, True), (False, True)):
        compiled = aot_function(function, nop, partition_fn=partition, dynamic=dynamic)
        expected = observe(function, make, change_outputs)
        for _ in range(2):  # captured, then from the cache
            assert observe(compiled, make, change_outputs) == expected


# ---- inputs ----

def given(*inputs):
    """Leaves are given as they are."""
    return lambda: (lambda made: (made, made))([kind(*shape) for kind, *shape in inputs])


def computed(*inputs):
    """Nothing that requires a gradient is a leaf."""
    def make():
        leaves = [kind(*shape) for kind, *shape in inputs]
        return leaves, [t + 1 for t in leaves]
    return make


def views_of_one(kind, *views):
    def make():
        base = kind(2, 2)
        changed = base + 1
        return [base], [view(changed) for view in views]
    return make


def add_(x):
    x.add_(1)
    return x * 2


def without_grad(x):
    with torch.no_grad():
        x.mul_(2)
    return x * 3


def mixed(x):
    x.mul_(2)
    with torch.no_grad():
        x.add_(1)
    return x.sin()


def through_view(x):
    x[0].mul_(2)
    return x.sum()


def through_two_views(x):
    a, b = x.view(-1), x.t()
    a.mul_(2)
    b.add_(x * 2)
    return a + 1, b * 2


def swap(x, y):
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
    return x - y


def view_then_write(x):
    y = x.view(-1)
    x.mul_(2)
    return y


def write_view_and_return_both(x):
    y = x.view(-1)
    y.mul_(2)
    return x, y, y[1:]


def into(x, y):
    x.add_(y)
    return x


def nothing_returned_but_written(x, y):
    x.mul_(y)


WRITES = [
    (add_, [given((plain, 2, 2)), computed((leaf, 2, 2)), views_of_one(leaf, lambda b: b[0]), views_of_one(leaf, lambda b: b[:, 1])]),
    (without_grad, [given((leaf, 3)), given((plain, 3)), computed((leaf, 3))]),
    (mixed, [computed((leaf, 3)), given((plain, 3))]),
    (through_view, [computed((leaf, 2, 2)), given((plain, 2, 2))]),
    (through_two_views, [computed((leaf, 2, 2)), given((plain, 2, 2))]),
    (swap, [computed((leaf, 3), (leaf, 3)), given((plain, 3), (plain, 3))]),
    (view_then_write, [computed((leaf, 2, 2)), given((plain, 2, 2))]),
    (write_view_and_return_both, [computed((leaf, 2, 2)), given((plain, 2, 2))]),
    (into, [given((plain, 3), (leaf, 3)), computed((leaf, 3), (plain, 3)), given((plain, 2, 2), (leaf, 2)), given((plain, 3), (plain, 3))]),
    (nothing_returned_but_written, [given((plain, 3), (leaf, 3)), computed((leaf, 3), (leaf, 3))]),
]


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize("function, make", [(f, m) for f, makes in WRITES for m in makes])
def test_writes(function, make, partition):
    compare(function, make, partition)


def test_a_leaf_cannot_be_written():
    for function in (add_, through_view):
        with pytest.raises(RuntimeError, match="a (view of a )?leaf Variable that requires grad is being used in an in-place operation"):
            aot_function(function, nop)(leaf(2, 2))
    x = leaf(2, 2)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        aot_function(add_, nop)(x[0])
    compiled = aot_function(add_, nop)
    compiled(leaf(2, 2) + 1)
    with pytest.raises(RuntimeError, match="a leaf Variable"):  # also where the graphs are there already
        compiled(x)
    assert x.tolist() == leaf(2, 2).tolist()


# ---- outputs ----

def intermediate(*views):
    def function(x):
        t = x * 3
        return [view(t) for view in views]
    return function


def of_input(*views):
    def function(x):
        return [x * 2] + [view(x) for view in views]
    return function


def same(t):
    return t


def flat(t):
    return t.view(-1)


def first(t):
    return t[0]


def without_history(t):
    return t.detach()


def view_without_grad(t):
    with torch.no_grad():
        return t.view(-1)


def parts(t):
    return list(t.unbind(0))


def integer(t):
    return t.argmax()


def mask(t):
    return t > 1


def twice(t):
    return [t * 2, t * 2]


def once_given_twice(t):
    r = t.sin()
    return [r, r, r.view(-1), r]


VIEWS = [[same], [flat], [flat, same], [same, flat], [flat, flat], [first, flat], [without_history], [same, without_history], [without_history, flat],
         [view_without_grad], [view_without_grad, same], [parts], [parts, same], [integer, mask, same], [twice], [once_given_twice],
         [lambda t: t.t(), lambda t: t.t()[0], flat], [lambda t: t.reshape(4)], [lambda t: t.expand(2, 2, 2), same]]


@pytest.mark.parametrize("kind", [leaf, plain])
@pytest.mark.parametrize("views", VIEWS)
def test_outputs_that_alias(views, kind):
    compare(intermediate(*views), given((kind, 2, 2)))
    compare(of_input(*views), computed((kind, 2, 2)))


def test_outputs_made_without_grad():
    @torch.no_grad()
    def generate(x):
        return x * 2

    def half(x):
        with torch.no_grad():
            y = x * 2
        return y, x * 3, y.view(-1)
    compare(generate, given((leaf, 2, 2)))
    compare(half, given((leaf, 2, 2)))


def test_calls_without_grad_write_leaves():
    x = leaf(2, 2)
    with torch.no_grad():
        y = aot_function(add_, nop)(x)
    assert x.tolist() == (leaf(2, 2) + 1).tolist() and not y.requires_grad and x.is_leaf


# ---- inputs that are one, or lie in one memory ----

def write_first(a, b):
    a.mul_(2)
    return b * 3


def write_first_return_second(a, b):
    a.add_(1)
    return b.view(b.shape), a


def write_both(a, b):
    a.mul_(2)
    b.add_(1)
    return a * b


def product(a, b):
    return a * b


@pytest.mark.parametrize("function", [product, write_first, write_both, lambda a, b: (write_first(a, b), b, a)])
@pytest.mark.parametrize("kind", [leaf, plain])
def test_the_same_tensor_twice(function, kind):
    def make():
        x = kind(2, 2)
        y = x + 1
        return [x], [y, y]
    compare(function, make)


@pytest.mark.parametrize("function", [product, write_first, write_first_return_second, write_both])
@pytest.mark.parametrize("kind", [leaf, plain])
@pytest.mark.parametrize("views", [(flat, flat), (flat, lambda b: b.t().reshape(-1)), (lambda b: b[0], lambda b: b[1]), (lambda b: b[:, 0], lambda b: b[0]),
                                   (same, lambda b: b[0]), (lambda b: b[1], same), (lambda b: b.t(), same)])
def test_views_of_one_tensor(function, kind, views):
    compare(function, views_of_one(kind, *views))


def test_other_sharing_is_captured_anew():
    compiled = aot_function(write_first, nop)
    x = plain(3)
    assert compiled(x, x).tolist() == (plain(3) * 6).tolist()
    assert compiled(plain(3), plain(3)).tolist() == (plain(3) * 3).tolist()
    x = plain(3)
    assert compiled(x, x.view(3)).tolist() == (plain(3) * 6).tolist()


def test_memory_shared_without_a_common_base():
    x = plain(4)
    y = x.data
    assert aot_function(write_first, nop)(x, y).tolist() == (plain(4) * 6).tolist()
    assert y.tolist() == (plain(4) * 2).tolist()
    with pytest.raises(NotImplementedError, match="shares memory"):
        x = leaf(4) + 1
        aot_function(write_first, nop)(x, x.data)


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


# ---- two writes to one view ----

def part_of_a_slice(x):
    y = x[1:]
    y.mul_(2)
    y[0] = 7.0
    return x * 1


def entry_of_a_diagonal(x):
    d = x.diagonal()
    d.mul_(3)
    d[1] += 2
    return x * 1


def part_of_a_transpose(x):
    v = x.t()
    v.mul_(2.0)
    v.masked_fill_(v > 3, -1.0)
    v[0] = 5.0
    return x * 1


def base_after_view_without_grad(x):
    v = x.view(-1)
    with torch.no_grad():
        v.add_(1)
    x[0] = 3.0
    return x * 1


@pytest.mark.parametrize("function", [part_of_a_slice, entry_of_a_diagonal, part_of_a_transpose, base_after_view_without_grad])
def test_gradients_of_views_written_twice(function):
    compare(function, computed((leaf, 2, 3)))
    compare(lambda x: function(x.clone()), given((leaf, 2, 3)))


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


# ---- what is refused ----

def test_a_result_with_a_history_apart_from_its_memory_is_refused():
    def function(x, w):
        y = x.detach()
        y.mul_(w)
        return y
    with pytest.raises(NotImplementedError, match="cannot be captured"):
        aot_function(function, nop)(leaf(2) + 1, leaf())


def test_arguments_and_results_of_unknown_types_are_refused():
    class Scale:
        def __init__(self, value):
            self.value = value

        def __repr__(self):
            return "Scale"
    with pytest.raises(AssertionError, match="KNOWN_TYPES"):
        aot_function(lambda x, k: x * k.value, nop)(plain(2), Scale(2))
    with pytest.raises(RuntimeError, match="not a known type"):
        aot_function(lambda x: (x, Scale(2)), nop)(plain(2))


def test_options_that_are_not_built_are_refused():
    with pytest.raises(NotImplementedError, match="disable_functionalization"):
        aot_function(lambda x: x, nop, disable_functionalization=True)
    with pytest.raises(TypeError, match="unknown"):
        aot_function(lambda x: x, nop, unknown=1)
    with pytest.raises(TypeError, match="unknown"):
        aot_module(torch.nn.Linear(1, 1), nop, unknown=1)
    with pytest.raises(TypeError, match="unknown"):
        aot_module_simplified(torch.nn.Linear(1, 1), (plain(1),), nop, unknown=1)


def test_a_literal_is_no_input():
    graphs = []

    def function(x):
        c = torch.tensor([1.0, 2.0])
        c.add_(x)
        return c, torch.tensor([3.0, 4.0])
    compiled = aot_function(function, lambda module, _: graphs.append(module) or module)
    a, b = compiled(plain(2))
    a.zero_(), b.zero_()
    assert [t.tolist() for t in compiled(plain(2))] == [t.tolist() for t in function(plain(2))]
    assert len([n for n in graphs[0].graph.nodes if n.op == "placeholder"]) == 1


def test_a_backward_pass_inside_that_reaches_inputs_is_refused():
    weight = leaf(2)

    def inner(x):
        return torch.autograd.grad((x * weight).sum(), x)[0] * x
    assert aot_function(inner, nop)(leaf(2)).tolist() == inner(leaf(2)).tolist()
    for function in (lambda x: (x * 2).sum().backward(), lambda x: (x.detach() * weight).sum().backward()):
        with pytest.raises(NotImplementedError, match="calls backward"):
            aot_function(lambda x: (function(x), x * 3)[1], nop)(leaf(2))
    assert weight.grad is None


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


def test_a_change_of_metadata_that_changes_nothing_is_no_part_of_the_history():
    x = leaf(3, 4)
    for t in (x, x.clone()):
        history = t.grad_fn
        assert torch.equal(aot_function(lambda t: t.squeeze_() * 2, nop)(t), x * 2)
        assert t.grad_fn is history


def test_gradients_are_computed_in_the_order_of_the_arguments_names():
    backward = []

    def keep(graph, inputs):
        backward.append(graph)
        return graph
    x, y = leaf(3), leaf(3)
    aot_function(lambda x, y: x * y, nop, keep)(x, y).sum().backward()
    assert [str(node.args[1]) for node in backward[0].graph.nodes if node.op == "call_function"] == ["primals_1", "primals_2"]


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


def test_a_compiled_function_inside_of_another_is_a_part_of_it_and_refuses_symbolic_sizes_by_itself():
    import umbra
    from umbra._functorch.aot_autograd import aot_function
    from umbra._subclasses.fake_tensor import FakeTensorMode
    from umbra.fx.experimental.symbolic_shapes import ShapeEnv
    inner = aot_function(lambda x, w: (x * w).sin(), lambda graph, _: graph)
    outer = umbra.compile(lambda x, w: inner(x, w) * 2, backend="aot_eager", dynamic=True)
    w = umbra.randn(3, requires_grad=True)
    for size in (2, 5):
        x = umbra.randn(size, 3)
        assert umbra.allclose(outer(x, w), (x * w).sin() * 2)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with pytest.raises(NotImplementedError, match="sizes that are numbers is called with symbolic ones"):
        inner(mode.from_tensor(umbra.randn(2, 3)), mode.from_tensor(w))
