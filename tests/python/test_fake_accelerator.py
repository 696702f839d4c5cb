"""Fake tensors on an accelerator have the metadata that a run there would have, where it differs from the CPU's."""
import pytest

import umbra
import umbra.nn.functional as F
from call_log import CallLog
from umbra._subclasses.fake_tensor import FakeTensorMode

aten = umbra.ops.aten


@pytest.fixture(autouse=True)
def fake():
    with FakeTensorMode():
        yield


def cuda(*sizes, **options):
    return umbra.empty(*sizes, device="cuda", **options)


def calls(function):
    with CallLog() as log:
        function()
    return log.seen


def norm(*sizes, training=True, dtype=None, weights=None, affine=True):
    vector = lambda: cuda(sizes[1], dtype=weights)  # noqa: E731
    weight, bias = (vector(), vector()) if affine else (None, None)
    return calls(lambda: F.batch_norm(cuda(*sizes, dtype=dtype), cuda(sizes[1]), cuda(sizes[1]), weight, bias, training))[-1]


def test_batch_norm_goes_to_the_library_where_that_has_a_kernel():
    library, native = "aten.cudnn_batch_norm.default", "aten.native_batch_norm.default"
    assert norm(4, 6, 8, 8) == norm(4, 6, 5) == norm(65535, 6, 3, training=False) == library
    assert norm(2, 6, 3, 3, dtype=umbra.float16) == library
    assert norm(2, 6, 3, 3, dtype=umbra.float16, weights=umbra.float16) == norm(2, 6, 3, 3, dtype=umbra.bfloat16) == native
    assert norm(4, 6) == norm(4, 6, 8, 8, affine=False) == norm(65536, 6, 3, training=False) == norm(880802, 6, 3) == native


def test_batch_norm_keeps_statistics_in_float_and_trains():
    def kept(*results):
        return [(tuple(t.shape), t.dtype) for t in results[1:]]
    x, vector = cuda(4, 6, 3, 3, dtype=umbra.float16), lambda: cuda(6)
    assert kept(*aten.native_batch_norm(x, vector(), vector(), vector(), vector(), False, 0.1, 1e-5)) == [((6,), umbra.float32)] * 2
    assert kept(*aten.cudnn_batch_norm(x, vector(), vector(), vector(), vector(), True, 0.1, 1e-5)) == [((6,), umbra.float32)] * 2 + [((0,), umbra.uint8)]
    model = umbra.nn.Sequential(umbra.nn.Conv2d(3, 6, 3), umbra.nn.BatchNorm2d(6)).to("cuda")
    image = cuda(2, 3, 8, 8, requires_grad=True)
    assert "aten.cudnn_batch_norm_backward.default" in calls(lambda: model(image).sum().backward())
    assert model[1].weight.grad.shape == (6,) and image.grad.shape == image.shape and str(image.grad.device) == "cuda:0"


def test_a_captured_batch_norm_says_what_it_writes():
    from umbra.fx.experimental.proxy_tensor import make_fx
    graph = make_fx(lambda x, m, v, w: F.batch_norm(x, m, v, w, w, True))(cuda(2, 6, 3, 3), cuda(6), cuda(6), cuda(6))
    assert "cudnn" not in graph.code


def test_other_norms():
    half = cuda(3, 4, 5, dtype=umbra.float16)
    assert aten.native_layer_norm(half, [5], cuda(5, dtype=umbra.float16), None, 1e-5)[1].dtype == umbra.float32
    with pytest.raises(RuntimeError, match="expected scalar type Half but found Float"):
        F.layer_norm(half, (5,), cuda(5))
    assert aten.native_group_norm(half, cuda(4), cuda(4), 3, 4, 5, 2, 1e-5)[1].dtype == umbra.float16


def test_masks_of_dropout_lie_as_the_input_does():
    out, mask = aten.native_dropout(cuda(3, 4).t(), 0.3, True)
    assert out.stride() == mask.stride() == (1, 4) and mask.dtype == umbra.bool


