"""Tensors that carry their mask: what operators make of both, gradients, and what is printed."""
import pytest

import umbra as torch
from umbra.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

pytestmark = pytest.mark.filterwarnings("ignore")

DATA = torch.tensor([[1.0, -2, 3], [4, 5, -6]])
MASK = torch.tensor([[True, False, True], [True, True, False]])


def masked(**options):
    return masked_tensor(DATA, MASK, **options)


def test_it_has_data_and_a_mask_and_prints_what_is_there():
    x = masked()
    assert is_masked_tensor(x) and isinstance(x, MaskedTensor) and x.shape == (2, 3) and torch.equal(x.get_data(), DATA)
    assert repr(x) == """MaskedTensor(
  [
    [  1.0000,       --,   3.0000],
    [  4.0000,   5.0000,       --]
  ]
)"""
    assert repr(masked_tensor(torch.tensor(3.0), torch.tensor(False))) == "MaskedTensor(--, False)"
    assert x.to_tensor(0.0).tolist() == [[1, 0, 3], [4, 5, 0]]


def test_reductions_leave_out_what_is_not_there():
    x = masked()
    assert (x.sum().item(), x.mean().item(), x.prod().item(), x.amin().item()) == (13, 3.25, 60, 1)
    assert x.sum(0).to_tensor(-1).tolist() == [5, 5, 3] and torch.amax(x, dim=1).to_tensor(-1).tolist() == [3, 5]
    nothing = masked_tensor(DATA, torch.zeros_like(MASK)).sum(1)
    assert nothing.get_mask().tolist() == [False, False]


def test_operators_of_each_element_keep_the_mask_and_views_take_it_along():
    x = masked()
    assert torch.equal((x * x + 1).get_data(), DATA * DATA + 1) and torch.equal((x * x).get_mask(), MASK)
    assert torch.equal(x.t().get_mask(), MASK.t()) and torch.equal(torch.cat([x, x]).get_mask(), torch.cat([MASK, MASK]))
    x.add_(1)
    assert torch.equal(x.get_data(), DATA + 1)
    with pytest.raises(ValueError, match="Input masks must match"):
        x + masked_tensor(DATA, ~MASK)


def test_gradients_have_the_mask():
    x = masked(requires_grad=True)
    (x * x).sum().backward()
    assert torch.equal(x.grad.get_data() * MASK, 2 * DATA * MASK) and torch.equal(x.grad.get_mask(), MASK)
    plain = DATA.clone().requires_grad_()
    as_masked_tensor(plain, MASK).exp().sum().backward()
    assert torch.allclose(plain.grad.to_tensor(0), DATA.exp() * MASK)


def test_the_gradient_of_a_choice_is_not_that_of_what_was_not_chosen():
    x = torch.tensor([-10.0, -5, 0, 100])
    negative = x < 0
    left, right = masked_tensor(x, negative, requires_grad=True), masked_tensor(torch.ones(4), ~negative)
    torch.where(negative, torch.exp(left), right).sum().backward()
    assert left.grad.get_mask().tolist() == [True, True, False, False]
    assert torch.allclose(left.grad.to_tensor(0), torch.where(negative, x.exp(), 0.0))


def test_softmax_of_what_is_there():
    assert torch.allclose(torch.softmax(masked(), -1).to_tensor(0), torch.masked.softmax(DATA, -1, mask=MASK).nan_to_num(0))


@pytest.mark.parametrize("make, error, text", [
    (lambda: masked_tensor(masked(), MASK), TypeError, "data must be a Tensor"),
    (lambda: masked_tensor(DATA, DATA), TypeError, "mask must have dtype bool"),
    (lambda: masked_tensor(DATA, MASK[0]), ValueError, "must equal mask.dim"),
    (lambda: masked_tensor(DATA.to(torch.complex64), MASK), TypeError, "not supported in MaskedTensor"),
    (lambda: masked().cumsum(0), TypeError, "cumsum"),
    (lambda: masked_tensor(torch.tensor(1.0), torch.tensor(False)).item(), ValueError, "expected a mask tensor"),
])
def test_what_does_not_fit_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_masked_tensors_of_sparse_data(layout):
    dense, there = torch.tensor([[1.0, 0, 2], [0, 3, 0]]), torch.tensor([[True, False, True], [False, True, False]])
    masked = masked_tensor(dense.to_sparse(layout=layout), there.to_sparse(layout=layout))
    assert masked.layout == layout and masked.is_sparse
    for result, expected in ((masked.sin(), dense.sin()), (masked * masked, dense * dense), (masked + 1, dense + 1)):
        assert result.layout == layout
        assert torch.equal(result.to_dense().get_data()[there], expected[there]) and torch.equal(result.to_dense().get_mask(), there)
    assert masked.sum().get_data().item() == 6.0 and masked.mean().get_data().item() == 2.0
    assert repr(masked) == repr(masked_tensor(dense, there))
    again = masked.to_dense().to_sparse() if layout is torch.sparse_coo else masked.to_dense().to_sparse_csr()
    assert again.layout == layout and torch.equal(again.get_data().to_dense(), dense)


def test_masked_sparse_data_and_mask_have_the_same_places():
    data = torch.tensor([[1.0, 0], [0, 2]])
    with pytest.raises(TypeError, match="data and mask must have the same layout"):
        masked_tensor(data.to_sparse(), data != 0)
    with pytest.raises(ValueError, match="do not have the same indices"):
        masked_tensor(data.to_sparse(), (data == 0).to_sparse())
    with pytest.raises(TypeError, match="data layout of torch.sparse_csc is not supported"):
        masked_tensor(data.to_sparse_csc(), (data != 0).to_sparse_csc())
    with pytest.raises(NotImplementedError, match="argmax of a masked tensor of layout torch.sparse_coo"):
        masked_tensor(data.to_sparse(), (data != 0).to_sparse()).argmax()


def test_stacks_have_gradients_and_rows_are_masked_tensors():
    parts = [masked_tensor(DATA, MASK, requires_grad=True) for _ in range(2)]
    torch.stack(parts).sum().backward()
    assert parts[1].grad.get_mask().equal(MASK) and parts[1].grad.get_data()[MASK].tolist() == [1] * 4
    assert [row.get_mask().tolist() for row in masked_tensor(DATA, MASK)] == MASK.tolist()


def test_whether_the_data_are_contiguous():
    assert masked_tensor(DATA, MASK).is_contiguous()
    across = masked_tensor(DATA.t().as_strided((2, 2), (1, 2)), MASK.as_strided((2, 2), (1, 2)))
    assert not across.is_contiguous() and across.contiguous().is_contiguous()
    with pytest.raises(ValueError, match="MaskedTensors with sparse data do not have is_contiguous"):
        masked_tensor(DATA.to_sparse(), MASK.to_sparse()).is_contiguous()


def test_bools_have_no_gradients():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        masked_tensor(MASK, MASK, requires_grad=True)
