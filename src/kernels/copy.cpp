#include "kernels/copy.h"

#include "kernels/convert.h"
#include "kernels/fits.h"
#include "kernels/loop.h"
#include "kernels/math.h"
#include "kernels/types.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

/// Whether the two innermost loops are a transpose: out steps through one of them element by element, in through the
/// other.
bool is_transpose(const LoopGeometry& loop, int64_t item) {
  constexpr int64_t smallest = 8;  // below, plain strided rows are as fast
  return loop.dims() >= 2 && loop.stride(0, 0) == item && loop.stride(0, 1) > item && loop.size(0) >= smallest && [&] {
    for (int d = 1; d < loop.dims(); ++d)
      if (loop.stride(d, 1) == item && loop.size(d) >= smallest) return true;
    return false;
  }();
}

void copy_as_transposes(const LoopGeometry& loop, int64_t item) {
  int side = 1;  // the dimension along which in is contiguous
  while (loop.stride(side, 1) != item) ++side;
  int64_t rows = loop.size(0), columns = loop.size(side);
  // One transpose for each position in the remaining dimensions, cut into strips so that threads share large ones.
  int64_t matrices = loop.numel() / (rows * columns);
  constexpr int64_t strip = 64;
  int64_t strips = (columns + strip - 1) / strip;
  parallel_for(0, matrices * strips, std::max<int64_t>(1, kGrain / (rows * strip)), [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      int64_t rest = i / strips, column = i % strips * strip;
      char *out = loop.data(0), *in = loop.data(1);
      for (int d = 1; d < loop.dims(); ++d) {
        if (d == side) continue;
        int64_t index = rest % loop.size(d);
        rest /= loop.size(d);
        out += index * loop.stride(d, 0);
        in += index * loop.stride(d, 1);
      }
      copy_transposed(out + column * loop.stride(side, 0), loop.stride(side, 0), in + column * item, loop.stride(0, 1),
                      item, rows, std::min(strip, columns - column));
    }
  });
}

}  // namespace

void copy(const Tensor& out, const Tensor& in) {
  DType to = out.dtype(), from = in.dtype();
  int64_t to_item = out.item_size(), from_item = in.item_size();
  LoopGeometry loop(out, {&in});
  bool same_elements = loop.data(0) == loop.data(1) && out.sizes() == in.sizes() && out.strides() == in.strides();
  if (loop.numel() == 0 || (to == from && same_elements)) return;
  if (to == from) {
    if (is_transpose(loop, to_item)) return copy_as_transposes(loop, to_item);
    if (loop.dims() > 1 && loop.stride(0, 0) == to_item && loop.stride(0, 1) == to_item)
      return loop.for_each_inner([&](char** data, const int64_t*, int64_t n) {
        constexpr int64_t kShort = 128;  // longer ones are worth a look at how the two lie in their pages
        int64_t bytes = n * to_item;
        if (bytes > kShort) copy_bytes(data[0], data[1], bytes);
        else copy_bytes(data[0], data[1], static_cast<size_t>(bytes));
      });
    return loop.for_each_inner([&](char** data, const int64_t* strides, int64_t n) {
      copy_strided(data[0], strides[0], data[1], strides[1], to_item, n);
    });
  }
  // What lies in another order is converted in its own first: in short runs, one by one, it takes longer.
  constexpr int64_t kShortRun = 64, kWorthwhile = 1024;
  bool other_order = loop.stride(0, 1) != from_item && loop.stride(0, 1) != 0 && in.is_contiguous();
  if (other_order && loop.size(0) < kShortRun && loop.numel() >= kWorthwhile) {
    Tensor converted = scratch(in.sizes(), to);
    copy(converted, in);
    return copy(out, converted);
  }
  loop.for_each_inner([&](char** data, const int64_t* strides, int64_t n) {
    if (strides[0] == to_item || n == 1) return convert(data[0], to, data[1], from, strides[1], n);
    if (strides[1] == from_item) return convert_out(data[0], to, strides[0], data[1], from, n);
    alignas(16) char buffer[4096];
    int64_t chunk = static_cast<int64_t>(sizeof(buffer)) / to_item;
    for (int64_t at = 0; at < n; at += chunk) {
      int64_t count = std::min(chunk, n - at);
      convert(buffer, to, data[1] + at * strides[1], from, strides[1], count);
      copy_strided(data[0] + at * strides[0], strides[0], buffer, to_item, to_item, count);
    }
  });
}

