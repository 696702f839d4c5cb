"""Conjugated and negated views are lazy: what is written through one, or read from it, is the value it stands for."""
import copy

import pytest
import umbra as torch


def numbers():
    return torch.tensor([1 + 2j, 3 - 1j])


def negated(tensor):
    return torch._neg_view(tensor)


VIEWS = {
    "conj": (numbers, lambda t: t.conj()),
    "imaginary part of conj": (numbers, lambda t: t.conj().imag),
    "neg": (numbers, negated),
    "neg of conj": (numbers, lambda t: negated(t.conj())),
    "part of conj": (numbers, lambda t: t.conj()[1:]),
}
MASK = torch.tensor([True])
WRITES = {
    "mul_": lambda t: t.mul_(3),
    "add_ with itself": lambda t: t.add_(t),
    "sub_": lambda t: t.sub_(0.5, alpha=2),
    "square_": lambda t: t.square_(),
    "addcmul_": lambda t: t.addcmul_(torch.ones_like(t), torch.ones_like(t), value=2),
    "masked_fill_": lambda t: t.masked_fill_(MASK, 7),
    "fill_": lambda t: t.fill_(5),
    "zero_": lambda t: t.zero_(),
    "copy_": lambda t: t.copy_(torch.full_like(t, 2)),
    "index_add_": lambda t: t.index_add_(0, torch.tensor([0]), torch.ones(1, dtype=t.dtype)),
    "index_put_": lambda t: t.index_put_((torch.tensor([0]),), torch.ones(1, dtype=t.dtype)),
    "scatter_": lambda t: t.scatter_(0, torch.tensor([0]), 4),
    "setitem": lambda t: t.__setitem__(0, 9),
    "where out": lambda t: torch.where(MASK, t, 2 * t, out=t),
    "mul out": lambda t: torch.mul(t, t, out=t),
    "sum out": lambda t: torch.sum(t.clone(), 0, keepdim=True, out=t[:1]),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_through_a_lazy_view_is_that_of_the_values(view, write):
    make, take = VIEWS[view]
    base, plain = make(), take(make()).clone()
    lazy = take(base)
    assert lazy.is_conj() or lazy.is_neg()
    version = base._version
    WRITES[write](lazy)
    WRITES[write](plain)
    assert torch.equal(lazy, plain)
    assert torch.equal(take(base), plain)
    assert base._version > version


def test_arithmetic_in_place_on_a_conjugated_view():
    y = numbers()
    assert y.conj().mul_(1j).is_conj()
    assert y.tolist() == [2 - 1j, -1 - 3j]
    y = numbers()
    y.conj().imag.add_(1)
    assert y.tolist() == [1 + 1j, 3 - 2j]


def test_a_lazy_output_of_another_size_is_resized():
    base = torch.tensor([1 + 2j, 3 - 1j, 5j])
    out = base.conj()[:0]
    torch.add(torch.tensor([1j, 2j]), 1, out=out)
    assert out.tolist() == [1 + 1j, 1 + 2j]
    assert base.tolist() == [1 - 1j, 1 - 2j, 5j]


def test_a_lazily_negated_view_as_bools():
    assert numbers().conj().imag.to(torch.bool).tolist() == [True, True]


def test_gradients_pass_a_write_through_a_conjugated_view():
    x = numbers().requires_grad_()
    y = x.clone()
    y.conj().mul_(1j)
    y.real.sum().backward()
    z = numbers().requires_grad_()
    (z.conj() * 1j).real.sum().backward()
    assert torch.equal(x.grad, z.grad)


def test_parts_are_written():
    x = torch.tensor([1 + 2j, 3j])
    x.real = torch.tensor([5., 6.])
    x.imag = 7
    assert x.tolist() == [5 + 7j, 6 + 7j]
    y = torch.tensor([1 + 2j]).conj()
    y.imag = torch.ones(1)
    assert y.tolist() == [1 + 1j]
    z = torch.zeros(2)
    z.real = 3
    assert z.tolist() == [3, 3]


def test_writing_a_part_is_differentiated():
    x = torch.tensor([1 + 2j], requires_grad=True)
    y = x * 1
    y.real = torch.zeros(1)
    y.abs().sum().backward()
    assert x.grad.tolist() == [1j]


def test_what_cannot_be_written():
    with pytest.raises(TypeError, match="imag is not implemented for tensors with non-complex dtypes."):
        torch.ones(1).imag = 1
    with pytest.raises(TypeError, match="can't assign a str to a torch.FloatTensor"):
        torch.tensor([1j]).real = "a"
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        torch.tensor([1j, 1]).real = torch.zeros(3)


def test_memory_behind_lazy_bits_is_not_read_as_another_type():
    with pytest.raises(RuntimeError, match="torch.Tensor.view is not supported for conjugate view tensors"):
        torch.tensor([1 + 2j]).conj().view(torch.float32)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set"):
        torch.tensor([1 + 2j]).conj().imag.view(torch.int32)
    with pytest.raises(BufferError, match="negative bit"):
        torch.from_dlpack(torch.tensor([1 + 2j]).conj().imag)


@pytest.mark.parametrize("size, stride, gradient", [([5, 5], [0, 1], [5.] * 5), ([3, 3], [1, 1], [1., 2., 3., 2., 1.]), ([2], [2], [1., 0, 1, 0, 0])])
@pytest.mark.parametrize("copies", [1, 4])
def test_elements_at_several_places_share_a_gradient(size, stride, gradient, copies):
    x = torch.arange(5.).requires_grad_()
    view = x.expand(copies, 5).as_strided(size, stride, 0)
    assert torch.autograd.grad(view.sum(), x)[0].tolist() == gradient
    assert torch.autograd.gradcheck(lambda x: x.expand(copies, 5).as_strided(size, stride, 0), (torch.randn(5, dtype=torch.float64, requires_grad=True),))


def test_bytes_of_what_is_yet_to_be_conjugated_or_negated_are_not_seen():
    x = torch.tensor([1 + 2j], dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="conjugate view tensors"):
        x.conj().view(torch.float32)
    with pytest.raises(RuntimeError, match="negative bit"):
        torch.ops.aten._neg_view(torch.ones(2)).view(torch.int32)
    assert torch.ops.aten.view_copy.dtype(x.conj(), torch.float32).tolist() == [1, -2]


def test_deep_copies_have_the_values_and_no_lazy_bits():
    plain, conj = numbers(), numbers().conj()
    for lazy in (conj, conj.imag, negated(plain), negated(conj)):
        copied = copy.deepcopy(lazy)
        assert torch.equal(copied, lazy) and not copied.is_conj() and not copied.is_neg()
    both = copy.deepcopy([plain.conj(), plain])
    both[1].zero_()
    assert torch.equal(both[0], plain.conj())  # they shared memory; what was lazy does not
