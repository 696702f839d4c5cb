// Elements of an image at the places that a grid names, and grids of affine maps.
#include <algorithm>

#include "kernels/grid_sample.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

enum : int64_t { kLinear, kNearest, kCubic };
enum : int64_t { kZeros, kBorder, kReflection };

// ---- checks ----

void check_grid(const Tensor& input, const Tensor& grid) {
  check(input.device() == grid.device(),
        "grid_sampler(): expected input and grid to be on same device, but input is on ", input.device(),
        " and grid is on ", grid.device());
  check<IndexError>(input.dim() > 0 && grid.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  check(input.sym_size(0) == grid.sym_size(0),
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ", input.sym_sizes(),
        " and grid with sizes ", grid.sym_sizes());
  check(grid.sym_size(-1) == input.dim() - 2, "grid_sampler(): expected grid to have size ", input.dim() - 2,
        " in last dimension, but got grid with sizes ", grid.sym_sizes());
  for (int64_t d = 2; d < input.dim(); ++d)
    check(input.sym_size(d) > 0,
          "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ",
          input.sym_sizes(), " with dimension ", d, " being empty");
}

void check_grid(const Tensor& input, const Tensor& grid, int64_t rank, int64_t mode, int64_t padding) {
  auto check_modes = [&] {
    check(mode >= kLinear && mode <= kCubic, "Invalid interpolation mode ", mode);
    check(padding >= kZeros && padding <= kReflection, "Invalid padding mode ", padding);
  };
  if (only_metadata_is_asked() && rank == 4) {
    check_modes();
    for (const Tensor* t : {&input, &grid})
      check<ValueError>(t->dim() == rank, t->dim() < rank ? "not enough" : "too many", " values to unpack (expected ",
                        rank, ", got ", t->dim(), ")");
  }
  check(input.device() == grid.device(),
        "grid_sampler(): expected input and grid to be on same device, but input is on ", input.device(),
        " and grid is on ", grid.device());
  if (input.is_meta() && rank == 4) check_modes();
  check_grid(input, grid);
  check(input.dim() == rank && grid.dim() == rank, "grid_sampler(): expected ", rank,
        "D input and grid with same number of dimensions, but got input with sizes ", input.sym_sizes(),
        " and grid with sizes ", grid.sym_sizes());
  check_kernel_type(is_floating(input.dtype()), rank == 4 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler3d_cpu",
                    input);
  check_modes();
}

// Fake runs do not look at the types, kernels do.
void check_types(const Tensor& input, const Tensor& grid) {
  if (is_floating(input.dtype()))
    check(input.dtype() == grid.dtype(), "expected scalar type ", kernel_name(input.dtype()), " but found ",
          kernel_name(grid.dtype()));
}

kernels::GridOptions options_of(int64_t mode, int64_t padding, bool align_corners) {
  return {static_cast<kernels::GridInterpolation>(mode), static_cast<kernels::GridPadding>(padding), align_corners};
}

// ---- by other operators: for derivatives of derivatives and tangents ----

struct GridRules {
  int64_t mode, padding;
  bool align_corners;

  Tensor unnormalized(const Tensor& x, SymInt size) const {
    Tensor place = x.add(1).mul(Scalar(align_corners ? size - 1 : size)).div(2);
    return align_corners ? place : place.sub(0.5);
  }
  /// How fast the place moves with the grid's number, before padding.
  Tensor scale(const Tensor& x, SymInt size) const {
    return scalar_tensor(Scalar(align_corners ? size - 1 : size), {.dtype = x.dtype(), .device = x.device()}).div(2);
  }
  Tensor padded(const Tensor& x, SymInt size) const { return turned(x, size).first; }

  /// Where a place outside lies inside, and whether it moves along (1), against (-1) or not at all (0).
  std::pair<Tensor, Tensor> turned(const Tensor& x, SymInt size) const {
    if (padding == kZeros) return {x, ones_like(x)};
    Tensor inside = x, sign = ones_like(x);
    if (padding == kReflection) {
      SymInt span = align_corners ? (size - 1) * 2 : size * 2;
      if (span == 0) return {zeros_like(x), zeros_like(x)};
      double low = align_corners ? 0 : -0.5;
      Tensor from_low = x.sub(low), distance = from_low.abs(), extra = distance.fmod(Scalar(span));
      Tensor back = extra.rsub(Scalar(span)), flips = extra.gt(back);
      inside = where(flips, back, extra).add(low);
      Tensor opposite = sign.neg();
      sign = where(from_low.lt(0).ne(flips), opposite, sign);
    }
    Tensor moves = inside.gt(0).logical_and(inside.lt(Scalar(size - 1)));
    return {inside.clamp(0, Scalar(size - 1)), sign.masked_fill(moves.logical_not(), 0)};
  }
};

/// One element along a dimension: its place (whole numbers, of the grid's type), its weight, and the weight's first and
/// second derivatives by the grid's number.
struct GridTap {
  Tensor place, weight, slope, bend;
};

std::vector<GridTap> cubic_taps(const Tensor& at, const Tensor& scale, SymInt size, const GridRules& rules) {
  constexpr double a = -0.75;
  Tensor left = at.floor(), t = at.sub(left);
  std::vector<GridTap> taps;
  for (int k = 0; k < 4; ++k) {
    bool far = k == 0 || k == 3, ahead = k < 2;  // distances grow with t for the first two
    Tensor x = ahead ? t.add(1 - k) : t.rsub(k - 1);
    Tensor weight =
        far ? x.mul(a).sub(5 * a).mul(x).add(8 * a).mul(x).sub(4 * a) : x.mul(a + 2).sub(a + 3).mul(x).mul(x).add(1);
    Tensor slope = far ? x.mul(3 * a).sub(10 * a).mul(x).add(8 * a) : x.mul(3 * (a + 2)).sub(2 * (a + 3)).mul(x);
    Tensor bend = far ? x.mul(6 * a).sub(10 * a) : x.mul(6 * (a + 2)).sub(2 * (a + 3));
    taps.push_back({rules.padded(left.add(k - 1), size), weight, slope.mul(ahead ? scale : scale.neg()),
                    bend.mul(scale).mul(scale)});
  }
  return taps;
}

std::vector<GridTap> taps_along(const Tensor& x, SymInt size, const GridRules& rules) {
  Tensor at = rules.unnormalized(x, size), scale = rules.scale(x, size);
  if (rules.mode == kCubic) return cubic_taps(at, scale, size, rules);
  auto [place, turn] = rules.turned(at, size);
  Tensor none = zeros_like(x);
  if (rules.mode == kNearest) return {{place.round(), ones_like(x), none, none}};
  Tensor left = place.floor(), share = place.sub(left), slope = turn.mul(scale);
  return {{left, share.rsub(1), slope.neg(), none}, {left.add(1), share, slope, none}};
}

/// The elements of the image that the places of a grid are made of, one of each at a time.
class GridTaps {
 public:
  GridTaps(const Tensor& input, const Tensor& grid, const GridRules& rules)
      : sizes_(input.sym_sizes()), spatial_(static_cast<size_t>(input.dim() - 2)), at_(spatial_, 0) {
    for (size_t d = 0; d < spatial_; ++d)
      lines_.push_back(taps_along(grid.select(-1, coordinate(d)), sizes_[d + 2], rules));
    out_ = SymShape{sizes_[0], sizes_[1]};
    for (SymInt s : grid.sym_sizes().slice(1, spatial_)) out_.push_back(s);
    look();
  }
  size_t spatial() const { return spatial_; }
  /// Which coordinate of the grid belongs to a dimension.
  int64_t coordinate(size_t d) const { return static_cast<int64_t>(spatial_ - 1 - d); }
  /// The sampled elements of an image of the same size.
  Tensor pick(const Tensor& image) const {
    return image.reshape({sizes_[0], sizes_[1], -1}).gather(2, index_).view(out_);
  }
  /// Puts values at their places in an image of zeros.
  Tensor put(const Tensor& values) const {
    SymShape flat{sizes_[0], sizes_[1], product(SymIntArrayRef(sizes_).drop_front(2))};
    Tensor rows = values.reshape({sizes_[0], sizes_[1], -1});
    return zeros(flat, values.options()).scatter_add(2, index_, rows).view(sizes_);
  }
  /// The weight, differentiated by the coordinates of the dimensions listed; shaped to go with a picked image.
  Tensor weight(std::initializer_list<size_t> by = {}) const {
    Tensor out;
    for (size_t d = 0; d < spatial_; ++d) {
      const GridTap& tap = lines_[d][at_[d]];
      auto times = std::count(by.begin(), by.end(), d);
      const Tensor& factor = times == 0 ? tap.weight : times == 1 ? tap.slope : tap.bend;
      out = d ? out.mul(factor) : factor;
    }
    return out.masked_fill(outside_, 0).unsqueeze(1);
  }
  bool next() {
    size_t d = spatial_;
    while (d > 0 && ++at_[d - 1] == lines_[d - 1].size()) at_[--d] = 0;
    if (d > 0) look();
    return d > 0;
  }

 private:
  void look() {
    Tensor place, counts;
    for (size_t d = 0; d < spatial_; ++d) {
      const GridTap& tap = lines_[d][at_[d]];
      SymInt size = sizes_[d + 2];
      Tensor inside = tap.place.ge(0).logical_and(tap.place.lt(Scalar(size)));
      Tensor index = tap.place.masked_fill(inside.logical_not(), 0).to(DType::Int64);
      counts = d ? counts.logical_and(inside) : inside;
      place = d ? place.mul(Scalar(size)).add(index) : index;
    }
    outside_ = counts.logical_not();
    index_ = place.reshape({sizes_[0], 1, -1}).expand({sizes_[0], sizes_[1], -1});
  }

  SymShape sizes_, out_;
  size_t spatial_;
  std::vector<std::vector<GridTap>> lines_;
  std::vector<size_t> at_;
  Tensor index_, outside_;
};

void add_to(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum.add(term) : term; }

Tensor grid_sampler_by_parts(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                             bool align_corners) {
  GridTaps taps(input, grid, {mode, padding, align_corners});
  Tensor sum;
  do add_to(sum, taps.pick(input).mul(taps.weight()));
  while (taps.next());
  return sum;
}

/// The gradients of the backward pass: of `grad` (what came in), the image and the grid, from those of its results.
/// Either of these may be undefined.
std::tuple<Tensor, Tensor, Tensor> grid_sampler_double_backward(const Tensor& of_image, const Tensor& of_grid,
                                                                const Tensor& grad, const Tensor& input,
                                                                const Tensor& grid, const GridRules& rules) {
  GridTaps taps(input, grid, rules);
  Tensor to_grad, to_image;
  std::vector<Tensor> to_grid(taps.spatial());
  auto direction = [&](size_t d) { return of_grid.select(-1, taps.coordinate(d)).unsqueeze(1); };
  do {
    Tensor here = taps.pick(input);
    if (of_image.defined()) {
      Tensor step = taps.pick(of_image);
      add_to(to_grad, step.mul(taps.weight()));
      for (size_t e = 0; e < taps.spatial(); ++e)
        add_to(to_grid[e], step.mul(grad).mul(taps.weight({e})).sum(IntArrayRef{1}));
    }
    if (!of_grid.defined()) continue;
    for (size_t d = 0; d < taps.spatial(); ++d) {
      Tensor slope = taps.weight({d}).mul(direction(d));
      add_to(to_grad, here.mul(slope));
      add_to(to_image, taps.put(grad.mul(slope)));
      for (size_t e = 0; e < taps.spatial(); ++e)
        add_to(to_grid[e], here.mul(grad).mul(taps.weight({d, e})).mul(direction(d)).sum(IntArrayRef{1}));
    }
  } while (taps.next());
  std::reverse(to_grid.begin(), to_grid.end());
  return {to_grad, to_image, stack(to_grid, -1)};
}

// ---- the operators ----

using Sampler = Tensor (*)(const Tensor&, const Tensor&, int64_t, int64_t, bool);
using SamplerBackward = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t,
                                                       bool, std::vector<bool>);

