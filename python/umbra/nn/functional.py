"""Functions of neural networks. Most are operators of the library under their own names."""
import warnings

import umbra
from umbra import _C
from umbra._modules import raise_missing
from umbra._options import not_built

_OPERATORS = """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d linear bilinear relu_ celu celu_ selu selu_ gelu hardshrink softshrink tanhshrink
pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle one_hot pairwise_distance pdist cosine_similarity
scaled_dot_product_attention pad unfold fold col2im im2col prelu hardtanh_ elu_ leaky_relu_ rrelu_ threshold_""".split()


def __getattr__(name):
    """Operators that the build has under torch.nn.functional's names."""
    if name in _OPERATORS and _C._overload_names("aten::" + name):
        function = _C._find_function("aten::" + name, 1)
        globals()[name] = function
        return function
    raise_missing(__name__, name)


def _activation(name):
    def apply(input, inplace=False):
        return getattr(umbra, name + "_" if inplace else name)(input)
    apply.__name__ = apply.__qualname__ = name
    return apply


relu, silu, mish, relu6, hardswish, hardsigmoid = map(_activation, ("relu", "silu", "mish", "relu6", "hardswish", "hardsigmoid"))


def elu(input, alpha=1.0, inplace=False):
    return umbra.elu_(input, alpha) if inplace else umbra.elu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return umbra.leaky_relu_(input, negative_slope) if inplace else umbra.leaky_relu(input, negative_slope)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return umbra.hardtanh_(input, min_val, max_val) if inplace else umbra.hardtanh(input, min_val, max_val)


def threshold(input, threshold, value, inplace=False):
    return umbra.threshold_(input, threshold, value) if inplace else umbra.threshold(input, threshold, value)


def softplus(input, beta=1.0, threshold=20.0):
    return umbra.softplus(input, beta, threshold)


def tanh(input):
    return input.tanh()


def sigmoid(input):
    return input.sigmoid()


def softsign(input):
    return input / (input.abs() + 1)


def glu(input, dim=-1):
    return umbra.glu(input, dim)


