"""Biases of attention that are known by their form: causal ones, aligned to either corner of the scores."""
import enum
import warnings

import umbra
from umbra.nn import functional as F


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the triangle is aligned to, where there are more keys than queries."""
    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(umbra.Tensor):
    """A mask of `seq_len_q` by `seq_len_kv` for `scaled_dot_product_attention`; made where a kernel needs it as a tensor."""

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        super().__init__()
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2)

    def _materialize(self, device=None):
        offset = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return umbra.ones(self.seq_len_q, self.seq_len_kv, dtype=umbra.bool, device=device).tril(offset)

    @staticmethod
    def _attend(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        upper_left = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT
        mask = None if upper_left else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, upper_left, scale=scale, enable_gqa=enable_gqa)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            return cls._attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self):
        return repr(self._materialize())


def _causal(name, variant, size):
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size):
    """The causal mask that `is_causal=True` stands for: query i sees the keys up to i."""
    return _causal("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size):
    """The causal mask whose last query sees all keys."""
    return _causal("causal_lower_right", CausalVariant.LOWER_RIGHT, size)
