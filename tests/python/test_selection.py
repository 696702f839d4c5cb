"""Picking, counting and joining elements: functions whose arguments or results are not those of one operator."""
import numpy as np
import pytest

import umbra as torch
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.fx.experimental.symbolic_shapes import ShapeEnv


def test_unique_gives_what_is_asked_for():
    x = torch.tensor([3, 1, 3, 2, 1])
    assert torch.unique(x).tolist() == [1, 2, 3]
    values, counts = torch.unique(x, return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 2, 3], [2, 1, 2])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert inverse.tolist() == [2, 0, 2, 1, 0]
    runs, lengths = torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_counts=True)
    assert (runs.tolist(), lengths.tolist()) == ([1, 2, 1], [2, 1, 1])


def test_unique_slices_and_what_has_no_slices():
    x = torch.tensor([[1, 2], [0, 5], [1, 2]])
    values, inverse = torch.unique(x, dim=0, return_inverse=True)
    assert values.tolist() == [[0, 5], [1, 2]] and inverse.tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.unique(torch.empty(3, 0), dim=0)
    with pytest.raises(IndexError, match="has no dimensions"):
        torch.unique(torch.tensor(1), dim=0)


def test_every_nan_is_distinct():
    values, counts = torch.unique(torch.tensor([float("nan"), 1.0, float("nan")]), return_counts=True)
    assert counts.tolist() == [1, 1, 1] and values[0] == 1


@pytest.mark.parametrize("function", [
    lambda x: torch.unique(x),
    lambda x: torch.bincount(x),
    lambda x: torch.repeat_interleave(x),
    lambda x: x.masked_select(x > 0),
    lambda x: torch.unique(x, return_inverse=True, return_counts=True)[2],
])
def test_sizes_that_depend_on_data_are_unbacked(function):
    x = torch.tensor([1, 2, 2])
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        result = function(mode.from_tensor(x))
    assert not result.shape[0].node.has_hint()


def test_sizes_that_are_given_are_plain():
    with FakeTensorMode():
        x = torch.ones(4, dtype=torch.int64)
        assert torch.nonzero_static(x, size=7).shape == (7, 1)
        assert torch.repeat_interleave(x, output_size=4).shape == (4,)


def test_combinations_need_no_data():
    graph = make_fx(lambda x: torch.combinations(x, 2))(torch.arange(4.0))
    assert graph(torch.tensor([5.0, 6.0, 7.0, 8.0])).shape == (6, 2)


def test_grids_and_blocks():
    a, b = torch.arange(3), torch.arange(2)
    rows, columns = torch.meshgrid(a, b, indexing="xy")
    assert rows.shape == columns.shape == (2, 3) and rows[1].tolist() == [0, 1, 2]
    assert torch.block_diag(torch.ones(1, 2), torch.tensor(3.0)).tolist() == [[1, 1, 0], [0, 0, 3]]
    assert torch.cartesian_prod(a, b).shape == (6, 2)
    assert [t.shape for t in torch.atleast_2d(torch.tensor(1), torch.ones(3))] == [(1, 1), (1, 3)]


def test_unravel_index_is_the_inverse_of_flattening():
    x = torch.arange(24).reshape(2, 3, 4)
    at = torch.unravel_index(torch.tensor([0, 7, 23]), x.shape)
    assert x[at].tolist() == [0, 7, 23]
    with pytest.raises(TypeError, match="integer dtype"):
        torch.unravel_index(torch.tensor(1.0), (2,))


def test_scatter_reduce_shares_gradients_of_extremes_among_equals():
    x = torch.tensor([2.0, 5.0], requires_grad=True)
    source = torch.tensor([2.0, 1.0, 7.0], requires_grad=True)
    x.scatter_reduce(0, torch.tensor([0, 0, 1]), source, "amax").sum().backward()
    assert x.grad.tolist() == [0.5, 0.0] and source.grad.tolist() == [0.5, 0.0, 1.0]


