"""torch.masked: reductions and normalisations that leave elements out, with PyTorch's types and values."""
import pytest

import umbra as torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])
MASK = torch.tensor([[True, False, True], [False, False, False]])
INF, NAN = float("inf"), float("nan")


def same(result, expected):
    expected = torch.tensor(expected, dtype=result.dtype)
    assert result.shape == expected.shape
    torch.testing.assert_close(result, expected, equal_nan=True)


@pytest.mark.parametrize("name, expected", [
    ("sum", [4.0, 0.0]), ("prod", [3.0, 1.0]), ("amax", [3.0, -INF]), ("amin", [1.0, INF]), ("mean", [2.0, NAN]), ("median", [1.0, NAN]),
    ("argmax", [2.0, 0.0]), ("argmin", [0.0, 0.0]), ("logsumexp", [3.126928, -INF]), ("var", [2.0, NAN]), ("std", [1.4142135, NAN]),
])
def test_reductions_leave_out_what_the_mask_does(name, expected):
    same(getattr(torch.masked, name)(X, 1, mask=MASK), expected)


@pytest.mark.parametrize("name, expected", [
    ("cumsum", [[1.0, 1.0, 4.0], [0.0, 0.0, 0.0]]), ("cumprod", [[1.0, 1.0, 3.0], [1.0, 1.0, 1.0]]),
    ("softmax", [[0.1192029, 0.0, 0.8807971], [NAN, NAN, NAN]]), ("softmin", [[0.8807971, 0.0, 0.1192029], [NAN, NAN, NAN]]),
    ("log_softmax", [[-2.126928, -INF, -0.126928], [NAN, NAN, NAN]]),
])
def test_functions_of_each_element(name, expected):
    same(getattr(torch.masked, name)(X, 1, mask=MASK), expected)


def test_norms():
    same(torch.masked.norm(X, 2, 1, mask=MASK), [3.1622777, 0.0])
    same(torch.masked.norm(X, -INF, 1, mask=MASK), [1.0, INF])
    same(torch.masked.normalize(X, 2.0, 1, mask=MASK), [[0.3162278, 0.0, 0.9486833], [0.0, 0.0, 0.0]])


def test_each_side_of_logaddexp_has_a_mask():
    x, y = torch.tensor([-100.0, -200.0, -300.0]), torch.tensor([-1.0, -2.0, -3.0])
    mask = torch.tensor([True, False, True])
    same(torch.masked.logaddexp(x, y, input_mask=mask, other_mask=mask), [-1.0, -INF, -3.0])


def test_types_are_those_of_pytorch():
    small = torch.tensor([[3, 1], [2, 5]], dtype=torch.int32)
    mask = torch.tensor([1, 0])  # of any type, and expanded
    assert torch.masked.sum(small, mask=mask).dtype == torch.int64 and torch.masked.sum(small, mask=mask).item() == 5
    assert torch.masked.cumsum(small, 0).dtype == torch.int32 and torch.masked.argmax(small, 1).dtype == torch.int32
    assert torch.masked.var(small, mask=mask).dtype == torch.float32 and torch.masked.amax(small, dtype=torch.float64).dtype == torch.float64
    assert torch.masked.amin(small, 1, mask=torch.zeros(2, 2)).tolist() == [2147483647, 2147483647]


def test_gradients_reach_what_is_there():
    x = X.clone().requires_grad_()
    torch.masked.mean(x, 1, mask=MASK)[0].backward()
    assert x.grad.tolist() == [[0.5, 0, 0.5], [0, 0, 0]]


def test_dimensions_may_be_several_or_none():
    assert torch.masked.prod(X, (0, -1)).item() == -720 and torch.masked.amax(X, ()).item() == 6
    assert torch.masked.sum(X, (1, 0), keepdim=True, mask=MASK).tolist() == [[4.0]]


@pytest.mark.parametrize("call, error, text", [
    (lambda: torch.masked.sum(X, 2), IndexError, r"expected to be in range of \[-2, 1\], but got 2"),
    (lambda: torch.masked.sum(X, (0, 0)), RuntimeError, "dim=0 appears multiple times"),
    (lambda: torch.masked.sum(X, mask=MASK.unsqueeze(0)), IndexError, "mask dimensionality higher than of the input"),
    (lambda: torch.masked.mean(torch.tensor([1, 2])), ValueError, "Could not infer output dtype. Input dtype must be"),
    (lambda: torch.masked.median(torch.tensor([1, 2]), mask=torch.zeros(2)), ValueError, "no fully masked out rows"),
    (lambda: torch.masked.var(X, unbiased=True, correction=1), AssertionError, "Only one of unbiased and correction"),
    (lambda: torch.masked.amax(torch.tensor([True]), mask=torch.ones(1)), NotImplementedError, "identity of amax on torch.bool input"),
    (lambda: torch.masked.softmax(X.to_sparse(), 1), ValueError, r"masked softmax expects strided tensor \(got torch.sparse_coo tensor\)"),
    (lambda: torch.masked.prod(X.to_sparse(), 1), ValueError, "expects explicit mask for sparse_coo tensor input"),
])
def test_what_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


DATA = [[1.0, 0, 2], [0, 3, 0], [0, 0, 0]]
PLACES = [[True, True, False], [False, True, True], [False, False, False]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("name, expected", [("sum", [[1.0, 3.0, 0.0]]), ("prod", [[1.0, 0.0, 0.0]]), ("amax", [[1.0, 3.0, 0.0]]), ("amin", [[1.0, 0.0, 0.0]])])
def test_reductions_of_sparse_tensors_have_elements_where_anything_was_there(layout, name, expected):
    data, mask = torch.tensor(DATA).to_sparse(layout=layout), torch.tensor(PLACES).to_sparse(layout=layout)
    result = getattr(torch.masked, name)(data, dim=0, keepdim=True, mask=mask)
    assert result.layout == layout and result._nnz() == 3 and result.to_dense().tolist() == expected


def test_without_a_mask_a_sparse_tensor_is_its_own():
    data = torch.tensor(DATA).to_sparse()
    rows = torch.masked.sum(data, 1, keepdim=True)
    assert rows._nnz() == 2 and rows.to_dense().tolist() == [[3.0], [3.0], [0.0]]
    everything = torch.masked.sum(data)
    assert everything.layout == torch.sparse_coo and everything.shape == () and everything.to_dense().item() == 6.0
    with pytest.raises(ValueError, match="masked prod expects explicit mask for sparse_coo tensor input"):
        torch.masked.prod(data)
    with pytest.raises(RuntimeError, match="reduction operations on CSR tensors with keepdim=False is unsupported"):
        torch.masked.sum(torch.tensor(DATA).to_sparse_csr(), 0)
    with pytest.raises(ValueError, match="masked argmax expects strided tensor"):
        torch.masked.argmax(data, 0)
