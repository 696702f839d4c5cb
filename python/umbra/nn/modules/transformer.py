"""Transformers: layers of encoders and decoders, stacks of them, and both together."""
import copy
import warnings
from typing import Optional

import umbra
from umbra import Tensor
from umbra.nn import functional as F
from umbra.nn import init
from umbra.nn._attention import as_addend, may_fuse
from umbra.nn.modules.activation import MultiheadAttention
from umbra.nn.modules.container import ModuleList
from umbra.nn.modules.dropout import Dropout
from umbra.nn.modules.linear import Linear
from umbra.nn.modules.module import Module
from umbra.nn.modules.normalization import LayerNorm


def _get_activation_fn(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _causal_mask(size: int, device: Optional[umbra.device] = None, dtype: Optional[umbra.dtype] = None) -> Tensor:
    """Minus infinity above the diagonal: no place sees those behind it."""
    return umbra.triu(umbra.full([size, size], float("-inf"), device=device, dtype=dtype), diagonal=1)


def _is_causal(mask: Optional[Tensor], is_causal: Optional[bool], size: int) -> bool:
    """Whether a mask is the causal one; `is_causal` says so where it is not None."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    causal = _causal_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _copies(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _length(sequences: Tensor, batch_first: bool) -> int:
    """How long sequences are."""
    return sequences.size(1 if batch_first and sequences.dim() == 3 else 0)


def _why_padding_stays(layer):
    """What about an encoder layer keeps a stack of them from leaving padding out of what it computes; nothing where it may."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = ((layer.norm_first, ".norm_first was True"),
               (not attention.batch_first, ".self_attn.batch_first was not True(use batch_first for better inference performance)"),
               (not attention._qkv_same_embed_dim, ".self_attn._qkv_same_embed_dim was not True"),
               (attention.in_proj_bias is None, ".self_attn was passed bias=False"),
               (not layer.activation_relu_or_gelu, ".activation_relu_or_gelu was not True"),
               (layer.norm1.eps != layer.norm2.eps, ".norm1.eps was not equal to encoder_layer.norm2.eps"),
               (attention.num_heads % 2 == 1, ".self_attn.num_heads is odd"))
    return next((text for holds, text in reasons if holds), "")


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, then two linear maps."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = 1 if self.activation is F.relu else 2 if self.activation is F.gelu else 0

    def _fused(self, src, src_mask, src_key_padding_mask):
        """The whole layer as one operator for inference, or None where it is none."""
        attention, norm1, norm2, linear1, linear2 = self.self_attn, self.norm1, self.norm2, self.linear1, self.linear2
        if (self.training or src.dim() != 3 or not attention.batch_first or attention.in_proj_bias is None or not attention._qkv_same_embed_dim
                or not self.activation_relu_or_gelu or norm1.eps != norm2.eps or attention.num_heads % 2
                or any(part._forward_hooks or part._forward_pre_hooks for part in self.modules())):
            return None
        projections = (attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias)
        others = (norm1.weight, norm1.bias, norm2.weight, norm2.bias, linear1.weight, linear1.bias, linear2.weight, linear2.bias)
        if not may_fuse((src, *projections, *others)):
            return None
        mask, kind = attention.merge_masks(src_mask, src_key_padding_mask, src)
        return umbra._transformer_encoder_layer_fwd(src, attention.embed_dim, attention.num_heads, *projections, self.activation_relu_or_gelu == 2,
                                                    self.norm_first, norm1.eps, *others, mask, kind)

    def forward(self, src: Tensor, src_mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None, is_causal: bool = False) -> Tensor:
        if not umbra.jit.is_scripting():
            src_key_padding_mask = as_addend(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
            src_mask = as_addend(src_mask, "src_mask", src.dtype)
            fused = self._fused(src, src_mask, src_key_padding_mask)
            if fused is not None:
                return fused
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], is_causal: bool = False) -> Tensor:
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(encoder_layer, num_layers), num_layers, norm
        self.enable_nested_tensor, self.use_nested_tensor, self.mask_check = enable_nested_tensor, enable_nested_tensor, mask_check
        reason = _why_padding_stays(encoder_layer) if enable_nested_tensor else ""
        if reason:
            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer{reason}", stacklevel=2)
            self.use_nested_tensor = False

    def _leaves_padding_out(self, src, mask, padding):
        """Whether the layers see sequences without their padding, so that its places are zeros: for inference, where it stands at the end."""
        first = self.layers[0]
        if (not self.use_nested_tensor or first.training or src.dim() != 3 or padding is None or mask is not None
                or (self.mask_check and umbra.compiler.is_compiling())):
            return False
        attention, norms, maps = first.self_attn, (first.norm1, first.norm2), (first.linear1, first.linear2)
        parts = (attention.out_proj, *norms, *maps)
        tensors = (attention.in_proj_weight, attention.in_proj_bias, *(part.weight for part in parts), *(part.bias for part in parts))
        if not may_fuse((src, *tensors)) or isinstance(src, umbra._C.FakeTensor):
            return False
        if padding.dim() != 2 or padding.shape != src.shape[:2]:
            raise RuntimeError("Mask size should match input size")
        hidden = padding.bool()
        return not self.mask_check or bool((hidden[:, :-1] <= hidden[:, 1:]).all())

    def forward(self, src: Tensor, mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None, is_causal: Optional[bool] = None) -> Tensor:
        leaves_out = False
        if not umbra.jit.is_scripting():
            src_key_padding_mask = as_addend(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
            mask = as_addend(mask, "mask", src.dtype)
            leaves_out = self._leaves_padding_out(src, mask, src_key_padding_mask)
        output = src
        is_causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if leaves_out:
            assert src_key_padding_mask is not None
            output = output.masked_fill((src_key_padding_mask != 0).unsqueeze(-1), 0.0)
        if self.norm is not None:
            output = self.norm(output)
        return output


class TransformerDecoderLayer(Module):
    """Attention to what was produced, attention to the encoder's output, and two linear maps."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **options)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **options)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))
        self.activation = _get_activation_fn(activation)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], is_causal: bool = False) -> Tensor:
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0]
        return self.dropout1(x)

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], is_causal: bool = False) -> Tensor:
        x = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """Decoder layers, one after the other."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(decoder_layer, num_layers), num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None, tgt_is_causal: Optional[bool] = None,
                memory_is_causal: bool = False) -> Tensor:
        output = tgt
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        for layer in self.layers:
            output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                           memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
        if self.norm is not None:
            output = self.norm(output)
        return output


class Transformer(Module):
    """An encoder and a decoder."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation=F.relu,
                 custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None,
                 dtype=None):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **options), num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **options), num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Optional[Tensor] = None, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                src_key_padding_mask: Optional[Tensor] = None, tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None,
                src_is_causal: Optional[bool] = None, tgt_is_causal: Optional[bool] = None, memory_is_causal: bool = False) -> Tensor:
        batched = src.dim() == 3
        if batched and src.size(0 if self.batch_first else 1) != tgt.size(0 if self.batch_first else 1):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The mask by which no place sees those behind it."""
        return _causal_mask(sz, device, dtype)
