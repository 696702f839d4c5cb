"""Attention with projections of queries, keys and values, over several heads."""
import math
import warnings

import umbra
from umbra import _C
from umbra.overrides import has_torch_function, overridable


def _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch; what does not fit together is refused."""
    if query.dim() not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    rank = 3 if batched else 2
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors "
                             "respectively")
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found {key_padding_mask.dim()}-D "
                             "tensor instead")
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead")
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if attn_mask.shape != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def as_addend(mask, name, dtype, other=None, other_name="attn_mask"):
    """A mask of bools as what is added to scores: minus infinity where it is True. `other` is a mask that should be of the same type."""
    if mask is None:
        return None
    if mask.dtype != umbra.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=4)
    if mask.is_floating_point():
        return mask
    return umbra.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


def may_fuse(tensors):
    """Whether a layer may run as one operator that has no derivative. What is recorded is made of plain ones."""
    return (umbra.backends.mha.get_fastpath_enabled() and not umbra.is_autocast_enabled() and not _C._is_tracing()
            and not has_torch_function(tensors) and not any(tensor.is_nested for tensor in tensors)
            and all(tensor.device.type in ("cpu", "cuda") for tensor in tensors)
            and not (umbra.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)))


def _project_together(query, key, value, weight, bias):
    """The three projections by one matrix, with one product where the inputs are one."""
    from umbra.nn.functional import linear
    if key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    size = query.size(-1)
    if key is value:
        if query is key:
            packed = linear(query, weight, bias)
            packed = packed.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return packed[0], packed[1], packed[2]
        w_q, w_kv = weight.split([size, size * 2])
        b_q, b_kv = (None, None) if bias is None else bias.split([size, size * 2])
        q, packed = linear(query, w_q, b_q), linear(key, w_kv, b_kv)
        packed = packed.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return q, packed[0], packed[1]
    weights = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _project_apart(query, key, value, weights, bias):
    """The three projections by matrices of their own."""
    from umbra.nn.functional import linear
    if key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if any(weight is None for weight in weights):
        raise AssertionError("use_separate_proj_weight is True but one of q_proj_weight, k_proj_weight and v_proj_weight is None")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _check_mask_shape(mask, batch, heads, target, source):
    if mask.dim() == 2:
        if mask.shape != (target, source):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(target, source)}.")
        return mask.unsqueeze(0)
    if mask.dim() != 3:
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    expected = (batch * heads, target, source)
    if mask.shape != expected:
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {expected}.")
    return mask


def _merged(mask, padding, batch, heads, source):
    if padding is None:
        return mask
    for d, size in enumerate((batch, source)):
        if padding.shape[d] != size:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {size}, but got {padding.shape[d]}")
    padding = padding.view(batch, 1, 1, source).expand(-1, heads, -1, -1).reshape(batch * heads, 1, source)
    return padding if mask is None else mask + padding


def _by_heads(x, static, rows, head_dim, name):
    """Keys or values with the heads in front; those that are given ready (`static`) have to fit."""
    if static is None:
        return x.view(x.shape[0], rows, head_dim).transpose(0, 1)
    if static.size(0) != rows:
        raise AssertionError(f"expecting {name}.size(0) of {rows}, but got {static.size(0)}")
    if static.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static


def _weighted(q, k, v, mask, dropout_p):
    """What attention gives, and the weights it gives it by."""
    from umbra.nn.functional import dropout, softmax
    scaled = q * math.sqrt(1.0 / float(q.size(-1)))
    scores = umbra.bmm(scaled, k.transpose(-2, -1)) if mask is None else umbra.baddbmm(mask, scaled, k.transpose(-2, -1))
    weights = softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, p=dropout_p)
    return umbra.bmm(weights, v), weights


def _fused(q, k, v, mask, dropout_p, is_causal, batch, heads, target, source, head_dim):
    """What attention gives, by the operator that keeps no weights; sequences come first. Sizes are given, since a trace records who asks for one."""
    from umbra.nn.functional import scaled_dot_product_attention
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.size(0) == 1 and mask.dim() == 3 else mask.view(batch, heads, -1, source)
    q, k, v = q.view(batch, heads, target, head_dim), k.view(batch, heads, source, head_dim), v.view(batch, heads, source, head_dim)
    return scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal).permute(2, 0, 1, 3)


def _one_wider(masks):
    """The masks for one more key, which nothing bars."""
    from umbra.nn.functional import pad
    return [None if mask is None else pad(mask, (0, 1)) for mask in masks]


def _causal(mask, is_causal, padding, need_weights, dtype):
    """The mask as what is added, and whether the kernel is to mask by itself what comes later."""
    if is_causal and mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    if is_causal and padding is None and not need_weights:
        return None, True
    return as_addend(mask, "attn_mask", dtype), is_causal and padding is None


def _size_of_head(size, expected, heads):
    if size != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {size}")
    head_dim = size.div(heads, rounding_mode="trunc") if isinstance(size, umbra.Tensor) else size // heads  # a tensor in traces
    if head_dim * heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {heads}")
    return head_dim


def _with_biases(k, v, batch, bias_k, bias_v, static_k, static_v):
    """Keys and values with one more of each, which is learnt."""
    if bias_k is None or bias_v is None:
        raise AssertionError("bias_k and bias_v have to be set together")
    if static_k is not None or static_v is not None:
        raise AssertionError("bias cannot be added to static key or value.")
    return umbra.cat([k, bias_k.repeat(1, batch, 1)]), umbra.cat([v, bias_v.repeat(1, batch, 1)])


@overridable
def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
                                 out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
                                 static_v=None, average_attn_weights=True, is_causal=False):
    """What MultiheadAttention computes, from its weights: the attention, and its weights or None. Sequences come first, batches second."""
    from umbra.nn.functional import linear
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same, shared = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = key if shared else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, size = query.shape
    key_padding_mask = as_addend(key_padding_mask, "key_padding_mask", query.dtype, attn_mask)
    attn_mask, is_causal = _causal(attn_mask, is_causal, key_padding_mask, need_weights, query.dtype)
    head_dim = _size_of_head(size, embed_dim_to_check, num_heads)
    if use_separate_proj_weight:
        q, k, v = _project_apart(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        q, k, v = _project_together(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_mask_shape(attn_mask, batch, num_heads, target, key.shape[0])
    masks = [attn_mask, key_padding_mask]
    if bias_k is not None or bias_v is not None:
        k, v = _with_biases(k, v, batch, bias_k, bias_v, static_k, static_v)
        masks = _one_wider(masks)
    rows = batch * num_heads
    q = q.view(target, rows, head_dim).transpose(0, 1)
    k, v = _by_heads(k, static_k, rows, head_dim, "static_k"), _by_heads(v, static_v, rows, head_dim, "static_v")
    if add_zero_attn:
        k, v = (umbra.cat([x, umbra.zeros((rows, 1, head_dim), dtype=x.dtype, device=x.device)], dim=1) for x in (k, v))
        masks = _one_wider(masks)
    source = k.size(1)
    mask = _merged(*masks, batch, num_heads, source)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        out, weights = _weighted(q, k, v, mask, dropout_p)
        out = out.transpose(0, 1).reshape(target * batch, size)
    else:
        out = _fused(q, k, v, mask, dropout_p, is_causal, batch, num_heads, target, source, head_dim).reshape(batch * target, size)
        weights = None
    out = linear(out, out_proj_weight, out_proj_bias)
    out = out.view(target, batch, out.size(1))
    if weights is not None:
        weights = weights.view(batch, num_heads, target, source)
        weights = weights.mean(dim=1) if average_attn_weights else weights
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)