def test_product_gradients_with_zeros():
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [1.0, 8.0, 0.0]
    again, = torch.autograd.grad(torch.autograd.grad(x.cumprod(0).sum(), x, create_graph=True)[0].sum(), x)
    assert again.tolist() == [4.0, 6.0, 2.0]


def test_histograms_agree_with_numpy():
    values = np.random.RandomState(0).randn(200)
    for bins in (7, np.linspace(-2, 2, 9)):
        want, edges = np.histogram(values, bins)
        got = torch.histogram(torch.tensor(values), torch.tensor(bins) if isinstance(bins, np.ndarray) else bins)
        assert got.hist.tolist() == want.tolist() and np.allclose(got.bin_edges.numpy(), edges)


def test_set_binds_a_tensor_to_a_storage_that_grows():
    x = torch.arange(4.0)
    y = torch.empty(0).set_(x.untyped_storage(), 1, (2,), (2,))
    y.fill_(9)
    assert x.tolist() == [0, 9, 2, 9]
    assert torch.empty(0).set_(x.untyped_storage(), 3, (9,), (1,)).untyped_storage().nbytes() == 48


def test_adjoint_of_a_number_is_its_conjugate():
    with pytest.warns(UserWarning, match="0-D"):
        assert torch.tensor(2.0).mT == 2
    with pytest.raises(RuntimeError, match="1-D tensor"):
        torch.ones(3).mT


WRITES = {
    "index_add_": lambda t, i, s: t.index_add_(0, i, s),
    "index_copy_": lambda t, i, s: t.index_copy_(0, i, s),
    "index_fill_": lambda t, i, s: t.index_fill_(0, i, 7.0),
    "index_reduce_": lambda t, i, s: t.index_reduce_(0, i, s, "mean"),
    "put_": lambda t, i, s: t.put_(i, s.flatten()[:3], accumulate=True),
    "scatter_": lambda t, i, s: t.scatter_(0, i[:, None].expand(3, 4), s),
    "scatter_add_": lambda t, i, s: t.scatter_add_(0, i[:, None].expand(3, 4), s),
    "scatter_reduce_": lambda t, i, s: t.scatter_reduce_(0, i[:, None].expand(3, 4), s, "amax"),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps"])
def test_writes_of_some_elements_are_those_of_the_functional_form(name, layout):
    base = torch.arange(40.0).reshape(5, 8)
    start = {"rows": base[:, :4].contiguous(), "columns": base.t()[:4].contiguous().t(), "gaps": base[:, ::2]}[layout]
    index, source = torch.tensor([3, 0, 2]), torch.arange(12.0).reshape(3, 4) - 5
    plain = start.contiguous().clone()
    WRITES[name](plain, index, source)
    written = start.clone() if layout != "gaps" else base.clone()[:, ::2]
    assert WRITES[name](written, index, source) is written
    assert written.equal(plain)


def test_a_source_in_the_memory_that_is_written_is_read_before():
    x = torch.arange(12.0)
    x[:6].view(3, 2).index_add_(0, torch.tensor([1, 1, 0]), x[6:].view(3, 2))
    assert x.tolist() == [10, 12, 16, 19, 4, 5, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("n", [1, 2, 5, 511, 512, 3000])
def test_quantiles_without_a_history_are_those_of_sorted_rows(n):
    torch.manual_seed(n)
    x = torch.randn(3, n).round(decimals=1)
    q = torch.tensor([0.0, 0.3, 0.5, 0.5, 1.0])
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        watched = torch.quantile(x.clone().requires_grad_(), q, dim=1, interpolation=how).detach()
        assert torch.quantile(x, q, dim=1, interpolation=how).equal(watched)
    x[1, n // 2] = float("nan")
    assert torch.quantile(x, 0.3, dim=1).isnan().tolist() == [False, True, False]
    assert not torch.nanquantile(x[:, : n + 1], 0.3, dim=1)[0].isnan()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool, torch.float32])
def test_unique_counts_close_numbers_and_sorts_others(dtype):
    torch.manual_seed(0)
    wide = torch.randint(0, 2 if dtype == torch.bool else 100, (5000,)) - (50 if dtype.is_signed else 0)
    for x in (wide.to(dtype), wide[:7].to(dtype), (wide * 10**6).to(dtype)):
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        assert values.tolist() == sorted(set(x.tolist()))
        assert values[inverse].equal(x) and counts.sum() == x.numel()
        assert counts.tolist() == [x.tolist().count(v) for v in values.tolist()]


def test_bincount_counts_in_every_way():
    torch.manual_seed(0)
    for high, n in ((3, 10), (3, 10001), (5000, 100), (5000, 20000)):
        x = torch.randint(0, high, (n,))
        expected = np.bincount(x.numpy())
        assert np.array_equal(torch.bincount(x).numpy(), expected)
        assert np.array_equal(torch.bincount(x.int()[::2]).numpy(), np.bincount(x.numpy()[::2]))


@pytest.mark.parametrize("shift", [1, 3, 15, 16, 17, 1000])
def test_rows_roll_by_any_distance(shift):
    x = torch.arange(4 * 1024).reshape(4, 1024)
    assert np.array_equal(x.roll(shift, 1).numpy(), np.roll(x.numpy(), shift, 1))
    assert np.array_equal(x.float().roll(-shift, 1).numpy(), np.roll(x.float().numpy(), -shift, 1))


def test_searches_look_where_pytorch_looks_in_rows_without_order():
    # Recorded from PyTorch 2.15.
    assert torch.searchsorted(torch.tensor([5.0, 1.0, 3.0, 2.0, 4.0, 0.0]), torch.tensor([2.5, 3.5, 0.5])).tolist() == [6, 6, 0]


def test_the_mode_of_a_line_with_nan_is_what_pytorch_sorts_it_to():
    nan = float("nan")
    line = torch.tensor([nan if i % 7 == 3 else float(i * i % 5) for i in range(100)])
    for length, place in ((10, 9), (17, 11), (40, 21), (100, 1)):
        value, index = line[:length].mode()
        assert (value.item(), index.item()) == (1, place)


def test_topk_takes_those_of_equal_elements_that_pytorch_takes():
    line = torch.tensor([float(i * 7 % 5) for i in range(100)])
    assert line.topk(1).indices.tolist() == [2]
    assert line.topk(3, largest=False).indices.tolist() == [30, 75, 80]
    assert line.topk(6, sorted=False).indices.tolist() == [17, 67, 82, 47, 52, 87]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int8])
