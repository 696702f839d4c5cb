"""Functions of neural networks. Most are operators of the library under their own names."""
import math
import warnings

import umbra
from umbra import _C
from umbra._modules import raise_missing
from umbra._options import not_built

_OPERATORS = """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc avg_pool1d avg_pool2d avg_pool3d
adaptive_avg_pool1d linear bilinear relu_ celu_ selu_ gelu hardshrink softshrink pixel_shuffle pixel_unshuffle channel_shuffle
native_channel_shuffle one_hot pairwise_distance pdist cosine_similarity scaled_dot_product_attention pad prelu hardtanh_ elu_ leaky_relu_ rrelu_
threshold_""".split()


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


# ---- pooling ----

def _max_pool(dims):
    """The function, and the one that gives the places of the maxima as well."""
    name = f"max_pool{dims}d"

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        operator = getattr(umbra.ops.aten, name + "_with_indices") if return_indices else getattr(umbra, name)
        return operator(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)
    max_pool.__name__ = max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def _sizes_or_own(output_size, input, dims):
    """`output_size` for each dimension; None stands for the input's own size."""
    sizes = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * dims
    if input.dim() <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    return [own if size is None else size for size, own in zip(sizes, input.shape[-len(sizes):])]


def adaptive_avg_pool2d(input, output_size):
    return umbra.ops.aten.adaptive_avg_pool2d(input, _sizes_or_own(output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    return umbra.ops.aten.adaptive_avg_pool3d(input, _sizes_or_own(output_size, input, 3))


def _adaptive_max_pool(dims):
    name = f"adaptive_max_pool{dims}d"

    def with_indices(input, output_size, return_indices=False):
        return getattr(umbra.ops.aten, name)(input, _sizes_or_own(output_size, input, dims))

    def adaptive_max_pool(input, output_size, return_indices=False):
        out, indices = with_indices(input, output_size)
        return (out, indices) if return_indices else out
    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return adaptive_max_pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(3)


def _fractional_max_pool(dims):
    name = f"fractional_max_pool{dims}d"

    def with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * dims
            if len(ratio) > dims:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(size * share) for size, share in zip(input.shape[-dims:], ratio)]
        sizes = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * dims
        kernel = list(kernel_size) if isinstance(kernel_size, (tuple, list)) else [kernel_size] * dims
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            _random_samples = umbra.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
        return getattr(umbra.ops.aten, name)(input, kernel, sizes, _random_samples)

    def fractional_max_pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        out, indices = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return (out, indices) if return_indices else out
    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return fractional_max_pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool(3)


def _each(value, dims):
    return list(value) if isinstance(value, (tuple, list)) else [value] * dims


def _unpooled_size(input, kernel, stride, padding, output_size):
    """The size that was pooled: the plain one, or the one that is given, if it is near enough."""
    dims = len(kernel)
    plain = [(size - 1) * s + k - 2 * p for size, s, k, p in zip(input.shape[-dims:], stride, kernel, padding)]
    if output_size is None:
        return plain
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of '{len(output_size)}'")
    for size, wanted, step in zip(output_size, plain, stride):
        if not wanted - step < size < wanted + step:
            least, most = [w - s for w, s in zip(plain, stride)], [w + s for w, s in zip(plain, stride)]
            raise ValueError(f'invalid output_size "{output_size}" (dim 0 must be between {least[0]} and {most[0]})')
    return list(output_size)


def _unpool(dims):
    name = f"max_unpool{dims}d"

    def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel, padding = _each(kernel_size, dims), _each(padding, dims)
        stride = kernel if stride is None else _each(stride, dims)
        size = _unpooled_size(input, kernel, stride, padding, output_size)
        if dims == 1:
            return umbra.ops.aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size + [1]).squeeze(-1)
        if dims == 2:
            return umbra.ops.aten.max_unpool2d(input, indices, size)
        return umbra.ops.aten.max_unpool3d(input, indices, size, stride, padding)
    max_unpool.__name__ = max_unpool.__qualname__ = name
    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool, (1, 2, 3))


