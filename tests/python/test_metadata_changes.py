"""Operators that change a tensor's metadata in place: t_, unsqueeze_, resize_, set_ and the like."""
import pytest
import umbra as torch
from umbra.func import functionalize
from umbra.fx.experimental.proxy_tensor import make_fx

CHANGES = {
    "t_": (lambda x: x.t_(), lambda x: x.t()),
    "transpose_": (lambda x: x.transpose_(0, 1), lambda x: x.transpose(0, 1)),
    "swapdims_": (lambda x: x.swapdims_(0, 1), lambda x: x.swapdims(0, 1)),
    "swapaxes_": (lambda x: x.swapaxes_(0, 1), lambda x: x.swapaxes(0, 1)),
    "unsqueeze_": (lambda x: x.unsqueeze_(1), lambda x: x.unsqueeze(1)),
    "squeeze_": (lambda x: x.squeeze_(), lambda x: x.squeeze()),
    "squeeze_.dim": (lambda x: x.squeeze_(0), lambda x: x.squeeze(0)),
    "squeeze_.dims": (lambda x: x.squeeze_((0, 1)), lambda x: x.squeeze((0, 1))),
    "as_strided_": (lambda x: x.as_strided_((2, 1), (2, 1), 1), lambda x: x.as_strided((2, 1), (2, 1), 1)),
}
each_change = pytest.mark.parametrize("change, view", CHANGES.values(), ids=CHANGES.keys())


def same_geometry(a, b):
    return a.shape == b.shape and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()


def weights(like):
    return torch.arange(float(like.numel())).reshape(like.shape)


@each_change
@pytest.mark.parametrize("shape", [(2, 3), (1, 4)])
def test_a_tensor_becomes_the_view(change, view, shape):
    x = torch.randn(shape)
    expected = view(x.clone())
    memory, version = x.data_ptr(), x._version
    result = change(x)
    assert result is x and same_geometry(x, expected) and x._version == version + 1
    assert x.untyped_storage().data_ptr() == memory


@each_change
def test_fake_tensors_change_as_real_ones(change, view):
    from umbra._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        x = torch.empty(2, 3)
        change(x)
    assert same_geometry(x, view(torch.empty(2, 3)))


@each_change
def test_gradients_are_those_of_the_view(change, view):
    def gradient(f, through_view):
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 2
        z = f(y[:] if through_view else y)
        (z * weights(z)).sum().backward()
        return x.grad
    for through_view in (False, True):
        assert torch.equal(gradient(change, through_view), gradient(view, through_view))


@each_change
def test_a_leaf_that_requires_gradients_is_not_changed(change, view):
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        change(x)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        change(x[:])
    assert x.shape == (2, 3)


def test_a_leaf_is_changed_without_recording():
    x = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        x.t_()
    (x * 2).sum().backward()
    assert x.is_leaf and x.grad.shape == (3, 2)


def test_one_of_several_views_is_not_changed():
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Output 0 of Split is a view and is being modified inplace"):
        (x * 1).split(1)[0].t_()


def test_the_history_names_the_change():
    y = torch.ones(2, 3, requires_grad=True) * 2
    y.t_()
    assert y.grad_fn.name() == "TBackward1" and y.grad_fn.next_functions[0][0].name() == "MulBackward0"


def test_writes_after_a_change_reach_the_base():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    z = y[:, 1:]
    z.t_()
    z[0].mul_(3)
    (y * weights(y)).sum().backward()
    assert torch.equal(x.grad, torch.tensor([[0., 6., 4.], [6., 24., 10.]]))


def test_views_of_a_changed_base_keep_their_place():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    z = y[0]
    y.t_()
    z.mul_(3)
    (y * weights(y)).sum().backward()
    assert torch.equal(x.grad, torch.tensor([[0., 12., 24.], [2., 6., 10.]]))


def test_detach_cuts_the_history():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    version = y._version
    assert y.detach_() is y and y.grad_fn is None and not y.requires_grad and y._version == version
    assert not x.detach_().requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        torch.ones(2)[:].detach_()