def test_the_median_of_all_elements_is_that_of_a_line(dtype):
    for count in (1, 2, 7, 600, 20000):
        x = torch.tensor([i * 37 % 101 - 50 for i in range(count)]).to(dtype)
        assert x.median() == x.median(0).values and x.median().dtype == dtype


def test_medians_meet_nan():
    x = torch.tensor([3.0, float("nan"), 1.0, 2.0] * 200)
    assert x.median().isnan() and x.nanmedian() == 2
    assert torch.full((600,), float("nan")).nanmedian().isnan()
    assert torch.tensor([-0.0, 1, -1]).median().signbit()


@pytest.mark.parametrize("sizes", [(1, 1), (1, 1, 1), (1,), ()])
def test_leading_ones_of_what_is_assigned_do_not_count(sizes):
    x, at = torch.zeros(1, 1), torch.tensor([0])
    x[at, at] = torch.full(sizes, 3.0)
    assert x.tolist() == [[3.0]]
    y = torch.zeros(2, 3)
    y[torch.tensor([1])] = torch.ones(1, 1, 3)
    assert y.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_leading_ones_are_taken_off_by_a_view_in_graphs():
    def write(x, at, value):
        x = x.clone()
        x[at] = value
        return x
    graph = make_fx(write)(torch.zeros(4, 3), torch.tensor([0]), torch.ones(1, 3)).graph
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
        "aten.clone.default", "aten.view.default", "aten.index_put_.default"]
