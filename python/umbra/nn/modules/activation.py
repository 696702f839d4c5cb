"""Activations, and attention."""
import warnings

import umbra
from umbra.nn import functional as F
from umbra.nn import init
from umbra.nn._attention import as_addend, may_fuse
from umbra.nn.modules.linear import NonDynamicallyQuantizableLinear
from umbra.nn.modules.module import Module
from umbra.nn.parameter import Parameter


def _module(name, function, shown=True, **defaults):
    """A module whose attributes are the arguments of a function: one of nn.functional's, by its name, or another. Some do not show them."""
    # Made of source, as a dataclass's is, so that tools which read signatures find the names and defaults.
    source = "def __init__(" + ", ".join(["self", *(f"{key}={value!r}" for key, value in defaults.items())]) + "):\n    Module.__init__(self)\n"
    made = {}
    exec(source + "".join(f"    self.{key} = {key}\n" for key in defaults), {"Module": Module}, made)
    __init__ = made["__init__"]
    __init__.__qualname__, __init__.__module__ = f"{name}.__init__", __name__

    def forward(self, input):
        call = getattr(F, function) if isinstance(function, str) else function
        return call(input, **{key: getattr(self, key) for key in defaults})

    def extra_repr(self):
        values = [(key, getattr(self, key)) for key in defaults]
        return ", ".join(f"{key}={value!r}" if key != "inplace" else "inplace=True" for key, value in values if key != "inplace" or value)
    members = {"__init__": __init__, "forward": forward, "__module__": __name__, "__doc__": f"{name} as a module."}
    return type(name, (Module,), {**members, "extra_repr": extra_repr} if shown else members)


ReLU = _module("ReLU", "relu", inplace=False)
SiLU = _module("SiLU", "silu", inplace=False)
Mish = _module("Mish", "mish", inplace=False)
Hardswish = _module("Hardswish", "hardswish", shown=False, inplace=False)
Hardsigmoid = _module("Hardsigmoid", "hardsigmoid", shown=False, inplace=False)
ELU = _module("ELU", "elu", alpha=1.0, inplace=False)
LeakyReLU = _module("LeakyReLU", "leaky_relu", negative_slope=0.01, inplace=False)


class Hardtanh(_module("Hardtanh", "hardtanh", min_val=-1.0, max_val=1.0, inplace=False)):
    """Numbers held between two bounds."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        if min_value is not None:
            warnings.warn("keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn("keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2)
            max_val = max_value
        super().__init__(min_val, max_val, inplace)
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")


class ReLU6(Hardtanh):
    """ReLU up to 6."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input):
        return F.relu6(input, self.inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


Softplus = _module("Softplus", "softplus", beta=1.0, threshold=20.0)
Softsign = _module("Softsign", "softsign")
GELU = _module("GELU", "gelu", approximate="none")
Tanh = _module("Tanh", umbra.tanh)
Sigmoid = _module("Sigmoid", umbra.sigmoid)
LogSigmoid = _module("LogSigmoid", lambda input: F.logsigmoid(input))


def _along_checked(cls):
    """The module with a `dim` that is looked at when it is made."""
    made = cls.__init__

    def __init__(self, dim=None):
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        made(self, dim)
    cls.__init__ = __init__
    return cls


Softmax = _along_checked(_module("Softmax", "softmax", dim=None))
LogSoftmax = _along_checked(_module("LogSoftmax", "log_softmax", dim=None))
GLU = _module("GLU", "glu", dim=-1)
Softmin = _module("Softmin", "softmin", dim=None)
CELU = _module("CELU", "celu", alpha=1.0, inplace=False)
SELU = _module("SELU", "selu", inplace=False)
Tanhshrink = _module("Tanhshrink", "tanhshrink")


def _bare(name, function, **defaults):
    """The same, but the numbers are shown without their names."""
    made = _module(name, function, **defaults)
    made.extra_repr = lambda self: ", ".join(str(getattr(self, key)) for key in defaults)
    return made


Hardshrink = _bare("Hardshrink", lambda input, lambd: F.hardshrink(input, lambd), lambd=0.5)
Softshrink = _bare("Softshrink", lambda input, lambd: F.softshrink(input, lambd), lambd=0.5)


class RReLU(Module):
    """Leaky ReLU whose slope is drawn in training, and the mean of its bounds otherwise."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """Softmax over the channels of images, for each place."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class Threshold(Module):
    """The input where it is above a threshold, and another number elsewhere."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """Leaky ReLU whose slope is a parameter: one, or one for each channel."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(umbra.full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self):
        umbra.nn.init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention with projections of queries, keys and values."""
    __constants__ = ["batch_first"]

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
                 batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim if kdim is not None else embed_dim, vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        options = {"device": device, "dtype": dtype}
        for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            apart = None if self._qkv_same_embed_dim else Parameter(umbra.empty((embed_dim, size), **options))
            self.register_parameter(f"{name}_proj_weight", apart)
        together = Parameter(umbra.empty((3 * embed_dim, embed_dim), **options)) if self._qkv_same_embed_dim else None
        self.register_parameter("in_proj_weight", together)
        self.register_parameter("in_proj_bias", Parameter(umbra.empty(3 * embed_dim, **options)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        self.bias_k = Parameter(umbra.empty((1, 1, embed_dim), **options)) if add_bias_kv else None
        self.bias_v = Parameter(umbra.empty((1, 1, embed_dim), **options)) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for name in ("in_proj_weight",) if self._qkv_same_embed_dim else ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
            init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)  # files from before keys and values had sizes of their own
        super().__setstate__(state)

    def _is_fused(self, query, key, value, masks):
        """Whether the call is one operator: attention to itself, for inference, with masks of bools."""
        if (self.training or not self.batch_first or query.dim() != 3 or query is not key or key is not value or self.num_heads % 2
                or any(mask is not None and mask.is_floating_point() for mask in masks) or self.bias_k is not None or self.bias_v is not None
                or self.add_zero_attn or self.in_proj_weight is None or self.in_proj_bias is None
                or not query.dtype == self.in_proj_weight.dtype == self.in_proj_bias.dtype):
            return False
        return may_fuse((query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias))

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        fused = self._is_fused(query, key, value, (key_padding_mask, attn_mask))
        key_padding_mask = as_addend(key_padding_mask, "key_padding_mask", query.dtype, attn_mask)
        attn_mask = as_addend(attn_mask, "attn_mask", query.dtype)
        if fused:
            mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
            return umbra._native_multi_head_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight,
                self.out_proj.bias, mask, need_weights, average_attn_weights, kind)
        swap = self.batch_first and query.dim() == 3
        if swap:
            same, shared = query is key, key is value
            query = query.transpose(1, 0)
            key = query if same else key.transpose(1, 0)
            value = key if shared else value.transpose(1, 0)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask, use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal)
        return (out.transpose(1, 0) if swap else out), weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """The masks as one, and its kind: 1 where it is key_padding_mask alone, 2 where it is of (batch, heads, targets, sources)."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            wide = attn_mask.view(batch, -1, length, length)
        else:
            wide = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is None:
            return wide, 2
        return wide + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1), 2
