"""Activations, and attention."""
import umbra
from umbra.nn import functional as F
from umbra.nn import init
from umbra.nn.modules.linear import NonDynamicallyQuantizableLinear
from umbra.nn.modules.module import Module
from umbra.nn.parameter import Parameter


def _module(name, function, **defaults):
    """A module whose attributes are the arguments of a function."""
    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = {**defaults, **dict(zip(defaults, args)), **kwargs}
        unknown = set(values) - set(defaults)
        if unknown or len(args) > len(defaults):
            raise TypeError(f"{name}.__init__() " + (f"got an unexpected keyword argument {next(iter(unknown))!r}" if unknown else
                            f"takes from 1 to {len(defaults) + 1} positional arguments but {len(args) + 1} were given"))
        for key, value in values.items():
            setattr(self, key, value)

    def forward(self, input):
        return function(input, **{key: getattr(self, key) for key in defaults})

    def extra_repr(self):
        shown = [(key, getattr(self, key)) for key in defaults]
        return ", ".join(f"{key}={value!r}" if key != "inplace" else "inplace=True" for key, value in shown if key != "inplace" or value)
    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__module__": __name__,
                                  "__doc__": f"{name} as a module."})


ReLU = _module("ReLU", F.relu, inplace=False)
ReLU6 = _module("ReLU6", F.relu6, inplace=False)
SiLU = _module("SiLU", F.silu, inplace=False)
Mish = _module("Mish", F.mish, inplace=False)
Hardswish = _module("Hardswish", F.hardswish, inplace=False)
Hardsigmoid = _module("Hardsigmoid", F.hardsigmoid, inplace=False)
ELU = _module("ELU", F.elu, alpha=1.0, inplace=False)
LeakyReLU = _module("LeakyReLU", F.leaky_relu, negative_slope=0.01, inplace=False)
Hardtanh = _module("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False)
Softplus = _module("Softplus", F.softplus, beta=1.0, threshold=20.0)
Softsign = _module("Softsign", F.softsign)
GELU = _module("GELU", lambda input, approximate: umbra.gelu(input, approximate=approximate), approximate="none")
Tanh = _module("Tanh", umbra.tanh)
Sigmoid = _module("Sigmoid", umbra.sigmoid)
LogSigmoid = _module("LogSigmoid", lambda input: F.logsigmoid(input))
Softmax = _module("Softmax", F.softmax, dim=None)
LogSoftmax = _module("LogSoftmax", F.log_softmax, dim=None)
GLU = _module("GLU", F.glu, dim=-1)
Softmin = _module("Softmin", F.softmin, dim=None)
CELU = _module("CELU", F.celu, alpha=1.0, inplace=False)
SELU = _module("SELU", F.selu, inplace=False)
Tanhshrink = _module("Tanhshrink", F.tanhshrink)


def _bare(name, function, **defaults):
    """The same, but the numbers are shown without their names."""
    made = _module(name, function, **defaults)
    made.extra_repr = lambda self: ", ".join(str(getattr(self, key)) for key in defaults)
    return made


Hardshrink = _bare("Hardshrink", lambda input, lambd: F.hardshrink(input, lambd), lambd=0.5)
Softshrink = _bare("Softshrink", lambda input, lambd: F.softshrink(input, lambd), lambd=0.5)


class RReLU(Module):
    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class Threshold(Module):
    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(umbra.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention with projections of queries, keys and values."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
                 batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        if add_bias_kv or add_zero_attn:
            raise NotImplementedError("add_bias_kv and add_zero_attn are not supported")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        assert self.head_dim * num_heads == embed_dim, "embed_dim must be divisible by num_heads"
        options = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(umbra.empty((3 * embed_dim, embed_dim), **options))
        else:
            for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                self.register_parameter(f"{name}_proj_weight", Parameter(umbra.empty((embed_dim, size), **options)))
        self.register_parameter("in_proj_bias", Parameter(umbra.empty(3 * embed_dim, **options)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for name in ("in_proj_weight",) if self._qkv_same_embed_dim else ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
            init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def _project(self, query, key, value):
        e = self.embed_dim
        biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else (None, None, None)
        if not self._qkv_same_embed_dim:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        elif query is key and key is value:
            packed = F.linear(query, self.in_proj_weight, self.in_proj_bias)
            packed = packed.unflatten(-1, (3, e)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return packed[0], packed[1], packed[2]
        else:
            weights = self.in_proj_weight.chunk(3)
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                               "`generate_square_subsequent_mask` to create this mask.")
        is_causal = is_causal and key_padding_mask is None and not need_weights  # then the mask itself is not needed
        if is_causal:
            attn_mask = None
        batched = query.dim() == 3
        if self.batch_first and batched:
            if query is key and key is value:
                query = key = value = query.transpose(0, 1)
            else:
                query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        if not batched:
            same = query is key and key is value
            query = query.unsqueeze(1)
            key, value = (query, query) if same else (key.unsqueeze(1), value.unsqueeze(1))
        length, batch, e = query.shape
        source = key.size(0)
        q, k, v = self._project(query, key, value)
        heads, size = self.num_heads, self.head_dim
        q = q.view(length, batch * heads, size).transpose(0, 1)
        k = k.view(source, batch * heads, size).transpose(0, 1)
        v = v.view(source, batch * heads, size).transpose(0, 1)
        mask = self._merge_masks(attn_mask, key_padding_mask, batch, length, source, q)
        p = self.dropout if self.training else 0.0
        if need_weights:
            scores = umbra.bmm(q * size ** -0.5, k.transpose(-2, -1))
            if mask is not None:
                scores = scores + mask.expand(batch, heads, length, source).reshape(batch * heads, length, source)
            weights = F.softmax(scores, dim=-1)
            out = umbra.bmm(F.dropout(weights, p) if p > 0.0 else weights, v)
            out = out.transpose(0, 1).contiguous().view(length * batch, e)
            weights = weights.view(batch, heads, length, source)
            if average_attn_weights:
                weights = weights.mean(dim=1)
        else:
            q, k, v = (x.view(batch, heads, -1, size) for x in (q, k, v))
            out = F.scaled_dot_product_attention(q, k, v, mask, p, is_causal)
            out = out.permute(2, 0, 1, 3).contiguous().reshape(batch * length, e)
            weights = None
        out = F.linear(out, self.out_proj.weight, self.out_proj.bias).view(length, batch, e)
        if not batched:
            return out.squeeze(1), None if weights is None else weights.squeeze(0)
        return (out.transpose(1, 0) if self.batch_first else out), weights

    @staticmethod
    def _as_addend(mask, like):
        if mask is None or mask.dtype != umbra.bool:
            return mask
        return umbra.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))

    def _merge_masks(self, attn_mask, key_padding_mask, batch, length, source, like):
        mask = self._as_addend(attn_mask, like)
        if mask is not None:
            mask = mask.unsqueeze(0).unsqueeze(0) if mask.dim() == 2 else mask.view(batch, self.num_heads, length, source)
        if key_padding_mask is not None:
            padding = self._as_addend(key_padding_mask, like).view(batch, 1, 1, source)
            mask = padding.expand(-1, self.num_heads, -1, -1) if mask is None else mask + padding
        return mask