def test_tangents_change_too():
    from umbra.autograd import forward_ad
    tangent = weights(torch.ones(2, 3))
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2, 3), tangent).mul(1)
        x.t_()
        assert torch.equal(forward_ad.unpack_dual(x).tangent, tangent.t())


# ---- resize_, set_ ----

def test_resize():
    x = torch.arange(6.)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.t().resize_(3, 2).stride() == (1, 3)
    assert x.resize_(4, 4).untyped_storage().nbytes() == 64 and x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.ones(2).resize_((1, 2, 2, 2), memory_format=torch.channels_last).stride() == (8, 1, 4, 2)
    view = torch.ones(4)[2:]
    assert view.resize_(6).storage_offset() == 2 and view.untyped_storage().nbytes() == 32
    assert torch.ones(2).resize_as_(torch.ones(3, 1)).shape == (3, 1)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"), torch.no_grad():
        torch.ones(2, requires_grad=True).resize_(3)


def test_set():
    x, y = torch.ones(2), torch.arange(6.).reshape(2, 3).t()
    version = x._version
    x.set_(y)
    assert same_geometry(x, y) and x.data_ptr() == y.data_ptr() and x._version == version + 1
    x.set_(y.t(), 1, (2,), (2,))
    assert x.tolist() == [1, 3]
    with pytest.raises(RuntimeError, match="must be contiguous"):
        x.set_(y, 1, (2,), (2,))
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="Could not set tensor of type int to a tensor of type float"):
        torch.ones(2).set_(torch.ones(2, dtype=torch.int32))


# ---- captured ----

def captured(function, *inputs):
    return make_fx(function)(*inputs).code


@each_change
def test_functionalisation_gives_the_view(change, view):
    def f(x):
        y = x.clone()
        z = y[:]
        change(y)
        y.mul_(3)
        return y, z
    g = make_fx(functionalize(f))(torch.randn(2, 3))
    assert not any(str(n.target).split(".")[1].endswith("_") for n in g.graph.nodes if n.op == "call_function")
    x = torch.randn(2, 3)
    for got, wanted in zip(g(x), f(x)):
        assert torch.equal(got, wanted)


def test_recording_notes_the_change():
    def f(x):
        y = x.clone()
        y.t_()
        return y.mul(2)
    g = make_fx(f)(torch.randn(2, 3))
    assert [n.name for n in g.graph.nodes] == ["x_1", "clone", "t_", "mul", "output"]
    shapes = {n.name: tuple(n.meta["val"].shape) for n in g.graph.nodes if "val" in n.meta}
    assert shapes["clone"] == (2, 3) and shapes["t_"] == (3, 2)
    x = torch.randn(2, 3)
    assert torch.equal(g(x), x.t() * 2)


def test_a_changed_input_is_changed_after_functionalisation():
    def f(x):
        x.t_()
        x.mul_(2)
        return x + 1
    g = make_fx(functionalize(f))(torch.ones(2, 3))
    x, y = torch.randn(2, 3), None
    y = x.clone()
    assert torch.equal(g(x), f(y)) and same_geometry(x, y) and torch.equal(x, y)


def test_resize_becomes_a_value():
    def f(x):
        return x.clone().resize_(4, 3).fill_(1)
    g = make_fx(functionalize(f))(torch.ones(2, 3))
    assert torch.equal(g(torch.ones(2, 3)), torch.ones(4, 3))

    def shared(x):
        y = x.clone()
        z = y[0]
        y.resize_(1)
        return z
    with pytest.raises(NotImplementedError, match="resize_.*shares memory"):
        make_fx(functionalize(shared))(torch.ones(2, 3))


