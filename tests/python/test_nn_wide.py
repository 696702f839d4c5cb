"""Layers with many parts: their values are those of torch 2.15 with the same seed."""
import copy
import pickle
import warnings

import pytest

import umbra
from umbra import nn
from umbra.nn import functional as F
from umbra.nn.utils import parametrizations


def close(tensor, values):
    return umbra.allclose(tensor.detach().flatten()[:len(values)], umbra.tensor(values), atol=6e-5)


@pytest.fixture(autouse=True)
def seeded():
    umbra.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_transformer():
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
    y = model(umbra.randn(3, 2, 8), umbra.randn(4, 2, 8), tgt_mask=model.generate_square_subsequent_mask(4))
    assert close(y, [-0.3665, -0.7869, 0.0308, -0.0716])
    with pytest.raises(RuntimeError, match="batch number of src and tgt"):
        model(umbra.randn(3, 2, 8), umbra.randn(4, 1, 8))
    with pytest.raises(RuntimeError, match="equal to d_model"):
        model(umbra.randn(3, 2, 6), umbra.randn(4, 2, 6))


def test_a_causal_decoder_does_not_look_ahead():
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)
    decoder, memory, x = nn.TransformerDecoder(layer, 2), umbra.randn(3, 1, 8), umbra.randn(4, 1, 8)
    changed = x.clone()
    changed[3] += 1
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    assert umbra.equal(decoder(x, memory, mask)[:3], decoder(changed, memory, mask)[:3])
    assert umbra.allclose(decoder(x, memory, mask), decoder(x, memory, mask == float("-inf")), atol=1e-6)


@pytest.mark.parametrize("options, out, weights", [
    ({"add_bias_kv": True}, [0.0112, 0.0222, 0.0473, 0.1126], [0.183, 0.2745, 0.3003, 0.0]),
    ({"add_zero_attn": True}, [-0.0232, 0.3735, -0.2273, 0.3414], [0.2184, 0.2507, 0.3134, 0.0]),
    ({"kdim": 4, "vdim": 6}, [-0.0667, 0.3427, -0.2913, 0.6474], [0.289, 0.5014, 0.2095, 0.0]),
])
def test_attention(options, out, weights):
    model = nn.MultiheadAttention(8, 2, **options)
    q, k, v = umbra.randn(4, 2, 8), umbra.randn(5, 2, options.get("kdim", 8)), umbra.randn(5, 2, options.get("vdim", 8))
    padding = umbra.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]).bool()
    result, by = model(q, k, v, key_padding_mask=padding)
    assert close(result, out) and close(by, weights)
    assert umbra.allclose(model(q, k, v, key_padding_mask=padding, need_weights=False)[0], result, atol=1e-6)


def test_attention_refuses_what_does_not_fit():
    model = nn.MultiheadAttention(8, 2)
    x = umbra.randn(4, 2, 8)
    with pytest.raises(AssertionError, match="expected `key` and `value` to be 3-D"):
        model(x, x[0], x[0])
    with pytest.raises(RuntimeError, match="shape of the 2D attn_mask"):
        model(x, x, x, attn_mask=umbra.zeros(3, 4))
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        model(x, x, x, is_causal=True)


def test_adaptive_softmax():
    model, x = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0), umbra.randn(5, 8)
    out = model(x, umbra.tensor([0, 4, 9, 2, 11]))
    assert close(out.output, [-1.8308, -4.1138, -3.4843, -1.4017]) and close(model.log_prob(x), [-1.8308, -1.5571, -1.9807, -2.5714])
    assert model.predict(x).tolist() == [1, 2, 2, 0, 2]
    assert umbra.allclose(model.log_prob(x).exp().sum(1), umbra.ones(5))
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 11\]"):
        model(x[:1], umbra.tensor([12]))