struct GridSampler {
  int64_t rank;
  Sampler sampler;
  SamplerBackward backward;

  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([rank = rank](const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool) {
          check_grid(input, grid, rank, mode, padding);
          SymShape sizes(input.sym_sizes().slice(0, 2));
          for (SymInt s : grid.sym_sizes().slice(1, static_cast<size_t>(rank - 2))) sizes.push_back(s);
          return TensorSpec(sizes, input.dtype(), common_device({&input, &grid}));
        })
        .cpu([](const Tensor& out, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                bool align_corners) {
          check_types(input, grid);
          kernels::grid_sample(out, input, grid, options_of(mode, padding, align_corners));
        })
        .gradient("input, grid",
                  {"grad", "input", "grid", "interpolation_mode", "padding_mode", "align_corners", "needs"},
                  [backward = backward](const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode,
                                        int64_t padding, bool align_corners, std::vector<bool> needs) {
                    return backward(grad, input, grid, mode, padding, align_corners, needs);
                  })
        .tangents_through(grid_sampler_by_parts)
        .batch([sampler = sampler](const Batched& input, const Batched& grid, int64_t mode, int64_t padding,
                                   bool align_corners) {
          return unfold_batch(sampler(fold_batch({batch_all(input), 0}, 0), fold_batch({batch_all(grid), 0}, 0), mode,
                                      padding, align_corners),
                              0);
        });
  }
};