def test_ahead_of_time_autograd_changes_metadata_inside():
    from umbra._functorch.aot_autograd import aot_function

    def inside(x):
        return (x * 2).t_().mul(weights(torch.empty(3, 2)))
    x = torch.randn(2, 3, requires_grad=True)
    aot_function(inside, lambda g, _: g)(x).sum().backward()
    assert torch.equal(x.grad, weights(torch.empty(3, 2)).t() * 2)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [
    lambda x: x.t_() * 2,
    lambda x: (x.unsqueeze_(0).mul_(2), x + 1)[1],
    lambda x: (x.mul_(2), x.transpose_(0, 1), x.add_(1), x[1:], x),
    lambda x: (x.t_(), x.view(x.shape), x.t_())[1] * 3,
    lambda x: (x.as_strided_((2,), (1,), 1), x.sum())[1],
    lambda x: (x.view(-1), x[1:], x.t_())[:2],
    lambda x: (x.t_(), x[0].mul_(2), x.view(x.shape))[2],
])
def test_an_input_changes_its_metadata_in_a_compiled_function(function, dynamic):
    from umbra._functorch.aot_autograd import aot_function

    def observe(call, shape):
        x = torch.arange(float(torch.Size(shape).numel())).reshape(shape) + 1
        results = call(x)
        results = [r for r in (results if isinstance(results, (tuple, list)) else [results])]
        x.add_(1)
        return x.shape, x.stride(), x.storage_offset(), x.tolist(), [(r.shape, r.tolist(), r is x) for r in results]
    compiled = aot_function(function, lambda g, _: g, dynamic=dynamic)
    for shape in [(2, 3), (2, 3), (4, 5)]:
        assert observe(compiled, shape) == observe(function, shape)


@pytest.mark.parametrize("function", [
    lambda x: x.t_() * 2,
    lambda x: (x.t_(), x, x[1:] * 3)[1:],
    lambda x: (x.unsqueeze_(0), x.sum())[1],
    lambda x: (x.t_(), x.mul_(2))[1] * 2,
    lambda x: (x.t_(), x[0].mul_(2), x.view(x.shape))[2],
    lambda x: (x.mul_(3), x.t_(), x.exp())[2],
    lambda x: (x[1:], x.t_())[0],
])
def test_gradients_pass_an_input_that_changes_its_metadata_in_a_compiled_function(function):
    from umbra._functorch.aot_autograd import aot_function

    def observe(call):
        leaf = (torch.arange(6.).reshape(2, 3) + 1).requires_grad_()
        x = leaf * 2
        results = call(x)
        results = [*(results if isinstance(results, (tuple, list)) else [results]), x * 5]
        sum((r * weights(r)).sum() for r in results).backward()
        return x.shape, [r.tolist() for r in results], leaf.grad.tolist(), [r is x for r in results]
    assert observe(aot_function(function, lambda g, _: g)) == observe(function)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        aot_function(function, lambda g, _: g)(torch.ones(2, 3, requires_grad=True))
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        result = function(y)
        result = result[0] if isinstance(result, tuple) else result
        try:  # a view from before the change has no history that could be told, in PyTorch neither
            result.grad_fn
        except RuntimeError:
            with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
                aot_function(function, lambda g, _: g)(x)
            return
        aot_function(function, lambda g, _: g)(x)
    assert x.shape == y.shape and x.is_leaf


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("function", [
    lambda a, b: (a.mul_(2), b.t_(), a * b)[2],
    lambda a, b: (b.unsqueeze_(0), a.add_(1), b.mul_(3), a + b)[3],
    lambda a, b: (b.t_(), a.mul_(2), b.view(b.shape), b)[2:],
])
def test_inputs_that_share_memory_change_their_metadata_and_are_written(function, requires_grad):
    from umbra._functorch.aot_autograd import aot_function

    def observe(call):
        leaf = (torch.arange(4.).reshape(2, 2) + 1).requires_grad_(requires_grad)
        x = leaf * 2
        a, b = x.view(2, 2), x.view(2, 2)
        results = call(a, b)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        seen = [*results, a, b, x]
        if requires_grad:
            sum((r * weights(r)).sum() for r in seen).backward()
        return [(r.shape, r.tolist()) for r in seen], leaf.grad.tolist() if requires_grad else None, [r is b for r in results]
    assert observe(aot_function(function, lambda g, _: g)) == observe(function)


def test_export_refuses_inputs_that_change_their_metadata():
    from umbra._functorch.aot_autograd import aot_export_module

    class Transposes(torch.nn.Module):
        def forward(self, x):
            x.t_()
            return (x * 2,)
    with pytest.raises(RuntimeError, match="received a metadata mutation"):
        aot_export_module(Transposes(), (torch.ones(2, 3),), trace_joint=False)