def test_softmax_of_halves_gives_floats():
    half = cuda(3, 4, dtype=umbra.float16)
    assert aten._softmax(half, -1, True).dtype == aten._log_softmax(half, -1, True).dtype == umbra.float32
    assert calls(lambda: half.softmax(-1, dtype=umbra.float32)) == ["aten._softmax.default"]
    with pytest.raises(AssertionError, match="half_to_float is True but x.dtype is torch.float32"):
        aten._softmax(cuda(3), -1, True)


def test_embedding_bags_keep_all_bags_and_no_places():
    indices, offsets = umbra.zeros(6, dtype=umbra.int64, device="cuda"), umbra.zeros(3, dtype=umbra.int64, device="cuda")
    sizes = lambda mode, last=False: [tuple(t.shape) for t in aten._embedding_bag(cuda(4, 5), indices, offsets, False, mode, False, None, last)]  # noqa: E731
    assert sizes(0) == sizes(1) == [(3, 5), (6,), (3,), (0,)]
    assert sizes(2, True) == [(2, 5), (6,), (3,), (2, 5)]


def test_strides_of_decompositions_and_of_transposed_convolutions():
    u, _, vh = umbra.linalg.svd(cuda(5, 4))
    assert u.stride() == (1, 5) and vh.stride() == (4, 1)
    assert umbra.linalg.eig(cuda(4, 4)).eigenvectors.stride() == (4, 1)
    image = cuda(2, 4, 5, 5, 5).to(memory_format=umbra.channels_last_3d)
    assert F.conv_transpose3d(image, cuda(4, 4, 3, 3, 3)).stride() == (1372, 1, 196, 28, 4)


def layouts(results):
    return [(tuple(t.shape), t.stride(), t.dtype) if isinstance(t, umbra.Tensor) else t for t in results]


def test_attention_of_accelerators_has_their_layouts():
    half = umbra.float16
    q, k, v = cuda(2, 4, 9, 16, dtype=half), cuda(2, 4, 12, 16, dtype=half), cuda(2, 4, 12, 24, dtype=half)
    rng, unused = ((2,), (1,), umbra.uint64), ((), (), umbra.uint64)
    assert layouts(aten._scaled_dot_product_flash_attention(q, k, v)) == [
        ((2, 4, 9, 24), (864, 216, 24, 1), half), ((2, 4, 9), (36, 9, 1), umbra.float32), None, None, 9, 12, rng, unused, ((0,), (1,), half)]
    together = q.transpose(1, 2).contiguous().transpose(1, 2)
    assert aten._scaled_dot_product_flash_attention(together, k, v)[0].stride() == (864, 24, 96, 1)
    seed = ((), (), umbra.int64)
    assert layouts(aten._scaled_dot_product_efficient_attention(q, k, v, None, True)) == [
        ((2, 4, 9, 24), (864, 24, 96, 1), half), ((2, 4, 32), (128, 32, 1), umbra.float32), seed, seed]
    assert aten._scaled_dot_product_efficient_attention(q, k, v, None, False)[1].shape == (2, 4, 0)
    assert layouts(aten._scaled_dot_product_cudnn_attention(q, k, v, None, True)) == [
        ((2, 4, 9, 24), (864, 216, 24, 1), half), ((2, 4, 9, 1), (36, 9, 1, 1), umbra.float32), None, None, 9, 12, seed, seed, None]
    places = umbra.zeros(4, dtype=umbra.int32, device="cuda")
    packed = cuda(20, 4, 16, dtype=half)
    assert aten._flash_attention_forward(packed, packed, packed, places, places, 9, 9, 0.0, False, False)[1].shape == (4, 20)
    assert layouts(aten._efficient_attention_forward(packed[None], packed[None], packed[None], None, places, places, 9, 9, 0.0, 0, True))[1:] == [
        ((3, 4, 32), (128, 32, 1), umbra.float32), seed, seed, 9, 9]


def test_attention_of_accelerators_has_gradients():
    def gradients(function):
        q, k = cuda(2, 4, 8, 16, dtype=umbra.float16, requires_grad=True), cuda(2, 4, 12, 16, dtype=umbra.float16, requires_grad=True)
        names = calls(lambda: function(q, k)[0].sum().backward())
        assert q.grad.shape == q.shape and k.grad.shape == k.shape
        return names
    for function in (lambda q, k: aten._scaled_dot_product_flash_attention(q, k, k), lambda q, k: aten._scaled_dot_product_efficient_attention(q, k, k, None, True),
                     lambda q, k: aten._scaled_dot_product_cudnn_attention(q, k, k, None, True)):
        assert any("attention_backward" in name for name in gradients(function))


