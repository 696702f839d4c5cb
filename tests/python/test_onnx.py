"""Programs as ONNX models. What they compute is compared in onnxruntime where ONNX_PYTHON names a Python that has it."""
import importlib
import io
import json
import os
import subprocess

import pytest
from export_functions import Function

import umbra as torch
from umbra.export import Dim
from umbra.nn import functional as F

RUN = """
import json, sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
inputs = [numpy.array(v, dtype=d) for v, d in json.load(open(sys.argv[2]))]
results = session.run(None, {n.name: v for n, v in zip(session.get_inputs(), inputs)})
print(json.dumps([[str(r.dtype), list(r.shape), r.reshape(-1).tolist()] for r in results]))
"""


def in_onnxruntime(folder, model, *inputs):
    python = os.environ.get("ONNX_PYTHON")
    if not python:
        pytest.skip("ONNX_PYTHON names no Python with onnxruntime")
    path, data = str(folder / "model.onnx"), str(folder / "inputs.json")
    model.save(path)
    json.dump([[x.tolist(), str(x.dtype).removeprefix("torch.")] for x in inputs], open(data, "w"))
    out = subprocess.run([python, "-c", RUN, path, data], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def agrees(folder, function, example, *others, dynamic=None):
    """Whether the model gives what the function gives, for the example and for inputs of other sizes."""
    model = torch.onnx.export(Function(function), example, dynamic_shapes=dynamic)
    for inputs in (example, *others):
        results = in_onnxruntime(folder, model, *inputs)
        expected = function(*inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert len(results) == len(expected)
        for (dtype, shape, values), want in zip(results, expected):
            assert (dtype, shape) == (str(want.dtype).removeprefix("torch."), list(want.shape))
            assert values == pytest.approx(want.reshape(-1).tolist(), rel=1e-4, abs=1e-5, nan_ok=True)


X, LONG = torch.arange(12.0).view(3, 4) - 5, torch.arange(20.0).view(5, 4) - 9
BATCH = ({0: Dim.AUTO},)

POINTWISE = [
    lambda x: F.gelu(x), lambda x: F.gelu(x, approximate="tanh"), lambda x: F.silu(x), lambda x: F.softplus(x, 2.0, 3.0), lambda x: F.hardswish(x),
    lambda x: x // 3, lambda x: x % 3, lambda x: x % -3, lambda x: x.clamp(-1, 2), lambda x: torch.where(x > 0, x, 1.0), lambda x: x.pow(2), lambda x: 2 ** x,
    lambda x: x.to(torch.int64) // 3, lambda x: x.to(torch.int64) % -3, lambda x: (x > 0) & (x < 3), lambda x: x.masked_fill(x > 2, -1.0), lambda x: x.rsqrt(),
    lambda x: x.to(torch.int32) + 1.5, lambda x: torch.sub(x, x, alpha=3), lambda x: x.trunc(), lambda x: (x == 2).logical_not(), lambda x: F.elu(x),
]


@pytest.mark.parametrize("number", range(len(POINTWISE)))
def test_elementwise(tmp_path, number):
    agrees(tmp_path, POINTWISE[number], (X,), (LONG,), dynamic=BATCH)


SHAPES = [
    lambda x: x.view(-1), lambda x: x.reshape(x.shape[0] * 2, 2), lambda x: x.t(), lambda x: x[1:], lambda x: x[:, ::2], lambda x: x[-1], lambda x: x.unsqueeze(1),
    lambda x: x.flip(0), lambda x: x.roll(1, 0), lambda x: x.roll(-7, 0), lambda x: x.roll(6, 1), lambda x: torch.cat([x, x * 2], 1), lambda x: torch.stack([x, x]), lambda x: x.repeat(2, 1), lambda x: x.split(2, 1),
    lambda x: x.expand(2, -1, -1), lambda x: F.pad(x, (1, 2)), lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), lambda x: x.tril(), lambda x: torch.ones_like(x) * x.shape[0],
    lambda x: torch.arange(x.shape[0]), lambda x: x.new_full((x.shape[0], 2), 7.0), lambda x: x[:x.shape[0] // 2 + 1], lambda x: x.chunk(2, 1)[1], lambda x: x.unbind(1)[2],
]


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_shapes(tmp_path, number):
    agrees(tmp_path, SHAPES[number], (X,), (LONG,), dynamic=BATCH)


REDUCTIONS = [
    lambda x: x.sum(), lambda x: x.mean(1), lambda x: x.var(0), lambda x: x.std(1, keepdim=True), lambda x: x.max(1), lambda x: x.argmin(0), lambda x: x.argmax(),
    lambda x: x.softmax(-1), lambda x: x.log_softmax(0), lambda x: x.cumsum(0), lambda x: x.logsumexp(1), lambda x: x.norm(dim=1), lambda x: (x > 0).any(1),
    lambda x: (x > -3).all(), lambda x: x.topk(2, 1), lambda x: x.sort(0), lambda x: x.amax((0, 1)), lambda x: torch.var_mean(x, 1), lambda x: x.to(torch.int64).sum(0),
    lambda x: x.median(), lambda x: x.median(1), lambda x: x.to(torch.int64).median(0, keepdim=True), lambda x: (x - 1).log().median(1),
]


@pytest.mark.parametrize("number", range(len(REDUCTIONS)))
def test_reductions(tmp_path, number):
    agrees(tmp_path, lambda x: tuple(REDUCTIONS[number](x)) if not isinstance(REDUCTIONS[number](x), torch.Tensor) else REDUCTIONS[number](x), (X,), (LONG,), dynamic=BATCH)


ALONG_NOTHING = [
    lambda x: x.sum(0, keepdim=True), lambda x: x.mean(-1), lambda x: x.amax(0), lambda x: x.max(0), lambda x: x.argmin(-1, keepdim=True), lambda x: (x > 0).all(0),
    lambda x: x.softmax(0), lambda x: x.log_softmax(-1), lambda x: x.cumsum(0), lambda x: x.logsumexp(0), lambda x: x.sort(0), lambda x: x.topk(1, 0), lambda x: x.flip(0),
    lambda x: x.std(0, correction=0), lambda x: x.squeeze(0), lambda x: x.unsqueeze(-1), lambda x: x.gather(0, torch.tensor(0)), lambda x: x.nonzero(),
    lambda x: x.index_select(0, torch.tensor([0])), lambda x: x.scatter(0, torch.tensor(0), 5.0), lambda x: x.transpose(0, -1), lambda x: torch.linalg.vector_norm(x, 2, 0),
]


def test_attention_of_matrices(tmp_path):
    agrees(tmp_path, lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (X,), (LONG,), dynamic=BATCH)


@pytest.mark.parametrize("number", range(len(ALONG_NOTHING)))
def test_a_scalar_has_a_dimension_to_go_along(tmp_path, number):
    agrees(tmp_path, lambda x: tuple(result) if not isinstance(result := ALONG_NOTHING[number](x), torch.Tensor) else result, (torch.tensor(1.5),))


def test_a_batch_norm_of_channels_that_vary_is_refused():
    with pytest.raises(NotImplementedError, match="a number of channels that varies"):
        torch.onnx.export(Function(lambda x: F.batch_norm(x, x.new_zeros(x.shape[1]), x.new_ones(x.shape[1]))), (X,), dynamic_shapes=({1: Dim.AUTO},))


def test_a_scalar_goes_along_as_a_row():
    scalar, row = (torch.onnx.export(Function(lambda x: x.softmax(0)), (x,)).model_bytes for x in (torch.tensor(1.5), torch.ones(1)))
    assert b"Reshape" in scalar and b"Reshape" not in row


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.float16, torch.float64])
def test_ranges_of_all_types(tmp_path, dtype):
    agrees(tmp_path, lambda x: torch.arange(1, x.shape[0] + 4, 2, dtype=dtype).to(torch.float32), (X,), (LONG,), dynamic=BATCH)


