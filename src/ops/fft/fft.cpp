// The three Fourier transforms that all others are made of.
#include "kernels/fft.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dispatch/layers.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/fft/transforms.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

std::vector<int64_t> wrapped(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d : dims) out.push_back(wrap_dim(d, rank, false));
  dim_mask(out, rank, false);
  return out;
}

std::vector<int64_t> plain(const std::vector<SymInt>& dims, int64_t rank) {
  std::vector<int64_t> out;
  for (SymInt d : dims) out.push_back(d.guard_int());
  return wrapped(out, rank);
}

/// What has elements is read as signals: dimensions that it does not have are no IndexError here.
template <class Dims> void check_signal(const Tensor& self, const Dims& dims) {
  if (self.is_meta() || self.is_fake() || self.numel() == 0) return;
  check(self.dim() > 0 || dims.empty(), "shape '[-1, 0]' is invalid for input of size 1");
  for (SymInt d : dims)
    check(d >= -self.dim() && d < self.dim(), "out_size == signal_size[i + 1] INTERNAL ASSERT FAILED: dimension ", d,
          " of a signal of sizes ", self.sym_sizes());
}

double scale_of(int64_t norm, double count) {
  auto mode = static_cast<FftNorm>(norm);  // any other number counts as the last
  return mode == FftNorm::None ? 1.0 : mode == FftNorm::ByRoot ? 1.0 / std::sqrt(count) : 1.0 / count;
}

double count_of(IntArrayRef sizes, const std::vector<int64_t>& dims) {
  double count = 1;
  for (int64_t d : dims) count *= static_cast<double>(sizes[d]);
  return count;
}

// ---- layouts ----

