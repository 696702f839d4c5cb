// The transforms by name: one, two or any number of dimensions; of complex, real and Hermitian signals.
#include "ops/fft/transforms.h"

#include <algorithm>
#include <numeric>

#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

FftNorm fft_norm(const std::optional<std::string>& mode, bool forward) {
  if (!mode || *mode == "backward") return forward ? FftNorm::None : FftNorm::ByCount;
  if (*mode == "forward") return forward ? FftNorm::ByCount : FftNorm::None;
  check(*mode == "ortho", "Invalid normalization mode: \"", *mode, "\"");
  return FftNorm::ByRoot;
}

namespace {

using Text = std::optional<std::string>;
using Size = std::optional<SymInt>;
using Sizes = std::optional<std::vector<SymInt>>;
using Dims = std::optional<std::vector<int64_t>>;

// ---- inputs ----

/// The tensor in a type that has transforms: integers become the default floating type.
Tensor promoted(const Tensor& self, bool to_complex) {
  DType type = self.dtype();
  if (is_integral(type, true)) type = default_dtype();
  check<NotImplementedError>(real_type(type) == DType::Float32 || real_type(type) == DType::Float64,
                             "Unsupported dtype ", kernel_name(type));
  if (to_complex) type = complex_type(type);
  return type == self.dtype() ? self : self.to(type);
}

/// Cut off or filled up with zeros to these sizes along these dimensions.
Tensor resized(Tensor x, const std::vector<int64_t>& dims, const std::vector<SymInt>& sizes) {
  std::vector<SymInt> padding(2 * x.dim(), 0);
  bool pads = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    SymInt have = x.sym_size(dims[i]);
    if (have < sizes[i]) {
      padding[2 * (x.dim() - 1 - dims[i]) + 1] = sizes[i] - have;
      pads = true;
    } else if (have > sizes[i]) {
      x = x.slice(dims[i], 0, sizes[i]);
    }
  }
  return pads ? constant_pad_nd(x, padding, 0) : x;
}

int64_t number(FftNorm norm) { return static_cast<int64_t>(norm); }
std::vector<SymInt> as_symbols(const std::vector<int64_t>& dims) { return {dims.begin(), dims.end()}; }

// ---- the three transforms, into an output where there is one ----

Tensor c2c(const Tensor& x, const std::vector<int64_t>& dims, FftNorm norm, bool forward, const Tensor& out) {
  if (out.defined()) return _fft_c2c_out(out, x, as_symbols(dims), number(norm), forward);
  return _fft_c2c(x, as_symbols(dims), number(norm), forward);
}
Tensor r2c(const Tensor& x, const std::vector<int64_t>& dims, FftNorm norm, bool onesided, const Tensor& out) {
  if (out.defined()) return _fft_r2c_out(out, x, dims, number(norm), onesided);
  return _fft_r2c(x, dims, number(norm), onesided);
}
Tensor c2r(const Tensor& x, const std::vector<int64_t>& dims, FftNorm norm, SymInt last, const Tensor& out) {
  if (out.defined()) return _fft_c2r_out(out, x, dims, number(norm), last);
  return _fft_c2r(x, dims, number(norm), last);
}
/// What a transform of real numbers gives, conjugated: that of the other direction.
Tensor conjugated(const Tensor& x, const Tensor& out) { return out.defined() ? conj_physical_out(out, x) : x.conj(); }

/// A transform and its out variant: one function, whose output is not defined where none was given.
template <class Points, class Where> struct Transform {
  using Function = Tensor (*)(const Tensor& self, Points points, Where where, const Text& norm, const Tensor& out);
  Function run;
  void operator()(OperatorBuilder& builder) const {
    builder.composite([run = run](const Tensor& self, Points points, Where where, const Text& norm) {
      return run(self, points, where, norm, {});
    });
    builder.use(out_parts(run));
  }
};
using OneDim = Transform<Size, int64_t>;
using SeveralDims = Transform<Sizes, Dims>;
using TwoDims = Transform<Sizes, std::vector<int64_t>>;

// ---- one dimension ----

Tensor complex_transform(const Tensor& self, Size n, int64_t dim, const Text& norm, bool forward, const Tensor& out) {
  Tensor x = promoted(self, true);
  int64_t d = wrap_dim(dim, x.dim(), false);
  SymInt points = n ? *n : x.sym_size(d);
  check_points(points);
  if (n) x = resized(x, {d}, {points});
  return c2c(x, {d}, fft_norm(norm, forward), forward, out);
}