def test_a_range_of_whole_numbers_with_fractions_is_refused():
    with pytest.raises(NotImplementedError, match="whole numbers of a range with fractions"):
        torch.onnx.export(Function(lambda x: x + torch.arange(0, 2.5, dtype=torch.int64)), (torch.ones(3),))


PLACES = torch.tensor([2, 0, 1, 2])
INDEXING = [
    lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i, i], lambda x, i: x.gather(0, i.view(1, 4)), lambda x, i: x.index_select(1, i), lambda x, i: F.embedding(i, x),
    lambda x, i: x.scatter(0, i.view(1, 4), -1.0), lambda x, i: x.scatter_add(0, i.view(1, 4), x), lambda x, i: x.index_put((i,), x[:1]), lambda x, i: x[x > 0],
    lambda x, i: x.index_put((i,), x[:1], accumulate=True), lambda x, i: (x > 0).nonzero(), lambda x, i: x.unsqueeze(0)[:, i, i], lambda x, i: x.index_add(0, i, torch.ones(4, 4)),
]


@pytest.mark.parametrize("number", range(len(INDEXING)))
def test_indexing(tmp_path, number):
    agrees(tmp_path, INDEXING[number], (X, PLACES), (LONG, PLACES), dynamic=({0: Dim.AUTO}, None))


