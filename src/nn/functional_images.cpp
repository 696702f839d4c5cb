#include <algorithm>
#include <cmath>

#include "umbra/nn/functional.h"
#include "umbra/ops/operators.h"

namespace umbra::nn::functional {

namespace {

using Sizes = std::optional<std::vector<int64_t>>;
using Scales = std::optional<std::vector<double>>;

/// One for each dimension of places, or none where the list is empty.
template <class T>
std::optional<std::vector<T>> for_each(const std::vector<T>& given, const Tensor& input, const char* what) {
  if (given.empty()) return std::nullopt;
  auto dims = static_cast<size_t>(std::max<int64_t>(input.dim() - 2, 0));
  if (given.size() == 1) return std::vector<T>(dims, given[0]);
  check<ValueError>(given.size() == dims, "Input and ", what,
                    " must have the same number of spatial dimensions, but got ", dims, " and ", given.size());
  return given;
}

/// A way of interpolation: what it is for, and the operator.
struct Way {
  const char* mode;
  int64_t rank;
  Tensor (*run)(const Tensor& input, const Sizes& sizes, const Scales& scales, bool align_corners);
};

std::optional<ArrayRef<double>> scales_of(const Scales& scales) {
  return scales ? std::optional<ArrayRef<double>>(*scales) : std::nullopt;
}

#define UMBRA_WAY(mode, rank, function)                                                   \
  Way {                                                                                   \
    mode, rank, [](const Tensor& input, const Sizes& sizes, const Scales& scales, bool) { \
      return function(input, sizes, scales_of(scales));                                   \
    }                                                                                     \
  }
#define UMBRA_SMOOTH_WAY(mode, rank, function)                                                    \
  Way {                                                                                           \
    mode, rank, [](const Tensor& input, const Sizes& sizes, const Scales& scales, bool corners) { \
      return function(input, sizes, corners, scales_of(scales));                                  \
    }                                                                                             \
  }
const Way kWays[] = {UMBRA_WAY("nearest", 3, upsample_nearest1d),
                     UMBRA_WAY("nearest", 4, upsample_nearest2d),
                     UMBRA_WAY("nearest", 5, upsample_nearest3d),
                     UMBRA_WAY("nearest-exact", 3, _upsample_nearest_exact1d),
                     UMBRA_WAY("nearest-exact", 4, _upsample_nearest_exact2d),
                     UMBRA_WAY("nearest-exact", 5, _upsample_nearest_exact3d),
                     UMBRA_SMOOTH_WAY("linear", 3, upsample_linear1d),
                     UMBRA_SMOOTH_WAY("bilinear", 4, upsample_bilinear2d),
                     UMBRA_SMOOTH_WAY("bicubic", 4, upsample_bicubic2d),
                     UMBRA_SMOOTH_WAY("trilinear", 5, upsample_trilinear3d)};
const Way kAntialiasedWays[] = {UMBRA_SMOOTH_WAY("bilinear", 4, _upsample_bilinear2d_aa),
                                UMBRA_SMOOTH_WAY("bicubic", 4, _upsample_bicubic2d_aa)};
#undef UMBRA_WAY
#undef UMBRA_SMOOTH_WAY

const Way& way_of(const std::string& mode, int64_t rank, bool antialias) {
  for (const Way& way : kAntialiasedWays)
    if (antialias && way.mode == mode && way.rank == rank) return way;
  check<ValueError>(!antialias,
                    "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input");
  const Way* other = nullptr;
  for (const Way& way : kWays) {
    if (way.mode != mode) continue;
    if (way.rank == rank) return way;
    other = &way;
  }
  if (other) fail<NotImplementedError>("Got ", rank, "D input, but ", mode, " mode needs ", other->rank, "D input");
  fail<NotImplementedError>(
      "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", rank,
      "D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got ", mode, ")");
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateOptions& o) {
  bool plain = o.mode == "nearest" || o.mode == "area" || o.mode == "nearest-exact";
  check<ValueError>(!plain || !o.align_corners,
                    "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                    "trilinear");
  check<ValueError>(o.size.empty() || o.scale_factor.empty(), "only one of size or scale_factor should be defined");
  check<ValueError>(!o.size.empty() || !o.scale_factor.empty(), "either size or scale_factor should be defined");
  check<ValueError>(!o.recompute_scale_factor || o.size.empty(),
                    "recompute_scale_factor is not meaningful with an explicit size.");
  Sizes sizes = for_each(o.size, input, "output");
  Scales scales = for_each(o.scale_factor, input, "scale_factor");
  if (scales && (o.recompute_scale_factor || o.mode == "area")) {
    sizes.emplace();
    for (size_t d = 0; d < scales->size(); ++d)
      sizes->push_back(static_cast<int64_t>(
          std::floor(static_cast<double>(input.size(static_cast<int64_t>(d) + 2)) * (*scales)[d])));
    scales.reset();
  }
  if (o.mode == "area" && !o.antialias) {
    if (input.dim() == 3) return adaptive_avg_pool1d(input, *sizes);
    if (input.dim() == 4) return adaptive_avg_pool2d(input, *sizes);
    if (input.dim() == 5) return adaptive_avg_pool3d(input, *sizes);
  }
  return way_of(o.mode, input.dim(), o.antialias).run(input, sizes, scales, o.align_corners.value_or(false));
}

Tensor unfold(const Tensor& input, const argument::Ints& kernel_size, const argument::Ints& dilation,
              const argument::Ints& padding, const argument::Ints& stride) {
  return im2col(input, kernel_size, dilation, padding, stride);
}
Tensor fold(const Tensor& input, const argument::SymInts& output_size, const argument::Ints& kernel_size,
            const argument::Ints& dilation, const argument::Ints& padding, const argument::Ints& stride) {
  return col2im(input, output_size, kernel_size, dilation, padding, stride);
}

namespace {
template <size_t N> int64_t position(const char* const (&names)[N], const std::string& name, const char* what) {
  auto found = std::find(std::begin(names), std::end(names), name);
  check<ValueError>(found != std::end(names), "grid_sample: no ", what, " is called '", name, "'");
  return found - std::begin(names);
}
}  // namespace

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleOptions& options) {
  static constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
  static constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  return grid_sampler(input, grid, position(kModes, options.mode, "mode"),
                      position(kPaddings, options.padding_mode, "padding_mode"), options.align_corners);
}
Tensor affine_grid(const Tensor& theta, const argument::SymInts& size, bool align_corners) {
  return affine_grid_generator(theta, size, align_corners);
}

}  // namespace umbra::nn::functional
