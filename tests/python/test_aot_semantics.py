"""A compiled function against the function itself: outputs and what they alias, writes, gradients, versions."""
import itertools

import pytest
import umbra as torch
from aot_inputs import leaf, plain, weights
from umbra.functorch.compile import aot_function, aot_module, aot_module_simplified, default_partition, min_cut_rematerialization_partition, nop


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
