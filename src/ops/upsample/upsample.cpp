// Images at another size: by the nearest element, by lines, planes and cubics between elements, and with filters that
// smooth what gets smaller. What the operators share is written once, over the number of spatial dimensions and whether
// they take `align_corners`.
#include <cmath>

#include "dispatch/layers.h"
#include "kernels/resample.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/upsample/sizes.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using kernels::Interpolation;
using Scale = std::optional<double>;
using Sizes = std::vector<SymInt>;

// ---- sizes ----

/// "(H: 4, W: 4)".
std::string spatial_text(SymIntArrayRef sizes) {
  static constexpr const char* kNames[] = {"D", "H", "W"};
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + std::string(kNames[3 - sizes.size() + i]) + ": " + to_string(sizes[i]);
  return "(" + text + ")";
}

/// The sizes of the result; an error where something is empty that must not be.
SymShape resized(SymIntArrayRef input, SymIntArrayRef output, size_t spatial) {
  check(output.size() == spatial, "It is expected output_size equals to ", spatial, ", but got size ", output.size());
  check(input.size() == spatial + 2, "It is expected input_size equals to ", spatial + 2, ", but got size ",
        input.size());
  SymIntArrayRef from = input.drop_front(2);
  for (size_t i = 0; i < spatial; ++i)
    if (!(expect_less(0, from[i]) && expect_less(0, output[i])))
      fail("Input and output sizes should be greater than 0, but got input ", spatial_text(from),
           spatial == 1 ? " and output " : " output ", spatial_text(output));
  SymShape sizes(input.slice(0, 2));
  for (SymInt s : output) sizes.push_back(s);
  return sizes;
}

TensorSpec upsampled(const Tensor& self, SymIntArrayRef output, size_t spatial) {
  SymShape sizes = resized(self.sym_sizes(), output, spatial);
  // A batch may be empty; channels may not.
  if (const SymInt channels = self.sym_sizes()[1]; !channels.is_symbolic() && channels.value() == 0)
    fail("Non-empty ", self.dim(), "D data tensor expected but got a tensor with sizes ", self.sym_sizes());
  return TensorSpec(sizes, strides_for(sizes, self.suggested_format()), self.dtype(), self.device());
}

TensorSpec upsample_gradient(const Tensor& grad, SymIntArrayRef output, SymIntArrayRef input, size_t spatial,
                             Interpolation mode) {
  SymShape sizes = resized(input, output, spatial);
  if (spatial == 1) grad.sym_size(0);  // a number is an IndexError
  check(grad.dim() == static_cast<int64_t>(sizes.size()), "Expected grad_output to be a tensor of dimension ",
        sizes.size(), " but got: dimension ", grad.dim());
  for (size_t i = 0; i < sizes.size(); ++i)
    check(grad.sym_sizes()[i] == sizes[i], "Expected grad_output to have the same shape as output; output.size(", i,
          ") = ", sizes[i], " but got grad_output.size(", i, ") = ", grad.sym_sizes()[i]);
  bool nearest = mode == Interpolation::Nearest || mode == Interpolation::NearestExact;
  bool by_rows = mode == Interpolation::Cubic || mode == Interpolation::CubicSmooth || (nearest && spatial == 3);
  MemoryFormat format = by_rows ? MemoryFormat::Contiguous : grad.suggested_format();
  return TensorSpec(input, strides_for(input, format), grad.dtype(), grad.device());
}

