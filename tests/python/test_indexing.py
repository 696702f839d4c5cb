"""x[...] and x[...] = v: what they call, what they warn of, what they refuse."""
import numpy
import pytest
import umbra as torch
from umbra.fx.experimental.proxy_tensor import make_fx


def calls(function, *args):
    return [str(node.target) for node in make_fx(function)(*args).graph.nodes if node.op == "call_function"]


def assign(x, index, value):
    x = x.clone()
    x[index] = value
    return x


MASK = torch.tensor([True, False, True])


@pytest.mark.parametrize("index, called", [
    (MASK, ["aten.clone.default", "aten.unsqueeze.default", "aten.masked_fill_.Scalar"]),
    (torch.tensor([0, 2]), ["aten.clone.default", "aten.index_fill_.int_Scalar"]),
    (torch.tensor([[0], [2]]), ["aten.clone.default", "aten.view.default", "aten.index_fill_.int_Scalar"])])
def test_a_number_at_one_index_fills(index, called):
    x = torch.zeros(3, 2)
    assert calls(lambda x, i: assign(x, i, 1.0), x, index) == called
    assert assign(x, index, 1.0).tolist() == [[1, 1], [0, 0], [1, 1]]


def test_a_mask_of_any_dimension_is_filled():
    x = torch.zeros(2, 3)
    x[:, MASK] = 1
    assert x.tolist() == [[1, 0, 1], [1, 0, 1]]
    y = torch.zeros(3, 2)
    y[MASK, 1] = 2
    assert y.tolist() == [[0, 2], [0, 0], [0, 2]]


def test_a_number_at_two_indices_is_a_constant():
    x = torch.zeros(3, 3)
    assert calls(lambda x, m: assign(x, (m, m), 1), x, MASK) == ["aten.clone.default", "aten.lift_fresh_copy.default", "aten.index_put_.default"]
    assert assign(x, (MASK, MASK), 1).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_leading_ones_of_a_value_do_not_count():
    rows, columns = torch.tensor([0, 1]), torch.tensor([1, 0])
    assert assign(torch.zeros(2, 2), (rows, columns), torch.tensor([[[3., 4.]]])).tolist() == [[0, 3], [4, 0]]


def test_sizes_are_compared_before_types():
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[2\] cannot be broadcast to indexing result of shape \[3\]"):
        torch.arange(3)[torch.arange(3) > -1] = torch.tensor([1.0, 2.0])


def test_masks_of_bytes():
    mask = MASK.to(torch.uint8)
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."):
        assert torch.arange(3)[mask].tolist() == [0, 2]
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8"):
        assert assign(torch.zeros(3), mask, torch.tensor([1., 2.])).tolist() == [1, 0, 2]
    for write in (lambda: assign(torch.zeros(3), mask, 1.0), lambda: torch.zeros(3).index_put((mask,), torch.tensor(1.0))):
        with pytest.raises(RuntimeError, match="masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"):
            write()
    with pytest.warns(UserWarning, match="where received a uint8 condition tensor"):
        assert torch.where(mask, torch.ones(3), torch.zeros(3)).tolist() == [1, 0, 1]


@pytest.mark.parametrize("number", [-2**63, -2**62 - 1])
def test_numbers_below_every_size(number):
    x = torch.arange(5)
    for index in (number, torch.tensor(number)):
        with pytest.raises(IndexError, match=f"index {number} is out of bounds for dimension 0 with size 5"):
            x[index]
    with pytest.raises(IndexError, match=f"index {number} is out of bounds for dimension 1 with size 5"):
        x[None, number]
    with pytest.warns(UserWarning, match="Truncating the start/stop/step of slice"):
        assert x[number:].tolist() == [0, 1, 2, 3, 4]
    with pytest.warns(UserWarning, match="Truncating"):
        assert x[:number].tolist() == []


def test_unravel_index_takes_sizes_alone():
    with pytest.raises(TypeError, match="expected 'shape' to be int or sequence of ints, but got"):
        torch.unravel_index(torch.tensor([1]), torch.tensor([2, 3]))


# ---- one value for what one mask picks ----

@pytest.mark.parametrize("dtype, value, want", [
    (torch.float32, torch.tensor(5), [5, 1, 5]), (torch.int64, torch.tensor(2.5), [2, 1, 2]), (torch.float16, torch.tensor([[-1]]), [-1, 1, -1]),
    (torch.bool, torch.tensor(300), [True, True, True]), (torch.uint8, torch.tensor([-1]), [255, 1, 255]), (torch.complex64, torch.tensor(True), [1, 1, 1]),
])
def test_one_value_of_any_type_fills_what_a_mask_picks(dtype, value, want):
    mask = torch.tensor([True, False, True])
    x = torch.arange(3).to(dtype)
    assert torch.index_put(x, (mask,), value).tolist() == want
    x[mask] = value
    assert x.dtype == dtype and x.tolist() == want


