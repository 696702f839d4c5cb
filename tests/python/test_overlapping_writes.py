"""Operators that write at given places refuse to read what they write, as PyTorch's do."""
import pytest

import umbra as torch

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory location"


@pytest.mark.parametrize("write", [
    lambda x: x.index_add_(0, x, x.clone()),
    lambda x: x.index_add_(0, x.clone(), x),
    lambda x: x.index_copy_(0, x, x.clone()),
    lambda x: x.index_fill_(0, x, 0),
    lambda x: x.index_put_((x,), x.clone()),
    lambda x: x.index_put_((x.clone(),), x, accumulate=True),
    lambda x: x.scatter_(0, x, x.clone()),
    lambda x: x.scatter_add_(0, x.clone(), x),
    lambda x: x.put_(x, x.clone()),
])
def test_a_tensor_is_not_its_own_index_or_source(write):
    x = torch.tensor([2, 1, 0])
    with pytest.raises(RuntimeError, match=SHARED):
        write(x)
    assert x.tolist() == [2, 1, 0]


@pytest.mark.parametrize("name, write", [
    ("index_fill_", lambda x: x.index_fill_(0, torch.tensor([0]), 5.0)),
    ("index_put_", lambda x: x.index_put_((torch.tensor([0]),), torch.tensor([5.0]))),
    ("masked_fill_", lambda x: x.masked_fill_(torch.tensor([True] * 3), 5.0)),
])
def test_expanded_tensors_are_written_with_a_warning(name, write):
    x = torch.ones(1).expand(3)
    with pytest.warns(UserWarning, match=f"Use of {name} on expanded tensors is deprecated"):
        write(x)
    assert x.tolist() == [5.0] * 3


@pytest.mark.parametrize("part", [lambda x: x[:, :1], lambda x: x])
def test_a_copy_of_a_part_that_begins_where_the_tensor_does(part):
    x = torch.arange(6.0).reshape(3, 2) + 1
    expected = part(x.clone()).expand(3, 2).clone()
    x.copy_(part(x))
    assert torch.equal(x, expected)