struct GridSamplerBackward {
  int64_t rank;
  SamplerBackward backward;

  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([rank = rank](const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                            bool, std::array<bool, 2> mask) {
          check_grid(input, grid, rank, mode, padding);
          SymShape sizes(input.sym_sizes().slice(0, 2));
          for (SymInt s : grid.sym_sizes().slice(1, static_cast<size_t>(rank - 2))) sizes.push_back(s);
          check(grad.sym_sizes() == SymIntArrayRef(sizes), "grid_sampler(): expected a gradient of size ",
                to_string(sizes), ", but got ", grad.sym_sizes());
          TensorSpec image(input.sym_sizes(), input.dtype(), input.device());
          image.defined = mask[0];
          return std::tuple(image, TensorSpec(grid.sym_sizes(), grid.dtype(), grid.device()));
        })
        .cpu<2>([](const Tensor& grad_input, const Tensor& grad_grid, const Tensor& grad, const Tensor& input,
                   const Tensor& grid, int64_t mode, int64_t padding, bool align_corners, std::array<bool, 2>) {
          check_types(input, grid);
          check_types(input, grad);
          kernels::grid_sample_backward(grad_input, grad_grid, grad, input, grid,
                                        options_of(mode, padding, align_corners));
        })
        .gradient(
            "grad_output, input, grid",
            {"grad0", "grad1", "grad_output", "input", "grid", "interpolation_mode", "padding_mode", "align_corners"},
            [](const Tensor& of_image, const Tensor& of_grid, const Tensor& grad, const Tensor& input,
               const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
              return grid_sampler_double_backward(of_image, of_grid, grad, input, grid, {mode, padding, align_corners});
            })
        .batch([backward = backward](const Batched& grad, const Batched& input, const Batched& grid, int64_t mode,
                                     int64_t padding, bool align_corners, std::vector<bool> mask) {
          auto whole = [](const Batched& t) { return fold_batch({batch_all(t), 0}, 0); };
          auto [of_input, of_grid] =
              backward(whole(grad), whole(input), whole(grid), mode, padding, align_corners, mask);
          return std::tuple(of_input.defined() ? unfold_batch(of_input, 0) : Batched(), unfold_batch(of_grid, 0));
        });
  }
};