namespace {

/// Real and imaginary parts in turns, as bits: those of the latter get the other sign. Steps are in bytes.
template <class Bits> void conjugate_run(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  constexpr int64_t item = 2 * sizeof(Bits);
  constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
  auto one = [](Bits* out, const Bits* in) {
    Bits real = in[0], imaginary = in[1];
    out[0] = real;
    out[1] = imaginary ^ sign;
  };
  auto* out = reinterpret_cast<Bits*>(to);
  const auto* in = reinterpret_cast<const Bits*>(from);
  if (to_step == item && from_step == item)
    for (int64_t i = 0; i < n; ++i) one(out + 2 * i, in + 2 * i);
  else
    for (int64_t i = 0; i < n; ++i)
      one(reinterpret_cast<Bits*>(to + i * to_step), reinterpret_cast<const Bits*>(from + i * from_step));
}

}  // namespace

void copy_conjugated(const Tensor& out, const Tensor& in) {
  Tensor source = in;
  if (in.dtype() != out.dtype()) copy(source = out, in);
  auto* run = out.item_size() == 4   ? &conjugate_run<uint16_t>
              : out.item_size() == 8 ? &conjugate_run<uint32_t>
                                     : &conjugate_run<uint64_t>;
  LoopGeometry(out, {&source}).for_each_inner([&](char** data, const int64_t* strides, int64_t n) {
    run(data[0], strides[0], data[1], strides[1], n);
  });
}

namespace {

void convert_element(void* element, DType dtype, const Scalar& value) {
  DType from = value.is_complex()                   ? DType::Complex128
               : value.is_floating()                ? DType::Float64
               : value.kind() == Scalar::Kind::UInt ? DType::UInt64
                                                    : DType::Int64;
  std::complex<double> wide_complex;
  double wide;
  int64_t whole;
  const void* in = &whole;
  if (value.is_complex() && is_complex(dtype)) {
    wide_complex = value.to_complex();
    in = &wide_complex;
  } else if (value.is_complex() || value.is_floating()) {
    wide = value.to_double();  // refuses to drop an imaginary part
    from = DType::Float64;
    in = &wide;
  } else if (value.is_bool()) {
    whole = value.to_bool();
  } else {
    whole = static_cast<int64_t>(value.to_uint());
  }
  convert(static_cast<char*>(element), dtype, static_cast<const char*>(in), from, item_size(from), 1);
}

}  // namespace

void write_element(void* element, DType dtype, const Scalar& value) {
  check_fits(value, dtype);
  convert_element(element, dtype, dtype == DType::Bool ? Scalar(value.to_bool()) : value);
}

void fill(const Tensor& out, const Scalar& value) {
  LoopGeometry loop(out);
  alignas(16) char element[16];
  int64_t item = out.item_size();
  // What is too large for a narrow float is infinity there, but only where one element is written.
  if (out.is_floating_point() && item < 4 && loop.numel() == 1) convert_element(element, out.dtype(), value);
  else write_element(element, out.dtype(), value);
  if (loop.numel() == 0) return;
  loop.for_each_inner([&](char** data, const int64_t* strides, int64_t n) {
    copy_strided(data[0], n == 1 ? item : strides[0], element, 0, item, n);
  });
}

void arange(const Tensor& out, const Scalar& start, const Scalar& step) {
  DType dtype = out.dtype();
  int64_t n = out.numel();
  if (n == 0) return;
  check(out.dim() == 1, "arange fills a tensor of one dimension");
  char* data = static_cast<char*>(out.raw_data());
  int64_t stride = out.strides()[0] * out.item_size();
  auto write = [&](auto first, auto by) {
    using T = decltype(first);
    parallel_for(0, n, kGrain, [&](int64_t from, int64_t to) {
      constexpr int64_t chunk = 512;
      T values[chunk];
      for (int64_t at = from; at < to; at += chunk) {
        int64_t count = std::min(chunk, to - at);
        // Each element from its index: steps do not add up their rounding.
        for (int64_t i = 0; i < count; ++i) values[i] = math::add(first, math::multiply(by, static_cast<T>(at + i)));
        convert_out(data + at * stride, dtype, stride, reinterpret_cast<const char*>(values), dtype_of<T>, count);
      }
    });
  };
  if (is_integral(dtype, true)) write(start.to_int(), step.to_int());
  else write(start.to_double(), step.to_double());
}

Tensor scratch(IntArrayRef sizes, DType dtype) {
  return allocate_tensor(as_sym(sizes), contiguous_strides(as_sym(sizes)), dtype, DeviceType::CPU);
}

Tensor contiguous(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  Tensor out = scratch(tensor.sizes(), tensor.dtype());
  copy(out, tensor);
  return out;
}

Tensor cast(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor out = scratch(tensor.sizes(), dtype);
  copy(out, tensor);
  return out;
}

}  // namespace umbra::kernels