def test_recurrent_cells_are_one_operator_and_train():
    for cell, name in ((umbra.nn.LSTMCell(8, 16).to("cuda"), "lstm"), (umbra.nn.GRUCell(8, 16).to("cuda"), "gru")):
        def train():
            out = cell(cuda(3, 8))
            out = out[0] if isinstance(out, tuple) else out
            assert out.shape == (3, 16) and str(out.device) == "cuda:0"
            out.sum().backward()
        names = calls(train)
        assert f"aten._thnn_fused_{name}_cell.default" in names and any(f"_thnn_fused_{name}_cell_backward" in name_ for name_ in names)
        assert cell.weight_ih.grad.shape == cell.weight_ih.shape and cell.bias_hh.grad.shape == cell.bias_hh.shape
    assert [tuple(t.shape) for t in aten._thnn_fused_gru_cell(cuda(3, 48), cuda(3, 48), cuda(3, 16))] == [(3, 16), (3, 80)]


def test_recurrent_layers_of_the_library():
    x, h, c, weights = cuda(5, 3, 8), cuda(2, 3, 7), cuda(2, 3, 16), [cuda(64, 8), cuda(64, 7), cuda(64), cuda(64)]
    run = lambda x, h, c, mode, projection, first, both, batches: aten._cudnn_rnn(  # noqa: E731
        x, weights, 4, None, h, c, mode, 16, projection, 1, first, 0.0, True, both, batches, None)
    assert [getattr(t, "shape", t) for t in run(x, h, c, 2, 7, False, True, [])] == [(5, 3, 14), (2, 3, 7), (2, 3, 16), (0,), None]
    assert [getattr(t, "shape", t) for t in run(cuda(3, 5, 8), cuda(1, 3, 16), None, 3, 0, True, False, [])] == [(3, 5, 16), (1, 3, 16), (0,), (0,), None]
    assert run(cuda(12, 8), cuda(1, 3, 16), cuda(1, 3, 16), 2, 0, False, False, [3, 3, 2, 2, 2])[0].shape == (12, 16)


@pytest.mark.parametrize("kind,options", [
    (umbra.nn.LSTM, {}), (umbra.nn.LSTM, {"proj_size": 2, "num_layers": 2, "bidirectional": True}), (umbra.nn.GRU, {"batch_first": True, "dropout": 0.5, "num_layers": 2}),
    (umbra.nn.RNN, {"bias": False, "nonlinearity": "relu"})], ids=["lstm", "projected", "gru", "rnn"])
def test_recurrent_networks_are_one_call_of_the_library_and_train(kind, options):
    network, x = kind(4, 3, **options).to("cuda"), cuda(5, 2, 4).requires_grad_()
    on_cpu = kind(4, 3, **options)

    def train():
        out, state = network(x)
        with_data, _ = on_cpu(umbra.ones(5, 2, 4))
        assert out.shape == with_data.shape and str(out.device) == "cuda:0"
        out.sum().backward()
    names = calls(train)
    assert "aten._cudnn_rnn.default" in names and "aten._cudnn_rnn_backward.default" in names and not any("thnn" in name for name in names)
    assert x.grad.shape == x.shape and all(p.grad.shape == p.shape for p in network.parameters())
    assert aten.cudnn_is_acceptable(x) and not aten.cudnn_is_acceptable(umbra.ones(2)) and not aten.cudnn_is_acceptable(cuda(0))


def test_what_only_an_accelerator_computes_is_refused_with_data():
    import umbra._subclasses.fake_tensor as fakes
    with fakes.unset_fake_temporarily(), pytest.raises(NotImplementedError, match="Could not run 'aten::_thnn_fused_lstm_cell' with arguments from the 'CPU' backend"):
        aten._thnn_fused_lstm_cell(umbra.ones(3, 64), umbra.ones(3, 64), umbra.ones(3, 16))