UMBRA_OPERATOR(
    "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
    "Tensor")
    .generated_out("grid_sampler_2d.out")
    .use(GridSampler{4, grid_sampler_2d, grid_sampler_2d_backward})
    .tags({Tag::Core});
UMBRA_OPERATOR(
    "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
    "Tensor")
    .generated_out("grid_sampler_3d.out")
    .use(GridSampler{5, grid_sampler_3d, grid_sampler_3d_backward});
UMBRA_OPERATOR(
    "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)")
    .generated_out("grid_sampler_2d_backward.out", {"out0", "out1"})
    .use(GridSamplerBackward{4, grid_sampler_2d_backward});
UMBRA_OPERATOR(
    "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)")
    .generated_out("grid_sampler_3d_backward.out", {"out0", "out1"})
    .use(NoOutputsOnMeta{"grid_sampler_3d_backward.out"})
    .use(GridSamplerBackward{5, grid_sampler_3d_backward});

UMBRA_OPERATOR(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor")
    .composite([](const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
      check_grid(input, grid);
      return input.dim() == 4 ? grid_sampler_2d(input, grid, mode, padding, align_corners)
                              : grid_sampler_3d(input, grid, mode, padding, align_corners);
    });

// ---- affine maps ----

// From -1 to 1: the ends' centres, or the ends themselves half an element beyond.
Tensor even_steps(const Tensor& like, SymInt count, bool align_corners) {
  if (count <= 1) return zeros({}, like.options());
  Tensor steps = linspace(-1, 1, count.guard_int(), like.options());
  return align_corners ? steps : steps.mul(Scalar(count - 1)).div(Scalar(count));
}

Tensor base_grid(const Tensor& like, SymIntArrayRef size, bool align_corners) {
  check(size.size() == 4 || size.size() == 5, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  SymShape sizes{size[0]};
  auto spatial = static_cast<int64_t>(size.size()) - 2;
  for (SymInt s : size.drop_front(2)) sizes.push_back(s);
  sizes.push_back(spatial + 1);
  Tensor grid = empty(sizes, like.options());
  for (int64_t k = 0; k < spatial; ++k) {
    Tensor place = grid.select(-1, k),
           steps = even_steps(like, size[size.size() - 1 - static_cast<size_t>(k)], align_corners);
    for (int64_t u = 0; u < k; ++u) steps.unsqueeze_(-1);
    place.copy_(steps);
  }
  grid.select(-1, spatial).fill_(1);
  return grid;
}

UMBRA_OPERATOR("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor")
    .generated_out("affine_grid_generator.out")
    .all_backends([](const Tensor& theta, SymIntArrayRef size, bool align_corners) {
      Tensor grid = base_grid(theta, size, align_corners);
      SymInt coordinates = grid.sym_size(-1), places = product(size.drop_front(2));
      SymShape sizes{size[0]};
      for (SymInt s : size.drop_front(2)) sizes.push_back(s);
      sizes.push_back(coordinates - 1);
      return grid.view({size[0], places, coordinates}).bmm(theta.transpose(1, 2)).view(sizes);
    })
    .gradient("theta", {"grad", "size", "align_corners"},
              [](const Tensor& grad, SymIntArrayRef size, bool align_corners) {
                return affine_grid_generator_backward(grad, size, align_corners);
              })
    .linear();

UMBRA_OPERATOR("affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor")
    .composite([](const Tensor& grad, SymIntArrayRef size, bool align_corners) {
      Tensor grid = base_grid(grad, size, align_corners);
      SymInt coordinates = grid.sym_size(-1), places = product(size.drop_front(2));
      Tensor steps = grid.view({size[0], places, coordinates}).transpose(1, 2);
      return steps.bmm(grad.reshape({size[0], places, coordinates - 1})).transpose(1, 2);
    });

}  // namespace
}  // namespace umbra::ops
