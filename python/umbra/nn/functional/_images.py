"""Images at another size or place, and their borders."""
import math
import warnings

import umbra
from umbra.nn.functional._pooling import _each, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from umbra.nn.functional._publish import publish
from umbra.nn.modules.utils import _pair

_INTERPOLATIONS = {(3, "nearest"): "upsample_nearest1d", (4, "nearest"): "upsample_nearest2d", (5, "nearest"): "upsample_nearest3d",
                   (3, "nearest-exact"): "_upsample_nearest_exact1d", (4, "nearest-exact"): "_upsample_nearest_exact2d",
                   (5, "nearest-exact"): "_upsample_nearest_exact3d", (3, "linear"): "upsample_linear1d",
                   (4, "bilinear"): "upsample_bilinear2d", (5, "trilinear"): "upsample_trilinear3d", (4, "bicubic"): "upsample_bicubic2d"}


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """The image at another size: at `size`, or `scale_factor` times as large."""
    plain = mode in ("nearest", "area", "nearest-exact")
    if plain and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    if align_corners is None:
        align_corners = False
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    for name, value in (("output", size), ("scale_factor", scale_factor)):
        if isinstance(value, (list, tuple)) and len(value) != dims:
            kind = "output size in (o1, o2, ...,oK) format" if name == "output" else "scale_factor in (s1, s2, ...,sK) format"
            raise ValueError(f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions of "
                             f"{list(input.shape[2:])} and {'output size of' if name == 'output' else 'scale_factor of shape'} {value}. "
                             f"Please provide input tensor in (N, C, d1, d2, ...,dK) format and {kind}.")
    if isinstance(size, (list, tuple)) and not all(isinstance(s, (int, umbra.SymInt, umbra.Tensor)) for s in size):
        raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                        f"{[type(s) for s in size]}")
    sizes = None if size is None else _each(size, dims)
    scales = None if scale_factor is None else _each(scale_factor, dims)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or (mode == "area" and sizes is None)):
        sizes, scales = [math.floor(own * s) for own, s in zip(input.shape[2:], scales)], None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area" and 1 <= dims <= 3:
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1](input, sizes)
    if mode == "lanczos" and dims == 2 and (not antialias or align_corners):
        raise ValueError("Lanczos mode does not support align_corners=True" if antialias else "Lanczos mode requires antialias=True")
    smooth = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa", "lanczos": "_upsample_lanczos2d_aa"}
    name = smooth[mode] if antialias else _INTERPOLATIONS.get((input.dim(), mode)) if isinstance(mode, str) else None
    if name is None:
        for (rank, known), _ in _INTERPOLATIONS.items():
            if known == mode and mode in ("linear", "bilinear", "trilinear") and 1 <= dims <= 3:
                raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {rank}D input")
        raise NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | linear | bilinear | "
                                  "bicubic | trilinear | lanczos | area | nearest-exact (got {})".format(input.dim(), mode))
    operator = getattr(umbra._C._nn, name)
    return operator(input, sizes, scales) if plain else operator(input, sizes, align_corners, scales)


def _warn_of_older_name(name):
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of interpolate."""
    _warn_of_older_name("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """The older name of interpolate with mode "nearest"."""
    _warn_of_older_name("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """The older name of interpolate with mode "bilinear", corners on corners."""
    _warn_of_older_name("upsample_bilinear")
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
        align_corners = False
    return umbra.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), align_corners)


def affine_grid(theta, size, align_corners=None):
    """The grid of an affine map for each sample, for grid_sample."""
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.", stacklevel=3)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rows = {4: 2, 5: 3}.get(len(size))
    if rows is None:
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
                                  f"Got size {size}.")
    if theta.dim() != 3 or theta.shape[-2] != rows or theta.shape[-1] != rows + 1:
        raise ValueError(f"Expected a batch of {rows}D affine matrices of shape Nx{rows}x{rows + 1} for size {size}. Got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and min(size[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended "
                      "use case of affine_grid. See the documentation of affine_grid for details.", stacklevel=3)
    return umbra.affine_grid_generator(theta, size, align_corners)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Blocks that slide over an image, as columns."""
    return umbra._C._nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up into an image."""
    return umbra._C._nn.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def pad(input, pad, mode="constant", value=None):
    """Margins: so many elements before and after each dimension, the last dimension first."""
    return umbra.pad(input, pad, mode, value)


publish(globals())
