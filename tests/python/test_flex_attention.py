"""Attention by functions of scores."""
import pytest

import umbra
from umbra.nn.attention.flex_attention import AuxRequest, and_masks, create_block_mask, create_mask, flex_attention, or_masks
from umbra.nn.functional import scaled_dot_product_attention


def causal(b, h, q, kv):
    return q >= kv


def tensors(*shapes, dtype=umbra.float32):
    umbra.manual_seed(0)
    return [umbra.randn(*shape, dtype=dtype) for shape in shapes]


def test_without_functions_it_is_attention():
    q, k, v = tensors(*[(2, 3, 8, 4)] * 3)
    assert umbra.allclose(flex_attention(q, k, v), scaled_dot_product_attention(q, k, v), atol=1e-6)
    _, lse = flex_attention(q, k, v, return_lse=True, scale=.3)
    assert umbra.allclose(lse, (q @ k.transpose(-2, -1) * .3).logsumexp(-1), atol=1e-6)
    assert umbra.equal(flex_attention(q, k, v, scale=.3, return_aux=AuxRequest(lse=True))[1].lse, lse)


def test_masks_and_scores_are_functions_of_places():
    q, k, v = tensors(*[(1, 2, 8, 4)] * 3)
    mask = create_block_mask(causal, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    assert umbra.allclose(flex_attention(q, k, v, block_mask=mask), scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-6)
    distance = (umbra.arange(8)[:, None] - umbra.arange(8)).float()
    biased = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j))
    assert umbra.allclose(biased, scaled_dot_product_attention(q, k, v, attn_mask=distance), atol=1e-5)


def test_blocks_of_a_mask():
    mask = create_block_mask(causal, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]] and mask.kv_indices.tolist() == [[[[0, 1], [1, 0]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]] and mask.sparsity() == 25 and mask.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    assert str(mask) == "BlockMask(shape=(1, 1, 8, 8), sparsity=25.00%, \n(0, 0)\n██  \n████\n)"
    window = create_block_mask(and_masks(causal, lambda b, h, i, j: i - j < 3), 2, None, 16, 16, device="cpu", BLOCK_SIZE=8)
    assert window.shape == (2, 1, 16, 16) and window[0].shape == (1, 1, 16, 16)
    assert create_mask(or_masks(causal, lambda b, h, i, j: j == 3), 1, 1, 2, 4, device="cpu").tolist() == [[[[True, False, False, True], [True, True, False, True]]]]


def test_gradients_reach_what_the_functions_close_over():
    q, k, v, bias = (t.requires_grad_() for t in tensors((1, 1, 4, 2), (1, 1, 4, 2), (1, 1, 4, 2), (4,), dtype=umbra.float64))

    def attend(q, k, v, bias):
        mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i > 0), None, None, 4, 4, device="cpu", BLOCK_SIZE=4)
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[i - j], block_mask=mask)
    assert umbra.autograd.gradcheck(attend, (q, k, v, bias))
    assert attend(q, k, v, bias)[0, 0, 0].tolist() == [0, 0]  # it sees nothing


def test_heads_in_groups_and_what_is_refused():
    q, k, v = tensors((1, 4, 8, 4), (1, 2, 8, 4), (1, 2, 8, 4))
    whole = flex_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))
    assert umbra.equal(flex_attention(q, k, v, enable_gqa=True), whole)
    with pytest.raises(ValueError, match="same number of heads"):
        flex_attention(q, k, v)
    with pytest.raises(NotImplementedError, match="4D"):
        flex_attention(q[0], k, v)
    longer = create_block_mask(causal, None, None, 16, 16, device="cpu", BLOCK_SIZE=4)
    with pytest.raises(RuntimeError, match="larger length"):
        flex_attention(k, k, v, block_mask=longer)
    assert flex_attention(k, k, v, block_mask=longer._adjust(8, 8)).shape == k.shape


def test_a_mask_that_is_to_be_made_by_a_compiled_function_is_the_same():
    def causal(b, h, q, k):
        return q >= k
    with pytest.warns(DeprecationWarning, match="_compile flag on create_block_mask"):
        mask = create_block_mask(causal, None, None, 256, 256, device="cpu", _compile=True)
    assert umbra.equal(mask.to_dense(), create_block_mask(causal, None, None, 256, 256, device="cpu").to_dense())