Tensor real_transform(const char* name, const Tensor& self, Size n, int64_t dim, const Text& norm, bool forward,
                      bool onesided, const Tensor& out) {
  check<TypeError>(!self.is_complex(), name, " expects a real input tensor, but got ", kernel_name(self.dtype()));
  check(!out.defined() || out.is_complex(), name, " expects a complex output tensor, but got ",
        out.defined() ? kernel_name(out.dtype()) : "");
  Tensor x = promoted(self, false);
  int64_t d = wrap_dim(dim, x.dim(), false);
  SymInt points = n ? *n : x.sym_size(d);
  check_points(points);
  if (n) x = resized(x, {d}, {points});
  // The backward transform of real numbers is the conjugate of the forward one.
  if (forward) return r2c(x, {d}, fft_norm(norm, forward), onesided, out);
  return conjugated(r2c(x, {d}, fft_norm(norm, forward), onesided, {}), out);
}

Tensor to_real_transform(const char* name, const Tensor& self, Size n, int64_t dim, const Text& norm, bool forward,
                         const Tensor& out) {
  check(!out.defined() || out.is_floating_point(), name, " expects a floating point output tensor, but got ",
        out.defined() ? kernel_name(out.dtype()) : "");
  Tensor x = promoted(self, true);
  int64_t d = wrap_dim(dim, x.dim(), false);
  SymInt points = n ? *n : (x.sym_size(d) - 1) * 2;
  check_points(points);
  if (n) x = resized(x, {d}, {points / 2 + 1});
  if (forward) x = x.conj().resolve_conj();
  return c2r(x, {d}, fft_norm(norm, forward), points, out);
}

Tensor any_transform(const char* name, const Tensor& self, Size n, int64_t dim, const Text& norm, bool forward,
                     const Tensor& out) {
  return self.is_complex() ? complex_transform(self, n, dim, norm, forward, out)
                           : real_transform(name, self, n, dim, norm, forward, false, out);
}