def _lp_pool(dims):
    def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        count = math.prod(_each(kernel_size, dims))
        powers = input.pow(norm_type)
        average = getattr(umbra.ops.aten, f"avg_pool{dims}d")(powers, _each(kernel_size, dims), [] if stride is None else _each(stride, dims), [0] * dims,
                                                              ceil_mode)
        return (umbra.sign(average) * umbra.relu(umbra.abs(average))).mul(count).pow(1.0 / norm_type)
    lp_pool.__name__ = lp_pool.__qualname__ = f"lp_pool{dims}d"
    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))


# ---- images at another size ----

_INTERPOLATIONS = {(3, "nearest"): "upsample_nearest1d", (4, "nearest"): "upsample_nearest2d", (5, "nearest"): "upsample_nearest3d",
                   (3, "nearest-exact"): "_upsample_nearest_exact1d", (4, "nearest-exact"): "_upsample_nearest_exact2d",
                   (5, "nearest-exact"): "_upsample_nearest_exact3d", (3, "linear"): "upsample_linear1d",
                   (4, "bilinear"): "upsample_bilinear2d", (5, "trilinear"): "upsample_trilinear3d", (4, "bicubic"): "upsample_bicubic2d"}


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """The image at another size: at `size`, or `scale_factor` times as large."""
    plain = mode in ("nearest", "area", "nearest-exact")
    if plain and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    align_corners = bool(align_corners)
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    for name, value in (("output", size), ("scale_factor", scale_factor)):
        if isinstance(value, (list, tuple)) and len(value) != dims:
            kind = "spatial size in [o1, o2, ...,oK] format" if name == "output" else "scale_factor in [s1, s2, ...,sK] format"
            raise ValueError(f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions of "
                             f"{list(input.shape[2:])} and {'output size' if name == 'output' else 'scale_factor of shape'} of {value}. "
                             f"Please provide input tensor in (N, C, d1, d2, ...,dK) format and {'output size' if name == 'output' else kind} in "
                             f"[o1, o2, ...,oK] format.")
    sizes = None if size is None else _each(size, dims)
    scales = None if scale_factor is None else [float(s) for s in _each(scale_factor, dims)]
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or (mode == "area" and sizes is None)):
        sizes, scales = [math.floor(own * s) for own, s in zip(input.shape[2:], scales)], None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1](input, sizes)
    smooth = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa", "lanczos": "_upsample_lanczos2d_aa"}
    name = smooth[mode] if antialias else _INTERPOLATIONS.get((input.dim(), mode))
    if name is None:
        for (rank, known), _ in _INTERPOLATIONS.items():
            if known == mode:
                raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {rank}D input")
        raise NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | linear | bilinear | "
                                  "bicubic | trilinear | area | nearest-exact (got {})".format(input.dim(), mode))
    operator = getattr(umbra.ops.aten, name).vec
    return operator(input, sizes, scales) if plain else operator(input, sizes, align_corners, scales)


