"""Functions of umbra.nn.functional as the compiler can read them: pooling, and images at another size."""
import math
from typing import List, Optional, Tuple, Union

import umbra as torch
from umbra import Tensor
from umbra._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3


# ---- pooling: with and without indices, which `return_indices` chooses ----

def max_pool1d(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = (0,),
               dilation: BroadcastingList1[int] = (1,), ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool1d_with_indices(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = (0,),
                            dilation: BroadcastingList1[int] = (1,), ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    steps = kernel_size if stride is None else stride
    return torch.max_pool1d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)


def lp_pool1d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    p = 0.0
    if isinstance(norm_type, int):
        p = float(norm_type)
    else:
        p = norm_type
    steps = kernel_size if stride is None else stride
    if abs(p) == float("inf"):
        size = torch.abs(input) if p > 0 else -torch.abs(input)
        largest = torch.max_pool1d(size, kernel_size, steps, [0], [1], ceil_mode)
        return largest if p > 0 else -largest
    average = torch.avg_pool1d(input.pow(p), kernel_size, steps, [0], ceil_mode)
    return (torch.sign(average) * torch.relu(torch.abs(average))).mul(kernel_size[0]).pow(1.0 / p)


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = (0,),
                 output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes = _unpooled_size(input, kernel_size, steps, padding, output_size)
    return torch.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), sizes + [1]).squeeze(-1)


def max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = (0, 0),
               dilation: BroadcastingList2[int] = (1, 1), ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = (0, 0),
                            dilation: BroadcastingList2[int] = (1, 1), ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    steps = kernel_size if stride is None else stride
    return torch.max_pool2d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool2d(input, output_size)[0]


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool2d(input, output_size)


def lp_pool2d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    p = _power(norm_type)
    steps = kernel_size if stride is None else stride
    if abs(p) == float("inf"):
        size = torch.abs(input) if p > 0 else -torch.abs(input)
        largest = torch.max_pool2d(size, kernel_size, steps, [0, 0], [1, 1], ceil_mode)
        return largest if p > 0 else -largest
    average = torch.avg_pool2d(input.pow(p), kernel_size, steps, [0, 0], ceil_mode)
    return (torch.sign(average) * torch.relu(torch.abs(average))).mul(kernel_size[0] * kernel_size[1]).pow(1.0 / p)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = (0, 0),
                 output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes = _unpooled_size(input, kernel_size, steps, padding, output_size)
    return torch.max_unpool2d(input, indices, sizes)


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None,
                                       output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
                                       _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes = _fractional_size(input, output_size, output_ratio, 2)
    return torch.fractional_max_pool2d(input, kernel_size, sizes, _fractional_samples(input, _random_samples, 2))


def fractional_max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None,
                          output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
                          _random_samples: Optional[Tensor] = None) -> Tensor:
    return fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)[0]


def max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = (0, 0, 0),
               dilation: BroadcastingList3[int] = (1, 1, 1), ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = (0, 0, 0),
                            dilation: BroadcastingList3[int] = (1, 1, 1), ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    steps = kernel_size if stride is None else stride
    return torch.max_pool3d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool3d(input, output_size)[0]


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool3d(input, output_size)


def lp_pool3d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    p = _power(norm_type)
    steps = kernel_size if stride is None else stride
    if abs(p) == float("inf"):
        size = torch.abs(input) if p > 0 else -torch.abs(input)
        largest = torch.max_pool3d(size, kernel_size, steps, [0, 0, 0], [1, 1, 1], ceil_mode)
        return largest if p > 0 else -largest
    average = torch.avg_pool3d(input.pow(p), kernel_size, steps, [0, 0, 0], ceil_mode)
    return (torch.sign(average) * torch.relu(torch.abs(average))).mul(kernel_size[0] * kernel_size[1] * kernel_size[2]).pow(1.0 / p)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = (0, 0, 0),
                 output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes = _unpooled_size(input, kernel_size, steps, padding, output_size)
    return torch.max_unpool3d(input, indices, sizes, steps, padding)


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None,
                                       output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
                                       _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes = _fractional_size(input, output_size, output_ratio, 3)
    return torch.fractional_max_pool3d(input, kernel_size, sizes, _fractional_samples(input, _random_samples, 3))


def fractional_max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None,
                          output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
                          _random_samples: Optional[Tensor] = None) -> Tensor:
    return fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)[0]


def _power(norm_type: Union[int, float]) -> float:
    if isinstance(norm_type, int):
        return float(norm_type)
    return norm_type


def _fractional_size(input: Tensor, output_size: Optional[List[int]], output_ratio: Optional[List[float]], dims: int) -> List[int]:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError(f"fractional_max_pool{dims}d requires specifying either an output_size or an output_ratio")
    return [int(input.size(i - dims) * output_ratio[i]) for i in range(dims)]