UMBRA_OPERATOR("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
    .out("fft_fft.out")
    .use(OneDim{[](const Tensor& self, Size n, int64_t dim, const Text& norm, const Tensor& out) {
      return any_transform("fft", self, n, dim, norm, true, out);
    }});
UMBRA_OPERATOR("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
    .out("fft_ifft.out")
    .use(OneDim{[](const Tensor& self, Size n, int64_t dim, const Text& norm, const Tensor& out) {
      return any_transform("ifft", self, n, dim, norm, false, out);
    }});
UMBRA_OPERATOR("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
    .out("fft_rfft.out")
    .use(OneDim{[](const Tensor& self, Size n, int64_t dim, const Text& norm, const Tensor& out) {
      return real_transform("rfft", self, n, dim, norm, true, true, out);
    }});
UMBRA_OPERATOR("fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
    .out("fft_ihfft.out")
    .use(OneDim{[](const Tensor& self, Size n, int64_t dim, const Text& norm, const Tensor& out) {
      return real_transform("ihfft", self, n, dim, norm, false, true, out);
    }});
UMBRA_OPERATOR("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
    .out("fft_irfft.out")
    .use(OneDim{[](const Tensor& self, Size n, int64_t dim, const Text& norm, const Tensor& out) {
      return to_real_transform("irfft", self, n, dim, norm, false, out);
    }});
UMBRA_OPERATOR("fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
    .out("fft_hfft.out")
    .use(OneDim{[](const Tensor& self, Size n, int64_t dim, const Text& norm, const Tensor& out) {
      return to_real_transform("hfft", self, n, dim, norm, true, out);
    }});

// ---- several dimensions ----

struct Extent {
  std::vector<SymInt> sizes;
  std::vector<int64_t> dims;
};

/// Which dimensions, and how many points of each: the last ones where only sizes are given, all where nothing is.
Extent extent_of(const Tensor& self, const Sizes& sizes, const Dims& dims) {
  int64_t rank = self.dim();
  Extent out;
  if (dims) {
    for (int64_t d : *dims) out.dims.push_back(wrap_dim(d, rank, false));
    std::vector<int64_t> sorted(out.dims);
    std::sort(sorted.begin(), sorted.end());
    check(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "FFT dims must be unique");
  }
  if (sizes) {
    check(!dims || dims->size() == sizes->size(), "When given, dim and shape arguments must have the same length");
    int64_t count = static_cast<int64_t>(sizes->size());
    check(count <= rank, "Got shape with ", count, " values but input tensor only has ", rank, " dimensions.");
    if (!dims)
      for (int64_t d = rank - count; d < rank; ++d) out.dims.push_back(d);
    for (size_t i = 0; i < sizes->size(); ++i) {
      SymInt n = (*sizes)[i];
      out.sizes.push_back(n.same(-1) ? self.sym_size(out.dims[i]) : n);
    }
  } else {
    if (!dims) {
      out.dims.resize(rank);
      std::iota(out.dims.begin(), out.dims.end(), 0);
    }
    for (int64_t d : out.dims) out.sizes.push_back(self.sym_size(d));
  }
  for (SymInt n : out.sizes) check_points(n);
  return out;
}

Tensor complex_transform_nd(const Tensor& self, const Sizes& s, const Dims& dim, const Text& norm, bool forward,
                            const Tensor& out) {
  Extent extent = extent_of(self, s, dim);
  Tensor x = promoted(self, true);
  x = resized(x, extent.dims, extent.sizes);
  return c2c(x, extent.dims, fft_norm(norm, forward), forward, out);
}

Tensor rfftn_parts(const Tensor& self, const Sizes& s, const Dims& dim, const Text& norm, const Tensor& out) {
  check<TypeError>(!self.is_complex(), "rfftn expects a real-valued input tensor, but got ", kernel_name(self.dtype()));
  Extent extent = extent_of(self, s, dim);
  check(!extent.dims.empty(), "rfftn must transform at least one axis");
  Tensor x = promoted(self, false);
  x = resized(x, extent.dims, extent.sizes);
  return r2c(x, extent.dims, fft_norm(norm, true), true, out);
}

/// The extent of a transform to real numbers: how many come out along the last dimension decides what goes in.
std::pair<Extent, SymInt> to_real_extent(const char* name, const Tensor& x, const Sizes& s, const Dims& dim) {
  Extent extent = extent_of(x, s, dim);
  check(!extent.dims.empty(), name, " must transform at least one axis");
  bool given = s && !s->back().same(-1);
  SymInt last = given ? s->back() : (x.sym_size(extent.dims.back()) - 1) * 2;
  check_points(last);
  extent.sizes.back() = last / 2 + 1;
  return {extent, last};
}

Tensor irfftn_parts(const Tensor& self, const Sizes& s, const Dims& dim, const Text& norm, const Tensor& out) {
  auto [extent, last] = to_real_extent("irfftn", self, s, dim);
  Tensor x = promoted(self, true);
  x = resized(x, extent.dims, extent.sizes);
  return c2r(x, extent.dims, fft_norm(norm, false), last, out);
}

Tensor hfftn_parts(const Tensor& self, const Sizes& s, const Dims& dim, const Text& norm, const Tensor& out) {
  auto [extent, last] = to_real_extent("hfftn", self, s, dim);
  Tensor x = promoted(self, true);
  x = resized(x, extent.dims, extent.sizes);
  FftNorm mode = fft_norm(norm, true);
  std::vector<int64_t> others(extent.dims.begin(), extent.dims.end() - 1);
  if (!others.empty()) x = c2c(x, others, mode, true, {});
  return c2r(x.conj().resolve_conj(), {extent.dims.back()}, mode, last, out);
}

Tensor ihfftn_parts(const Tensor& self, const Sizes& s, const Dims& dim, const Text& norm, const Tensor& out) {
  Extent extent = extent_of(self, s, dim);
  check(!extent.dims.empty(), "ihfftn must transform at least one axis");
  check<TypeError>(!self.is_complex(), "Only supports floating-point dtypes, but found: ", kernel_name(self.dtype()));
  Tensor x = promoted(self, false);
  x = resized(x, extent.dims, extent.sizes);
  FftNorm mode = fft_norm(norm, false);
  Tensor half = r2c(x, {extent.dims.back()}, mode, true, {});
  std::vector<int64_t> others(extent.dims.begin(), extent.dims.end() - 1);
  if (others.empty()) return conjugated(half, out);
  return c2c(conj_physical(half), others, mode, false, out);
}

UMBRA_OPERATOR("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
    .out("fft_fftn.out")
    .use(SeveralDims{[](const Tensor& self, Sizes s, Dims dim, const Text& norm, const Tensor& out) {
      return complex_transform_nd(self, s, dim, norm, true, out);
    }});
UMBRA_OPERATOR("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
    .out("fft_ifftn.out")
    .use(SeveralDims{[](const Tensor& self, Sizes s, Dims dim, const Text& norm, const Tensor& out) {
      return complex_transform_nd(self, s, dim, norm, false, out);
    }});
UMBRA_OPERATOR("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
    .out("fft_rfftn.out")
    .use(SeveralDims{[](const Tensor& self, Sizes s, Dims dim, const Text& norm, const Tensor& out) {
      return rfftn_parts(self, s, dim, norm, out);
    }});
UMBRA_OPERATOR("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
    .out("fft_irfftn.out")
    .use(SeveralDims{[](const Tensor& self, Sizes s, Dims dim, const Text& norm, const Tensor& out) {
      return irfftn_parts(self, s, dim, norm, out);
    }});
UMBRA_OPERATOR("fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
    .out("fft_hfftn.out")
    .use(SeveralDims{[](const Tensor& self, Sizes s, Dims dim, const Text& norm, const Tensor& out) {
      return hfftn_parts(self, s, dim, norm, out);
    }});
UMBRA_OPERATOR("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
    .out("fft_ihfftn.out")
    .use(SeveralDims{[](const Tensor& self, Sizes s, Dims dim, const Text& norm, const Tensor& out) {
      return ihfftn_parts(self, s, dim, norm, out);
    }});

// ---- two dimensions: the same, with another default ----

using DimList = std::vector<int64_t>;

UMBRA_OPERATOR("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor")
    .out("fft_fft2.out")
    .use(TwoDims{[](const Tensor& self, Sizes s, DimList dim, const Text& norm, const Tensor& out) {
      return complex_transform_nd(self, s, dim, norm, true, out);
    }});
UMBRA_OPERATOR("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor")
    .out("fft_ifft2.out")
    .use(TwoDims{[](const Tensor& self, Sizes s, DimList dim, const Text& norm, const Tensor& out) {
      return complex_transform_nd(self, s, dim, norm, false, out);
    }});
UMBRA_OPERATOR("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor")
    .out("fft_rfft2.out")
    .use(TwoDims{[](const Tensor& self, Sizes s, DimList dim, const Text& norm, const Tensor& out) {
      return rfftn_parts(self, s, dim, norm, out);
    }});
UMBRA_OPERATOR("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor")
    .out("fft_irfft2.out")
    .use(TwoDims{[](const Tensor& self, Sizes s, DimList dim, const Text& norm, const Tensor& out) {
      return irfftn_parts(self, s, dim, norm, out);
    }});
UMBRA_OPERATOR("fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor")
    .out("fft_hfft2.out")
    .use(TwoDims{[](const Tensor& self, Sizes s, DimList dim, const Text& norm, const Tensor& out) {
      return hfftn_parts(self, s, dim, norm, out);
    }});
UMBRA_OPERATOR("fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor")
    .out("fft_ihfft2.out")
    .use(TwoDims{[](const Tensor& self, Sizes s, DimList dim, const Text& norm, const Tensor& out) {
      return ihfftn_parts(self, s, dim, norm, out);
    }});

// ---- frequencies and shifts ----

TensorOptions frequency_options(std::optional<DType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                                std::optional<bool> pin_memory, const char* name) {
  DType type = dtype.value_or(default_dtype());
  check(is_floating(type) || is_complex(type), name, " requires a floating point or complex dtype");
  return {.dtype = type, .layout = layout, .device = device, .pin_memory = pin_memory};
}

UMBRA_OPERATOR(
    "fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .all_backends([](int64_t n, double d, std::optional<DType> dtype, std::optional<Layout> layout,
                     std::optional<Device> device, std::optional<bool> pin_memory) {
      TensorOptions options = frequency_options(dtype, layout, device, pin_memory, "fftfreq");
      check(n >= 0, "Trying to create tensor with negative dimension ", n, ": [", n, "]");
      Tensor rising = arange(Scalar(0), Scalar((n + 1) / 2), options),
             rest = arange(Scalar(-(n / 2)), Scalar(0), options);
      return cat({rising, rest}).mul(1.0 / (static_cast<double>(n) * d));
    })
    .not_differentiable();
UMBRA_OPERATOR(
    "fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .all_backends([](int64_t n, double d, std::optional<DType> dtype, std::optional<Layout> layout,
                     std::optional<Device> device, std::optional<bool> pin_memory) {
      TensorOptions options = frequency_options(dtype, layout, device, pin_memory, "rfftfreq");
      return arange(Scalar(n / 2 + 1), options).mul(1.0 / (static_cast<double>(n) * d));
    })
    .not_differentiable();

Tensor shifted(const Tensor& self, const Dims& dim, bool back) {
  std::vector<int64_t> dims;
  if (dim) {
    for (int64_t d : *dim) dims.push_back(wrap_dim(d, self.dim(), false));
  } else {
    dims.resize(self.dim());
    std::iota(dims.begin(), dims.end(), 0);
  }
  std::vector<SymInt> shifts;
  for (int64_t d : dims) shifts.push_back((self.sym_size(d) + (back ? 1 : 0)) / 2);
  return self.roll(shifts, dims);
}

UMBRA_OPERATOR("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor").composite([](const Tensor& self, Dims dim) {
  return shifted(self, dim, false);
});
UMBRA_OPERATOR("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor").composite([](const Tensor& self, Dims dim) {
  return shifted(self, dim, true);
});

}  // namespace
}  // namespace umbra::ops
