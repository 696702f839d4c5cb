"""Operators over lists of tensors, and lists that are written."""
import pytest
import umbra as torch
from umbra.func import functionalize
from umbra.fx.experimental.proxy_tensor import make_fx


def test_each_element():
    a, b = torch.tensor([1., 2.]), torch.tensor([[3.]])
    assert [t.tolist() for t in torch._foreach_add([a, b], 1)] == [[2, 3], [[4]]]
    assert [t.tolist() for t in torch._foreach_mul([a, b], [2., 3.])] == [[2, 4], [[9]]]
    assert [t.tolist() for t in torch._foreach_add([a, b], [a, b], alpha=2)] == [[3, 6], [[9]]]
    assert [t.tolist() for t in torch._foreach_addcmul([a], [a], [a], 2.)] == [[3, 10]]
    assert [t.tolist() for t in torch._foreach_sqrt([b + 1])] == [[[2]]]


def test_in_place():
    a, b = torch.tensor([1., 2.]), torch.tensor([[3.]])
    version = a._version
    torch._foreach_mul_([a, b], 2)
    assert a.tolist() == [2, 4] and b.tolist() == [[6]] and a._version == version + 1
    written = [a, b]
    assert torch._foreach_zero_(written) is written and torch.ops.aten._foreach_zero_.default(written) is None
    assert a.tolist() == [0, 0]
    torch._foreach_add_([a, a], 1)
    assert a.tolist() == [2, 2]


@pytest.mark.parametrize("call, text", [
    (lambda: torch._foreach_add_([], 1), "Tensor list must have at least one tensor"),
    (lambda: torch._foreach_add_([torch.ones(2)], [torch.ones(2)] * 2), "Tensor lists must have the same number of tensors, got 1 and 2"),
    (lambda: torch._foreach_add_([torch.ones(1)], [torch.ones(2)]), "output with shape"),
    (lambda: torch._foreach_div_([torch.ones(1, dtype=torch.int64)], 2), "can't be cast to the desired output type Long"),
    (lambda: torch._foreach_add([torch.ones(2)], [1., 2.]), "same number of elements as scalar list"),
])
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_each_element_has_its_own_history():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    written = [x * 2, y * 3, torch.ones(2)]
    torch._foreach_mul_(written, 4.)
    (written[0] + written[1]).sum().backward()
    assert x.grad.tolist() == [8, 8] and y.grad.tolist() == [12, 12] and written[2].grad_fn is None
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_mul_([x], 2.)
    z = torch.ones(4, requires_grad=True)
    base = z * 1
    torch._foreach_mul_([base[0], base[2:]], 3.)
    base.sum().backward()
    assert z.grad.tolist() == [3, 1, 3, 3]


@pytest.mark.parametrize("call, gradient", [
    (lambda x: torch._foreach_maximum([x], [2.]), [0, 0.5, 1]),
    (lambda x: torch._foreach_minimum([x], 2.), [1, 0.5, 0]),
    (lambda x: torch._foreach_maximum([x], [torch.tensor(2.)]), [0, 0.5, 1]),
    (lambda x: torch._foreach_clamp_min([x], 2.), [0, 0, 1]),
])
def test_gradients_at_the_bound(call, gradient):
    x = torch.tensor([1., 2., 3.], requires_grad=True)
    call(x)[0].sum().backward()
    assert x.grad.tolist() == gradient


def test_a_bound_in_place_has_no_derivative():
    y = torch.ones(2, requires_grad=True) * 2
    torch._foreach_maximum_([y], [3.])
    assert y.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="derivative for .*_foreach_maximum_.* is not implemented"):
        y.sum().backward()


def add_two(x, y):
    torch._foreach_add_([x, y], 2)
    return x + y


def test_recorded_as_one_call():
    g = make_fx(add_two)(torch.ones(2), torch.ones(2))
    assert [n.name for n in g.graph.nodes] == ["x_1", "y_1", "_foreach_add_", "add", "output"]
    x, y = torch.ones(2), torch.zeros(2)
    assert g(x, y).tolist() == [5, 5] and x.tolist() == [3, 3]


def test_written_lists_become_values():
    g = make_fx(functionalize(add_two))(torch.ones(2), torch.ones(2))
    names = [n.name for n in g.graph.nodes if n.op == "call_function"]
    assert names == ["_foreach_add", "getitem", "getitem_1", "add", "copy_", "copy__1"]
    x, y = torch.ones(2), torch.zeros(2)
    assert g(x, y).tolist() == [5, 5] and x.tolist() == [3, 3] and y.tolist() == [2, 2]

    def views(x):
        base = x.clone()
        torch._foreach_mul_([base[0], base[2:]], 3.)
        return base
    assert make_fx(functionalize(views))(torch.ones(4))(torch.ones(4)).tolist() == [3, 1, 3, 3]

    def twice(x):
        torch._foreach_add_([x, x], 1)
        return x
    with pytest.raises(NotImplementedError, match="share memory"):
        make_fx(functionalize(twice))(torch.ones(2))


def test_fake_lists():
    from umbra._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        x = torch.empty(2, 3)
        torch._foreach_mul_([x], 2.)
        assert torch._foreach_mul([x], 2.)[0].shape == (2, 3)


def test_public_names_give_tuples_and_what_was_written():
    a = [torch.tensor([1., 4.]), torch.tensor([9.])]
    assert [t.tolist() for t in torch.foreach.sqrt(a)] == [[1, 2], [3]]
    assert type(torch.foreach.add(a, a, alpha=2)) is tuple
    assert torch.foreach.mul_(a, 2) is a and a[1].tolist() == [18]
    assert [t.tolist() for t in torch.foreach.pow(2.0, [torch.tensor([3.])])] == [[8]]
    assert [t.tolist() for t in torch.foreach.addcmul([a[1]], [a[1]], [a[1]], value=[2.])] == [[666]]
    assert torch.foreach.mm([torch.eye(2)], [torch.eye(2)])[0].tolist() == [[1, 0], [0, 1]]
    with pytest.raises(RuntimeError, match="_foreach_mm: self and mat2 must have the same number of tensors"):
        torch.foreach.mm([torch.eye(2)], [torch.eye(2)] * 2)
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        torch.foreach.add(a, 2, alpha=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        torch.foreach.add(a, 2, beta=3)


def test_public_names_are_offered_to_tensor_classes():
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    result = torch.foreach.add([torch.ones(2).as_subclass(Watched)], 1)
    assert seen[0] is torch.foreach.add and type(result[0]) is Watched