/// What the backward is told, in the order in which it and the forward take it. `from` names the input's sizes.
using Names = std::initializer_list<const char*>;
template <size_t N, bool Aligned> struct Saved;
template <> struct Saved<1, false> {
  static constexpr Names forward{"grad", "output_size", "self.sym_sizes", "scales"};
  static constexpr Names backward{"grad", "output_size", "scales"};
};
template <> struct Saved<2, false> {
  static constexpr Names forward{"grad", "output_size", "self.sym_sizes", "scales_h", "scales_w"};
  static constexpr Names backward{"grad", "output_size", "scales_h", "scales_w"};
};
template <> struct Saved<3, false> {
  static constexpr Names forward{"grad", "output_size", "self.sym_sizes", "scales_d", "scales_h", "scales_w"};
  static constexpr Names backward{"grad", "output_size", "scales_d", "scales_h", "scales_w"};
};
template <> struct Saved<1, true> {
  static constexpr Names forward{"grad", "output_size", "self.sym_sizes", "align_corners", "scales"};
  static constexpr Names backward{"grad", "output_size", "align_corners", "scales"};
};
template <> struct Saved<2, true> {
  static constexpr Names forward{"grad", "output_size", "self.sym_sizes", "align_corners", "scales_h", "scales_w"};
  static constexpr Names backward{"grad", "output_size", "align_corners", "scales_h", "scales_w"};
};
template <> struct Saved<3, true> {
  static constexpr Names forward{"grad",     "output_size", "self.sym_sizes", "align_corners",
                                 "scales_d", "scales_h",    "scales_w"};
  static constexpr Names backward{"grad", "output_size", "align_corners", "scales_d", "scales_h", "scales_w"};
};

/// What PyTorch's descriptions of these modes, which are made of other operators, find missing before all else.
void check_parts(Interpolation mode, const Tensor& self, SymIntArrayRef size) {
  if (mode == Interpolation::Cubic)
    check<ValueError>(self.dim() == 4, "expected images of 4 dimensions, but got ", self.dim());
  if (mode != Interpolation::Linear) return;
  check<IndexError>(self.dim() > 1, "tuple index out of range");
  check<ValueError>(self.dim() > 2 && !size.empty(), "expected a size for each dimension of the images, but got ",
                    size.size(), " for ", self.dim() - 2);
}

// ---- the family ----

/// The functions of one pair of operators: `Options` are the arguments behind the sizes, align_corners (where there is
/// one) and a scale for each dimension.
template <size_t N, bool Aligned, class... Options> struct Family {
  using Forward = Tensor (*)(const Tensor&, const argument::SymInts&, Options...);
  using Backward = Tensor (*)(const Tensor&, const argument::SymInts&, const argument::SymInts&, Options...);
  Interpolation mode;
  Forward forward;
  Backward backward;

  static kernels::ResampleOptions options(Interpolation mode, Options... values) {
    kernels::ResampleOptions out{.mode = mode};
    auto take = [&](auto value) {
      if constexpr (std::is_same_v<decltype(value), bool>) out.align_corners = value;
      else out.scales.push_back(value);
    };
    (take(values), ...);
    return out;
  }

  void define_forward(OperatorBuilder& builder) const {
    Interpolation mode = this->mode;
    builder
        .meta([mode](const Tensor& self, SymIntArrayRef size, Options...) {
          if (Aligned && only_metadata_is_asked() && !outputs_are_given()) check_parts(mode, self, size);
          return upsampled(self, size, N);
        })
        .cpu([mode](const Tensor& out, const Tensor& self, SymIntArrayRef, Options... values) {
          kernels::resample(out, self, options(mode, values...));
        })
        .gradient("self", Saved<N, Aligned>::forward,
                  [backward = backward](const Tensor& grad, Sizes output, Sizes input, Options... values) {
                    return backward(grad, output, input, values...);
                  })
        .linear()
        .batch([forward = forward](const Batched& self, SymIntArrayRef size, Options... values) {
          return unfold_batch(forward(fold_batch(self, 0), size, values...), 0);
        });
  }

  void define_backward(OperatorBuilder& builder) const {
    Interpolation mode = this->mode;
    builder
        .meta([mode](const Tensor& grad, SymIntArrayRef output, SymIntArrayRef input, Options...) {
          return upsample_gradient(grad, output, input, N, mode);
        })
        .cpu([mode](const Tensor& out, const Tensor& grad, SymIntArrayRef, SymIntArrayRef, Options... values) {
          kernels::resample_backward(out, grad, options(mode, values...));
        })
        .gradient("grad_output", Saved<N, Aligned>::backward,
                  [forward = forward](const Tensor& grad, Sizes output, Options... values) {
                    return forward(grad, output, values...);
                  })
        .linear()
        .batch([backward = backward](const Batched& grad, SymIntArrayRef output, Sizes input, Options... values) {
          input[0] *= batch_scope().size;
          return unfold_batch(backward(fold_batch(grad, 0), output, input, values...), 0);
        });
  }
};