def _softmax_dim(dim, rank):
    return dim if dim is not None else 0 if rank in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return umbra.softmax(input, _softmax_dim(dim, input.dim()), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return umbra.log_softmax(input, _softmax_dim(dim, input.dim()), dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    _check_probability(p)
    return umbra.dropout_(input, p, training) if inplace else umbra.dropout(input, p, training)


def _dropout_of_channels(input, p, training, inplace, ranks):
    """Whole channels, of examples in a batch or of a single one: `ranks` are those of an input without and with a batch."""
    _check_probability(p)
    batched = input.dim() == ranks[1]
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = umbra.feature_dropout_(input, p, training) if inplace else umbra.feature_dropout(input, p, training)
    return result if batched else result.squeeze_(0) if inplace else result.squeeze(0)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of sequences."""
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide "
                           "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
                           "(i.e. 2D or 3D inputs).")
    return _dropout_of_channels(input, p, training, inplace, (2, 3))


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of images; the first two dimensions are examples and channels, whatever the rank."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an error in a future "
                      "release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d exists to "
                      "provide channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension "
                      "(i.e. 3D or 4D inputs).", stacklevel=2)
    if input.dim() == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret "
                      "the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, "
                      "please switch to using dropout1d instead.", stacklevel=2)
    return umbra.feature_dropout_(input, p, training) if inplace else umbra.feature_dropout(input, p, training)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of volumes."""
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an error in a future "
                      "release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout3d exists to "
                      "provide channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension "
                      "(i.e. 4D or 5D inputs).", stacklevel=2)
    return _dropout_of_channels(input, p, training, inplace, (4, 5))


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of what selu gives."""
    _check_probability(p)
    return umbra.alpha_dropout_(input, p, training) if inplace else umbra.alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """The same for whole channels."""
    _check_probability(p)
    return umbra.feature_alpha_dropout_(input, p, training) if inplace else umbra.feature_alpha_dropout(input, p, training)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky relu with slopes that are drawn anew for each element while training."""
    return umbra.rrelu_(input, lower, upper, training) if inplace else umbra.rrelu(input, lower, upper, training)


def logsigmoid(input):
    return umbra.log_sigmoid(input)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight`. With `max_norm` those rows are scaled first, in `weight` itself, to have no more than that norm."""
    if padding_idx is None:
        padding_idx = -1
    elif not -weight.size(0) <= padding_idx < weight.size(0):
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += weight.size(0)
    if max_norm is not None:
        input = input.contiguous()
        with umbra.no_grad():
            umbra.embedding_renorm_(weight, input, max_norm, norm_type)
    return umbra.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return umbra.layer_norm(input, normalized_shape, weight, bias, eps, True)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    return umbra.group_norm(input, num_groups, weight, bias, eps, True)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return umbra.rms_norm(input, normalized_shape, weight, eps)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training:
        count = input.numel() // input.size(1) if input.dim() > 1 else 0
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    # Exported programs are not for one device: PyTorch switches cuDNN off while it exports.
    cudnn_enabled = not umbra.compiler.is_exporting()
    return umbra.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    length = umbra.linalg.vector_norm(input, p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / length if out is None else umbra.div(input, length, out=out)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    operator = umbra.ops.aten.max_pool2d_with_indices if return_indices else umbra.max_pool2d
    return operator(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    operator = umbra.ops.aten.max_pool1d_with_indices if return_indices else umbra.max_pool1d
    return operator(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    not_built("torch.nn.functional.interpolate", recompute_scale_factor=(recompute_scale_factor or None, None), antialias=(antialias, False))
    if mode not in ("nearest", "linear", "bilinear", "bicubic", "trilinear"):
        raise NotImplementedError(f"torch.nn.functional.interpolate(mode={mode!r}) is not in Umbra yet")
    spatial = input.dim() - 2
    scales = None if scale_factor is None else list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * spatial
    sizes = None if size is None else list(size) if isinstance(size, (list, tuple)) else [size] * spatial
    name = {"nearest": f"upsample_nearest{spatial}d", "bilinear": "upsample_bilinear2d", "bicubic": "upsample_bicubic2d",
            "linear": "upsample_linear1d", "trilinear": "upsample_trilinear3d"}[mode]
    operator = getattr(umbra.ops.aten, name).vec
    return operator(input, sizes, scales) if mode == "nearest" else operator(input, sizes, bool(align_corners), scales)


# ---- losses ----

def _legacy_reduction(size_average, reduce, reduction):
    """What `size_average` and `reduce`, which came before `reduction`, ask for."""
    if size_average is None and reduce is None:
        return reduction
    average, reduced = size_average is None or size_average, reduce is None or reduce
    name = "none" if not reduced else "mean" if average else "sum"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=4)
    return name


def _reduction(name, size_average=None, reduce=None):
    name = _legacy_reduction(size_average, reduce, name)
    if name not in ("none", "mean", "sum"):
        raise ValueError(f"{name} is not a valid value for reduction")
    return ("none", "mean", "sum").index(name)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    return umbra.cross_entropy_loss(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return umbra.nll_loss_nd(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    kind = _reduction(reduction, size_average, reduce)
    if weight is None:
        return umbra.mse_loss(*umbra.broadcast_tensors(input, target), kind)
    return _weighted(umbra.mse_loss(*umbra.broadcast_tensors(input, target), 0), input, weight, kind, lambda losses: losses.sum() / weight.sum())


def _weighted(losses, input, weight, kind, mean):
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses if kind == 0 else mean(losses) if kind == 1 else losses.sum()


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    kind = _reduction(reduction, size_average, reduce)
    if weight is None:
        return umbra.l1_loss(*umbra.broadcast_tensors(input, target), kind)
    return _weighted(umbra.l1_loss(*umbra.broadcast_tensors(input, target), 0), input, weight, kind, lambda losses: losses.sum() / weight.sum())


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    return umbra.smooth_l1_loss(*umbra.broadcast_tensors(input, target), _reduction(reduction, size_average, reduce), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    if weight is None:
        return umbra.huber_loss(*umbra.broadcast_tensors(input, target), _reduction(reduction), delta)
    losses = umbra.huber_loss(*umbra.broadcast_tensors(input, target), 0, delta)
    return _weighted(losses, input, weight, _reduction(reduction), lambda losses: losses.mean())


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    return umbra.binary_cross_entropy(input, target, weight, _reduction(reduction, size_average, reduce))


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    return umbra.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction(reduction, size_average, reduce))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if reduction == "batchmean" and size_average is None and reduce is None:
        return umbra.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return umbra.kl_div(input, target, _reduction(reduction, size_average, reduce), log_target=log_target)


def _make_overridable():
    import types

    from umbra.overrides import overridable
    for name, value in list(globals().items()):
        if isinstance(value, types.FunctionType) and not name.startswith("_") and value.__module__ == __name__:
            globals()[name] = overridable(value)


_make_overridable()