COUNTED = torch.tensor([[0.0, -0.0, 2.5, float("inf")], [1.0, -1.0, -float("inf"), 3.5], [-2.0, 0.25, -7.5, 1e-3]])
FORMULAS = [
    lambda x, y: torch.atan2(x, y), lambda x, y: torch.atan2(y, x), lambda x, y: torch.hypot(x, y), lambda x, y: torch.copysign(y, x), lambda x, y: x.signbit() | y.signbit(),
    lambda x, y: torch.fmax(x, (x - 1).log()), lambda x, y: torch.fmin((x - 1).log(), y), lambda x, y: torch.div(x, 3, rounding_mode="trunc"), lambda x, y: F.selu(x),
    lambda x, y: F.elu(x, 0.5), lambda x, y: torch.exp2(x), lambda x, y: torch.round(x, decimals=1), lambda x, y: (x > 0) * (y > 0), lambda x, y: (x > 0) + (y > 0),
    lambda x, y: x.isfinite(), lambda x, y: torch.logaddexp(x, y), lambda x, y: torch.ldexp(x, torch.tensor(3)), lambda x, y: x.nan_to_num(0, 9, -9).to(torch.int64) << 2,
    lambda x, y: x.nan_to_num(0, 9, -9).to(torch.int32) >> 1, lambda x, y: (x.nan_to_num(0, 9, -9).abs().to(torch.uint8) + 200) << 1,
]


@pytest.mark.parametrize("number", range(len(FORMULAS)))
def test_formulas_of_elements(tmp_path, number):
    agrees(tmp_path, FORMULAS[number], (COUNTED, COUNTED.flip(1)), (COUNTED[:2], COUNTED[1:]), dynamic=({0: Dim.AUTO}, {0: Dim.AUTO}))


WAYS = [
    lambda x: x.diagonal(), lambda x: x.diagonal(1), lambda x: x.diagonal(-1, 1, 0), lambda x: x[None].expand(2, -1, -1).diagonal(9, 2, 1), lambda x: x.diagonal_scatter(x.diagonal() * 0),
    lambda x: x.unfold(1, 2, 1), lambda x: x.unfold(0, 2, 2), lambda x: x.cumprod(0), lambda x: x.cumprod(1), lambda x: x.cummax(0), lambda x: (x % 3).cummin(1), lambda x: x.logcumsumexp(1),
    lambda x: torch.searchsorted(torch.tensor([-3.0, 0.0, 0.0, 4.0]), x), lambda x: torch.searchsorted(x, x.flip(0), right=True), lambda x: torch.searchsorted(x.flip(1), x, sorter=x.flip(1).argsort(1)),
    lambda x: torch.bucketize(x.log(), torch.tensor([0.5, 1.0])), lambda x: torch.bucketize(x, torch.tensor([0, 2]), right=True, out_int32=True), lambda x: x.kthvalue(2, 1), lambda x: x.kthvalue(1, 0, keepdim=True),
    lambda x: x.masked_select(x[:1] > -4), lambda x: x.masked_scatter(x > 0, x.flip(0)), lambda x: x[:, x[0] > -4], lambda x: x[None, :, :][:, x > 0], lambda x: x[None].index_put((torch.tensor([0]),), x * 2),
    lambda x: x.put(torch.tensor([0, -1]), torch.tensor([7.0, 8.0])), lambda x: x.put(torch.tensor([0, 0]), torch.tensor([7.0, 8.0]), accumulate=True), lambda x: x.roll(5), lambda x: x.roll((1, -1)[0]),
    lambda x: x.slice_scatter(x[:2], 0, -2), lambda x: x.slice_scatter(x[:, :2] * 0, 1, 1, None, 2), lambda x: x.repeat_interleave(torch.tensor([2, 0, 1, 3]), 1), lambda x: torch.unique((x % 3).to(torch.int64), return_inverse=True, return_counts=True),
    lambda x: torch.bincount((x % 3).to(torch.int64).view(-1), minlength=6), lambda x: torch.bincount((x % 3).to(torch.int64)[:, 0], x[:, 1]), lambda x: torch.linalg.vector_norm(x, 3, 1), lambda x: torch.linalg.vector_norm(x, -float("inf")),
    lambda x: torch.linalg.vector_norm(x, 0, 0), lambda x: torch.dist(x, x.flip(0), 3), lambda x: torch.cdist(x, x.flip(0), 0), lambda x: torch.det(x[None, :3, :3].sin()), lambda x: torch.addmv(x[:, 0], x, x[0], beta=2, alpha=0.5),
    lambda x: F.bilinear(x, x, torch.ones(2, 4, 4)), lambda x: x + torch.tril_indices(4, 4)[0, :1], lambda x: F.instance_norm(x[None]), lambda x: F.adaptive_max_pool1d(x[None, None, 0], 3), lambda x: F.avg_pool2d(x[None, None], 2, divisor_override=3),
    lambda x: F.avg_pool2d(x[None], 2), lambda x: F.max_pool2d(x[None], 2, return_indices=True), lambda x: F.adaptive_avg_pool2d(x[:3][None, None], (2, 3)), lambda x: F.adaptive_max_pool2d(x[None], 1),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_places_and_windows(tmp_path, number):
    agrees(tmp_path, lambda x: tuple(result) if not isinstance(result := WAYS[number](x), torch.Tensor) else result, (X,), (LONG,), dynamic=BATCH)


REDUCED = [(how, own) for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)]


