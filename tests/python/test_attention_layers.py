"""Attention and encoder layers: one operator each for inference, and what becomes of padding."""
import math
import warnings

import pytest
import umbra as torch
import umbra.nn.functional as F
from umbra import nn
from umbra.nn.attention.bias import causal_lower_right, causal_upper_left

PADDED = torch.tensor([[False, False, True], [False, False, False]])


def encoder(layers=2, **options):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), layers, **options).eval()


def test_an_encoder_for_inference_gives_zeros_for_padding_and_the_same_elsewhere():
    model, x = encoder(), torch.randn(2, 3, 4)
    trained = model(x, src_key_padding_mask=PADDED)
    with torch.no_grad():
        out = model(x, src_key_padding_mask=PADDED)
        other = encoder(enable_nested_tensor=False)(x, src_key_padding_mask=PADDED)
    assert torch.equal(out[0, 2], torch.zeros(4)) and not torch.equal(trained[0, 2], out[0, 2])
    torch.testing.assert_close(out[~PADDED], trained[~PADDED])
    torch.testing.assert_close(other, trained.detach())


def test_padding_that_is_not_at_the_end_stays_in():
    model, x = encoder(), torch.randn(2, 3, 4)
    first = torch.tensor([[True, False, False], [False, False, False]])
    with torch.no_grad():
        out = model(x, src_key_padding_mask=first)
    torch.testing.assert_close(out, model(x, src_key_padding_mask=first).detach())


def test_why_padding_is_not_left_out_is_said():
    for options, reason in ((dict(nhead=1), "num_heads is odd"), (dict(nhead=2, norm_first=True), "norm_first was True"),
                            (dict(nhead=2, bias=False), "was passed bias=False"), (dict(nhead=2, batch_first=False), "batch_first was not True")):
        layer = nn.TransformerEncoderLayer(4, dim_feedforward=8, **{"batch_first": True, **options})
        with pytest.warns(UserWarning, match=reason):
            assert not nn.TransformerEncoder(layer, 1).use_nested_tensor


def test_what_attends_to_nothing_is_nan_for_inference_and_zero_otherwise():
    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True).eval(), torch.randn(1, 2, 4)
    hidden = torch.tensor([[True, True]])
    with torch.no_grad():
        assert torch.isnan(attention(x, x, x, key_padding_mask=hidden, need_weights=False)[0]).all()
    out = attention(x, x, x, key_padding_mask=hidden, need_weights=False)[0]
    torch.testing.assert_close(out, attention.out_proj.bias.expand(1, 2, 4))


@pytest.mark.parametrize("masks", [{}, dict(key_padding_mask=PADDED), dict(attn_mask=torch.triu(torch.ones(3, 3), 1).bool()),
                                   dict(attn_mask=torch.triu(torch.ones(3, 3), 1).bool(), key_padding_mask=PADDED)])
@pytest.mark.parametrize("average", [True, False])
def test_attention_for_inference_is_attention(masks, average):
    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True).eval(), torch.randn(2, 3, 4)
    with torch.no_grad():
        fused = attention(x, x, x, average_attn_weights=average, **masks)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            plain = attention(x, x, x, average_attn_weights=average, **masks)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    torch.testing.assert_close(fused, plain)


def test_a_masked_softmax_is_nan_where_all_is_hidden():
    out = torch._masked_softmax(torch.zeros(2, 3), torch.tensor([[True] * 3, [False, False, True]]), -1, 2)
    assert torch.isnan(out[0]).all() and out[1].tolist() == [0.5, 0.5, 0.0]
    for shape, mask, kind, text in (((2, 3, 4, 4), (4, 4), 1, r"should be \(B, L\)"), ((2, 3, 4, 4), (2, 4), 0, r"should be \(L, L\)"),
                                    ((3, 4, 4), (4, 4), 0, "should match input shape")):
        with pytest.raises(RuntimeError, match=text):
            torch._masked_softmax(torch.zeros(shape), torch.zeros(mask, dtype=torch.bool), -1, kind)


def test_masks_of_different_types_are_warned_of():
    attention, x = nn.MultiheadAttention(4, 2), torch.randn(3, 2, 4)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        attention(x, x, x, key_padding_mask=torch.zeros(2, 3), attn_mask=torch.zeros(3, 3, dtype=torch.bool))


def test_a_scripted_encoder_is_the_encoder():
    model, x = encoder(1), torch.randn(2, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(torch.jit.script(model)(x), model(x))
    assert not math.isnan(model(x).sum().item())


def test_causal_biases_are_masks_of_their_form():
    q, k, v = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    for bias, offset in ((causal_upper_left(3, 5), 0), (causal_lower_right(3, 5), 2)):
        mask = torch.ones(3, 5, dtype=torch.bool).tril(offset)
        assert repr(bias) == repr(mask)
        torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, bias), F.scaled_dot_product_attention(q, k, v, mask))
        with pytest.raises(ValueError, match="should not be used with causal=True"):
            F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=True)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(3, 2)


def test_what_is_no_backend_of_attention_is_refused():
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list of SDPBackend instances, got int"):
        with torch.nn.attention.sdpa_kernel(3):
            pass
    assert int(torch.nn.attention.SDPBackend.MATH) == 0