def adaptive_avg_pool1d(input, output_size):
    return umbra.adaptive_avg_pool1d(input, output_size)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Elements of `input` at the places that `grid` names."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in paddings:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
                         f"but got: '{padding_mode}'")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.", stacklevel=3)
    return umbra.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    """The grid of an affine map for each sample, for grid_sample."""
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.", stacklevel=3)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rows = {4: 2, 5: 3}.get(len(size))
    if rows is None:
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
                                  f"Got size {umbra.Size(size)}.")
    if theta.dim() != 3 or theta.shape[-2] != rows or theta.shape[-1] != rows + 1:
        raise ValueError(f"Expected a batch of {rows}D affine matrices of shape Nx{rows}x{rows + 1} for size {umbra.Size(size)}. Got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {umbra.Size(size)}")
    return umbra.affine_grid_generator(theta, size, bool(align_corners))


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Blocks that slide over an image, as columns."""
    return umbra.ops.aten.im2col(input, _each(kernel_size, 2), _each(dilation, 2), _each(padding, 2), _each(stride, 2))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up into an image."""
    return umbra.ops.aten.col2im(input, _each(output_size, 2), _each(kernel_size, 2), _each(dilation, 2), _each(padding, 2), _each(stride, 2))


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


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0,
                         options=None):
    """The cross entropy of linear(input, linear_weight, linear_bias); a weight of more than two dimensions gives that many results a row."""
    not_built("torch.nn.functional.linear_cross_entropy", options=(options, None))
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and "
                           f"{linear_weight.shape[-1]}, respectively")
    logits = linear(input, linear_weight.reshape(-1, input.shape[-1]), None if linear_bias is None else linear_bias.reshape(-1))
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return cross_entropy(logits, target, weight, ignore_index=-100 if ignore_index is None else ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing)


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
    kind = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
                         "Please ensure they have the same size.")
    if weight is not None:
        weight = weight.expand(umbra.broadcast_shapes(target.size(), weight.size()))
    return umbra.ops.aten.binary_cross_entropy(input, target, weight, kind)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    kind = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return umbra.binary_cross_entropy_with_logits(input, target, weight, pos_weight, kind)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if reduction == "batchmean" and size_average is None and reduce is None:
        return umbra.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return umbra.kl_div(input, target, _reduction(reduction, size_average, reduce), log_target=log_target)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return umbra.ops.aten.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    kind = _reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return umbra.margin_ranking_loss(input1, input2, target, margin, kind)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    return umbra.hinge_embedding_loss(input, target, margin, _reduction(reduction, size_average, reduce))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    return umbra.cosine_embedding_loss(input1, input2, target, margin, _reduction(reduction, size_average, reduce))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return umbra.ops.aten.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    kind = _reduction(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    kind = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return umbra.ops.aten.multi_margin_loss(input, target, p, margin, weight, kind)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    kind = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return umbra.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, kind)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    kind = _reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                           f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = umbra.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = umbra.minimum(far, distance(positive, negative))
    loss = umbra.clamp_min(margin + near - far, 0)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    return umbra.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction, size_average, reduce))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood under a normal distribution; `var` is a number or a tensor."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * umbra.ones_like(input)
    elif umbra.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = umbra.unsqueeze(var, -1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1) and \
                not all(a == b or b == 1 for a, b in zip(input.size(), var.size(), strict=False)):
            raise ValueError("var is of incorrect size")
    kind = _reduction(reduction)
    var = var.clone()
    with umbra.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (umbra.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    return umbra.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity)


# ---- others ----

def celu(input, alpha=1.0, inplace=False):
    return umbra.celu_(input, alpha) if inplace else umbra.celu(input, alpha)


def selu(input, inplace=False):
    return umbra.selu_(input) if inplace else umbra.selu(input)


def tanhshrink(input):
    return input - input.tanh()


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; with `hard` it is one-hot, and its gradient that of the soft one."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    gumbels = -umbra.empty_like(logits, memory_format=umbra.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = umbra.zeros_like(logits, memory_format=umbra.contiguous_format).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    if use_input_stats:
        count = math.prod(input.shape[2:])
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return umbra.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
                               not umbra.compiler.is_exporting())


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Each element over a power of the mean square of its neighbours in other channels."""
    rank = input.dim()
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {rank} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if rank == 3:
        padded = pad(squares.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2))
        mean = umbra.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        padded = pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = umbra.ops.aten.avg_pool3d(padded, [size, 1, 1], [1]).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


def pad(input, pad, mode="constant", value=None):
    return umbra.ops.aten.pad(input, list(pad), mode, value)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Rows of `weight`, summed, averaged or compared within bags: rows of a 2-D `input`, or those that `offsets` begin."""
    if weight.dtype == umbra.long and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and "
                      "should now be `embedding_bag(input, weight, ...)`.", stacklevel=3)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape as the "
                         f"input ({input.shape})")
    if not weight.dim() == 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                             f"However, found offsets of type {type(offsets)}")
        offsets = umbra.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    modes = ("sum", "mean", "max")
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with umbra.no_grad():
            umbra.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
                                  f"mode='{mode}'). Please open a feature request on GitHub.")
    return umbra.embedding_bag(weight, input, offsets, scale_grad_by_freq, modes.index(mode), sparse, per_sample_weights, include_last_offset,
                               padding_idx)[0]


def _make_overridable():
    import types

    from umbra.overrides import overridable
    for name, value in list(globals().items()):
        if isinstance(value, types.FunctionType) and not name.startswith("_") and value.__module__ == __name__:
            globals()[name] = overridable(value)


_make_overridable()


from umbra.nn._attention import multi_head_attention_forward  # noqa: E402, F401
from umbra.overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic  # noqa: E402, F401
