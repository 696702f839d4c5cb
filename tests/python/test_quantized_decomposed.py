"""torch.ops.quantized_decomposed: quantisation written out over plain tensors of integers, as exported programs of quantised models have it."""
import pytest
import umbra as torch
import umbra.ao.quantization.fx._decomposed as decomposed
import umbra.export
from umbra.fx.experimental.proxy_tensor import make_fx

ops = torch.ops.quantized_decomposed
X = torch.tensor([[-1.0, 0.3, 2.0], [0.5, 1.5, -3.0]])


def test_one_scale_for_all():
    quantized = ops.quantize_per_tensor(X, 0.1, 3, -128, 127, torch.int8)
    assert quantized.dtype is torch.int8 and quantized.tolist() == [[-7, 6, 23], [8, 18, -27]]
    back = ops.dequantize_per_tensor(quantized, 0.1, 3, -128, 127, torch.int8)
    assert torch.allclose(back, X) and back.dtype is torch.float32
    half = ops.dequantize_per_tensor(quantized, 0.1, 3, -128, 127, torch.int8, out_dtype=torch.float16)
    assert half.dtype is torch.float16
    by_tensors = ops.quantize_per_tensor.tensor(X, torch.tensor(0.1), torch.tensor([3]), -128, 127, torch.int8)
    assert torch.equal(by_tensors, quantized)
    bounds = torch.tensor(-10), torch.tensor(10)
    assert ops.quantize_per_tensor.tensor2(X, torch.tensor(0.1), torch.tensor(3), *bounds, torch.int8).tolist() == [[-7, 6, 10], [8, 10, -10]]


def test_scales_for_channels_rows_and_groups():
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0, 3])
    by_channel = ops.quantize_per_channel(X, scales, zeros, 0, -128, 127, torch.int8)
    assert by_channel.tolist() == [[-10, 3, 20], [5, 11, -12]]
    back = ops.dequantize_per_channel(by_channel, scales, zeros, 0, -128, 127, torch.int8)
    assert torch.allclose(back, torch.tensor([[-1.0, 0.3, 2.0], [0.4, 1.6, -3.0]]))
    rows = ops.quantize_per_token(X, scales[:, None], zeros[:, None], -128, 127, torch.int8)
    assert torch.equal(rows[0], by_channel[0])
    square = torch.arange(8.0).view(2, 4) - 4
    groups = ops.quantize_per_channel_group(square, torch.tensor([[1.0, 2], [0.5, 1]]), torch.zeros(2, 2), -8, 7, torch.int8, 2)
    assert groups.tolist() == [[-4, -3, -1, 0], [0, 2, 2, 3]]
    again = ops.dequantize_per_channel_group(groups, torch.tensor([[1.0, 2], [0.5, 1]]), None, -8, 7, torch.int8, 2, torch.float32)
    assert again.tolist() == [[-4, -3, -2, 0], [0, 1, 2, 3]]


def test_scales_are_chosen():
    scale, zero = ops.choose_qparams(X, -128, 127, 1e-5, torch.int8)
    assert scale.dtype is torch.float64 and zero.dtype is torch.int64
    assert scale.item() == pytest.approx(5 / 255) and zero.tolist() == [25]
    scale, zero = ops.choose_qparams_symmetric(X, 0, 255, 1e-5, torch.uint8)
    assert scale.item() == pytest.approx(6 / 255) and zero.tolist() == [128]
    scales, zeros = ops.choose_qparams_per_token_asymmetric(X, torch.int8)
    assert torch.allclose(scales, torch.tensor([[3 / 255], [4.5 / 255]], dtype=torch.float64)) and zeros.tolist() == [[-43], [42]]


def test_rounding_to_a_grid_lets_gradients_through_where_nothing_is_cut_off():
    x = X.clone().requires_grad_()
    out = ops.fake_quant_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 0, -10, 10)
    out.sum().backward()
    assert torch.allclose(out[0], torch.tensor([-1.0, 0.3, 1.0]))
    assert x.grad.tolist() == [[1, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("call, error, text", [
    (lambda: ops.quantize_per_tensor(X, 0.1, 3, -129, 127, torch.int8), AssertionError,
     "quant_min out of bounds for dtype, quant_min_lower_bound: -128 quant_min: -129"),
    (lambda: ops.quantize_per_tensor(X, 0.1, 3, 0, 1, torch.int64), ValueError, "Unsupported dtype: torch.int64"),
    (lambda: ops.quantize_per_tensor(X.double(), 0.1, 3, 0, 1, torch.int8), AssertionError,
     "Expecting input to have dtype torch.float32, but got dtype: torch.float64"),
    (lambda: ops.dequantize_per_tensor(X.to(torch.uint8), 0.1, 3, 0, 1, torch.int8), AssertionError,
     "Expecting input to have dtype: torch.int8, but got torch.uint8"),
    (lambda: ops.quantize_per_channel(X, torch.ones(2), torch.zeros(2), 2, 0, 1, torch.int8), AssertionError, "Expecting axis to be < 2"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


def test_captured_and_saved_programs_keep_the_calls(tmp_path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.arange(6, dtype=torch.int8).view(2, 3))

        def forward(self, x):
            x = decomposed.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)
            x = decomposed.dequantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)
            return x @ decomposed.dequantize_per_channel(self.weight, torch.tensor([0.5, 1.0]), None, 0, -128, 127, torch.int8).t()

    program = torch.export.export(Model(), (X,))
    torch.export.save(program, tmp_path / "quantized.pt2")
    loaded = torch.export.load(tmp_path / "quantized.pt2")
    names = [str(n.target) for n in loaded.graph.nodes if n.op == "call_function"]
    assert names.count("quantized_decomposed.quantize_per_tensor.default") == 1
    assert torch.equal(loaded.module()(X), Model()(X))
    graph = make_fx(lambda x: ops.choose_qparams(x, 0, 255, 1e-5, torch.uint8), tracing_mode="symbolic")(X)
    assert "torch.ops.quantized_decomposed.choose_qparams.tensor" in graph.code
    meta = ops.quantize_per_tensor.tensor(X.to("meta"), torch.ones((), device="meta"), torch.zeros((), device="meta"), 0, 255, torch.uint8)
    assert meta.dtype is torch.uint8 and meta.shape == X.shape