@pytest.mark.parametrize(("how", "own"), REDUCED)
def test_reduced_scatters(tmp_path, how, own):
    agrees(tmp_path, lambda x, i: x.scatter_reduce(0, i.view(1, 4).expand(2, -1), x[:2] + 1, how, include_self=own), (X, PLACES), (LONG, PLACES), dynamic=({0: Dim.AUTO}, None))


def test_views_by_strides_are_elements_by_number(tmp_path):
    agrees(tmp_path, lambda x: x.as_strided((2, 3), (2, 1), 1), (X,))
    with pytest.raises(NotImplementedError, match="a view by strides of sizes that vary"):
        torch.onnx.export(Function(lambda x: x.as_strided((2, 3), (2, 1), 1)), (X,), dynamic_shapes=BATCH)


def test_what_formulas_cannot_say_is_refused():
    for function, text in ((lambda x: (x.to(torch.uint64) << 1), "unsigned numbers of 64 bits"), (lambda x: x.to(torch.int64).cummax(0), "whole numbers"),
                           (lambda x: x.to(torch.int64).scatter_reduce(0, torch.zeros(1, 4, dtype=torch.int64), x.to(torch.int64), "mean"), "means of whole numbers"),
                           (lambda x: F.adaptive_max_pool2d(x[None, None], 2, return_indices=True)[1], "places of the largest")):
        with pytest.raises(NotImplementedError, match=text):
            torch.onnx.export(Function(function), (X,))


PICTURE = torch.arange(2 * 4 * 6 * 6.0).view(2, 4, 6, 6).sin()
NETWORKS = [
    lambda x: F.conv2d(x, torch.ones(2, 2, 3, 3), torch.ones(2), stride=2, padding=1, groups=2), lambda x: F.conv_transpose2d(x, torch.ones(4, 2, 3, 3), stride=2, output_padding=1),
    lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 2), lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.adaptive_avg_pool2d(x, 3), lambda x: F.layer_norm(x, (6, 6)),
    lambda x: F.group_norm(x, 2, torch.ones(4) * 2, torch.ones(4)), lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)), lambda x: F.interpolate(x, scale_factor=2),
    lambda x: F.interpolate(x, size=(9, 4), mode="bilinear"), lambda x: F.interpolate(x, size=(9, 4), mode="bilinear", align_corners=True), lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"),
    lambda x: F.scaled_dot_product_attention(x, x, x), lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=x[0, 0] > 0),
    lambda x: torch.einsum("bchw,bdhw->bcd", x, x), lambda x: F.linear(x, torch.ones(3, 6), torch.ones(3)), lambda x: torch.baddbmm(x[:, 0], x[:, 1], x[:, 2], beta=2, alpha=0.5),
    lambda x: F.prelu(x, torch.full((4,), 0.1)), lambda x: F.max_pool2d(x, 2, return_indices=True),
]


@pytest.mark.parametrize("number", range(len(NETWORKS)))
def test_networks(tmp_path, number):
    agrees(tmp_path, NETWORKS[number], (PICTURE,), (torch.cat([PICTURE, PICTURE * 2]),), dynamic=BATCH)