template <size_t N, bool Aligned> struct FamilyOf;
template <> struct FamilyOf<1, false> { using type = Family<1, false, Scale>; };
template <> struct FamilyOf<2, false> { using type = Family<2, false, Scale, Scale>; };
template <> struct FamilyOf<3, false> { using type = Family<3, false, Scale, Scale, Scale>; };
template <> struct FamilyOf<1, true> { using type = Family<1, true, bool, Scale>; };
template <> struct FamilyOf<2, true> { using type = Family<2, true, bool, Scale, Scale>; };
template <> struct FamilyOf<3, true> { using type = Family<3, true, bool, Scale, Scale, Scale>; };

template <size_t N, bool Aligned> struct Upsample : FamilyOf<N, Aligned>::type {
  void operator()(OperatorBuilder& builder) const { this->define_forward(builder); }
};
template <size_t N, bool Aligned> struct UpsampleBackward : FamilyOf<N, Aligned>::type {
  void operator()(OperatorBuilder& builder) const { this->define_backward(builder); }
};

// ---- by sizes or by scales ----

}  // namespace

SymShape upsampled_sizes(SymIntArrayRef input, const std::optional<SymIntArrayRef>& output,
                         const std::optional<std::vector<double>>& scales) {
  size_t spatial = input.size() < 2 ? 0 : input.size() - 2;
  const char* unclear =
      " to be true, but got false.  (Could this error message be improved?  If so, please report an "
      "enhancement request to PyTorch.)";
  if (output) {
    check(!scales, "Must specify exactly one of output_size and scale_factors");
    check(input.size() >= 2 && output->size() == spatial,
          "Expected static_cast<int64_t>(output_size->size()) == spatial_dimensions", unclear);
    return SymShape(*output);
  }
  check(scales.has_value(), "Must specify exactly one of output_size and scale_factors");
  check(input.size() >= 2 && scales->size() == spatial,
        "Expected static_cast<int64_t>(scale_factors->size()) == spatial_dimensions", unclear);
  SymShape sizes;
  for (size_t i = 0; i < spatial; ++i) {
    double scale = (*scales)[i];
    bool fits = input[i + 2].is_symbolic() || std::abs(scale * static_cast<double>(input[i + 2].value())) < 0x1p63;
    check(fits, "value cannot be converted to type int64_t without overflow");
    bool whole = scale == std::trunc(scale) && std::abs(scale) < 0x1p31;  // 2*s says more than trunc(2.0*s)
    sizes.push_back(whole ? input[i + 2] * static_cast<int64_t>(scale)
                          : sym_round(SymOp::Trunc, sym_float_binary(SymOp::Mul, sym_float(input[i + 2]), scale)));
  }
  return sizes;
}