def _fractional_samples(input: Tensor, samples: Optional[Tensor], dims: int) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == dims + 1 else input.size(0)
    return torch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)


def _unpooled_size(input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], output_size: Optional[List[int]]) -> List[int]:
    dims = len(kernel_size)
    natural = [(input.size(i - dims) - 1) * stride[i] + kernel_size[i] - 2 * padding[i] for i in range(dims)]
    if output_size is None:
        return natural
    sizes = output_size[2:] if len(output_size) == dims + 2 else output_size
    if len(sizes) != dims:
        raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of '{len(output_size)}'")
    for i in range(dims):
        if sizes[i] <= natural[i] - stride[i] or sizes[i] >= natural[i] + stride[i]:
            raise ValueError(f"invalid output_size {output_size}")
    return sizes


# ---- images at another size ----

def interpolate(input: Tensor, size: Optional[BroadcastingList1[int]] = None, scale_factor: Optional[BroadcastingList1[float]] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    plain = mode == "nearest" or mode == "area" or mode == "nearest-exact"
    if plain and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    corners = False if align_corners is None else align_corners
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None and len(size) == 1:
        size = size * dims
    if scale_factor is not None and len(scale_factor) == 1:
        scale_factor = scale_factor * dims
    if (size is not None and len(size) != dims) or (scale_factor is not None and len(scale_factor) != dims):
        raise ValueError(f"Input and output must have the same number of spatial dimensions, but got input with {dims} spatial dimensions")
    recompute = False if recompute_scale_factor is None else recompute_scale_factor
    if recompute and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scale_factor is not None and (recompute or mode == "area"):
        size = [int(math.floor(float(input.size(i + 2)) * scale_factor[i])) for i in range(dims)]
        scale_factor = None
    if antialias and not ((mode == "bilinear" or mode == "bicubic") and dims == 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area" and size is not None:
        if dims == 1:
            return torch.adaptive_avg_pool1d(input, size)
        return torch.adaptive_avg_pool2d(input, size) if dims == 2 else torch.adaptive_avg_pool3d(input, size)
    if mode == "nearest":
        if dims == 1:
            return torch.upsample_nearest1d(input, size, scale_factor)
        if dims == 2:
            return torch.upsample_nearest2d(input, size, scale_factor)
        if dims == 3:
            return torch.upsample_nearest3d(input, size, scale_factor)
    if mode == "nearest-exact":
        if dims == 1:
            return torch._upsample_nearest_exact1d(input, size, scale_factor)
        if dims == 2:
            return torch._upsample_nearest_exact2d(input, size, scale_factor)
        if dims == 3:
            return torch._upsample_nearest_exact3d(input, size, scale_factor)
    if dims == 1 and mode == "linear":
        return torch.upsample_linear1d(input, size, corners, scale_factor)
    if dims == 2 and mode == "bilinear":
        return (torch._upsample_bilinear2d_aa(input, size, corners, scale_factor) if antialias
                else torch.upsample_bilinear2d(input, size, corners, scale_factor))
    if dims == 2 and mode == "bicubic":
        return (torch._upsample_bicubic2d_aa(input, size, corners, scale_factor) if antialias
                else torch.upsample_bicubic2d(input, size, corners, scale_factor))
    if dims == 3 and mode == "trilinear":
        return torch.upsample_trilinear3d(input, size, corners, scale_factor)
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | bilinear | "
                              f"bicubic | trilinear | area | nearest-exact (got {mode})")


def upsample(input: Tensor, size: Optional[BroadcastingList1[int]] = None, scale_factor: Optional[BroadcastingList1[float]] = None, mode: str = "nearest",
             align_corners: Optional[bool] = None) -> Tensor:
    return interpolate(input, size, scale_factor, mode, align_corners)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None) -> Tensor:
    if mode != "bilinear" and mode != "nearest" and mode != "bicubic":
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode != "zeros" and padding_mode != "border" and padding_mode != "reflection":
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
                         f"but got: '{padding_mode}'")
    kind = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    outside = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return torch.grid_sampler(input, grid, kind, outside, False if align_corners is None else align_corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    if not theta.is_floating_point():
        raise ValueError("Expected theta to have floating point type")
    rows = len(size) - 2
    if rows != 2 and rows != 3:
        raise NotImplementedError(f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}.")
    if theta.dim() != 3 or theta.size(-2) != rows or theta.size(-1) != rows + 1:
        raise ValueError(f"Expected a batch of {rows}D affine matrices of shape Nx{rows}x{rows + 1} for size {size}. Got {theta.size()}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return torch.affine_grid_generator(theta, size, False if align_corners is None else align_corners)