CONVOLUTIONS = {
    "plain": ((3, 4, 3, 3), {}), "padded": ((3, 4, 3, 3), {"padding": 1}), "stride": ((3, 4, 3, 3), {"stride": 2, "padding": 1}), "a_rest": ((3, 4, 3, 3), {"stride": 2}),
    "dilated": ((3, 4, 2, 2), {"dilation": 2, "stride": 3}), "groups": ((6, 2, 3, 3), {"groups": 2, "stride": 2}), "depthwise": ((8, 1, 3, 3), {"groups": 4, "padding": 1}),
    "uneven": ((3, 4, 2, 3), {"stride": (2, 1), "padding": (1, 0)}), "transposed": ((4, 3, 3, 3), {"transposed": True, "stride": 2, "padding": 1, "output_padding": 1}),
    "transposed_groups": ((4, 2, 3, 3), {"transposed": True, "groups": 2, "dilation": 2}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(tmp_path, name):
    shape, options = CONVOLUTIONS[name]
    both = lambda key, default: list(v) if isinstance(v := options.get(key, default), tuple) else [v, v]  # noqa: E731
    weight, transposed, groups = torch.arange(torch.Size(shape).numel()).view(shape).cos(), options.get("transposed", False), options.get("groups", 1)
    rest = (both("stride", 1), both("padding", 0), both("dilation", 1), transposed, both("output_padding", 0), groups)

    def gradients(x):
        out = torch.ops.aten.convolution(x, weight, None, *rest)
        return torch.ops.aten.convolution_backward(out.sin(), x, weight, [out.shape[1]], *rest, [True, True, True])
    agrees(tmp_path, gradients, (PICTURE,), (torch.cat([PICTURE, PICTURE * 2]),), dynamic=BATCH)


def test_gradients_of_convolutions_need_sizes_of_planes():
    weight = torch.ones(3, 4, 3, 3)

    def gradient(x):
        return torch.ops.aten.convolution_backward(F.conv2d(x, weight, stride=2), x, weight, None, [2, 2], [0, 0], [1, 1], False, [0, 0], 1, [True, False, False])[0]
    with pytest.raises(NotImplementedError, match="convolution_backward.*planes of a symbolic size"):
        torch.onnx.export(Function(gradient), (PICTURE,), dynamic_shapes=({2: Dim.AUTO},))


def test_what_has_no_counterpart_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="aten.linalg_inv_ex"):
        torch.onnx.export(Function(torch.linalg.inv), (torch.eye(2),))
    with pytest.raises(NotImplementedError, match="complex64"):
        torch.onnx.export(Function(lambda x: x + x), (torch.ones(2, dtype=torch.complex64),))


def test_windows_that_start_in_the_padding_are_refused():
    with pytest.raises(NotImplementedError, match="ceil_mode"):
        torch.onnx.export(Function(lambda x: F.max_pool2d(x, 2, 2, 1, ceil_mode=True)), (torch.ones(1, 1, 5, 5),))


def test_what_a_program_writes_follows_its_results(tmp_path):
    layer, x = torch.nn.BatchNorm1d(4), torch.arange(12.0).view(3, 4) ** 2
    model = torch.onnx.export(layer, (x,))
    results = in_onnxruntime(tmp_path, model, x)
    expected = [layer(x), layer.running_mean, layer.running_var, layer.num_batches_tracked]
    assert len(results) == len(expected)
    for (_, shape, values), want in zip(results, expected):
        assert shape == list(want.shape) and values == pytest.approx(want.reshape(-1).tolist(), rel=1e-4)
    assert all(name in model.model_bytes for name in (b"new_running_mean", b"new_running_var"))


COLUMNS, BAGS = torch.tensor([0, 2]), torch.tensor([0, 2, 2])
COMPOSED = {
    "distances": lambda x: tuple(torch.cdist(x, x[:2], p=p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))),
    "places behind other dimensions": lambda x: torch.index_put(x, (None, COLUMNS), torch.ones(2)),
    "sums of places": lambda x: torch.index_put(x.view(3, 2, 2), (None, torch.tensor([0, 0]), torch.tensor([1, 1])), x[:, :2], accumulate=True),
    "bags": lambda x: tuple(F.embedding_bag(torch.tensor([1, 0, 2, 1]), x, BAGS, mode=mode) for mode in ("sum", "mean", "max")),
    "weighted bags": lambda x: F.embedding_bag(torch.tensor([1, 0, 2, 1]), x, BAGS, mode="sum", per_sample_weights=x[0], padding_idx=2),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_operators_without_a_counterpart_are_made_of_others(tmp_path, name):
    agrees(tmp_path, COMPOSED[name], (X,))


def test_random_numbers_have_the_sizes_that_the_program_says(tmp_path):
    model = torch.onnx.export(Function(lambda x: (torch.rand(x.shape[0], 2), torch.randn_like(x))), (X,), dynamic_shapes=BATCH)
    uniform, normal = in_onnxruntime(tmp_path, model, LONG)
    assert uniform[1] == [5, 2] and all(0 <= value < 1 for value in uniform[2]) and normal[1] == [5, 4]


def test_a_model_is_written_to_a_file(tmp_path):
    model = torch.onnx.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), tmp_path / "linear.onnx", dynamic_shapes=({0: Dim("batch")},), external_data=False)
    data = (tmp_path / "linear.onnx").read_bytes()
    assert data == model.model_bytes and all(word in data for word in (b"MatMul", b"weight", b"input", b"umbra"))


def of_higher_order(name):
    return getattr(importlib.import_module(f"umbra._higher_order_ops.{name}"), name)