/// Dimensions from the one with the largest stride to the one with the smallest; equal ones stay in order.
void sort_by_stride(std::vector<int64_t>::iterator begin, std::vector<int64_t>::iterator end, SymIntArrayRef strides) {
  std::stable_sort(begin, end, [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
}

/// The dimensions that are not transformed, in the order in which those of equal strides stay. With data it is the one
/// in which PyTorch's kernel finds them, which takes them from both ends; its description of the kernel counts them up.
std::vector<int64_t> batch_dims(const Tensor& self, const std::vector<int64_t>& dims) {
  std::vector<int64_t> order(static_cast<size_t>(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  auto stays = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); };
  bool counted = self.is_meta() || self.is_fake();
  order.erase(counted ? std::stable_partition(order.begin(), order.end(), stays)
                      : std::partition(order.begin(), order.end(), stays),
              order.end());
  return order;
}

/// What is transformed together lies together, the last of `dims` innermost; the other dimensions keep their order in
/// memory.
SymShape transform_strides(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef input_strides,
                           const std::vector<int64_t>& dims) {
  if (product(sizes).same(0)) return contiguous_strides(sizes);
  std::vector<int64_t> order = batch_dims(self, dims);
  sort_by_stride(order.begin(), order.end(), input_strides);
  order.insert(order.end(), dims.begin(), dims.end());
  SymShape strides(sizes.size(), 1);
  SymInt step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step = step * sizes[order[i]];
  }
  return strides;
}

/// Where the layout is cuFFT's: on its own devices, and on the meta device, which PyTorch describes by it.
bool laid_out_by_cufft(const Tensor& self) {
  return self.device().type == DeviceType::CUDA || (self.is_meta() && !self.is_fake());
}
constexpr size_t kMostTogether = 3;  // dimensions that cuFFT transforms in one pass

/// After passes over up to three dimensions each, those that lie innermost first.
SymShape strides_after_passes(const Tensor& self, SymIntArrayRef sizes, SymShape strides, std::vector<int64_t> dims) {
  while (!dims.empty()) {
    sort_by_stride(dims.begin(), dims.end(), strides);
    auto first = dims.end() - static_cast<std::ptrdiff_t>(std::min(kMostTogether, dims.size()));
    strides = transform_strides(self, sizes, strides, {first, dims.end()});
    dims.erase(first, dims.end());
  }
  return strides;
}

/// Whether cuFFT takes a real transform of these dimensions in one pass.
bool in_one_pass(const std::vector<int64_t>& dims) {
  return dims.size() <= kMostTogether && !(dims.size() >= 2 && dims[0] == 0 && dims[1] == 1);
}

SymShape c2c_strides(const Tensor& self, std::vector<int64_t> dims) {
  if (laid_out_by_cufft(self))
    return strides_after_passes(self, self.sym_sizes(), SymShape(self.sym_strides()), std::move(dims));
  sort_by_stride(dims.begin(), dims.end(), self.sym_strides());
  return transform_strides(self, self.sym_sizes(), self.sym_strides(), dims);
}

/// `half` has the frequencies that a real signal has, `sizes` is what the result has.
SymShape r2c_strides(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef half, std::vector<int64_t> dims) {
  if (!laid_out_by_cufft(self)) {
    sort_by_stride(dims.begin(), dims.end() - 1, self.sym_strides());
    return transform_strides(self, sizes, self.sym_strides(), dims);
  }
  if (in_one_pass(dims)) return transform_strides(self, sizes, self.sym_strides(), dims);
  if (!known_equal(sizes[dims.back()], half[dims.back()])) return contiguous_strides(sizes);
  SymShape strides = transform_strides(self, half, self.sym_strides(), {dims.back()});
  dims.pop_back();
  return strides_after_passes(self, half, std::move(strides), std::move(dims));
}

/// The other dimensions are transformed first; the last pass goes by what lies there then.
SymShape c2r_strides(const Tensor& self, SymIntArrayRef sizes, std::vector<int64_t> dims) {
  bool cufft = laid_out_by_cufft(self);
  SymShape strides = cufft ? contiguous_strides(self.sym_sizes()) : SymShape(self.sym_strides());
  if (cufft && in_one_pass(dims)) return transform_strides(self, sizes, strides, dims);
  int64_t last = dims.back();
  dims.pop_back();
  if (!dims.empty()) strides = c2c_strides(self, dims);
  return transform_strides(self, sizes, strides, {last});
}

void check_complex(const Tensor& self) {
  check(self.is_complex(), "Only supports complex dtypes, but found: ", kernel_name(self.dtype()));
}

// ---- complex to complex ----

UMBRA_OPERATOR("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor")
    .out("_fft_c2c.out")
    .meta([](const Tensor& self, std::vector<SymInt> dim, int64_t, bool) {
      check_complex(self);
      check_signal(self, dim);
      std::vector<int64_t> dims = plain(dim, self.dim());
      if (dims.empty()) return spec_like(self);
      return TensorSpec(self.sym_sizes(), c2c_strides(self, dims), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, std::vector<SymInt> dim, int64_t norm, bool forward) {
      std::vector<int64_t> dims = plain(dim, self.dim());
      kernels::fft_c2c(out, self, dims, forward, scale_of(norm, count_of(self.sizes(), dims)));
    })
    .gradient("self", {"grad", "dim", "normalization", "forward"},
              [](const Tensor& grad, std::vector<SymInt> dim, int64_t norm, bool forward) {
                return _fft_c2c(grad, dim, norm, !forward);
              })
    .linear()
    .batch([](const Batched& self, std::vector<SymInt> dim, int64_t norm, bool forward) {
      std::vector<SymInt> dims;
      for (int64_t d : plain(dim, self.rank())) dims.push_back(d + 1);
      return Batched(_fft_c2c(batch_first(self), dims, norm, forward), 0);
    })
    .tags({Tag::CastsToOut});

// ---- real to complex ----

UMBRA_OPERATOR("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor")
    .out("_fft_r2c.out")
    .meta([](const Tensor& self, std::vector<int64_t> dim, int64_t, bool onesided) {
      check(self.is_floating_point() || !only_metadata_is_asked(),
            "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an ",
            "enhancement request to PyTorch.)");
      check<TypeError>(self.is_floating_point(),
                       "Only supports floating-point dtypes, but found: ", kernel_name(self.dtype()));
      check_signal(self, dim);
      std::vector<int64_t> dims = wrapped(dim, self.dim());
      check(!dims.empty(), "_fft_r2c: at least one dimension is transformed");
      SymShape sizes(self.sym_sizes());
      // Of a signal without elements there would be a first frequency, which nobody computes.
      const SymInt& length = sizes[dims.back()];
      check(!onesided || length.is_symbolic() || length.value() != 0 || only_metadata_is_asked(),
            "Invalid number of data points (0) specified");
      SymShape half = sizes;
      half[dims.back()] = length / 2 + 1;
      if (onesided) sizes = half;
      return TensorSpec(sizes, r2c_strides(self, sizes, half, dims), complex_type(self.dtype()), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, std::vector<int64_t> dim, int64_t norm, bool onesided) {
      check<NotImplementedError>(!is_reduced_floating(self.dtype()),
                                 "MKL FFT doesn't support tensors of type: ", kernel_name(self.dtype()));
      std::vector<int64_t> dims = wrapped(dim, self.dim());
      kernels::fft_r2c(out, self, dims, onesided, scale_of(norm, count_of(self.sizes(), dims)));
    })
    .gradient("self", {"grad", "dim", "normalization", "onesided", "self.sym_sizes"},
              [](const Tensor& grad, std::vector<int64_t> dim, int64_t norm, bool onesided, SymIntArrayRef sizes) {
                Tensor full = grad;
                int64_t last = wrap_dim(dim.back(), grad.dim());
                SymInt missing = sizes[last] - grad.sym_size(last);
                if (onesided && missing > 0) {
                  std::vector<SymInt> padding(2 * (grad.dim() - last), 0);
                  padding.back() = missing;
                  full = constant_pad_nd(grad, padding, 0);
                }
                return real(_fft_c2c(full, std::vector<SymInt>(dim.begin(), dim.end()), norm, false));
              })
    .linear()
    .batch([](const Batched& self, std::vector<int64_t> dim, int64_t norm, bool onesided) {
      std::vector<int64_t> dims = wrapped(dim, self.rank());
      for (int64_t& d : dims) ++d;
      return Batched(_fft_r2c(batch_first(self), dims, norm, onesided), 0);
    })
    .tags({Tag::CastsToOut});

// ---- complex to real ----

UMBRA_OPERATOR("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor")
    .out("_fft_c2r.out")
    .meta([](const Tensor& self, std::vector<int64_t> dim, int64_t, SymInt last_size) {
      check_complex(self);
      check_signal(self, dim);
      std::vector<int64_t> dims = wrapped(dim, self.dim());
      check(!dims.empty(), "_fft_c2r: at least one dimension is transformed");
      int64_t last = dims.back();
      bool nothing = last_size.same(0);
      if (!nothing) check_points(last_size);
      check(nothing || self.sym_size(last) == last_size / 2 + 1, "_fft_c2r: a result of ", last_size,
            " elements takes ", last_size / 2 + 1, " of the input, which has ", self.sym_size(last));
      SymShape sizes(self.sym_sizes());
      sizes[last] = last_size;
      return TensorSpec(sizes, c2r_strides(self, sizes, dims), real_type(self.dtype()), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, std::vector<int64_t> dim, int64_t norm, SymInt) {
      std::vector<int64_t> dims = wrapped(dim, self.dim());
      kernels::fft_c2r(out, self, dims, scale_of(norm, count_of(out.sizes(), dims)));
    })
    .gradient("self", {"grad", "dim", "normalization"},
              [](const Tensor& grad, std::vector<int64_t> dim, int64_t norm) {
                // Elements that stand for a conjugate as well count twice.
                Tensor out = _fft_r2c(grad, dim, norm, true);
                int64_t last = wrap_dim(dim.back(), grad.dim());
                SymInt n = out.sym_size(last), twice = grad.sym_size(last) - n;
                if (twice <= 0) return out;
                std::vector<Tensor> parts{out.narrow(last, 0, 1), out.narrow(last, 1, twice).mul(2)};
                if (n > twice + 1) parts.push_back(out.narrow(last, twice + 1, n - twice - 1));
                return cat(parts, last);
              })
    .linear()
    .batch([](const Batched& self, std::vector<int64_t> dim, int64_t norm, SymInt last_size) {
      std::vector<int64_t> dims = wrapped(dim, self.rank());
      for (int64_t& d : dims) ++d;
      return Batched(_fft_c2r(batch_first(self), dims, norm, last_size), 0);
    })
    .tags({Tag::CastsToOut});

}  // namespace
}  // namespace umbra::ops