def test_norms_of_weights():
    assert close(parametrizations.spectral_norm(nn.Linear(4, 3)).weight, [-0.0055, 0.3927, -0.6025, -0.5387])
    umbra.manual_seed(0)
    assert close(nn.utils.spectral_norm(nn.Linear(4, 3))(umbra.ones(1, 4)), [-1.6002, 0.3839, -0.558])
    for make, remove in ((nn.utils.spectral_norm, nn.utils.remove_spectral_norm), (nn.utils.weight_norm, nn.utils.remove_weight_norm)):
        model = make(nn.Linear(4, 3)).eval()
        y = model(umbra.ones(1, 4))
        assert "weight" not in dict(model.named_parameters()) and umbra.allclose(remove(model)(umbra.ones(1, 4)), y)
        assert sorted(name for name, _ in model.named_parameters()) == ["bias", "weight"]
        with pytest.raises(RuntimeError, match="two .*_norm hooks"):
            make(make(nn.Linear(4, 3)))


def test_orthogonal_weights():
    weight = parametrizations.orthogonal(nn.Linear(6, 3)).weight
    assert close(weight, [-0.0057, 0.4082, -0.6263, -0.56]) and umbra.allclose(weight @ weight.T, umbra.eye(3), atol=1e-5)
    umbra.manual_seed(0)
    assert close(parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="cayley").weight, [-0.0072, 0.6789, -0.6537, 0.3343])
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="magic")


def test_fusion_with_batch_norm():
    conv, norm, x = nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval(), umbra.randn(1, 3, 5, 5)
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    assert umbra.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-5)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        nn.utils.fuse_conv_bn_eval(conv.train(), norm)


@pytest.mark.parametrize("bias", [False, True])
def test_what_is_fused_with_batch_norm_keeps_its_type(bias):
    for layer, norm, fuse in ((nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4), nn.utils.fuse_conv_bn_eval),
                              (nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4), nn.utils.fuse_linear_bn_eval)):
        for kind in (umbra.bfloat16, umbra.float64):
            fused = fuse(layer.to(kind).eval(), norm.eval())
            assert fused.weight.dtype == fused.bias.dtype == kind


def test_lazy_modules():
    model = nn.LazyConv2d(4, 3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        model.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        model.weight + 1
    twin = copy.deepcopy(model)
    model(umbra.ones(1, 2, 5, 5))
    assert type(model) is nn.Conv2d and close(model.weight, [-0.0018, 0.1264, -0.194, -0.1735]) and model.in_channels == 2
    assert type(twin) is nn.LazyConv2d
    loaded = nn.LazyLinear(3)
    loaded.load_state_dict(nn.Linear(2, 3).state_dict())
    assert loaded.weight.shape == (3, 2)
    loaded(umbra.ones(1, 2))
    assert type(loaded) is nn.Linear and loaded.in_features == 2
    norm = nn.LazyBatchNorm1d()
    norm(umbra.randn(3, 4))
    assert type(norm) is nn.BatchNorm1d and norm.running_mean.shape == (4,)


def test_hooks_of_all_modules():
    from umbra.nn.modules import module
    seen = []
    handles = [module.register_module_forward_hook(lambda m, args, out: seen.append("forward")),
               module.register_module_full_backward_hook(lambda m, grad_in, grad_out: seen.append("backward")),
               module.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name))]
    try:
        nn.Linear(1, 1)(umbra.ones(1, 1, requires_grad=True)).sum().backward()
        with pytest.raises(RuntimeError, match="both regular backward hooks and full"):
            module.register_module_backward_hook(lambda *args: None)
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["weight", "bias", "forward", "backward"]


def test_modules_are_pickled_with_all_they_have():
    model = nn.Sequential(nn.LSTM(2, 2), nn.MultiheadAttention(2, 1), nn.ParameterDict({"a": umbra.ones(1)}), nn.ReLU6())
    back = pickle.loads(pickle.dumps(model))
    assert str(back) == str(model) and all(umbra.equal(a, b) for a, b in zip(back.state_dict().values(), model.state_dict().values()))
    assert umbra.equal(back[0](umbra.ones(1, 2))[0], model[0](umbra.ones(1, 2))[0])