WEIGHT = torch.arange(4.0)
CONTROL = {
    "a choice": lambda x: torch.cond(x.sum() > 0, lambda x: (x + WEIGHT, x.sum()), lambda x: (x - 1, x.mean()), (x,)),
    "a loop": lambda x: of_higher_order("while_loop")(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2 + WEIGHT), (torch.tensor(0), x)),
    "a scan": lambda x: of_higher_order("scan")(lambda carry, row: (carry + row * WEIGHT, carry * row), x[0], x, dim=0),
    "a map": lambda x: (of_higher_order("map")(lambda row, whole: row * whole.sum(0) + WEIGHT, x, x),),
    "a choice in a loop in a choice": lambda x: (torch.cond(
        x.sum() > 0,
        lambda x: of_higher_order("while_loop")(
            lambda i, a: i < 3, lambda i, a: (i + 1, torch.cond(a.sum() > 5, lambda a: a - 1, lambda a: a + 2, (a,))), (torch.tensor(0), x))[1],
        lambda x: x * 2, (x,)),),
}


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow(tmp_path, name):
    agrees(tmp_path, CONTROL[name], (X,), (LONG,), (-X,), dynamic=BATCH)


@pytest.mark.parametrize(("name", "node"), [("a choice", b"If"), ("a loop", b"Loop"), ("a scan", b"Scan"), ("a map", b"Scan")])
def test_control_flow_becomes_nodes_with_graphs(name, node):
    assert node in torch.onnx.export(Function(CONTROL[name]), (X,)).model_bytes


def test_large_constants_may_lie_beside_the_model(tmp_path):
    linear = torch.nn.Linear(64, 64)
    model = torch.onnx.export(linear, (torch.ones(1, 64),), tmp_path / "linear.onnx", external_data=True)
    assert (tmp_path / "linear.onnx.data").stat().st_size == 64 * 64 * 4  # the bias is small, and stays
    assert (tmp_path / "linear.onnx").stat().st_size < len(model.model_bytes) - 64 * 64 * 4 + 200
    with pytest.raises(ValueError, match="beside the model"):
        model.save(io.BytesIO(), external_data=True)


def test_dropout_of_a_model_that_was_exported_in_training(tmp_path):
    def names(p, training):
        model = torch.onnx.export(Function(lambda x: F.dropout(x, p, training)), (X,))
        model.save(tmp_path / "model.onnx")
        return (tmp_path / "model.onnx").read_bytes().count(b"Dropout")
    assert names(0.5, True) > 0 and names(0.5, False) == 0
    results = in_onnxruntime(tmp_path, torch.onnx.export(Function(lambda x: F.dropout(x, 0.5) * 0 + x), (X,)), X)
    assert results[0][1:] == [[3, 4], X.reshape(-1).tolist()]


def test_a_single_tensor_is_the_only_argument():
    linear, x = torch.nn.Linear(3, 2), torch.ones(2, 3)
    assert torch.onnx.export(linear, x).model_bytes == torch.onnx.export(linear, (x,)).model_bytes


# ---- options ----

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, y=None):
        out = self.linear(x) if y is None else self.linear(x) + y
        return out.relu(), out.sum(1)


def written(model, *inputs, **options):
    """Inputs, outputs (names and sizes), names of constants and the opset of the file, read without any library."""
    program = torch.onnx.export(model.eval(), inputs, **options)
    return read_model(program.model_bytes)


def fields(data):
    """The fields of a message of protocol buffers: number to values."""
    at, found = 0, {}

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = varint() if key & 7 == 2 else 4
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def read_model(data):
    model = fields(data)
    graph = fields(model[7][0])

    def values(field):
        for info in map(fields, graph.get(field, [])):
            shape = fields(fields(fields(info[2][0])[1][0])[2][0])
            yield info[1][0].decode(), [d[2][0].decode() if 2 in (d := fields(dim)) else d[1][0] for dim in shape.get(1, [])]
    constants = [fields(tensor)[8][0].decode() for tensor in graph.get(5, [])]
    return list(values(11)), list(values(12)), constants, fields(model[8][0])[2][0]


ROWS, MORE = torch.arange(20.0).view(5, 4).sin(), torch.arange(15.0).view(5, 3).cos()


def test_inputs_and_outputs_have_the_names_that_are_given():
    inputs, outputs, constants, opset = written(Layer(), ROWS, input_names=["in"], output_names=["a", "b"])
    assert inputs == [("in", [5, 4])] and outputs == [("a", [5, 3]), ("b", [5])] and {"linear.weight", "linear.bias"} <= set(constants) and opset == 18
    assert written(Layer(), ROWS, MORE, input_names=["in"], output_names=["a"])[:2] == ([("in", [5, 4]), ("y", [5, 3])], [("a", [5, 3]), ("sum_1", [5])])
    with pytest.raises(ValueError, match="Input names cannot be duplicated"):
        written(Layer(), ROWS, MORE, input_names=["in", "in"])
    with pytest.raises(ValueError, match="two inputs or outputs are called 'in'"):
        written(Layer(), ROWS, input_names=["in"], output_names=["in"])