namespace {

/// The form that takes sizes or scales.
template <size_t N, bool Aligned> struct UpsampleTo {
  typename FamilyOf<N, Aligned>::type::Forward forward;

  void operator()(OperatorBuilder& builder) const {
    using OptionalSizes = std::optional<SymIntArrayRef>;
    using Scales = std::optional<std::vector<double>>;
    auto call = [forward = forward](const Tensor& input, const OptionalSizes& output, const Scales& scales,
                                    auto... align) {
      SymShape size = upsampled_sizes(input.sym_sizes(), output, scales);
      auto scale = [&](size_t i) { return scales ? Scale((*scales)[i]) : Scale(); };
      if constexpr (N == 1) return forward(input, size, align..., scale(0));
      else if constexpr (N == 2) return forward(input, size, align..., scale(0), scale(1));
      else return forward(input, size, align..., scale(0), scale(1), scale(2));
    };
    if constexpr (Aligned)
      builder.composite([call](const Tensor& input, OptionalSizes output, bool align_corners, Scales scales) {
        check(input.dim() == N + 2 || input.dim() < 2 || !scales, "It is expected input_size equals to ", N + 2,
              ", but got size ", input.dim());
        return call(input, output, scales, align_corners);
      });
    else
      builder.composite([call](const Tensor& input, OptionalSizes output, Scales scales) {
        check(input.dim() == N + 2 || input.dim() < 2 || !scales, "It is expected input_size equals to ", N + 2,
              ", but got size ", input.dim());
        return call(input, output, scales);
      });
  }
};

UMBRA_OPERATOR("upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
    .out("upsample_nearest1d.out")
    .use(Upsample<1, false>{Interpolation::Nearest, upsample_nearest1d, upsample_nearest1d_backward});
UMBRA_OPERATOR(
    "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? "
    "scales=None) -> Tensor")
    .out("upsample_nearest1d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<1, false>{Interpolation::Nearest, upsample_nearest1d, upsample_nearest1d_backward});
UMBRA_OPERATOR("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    .use(UpsampleTo<1, false>{upsample_nearest1d});

UMBRA_OPERATOR(
    "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_nearest2d.out")
    .use(Upsample<2, false>{Interpolation::Nearest, upsample_nearest2d, upsample_nearest2d_backward});
UMBRA_OPERATOR(
    "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
    "scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_nearest2d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, false>{Interpolation::Nearest, upsample_nearest2d, upsample_nearest2d_backward});
UMBRA_OPERATOR("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    .generated_out("upsample_nearest2d.vec_out")
    .use(UpsampleTo<2, false>{upsample_nearest2d})
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
    "scales_w=None) -> Tensor")
    .out("upsample_nearest3d.out")
    .use(Upsample<3, false>{Interpolation::Nearest, upsample_nearest3d, upsample_nearest3d_backward});
UMBRA_OPERATOR(
    "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? "
    "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_nearest3d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<3, false>{Interpolation::Nearest, upsample_nearest3d, upsample_nearest3d_backward});
UMBRA_OPERATOR("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    .use(UpsampleTo<3, false>{upsample_nearest3d});

UMBRA_OPERATOR("_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
    .out("_upsample_nearest_exact1d.out")
    .use(Upsample<1, false>{Interpolation::NearestExact, _upsample_nearest_exact1d,
                            _upsample_nearest_exact1d_backward});
UMBRA_OPERATOR(
    "_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? "
    "scales=None) -> Tensor")
    .out("_upsample_nearest_exact1d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<1, false>{Interpolation::NearestExact, _upsample_nearest_exact1d,
                                    _upsample_nearest_exact1d_backward});
UMBRA_OPERATOR("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    .use(UpsampleTo<1, false>{_upsample_nearest_exact1d});

UMBRA_OPERATOR(
    "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
    "Tensor")
    .out("_upsample_nearest_exact2d.out")
    .use(Upsample<2, false>{Interpolation::NearestExact, _upsample_nearest_exact2d,
                            _upsample_nearest_exact2d_backward});
UMBRA_OPERATOR(
    "_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
    "scales_h=None, float? scales_w=None) -> Tensor")
    .out("_upsample_nearest_exact2d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, false>{Interpolation::NearestExact, _upsample_nearest_exact2d,
                                    _upsample_nearest_exact2d_backward});
UMBRA_OPERATOR("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    .use(UpsampleTo<2, false>{_upsample_nearest_exact2d});

UMBRA_OPERATOR(
    "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, "
    "float? scales_w=None) -> Tensor")
    .out("_upsample_nearest_exact3d.out")
    .use(Upsample<3, false>{Interpolation::NearestExact, _upsample_nearest_exact3d,
                            _upsample_nearest_exact3d_backward});
UMBRA_OPERATOR(
    "_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? "
    "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("_upsample_nearest_exact3d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<3, false>{Interpolation::NearestExact, _upsample_nearest_exact3d,
                                    _upsample_nearest_exact3d_backward});
UMBRA_OPERATOR("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
    .use(UpsampleTo<3, false>{_upsample_nearest_exact3d});

UMBRA_OPERATOR(
    "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor")
    .out("upsample_linear1d.out")
    .use(Upsample<1, true>{Interpolation::Linear, upsample_linear1d, upsample_linear1d_backward});
UMBRA_OPERATOR(
    "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, "
    "float? scales=None) -> Tensor")
    .out("upsample_linear1d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<1, true>{Interpolation::Linear, upsample_linear1d, upsample_linear1d_backward});
UMBRA_OPERATOR(
    "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor")
    .use(UpsampleTo<1, true>{upsample_linear1d});

UMBRA_OPERATOR(
    "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
    "scales_w=None) -> Tensor")
    .out("upsample_bilinear2d.out")
    .use(Upsample<2, true>{Interpolation::Linear, upsample_bilinear2d, upsample_bilinear2d_backward});
UMBRA_OPERATOR(
    "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
    "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_bilinear2d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, true>{Interpolation::Linear, upsample_bilinear2d, upsample_bilinear2d_backward});
UMBRA_OPERATOR(
    "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
    "Tensor")
    .generated_out("upsample_bilinear2d.vec_out")
    .use(UpsampleTo<2, true>{upsample_bilinear2d})
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
    "scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_trilinear3d.out")
    .use(Upsample<3, true>{Interpolation::Linear, upsample_trilinear3d, upsample_trilinear3d_backward});
UMBRA_OPERATOR(
    "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool "
    "align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_trilinear3d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<3, true>{Interpolation::Linear, upsample_trilinear3d, upsample_trilinear3d_backward});
UMBRA_OPERATOR(
    "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
    "Tensor")
    .use(UpsampleTo<3, true>{upsample_trilinear3d});

UMBRA_OPERATOR(
    "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
    "scales_w=None) -> Tensor")
    .out("upsample_bicubic2d.out")
    .use(Upsample<2, true>{Interpolation::Cubic, upsample_bicubic2d, upsample_bicubic2d_backward});
UMBRA_OPERATOR(
    "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
    "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("upsample_bicubic2d_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, true>{Interpolation::Cubic, upsample_bicubic2d, upsample_bicubic2d_backward});
UMBRA_OPERATOR(
    "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
    "Tensor")
    .use(UpsampleTo<2, true>{upsample_bicubic2d});

UMBRA_OPERATOR(
    "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
    "scales_w=None) -> Tensor")
    .out("_upsample_bilinear2d_aa.out")
    .use(Upsample<2, true>{Interpolation::LinearSmooth, _upsample_bilinear2d_aa, _upsample_bilinear2d_aa_backward});
UMBRA_OPERATOR(
    "_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
    "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("_upsample_bilinear2d_aa_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, true>{Interpolation::LinearSmooth, _upsample_bilinear2d_aa,
                                   _upsample_bilinear2d_aa_backward});
UMBRA_OPERATOR(
    "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
    "Tensor")
    .use(UpsampleTo<2, true>{_upsample_bilinear2d_aa});

UMBRA_OPERATOR(
    "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
    "scales_w=None) -> Tensor")
    .out("_upsample_bicubic2d_aa.out")
    .use(Upsample<2, true>{Interpolation::CubicSmooth, _upsample_bicubic2d_aa, _upsample_bicubic2d_aa_backward});
UMBRA_OPERATOR(
    "_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
    "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("_upsample_bicubic2d_aa_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, true>{Interpolation::CubicSmooth, _upsample_bicubic2d_aa,
                                   _upsample_bicubic2d_aa_backward});
UMBRA_OPERATOR(
    "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
    "Tensor")
    .use(UpsampleTo<2, true>{_upsample_bicubic2d_aa});

UMBRA_OPERATOR(
    "_upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
    "scales_w=None) -> Tensor")
    .out("_upsample_lanczos2d_aa.out")
    .use(Upsample<2, true>{Interpolation::LanczosSmooth, _upsample_lanczos2d_aa, _upsample_lanczos2d_aa_backward});
UMBRA_OPERATOR(
    "_upsample_lanczos2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
    "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
    .out("_upsample_lanczos2d_aa_backward.grad_input", {"grad_input"})
    .use(UpsampleBackward<2, true>{Interpolation::LanczosSmooth, _upsample_lanczos2d_aa,
                                   _upsample_lanczos2d_aa_backward});
UMBRA_OPERATOR(
    "_upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
    "Tensor")
    .use(UpsampleTo<2, true>{_upsample_lanczos2d_aa});

}  // namespace
}  // namespace umbra::ops