def test_einsum_with_lists_of_subscripts():
    a, b = umbra.randn(2, 3), umbra.randn(3, 4)
    assert umbra.equal(umbra.einsum(a, [0, 1], b, [1, 2], [0, 2]), umbra.einsum("ij,jk->ik", a, b))
    assert umbra.equal(umbra.einsum(a, [..., 0], [0, ...]), a.T)
    with pytest.raises(ValueError, match="valid range"):
        umbra.einsum(a, [0, 52])


def test_linear_cross_entropy():
    model, x, target = nn.LinearCrossEntropyLoss(8, 3, bias=True), umbra.randn(4, 8), umbra.tensor([0, 1, 2, 2])
    assert umbra.allclose(model(x, target), F.cross_entropy(model.linear(x), target))
    with pytest.raises(TypeError, match="options"):
        F.linear_cross_entropy(x, model.linear.weight, target, options=object())
    with pytest.raises(RuntimeError, match=r"expected linear_bias shape \(3,\), got \(2,\)"):
        F.linear_cross_entropy(x, model.linear.weight, target, linear_bias=umbra.ones(2))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("probabilities", [False, True])
def test_linear_cross_entropy_in_chunks(reduction, smoothing, probabilities):
    umbra.manual_seed(0)
    x, w, b, classes = umbra.randn(5, 4), umbra.randn(7, 4), umbra.randn(7), umbra.rand(7)
    target = umbra.rand(5, 7).softmax(1) if probabilities else umbra.tensor([0, 6, 3, 2, 2])
    results = []
    for options in (None, nn.LinearCrossEntropyOptions(batch_chunk_size=2), nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:2")):
        leaves = [t.clone().requires_grad_() for t in (x, w, b)]
        loss = F.linear_cross_entropy(leaves[0], leaves[1], target, linear_bias=leaves[2], weight=classes, reduction=reduction,
                                      ignore_index=None if probabilities else 3, label_smoothing=smoothing, options=options)
        results.append([loss, *umbra.autograd.grad(loss.sum(), leaves)])
    for chunked in results[1:]:
        for have, expected in zip(chunked, results[0]):
            umbra.testing.assert_close(have, expected)


def test_options_of_linear_cross_entropy_are_checked():
    for wrong in ({"batch_chunk_size": 0}, {"chunking_method": "aspect_ratio:0"}, {"chunking_method": "other"}, {"acc_policy": "fast"},
                  {"acc_dtype": umbra.int32}):
        with pytest.raises(ValueError):
            nn.LinearCrossEntropyOptions(**wrong)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions_by_themselves(rank):
    umbra.manual_seed(0)
    x, w = umbra.randn(2, 4, *[6] * rank, requires_grad=True), umbra.randn(6, 2, *[3] * rank, requires_grad=True)
    options = dict(stride=2, padding=1, groups=2)
    out = getattr(F, f"conv{rank}d")(x, w, **options)
    grad = umbra.randn_like(out)
    of_input, of_weight = umbra.autograd.grad(out, (x, w), grad)
    assert umbra.allclose(getattr(nn.grad, f"conv{rank}d_input")(x.shape, w, grad, **options), of_input, atol=1e-5)
    assert umbra.allclose(getattr(nn.grad, f"conv{rank}d_weight")(x, w.shape, grad, **options), of_weight, atol=1e-5)


def test_keywords_for_factories_are_told_from_others():
    assert nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": umbra.float64}}) == {"device": "cpu", "dtype": umbra.float64}
    assert nn.factory_kwargs(None) == {}
    for wrong in ({"bias": True}, {"device": "cpu", "factory_kwargs": {"device": "cpu"}}):
        with pytest.raises(TypeError):
            nn.factory_kwargs(wrong)