@pytest.mark.parametrize("dtype, value, name", [
    (torch.float32, torch.tensor(1j), "float"), (torch.int64, torch.tensor(float("nan")), "int64_t"), (torch.uint8, torch.tensor(300), "uint8_t"),
    (torch.float16, torch.tensor(1e10), "c10::Half"),
])
def test_a_value_that_does_not_fit_fills_nothing(dtype, value, name):
    x = torch.ones(3, dtype=dtype)
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
        x[torch.tensor([True, False, True])] = value
    assert x.tolist() == [1, 1, 1]


def test_a_mask_behind_other_dimensions_is_filled_and_differentiated():
    x, v = torch.ones(2, 3, 2, dtype=torch.float64, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    mask = torch.tensor([False, True, True])
    y = x.clone()
    y[:, mask] = v
    assert y[:, 0].eq(1).all() and y[:, 1:].eq(5).all()
    y.sum().backward()
    assert v.grad.dtype == torch.float32 and v.grad.item() == 8 and x.grad.sum().item() == 4


def test_several_values_and_positions_want_the_same_type():
    for index in (torch.tensor([0, 2]), (torch.tensor([True, False, True]), torch.tensor([0, 1]))):
        with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
            torch.ones(3, 3)[index] = torch.tensor(5)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        torch.ones(3)[torch.tensor([True, False, True])] = torch.tensor([5, 6])
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        torch.ones(3).index_put_((torch.tensor([True, False, True]),), torch.tensor(5), accumulate=True)


def test_a_number_is_not_indexed():
    x = torch.tensor(5)
    for index, text in ((0, "invalid index of a 0-dim tensor"), (2, "index 2 is out of bounds for dimension 0 with size 0"),
                        (slice(None), r"slice\(\) cannot be applied to a 0-dim tensor")):
        with pytest.raises(IndexError, match=text):
            x[index]
        with pytest.raises(IndexError, match=text):
            x[index] = 3
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        x[(2,)] = 3
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        torch.ones(2, 2)[torch.tensor([0]), torch.tensor([0])] = 1j


def test_what_is_read_lies_as_in_pytorch_where_dimensions_have_one_element():
    x = torch.arange(4).reshape(1, 1, 4).transpose(0, -1)
    assert x[:, [-1]].stride() == (1, 4, 4)
    assert torch.arange(48).reshape(3, 4, 4).transpose(0, -1)[None, (0, 1)].stride() == (24, 12, 1, 4)


def test_numpy_arrays_are_not_assigned():
    x = torch.zeros(2, 3)
    for index in (0, [0], (0, 0), x > 1):
        with pytest.raises(TypeError, match="can't assign a numpy.ndarray to a torch.FloatTensor"):
            x[index] = numpy.ones(3)
    x[0] = numpy.float64(2)
    assert x.tolist() == [[2, 2, 2], [0, 0, 0]]


def test_an_array_is_an_index_and_no_tuple_of_its_rows():
    x = torch.arange(8.0).view(2, 2, 2)
    mask = numpy.array([[[True, True], [False, False]], [[False, False], [False, True]]])
    assert x[mask].tolist() == [0, 1, 7]
    rows = numpy.array([[0, 1], [1, 0]])
    assert torch.equal(x[rows], x[torch.from_numpy(rows)]) and x[rows].shape == (2, 2, 2, 2)
    assert assign(x, mask, -1.0).tolist() == [[[-1, -1], [2, 3]], [[4, 5], [6, -1]]]
    assert (assign(x, rows, 0.0) == 0).all()


def test_a_position_that_names_no_element_may_be_any():
    rows, far = torch.zeros(3, 0), torch.tensor([5])
    for result in (rows.index_fill(0, far, 1), rows.index_copy(0, far, torch.zeros(1, 0)), rows.index_add(0, far, torch.zeros(1, 0)),
                   rows.index_put((far,), torch.tensor(1.0))):
        assert result.shape == (3, 0)
    assert rows[far].shape == (1, 0)
    for refused in (lambda: torch.zeros(0, 3).index_fill(0, torch.tensor([0]), 1), lambda: rows.index_select(0, far)):
        with pytest.raises(IndexError, match="out of (bounds|range)"):
            refused()


def test_bad_positions_of_columns_are_no_index_error():
    x = torch.zeros(2, 3)
    for dim, error, text in ((1, RuntimeError, "INDICES element is out of DATA bounds, id=5 axis_dim=3"), (0, IndexError, "index out of range in self")):
        with pytest.raises(error, match=text):
            x.index_select(dim, torch.tensor([0, 5]))
    with pytest.raises(RuntimeError, match="id=-1 axis_dim=3"):
        torch.zeros(0, 3).index_select(1, torch.tensor([0, -1]))
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.zeros(2, 3, 4).index_select(2, torch.tensor([7]))


def test_nothing_is_added_along_a_dimension_of_no_elements():
    for self in (torch.zeros(0, 3), torch.zeros(3, 0)):
        dim = list(self.shape).index(0)
        source = torch.ones([1 if d == dim else n for d, n in enumerate(self.shape)])
        assert self.index_add(dim, torch.tensor([0]), source).shape == self.shape
    with pytest.raises(IndexError):
        torch.zeros(3).index_add(0, torch.tensor([3]), torch.ones(1))