def test_names_may_be_those_of_values_inside(tmp_path):
    names = {"input_names": ["relu", "linear.weight"], "output_names": ["v", "v_1"]}
    inputs, outputs, constants, _ = written(Layer(), ROWS, MORE, **names)
    assert [n for n, _ in inputs] == names["input_names"] and [n for n, _ in outputs] == names["output_names"]
    assert len(constants) == len(set(constants)) and not {"linear.weight", "v", "v_1"} & set(constants)
    layer = Layer().eval()
    check_runs(tmp_path, layer, torch.onnx.export(layer, (ROWS, MORE), **names), (ROWS, MORE))


def test_a_value_inside_is_not_called_as_an_input(tmp_path):
    class Named(torch.nn.Module):
        def forward(self, v0, v1, v):
            return (v0 + 1).sum(1) * v1 + v.softmax(0)
    inputs = tuple(torch.arange(4.0).sin() + i for i in range(2))
    check_runs(tmp_path, Named(), torch.onnx.export(Named().eval(), (ROWS[:4], *inputs)), (ROWS[:4], *inputs))


def check_runs(folder, module, model, *calls):
    for inputs in calls:
        expected = module(*inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        results = in_onnxruntime(folder, model, *inputs)
        assert len(results) == len(expected)
        for (_, shape, values), want in zip(results, expected):
            assert shape == list(want.shape) and values == pytest.approx(want.reshape(-1).tolist(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("sizes", [{"dynamic_axes": {"in": {0: "batch"}, "other": {0: "batch"}, "a": {0: "batch"}}}, {"dynamic_axes": {"other": {0: "batch"}, "in": {0: "batch"}}},
                                   {"dynamic_shapes": ({0: "batch"}, {0: "batch"})}, {"dynamic_shapes": {"y": {0: "batch"}, "x": {0: "batch"}}},
                                   {"dynamic_shapes": ({0: Dim("batch")}, {0: Dim("batch")})}])
def test_sizes_that_vary_have_the_names_that_are_given(tmp_path, sizes):
    names = {"input_names": ["in", "other"], "output_names": ["a", "b"]}
    inputs, outputs, _, _ = written(Layer(), ROWS, MORE, **names, **sizes)
    assert inputs == [("in", ["batch", 4]), ("other", ["batch", 3])] and outputs == [("a", ["batch", 3]), ("b", ["batch"])]
    layer = Layer().eval()
    check_runs(tmp_path, layer, torch.onnx.export(layer, (ROWS, MORE), **names, **sizes), (ROWS, MORE), (ROWS[:3], MORE[:3]))


def test_sizes_that_are_made_of_others_are_said_by_their_names():
    assert written(torch.nn.Flatten(0), torch.ones(5, 4, 2), dynamic_shapes=({0: "n", 1: "m"},))[:2] == ([("input", ["n", "m", 2])], [("view", ["2*n*m"])])


def test_axes_by_number_and_of_arguments_in_containers():
    inputs, _, _, _ = written(Layer(), ROWS, dynamic_axes={"x": [0]})
    assert inputs[0][1][0] not in (5, "batch") and inputs[0][1][1] == 4

    class Pair(torch.nn.Module):
        def forward(self, pair, k):
            return pair["p"] * k + pair["q"]
    program = torch.onnx.export(Pair().eval(), ({"p": ROWS, "q": ROWS}, 3), input_names=["a", "b"], dynamic_axes={"a": {0: "n"}, "b": {0: "n"}})
    assert read_model(program.model_bytes)[0] == [("a", ["n", 4]), ("b", ["n", 4])]
    program.rename_axes({"n": "rows"})
    assert read_model(program.model_bytes)[0] == [("a", ["rows", 4]), ("b", ["rows", 4])]


@pytest.mark.parametrize(("axes", "message"), [({"nowhere": {0: "n"}}, "nowhere"), ({"x": {"0": "n"}}, "must be in the form of"), ({"x": (0,)}, "dict or a list")])
def test_axes_that_cannot_be_are_refused(axes, message):
    with pytest.raises(RuntimeError, match="dynamic_axes") as error:
        written(Layer(), ROWS, dynamic_axes=axes)
    assert message in str(error.value.__cause__)


def test_an_axis_that_the_module_settles_is_no_axis_that_varies():
    with pytest.raises(Exception, match=r"specialized it to be a constant \(4\)"):
        written(Layer(), ROWS, dynamic_axes={"x": {1: "width"}})


def test_arguments_by_name():
    both = ([("q", [5, 4]), ("r", [5, 3])], [("relu", [5, 3]), ("sum_1", [5])])
    assert written(Layer(), ROWS, kwargs={"y": MORE}, input_names=["q", "r"])[:2] == both
    assert written(Layer(), ROWS, {"y": MORE}, input_names=["q", "r"])[:2] == both


@pytest.mark.parametrize(("options", "further", "has_weight"), [({}, [], True), ({"export_params": False}, [], False), ({"keep_initializers_as_inputs": True}, ["linear.weight", "linear.bias"], True),
                                                               ({"export_params": False, "keep_initializers_as_inputs": True}, ["linear.weight", "linear.bias"], False)])
def test_parameters_may_stay_outside_and_be_inputs(tmp_path, options, further, has_weight):
    torch.onnx.export(Layer().eval(), (ROWS,), tmp_path / "layer.onnx", external_data=False, **options)
    inputs, _, constants, _ = read_model((tmp_path / "layer.onnx").read_bytes())
    assert [name for name, _ in inputs] == ["x", *further] and ("linear.weight" in constants) == has_weight


def test_opsets_of_which_the_model_is_as_well(tmp_path):
    layer = Layer().eval()
    for opset in (17, 18, 20, 23):
        model = torch.onnx.export(layer, (ROWS,), opset_version=opset)
        assert read_model(model.model_bytes)[3] == opset
        check_runs(tmp_path, layer, model, (ROWS,))
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="in opset 18, not 13: .* Add of opset 18"):
        assert written(layer, ROWS, opset_version=13)[3] == 18
    with pytest.raises(NotImplementedError, match="opset 99"):
        written(layer, ROWS, opset_version=99)
    with pytest.raises(NotImplementedError, match="GridSample of opset 18, which is another one in opset 20"):
        torch.onnx.export(Function(lambda x, g: F.grid_sample(x, g, align_corners=False)), (torch.ones(1, 1, 4, 4), torch.zeros(1, 2, 2, 2)), opset_version=20)


def test_large_constants_lie_beside_the_model_unless_told_otherwise(tmp_path):
    torch.onnx.export(torch.nn.Linear(64, 64).eval(), (torch.ones(1, 64),), tmp_path / "a.onnx")
    torch.onnx.export(torch.nn.Linear(64, 64).eval(), (torch.ones(1, 64),), tmp_path / "b.onnx", external_data=False)
    assert (tmp_path / "a.onnx.data").exists() and not (tmp_path / "b.onnx.data").exists()


def test_unknown_and_refused_options():
    with pytest.raises(TypeError, match="unexpected keyword argument 'names'"):
        written(Layer(), ROWS, names=["x"])
    for option in ("verify", "report", "profile", "dump_exported_program"):
        with pytest.raises(NotImplementedError, match=option):
            written(Layer(), ROWS, **{option: True})
    with pytest.raises(NotImplementedError, match="custom_translation_table"):
        written(Layer(), ROWS, custom_translation_table={torch.ops.aten.relu.default: None})


def test_a_model_in_training_mode_is_warned_of():
    with pytest.warns(UserWarning, match="training mode"):
        torch.onnx.export(Layer(), (ROWS,))


def test_the_older_call_writes_a_model_that_infers(tmp_path):
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 3)).train()
    with pytest.warns(DeprecationWarning, match="dynamo"):
        assert torch.onnx.export(model, (ROWS,), tmp_path / "m.onnx", dynamo=False, input_names=["in"], dynamic_axes={"in": {0: "b"}}) is None
    data = (tmp_path / "m.onnx").read_bytes()
    assert read_model(data)[0] == [("in", ["b", 4])] and b"Dropout" not in data and model[0].training
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="dynamic_axes"):
        torch.onnx.export(model, (ROWS,), tmp_path / "m.onnx", dynamo=False, dynamic_shapes=({0: "n"},))


def test_a_model_is_edited_and_saved(tmp_path):
    pytest.importorskip("onnx_ir")
    made = torch.onnx.export(torch.nn.Linear(4, 2).eval(), (torch.ones(1, 4),))
    made.model.graph.outputs[0].name = "renamed"
    assert made.model is made.model and made.model_proto.graph.output[0].name == "renamed"
    made.save(tmp_path / "edited.onnx")
    assert b"renamed" in (tmp_path / "edited.onnx").read_bytes()
    with pytest.raises(NotImplementedError, match="include_initializers=False"):
        made.save(tmp_path / "other.onnx", include_initializers=False)
    assert b"renamed" not in torch.onnx.export(torch.nn.Linear(4, 2).eval(), (torch.ones(1, 4),)).model_bytes
