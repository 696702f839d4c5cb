#include "kernels/random.h"

#include <numeric>

#include "kernels/copy.h"
#include "kernels/random_draws.h"
#include "kernels/rows.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// ---- filling tensors
// -------------------------------------------------------------------------------------------------

// The elements in the order in which they lie in memory, which is the order PyTorch draws in.
Strided<1> memory_order(const Tensor& t) {
  std::vector<size_t> dims(t.dim());
  std::iota(dims.begin(), dims.end(), 0);
  auto strides = t.strides();
  std::stable_sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  Strided<1> walk;
  for (size_t d : dims) walk.push(t.sizes()[d], {strides[d]});
  walk.simplify();
  return walk;
}

template <class T, class Draw> void fill_each(const Tensor& self, const Draw& draw) {
  if (self.is_contiguous()) {
    for (T *at = self.data<T>(), *end = at + self.numel(); at != end; ++at) *at = static_cast<T>(draw());
    return;
  }
  Strided<1> walk = memory_order(self);
  Odometer<1> at(walk);
  T* data = self.data<T>();
  for (int64_t i = 0, n = self.numel(); i < n; ++i, at.next()) data[at[0]] = static_cast<T>(draw());
}

template <class Draw> void fill_floating(const Tensor& self, const char* kernel, const Draw& draw) {
  visit<FloatingTypes>(self.dtype(), kernel, [&](auto tag) { fill_each<typename decltype(tag)::type>(self, draw); });
}

// A complex tensor as a real one with the parts as a last dimension.
Tensor parts_of(const Tensor& t) {
  SymShape sizes(t.sym_sizes()), strides;
  for (int64_t stride : t.strides()) strides.push_back(2 * stride);
  sizes.push_back(2);
  strides.push_back(1);
  Tensor parts = alias_tensor(t, sizes, strides, 2 * t.storage_offset());
  parts.impl()->set_dtype(real_type(t.dtype()));
  return parts;
}

// ---- normal numbers in blocks of sixteen
// -----------------------------------------------------------------------------

constexpr int64_t kBlock = 16;

// All uniform numbers are drawn first. Where the last block is not full, the last sixteen elements are drawn anew.
template <class T> void normal_blocks(const Tensor& self, double mean, double deviation, Generator& g) {
  T* data = self.data<T>();
  int64_t n = self.numel();
  for (int64_t i = 0; i < n; ++i) data[i] = draw_unit<T>(g);
  const auto& rows = row_functions<T>();
  rows.normal_blocks(data, static_cast<T>(mean), static_cast<T>(deviation), n / kBlock);
  if (n % kBlock == 0) return;
  data += n - kBlock;
  for (int64_t i = 0; i < kBlock; ++i) data[i] = draw_unit<T>(g);
  rows.normal_blocks(data, static_cast<T>(mean), static_cast<T>(deviation), 1);
}

// Narrow types: each block is drawn and computed in float.
template <class T> void narrow_normal_blocks(const Tensor& self, double mean, double deviation, Generator& g) {
  T* data = self.data<T>();
  auto block = [&](int64_t at) {
    float values[kBlock];
    for (float& value : values) value = draw_unit<float>(g);
    row_functions<float>().normal_blocks(values, static_cast<float>(mean), static_cast<float>(deviation), 1);
    for (int64_t i = 0; i < kBlock; ++i) data[at + i] = values[i];
  };
  int64_t n = self.numel();
  for (int64_t i = 0; i + kBlock <= n; i += kBlock) block(i);
  if (n % kBlock != 0) block(n - kBlock);
}

template <class T> uint64_t integer_range() {
  if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
  else return (uint64_t{1} << kDigits<T>)+1;
}

}  // namespace

void refill(Generator::Engine& engine) {
  constexpr int n = Generator::Engine::kWords, distance = 397;
  uint32_t* words = engine.words;
  auto mixed = [](uint32_t high, uint32_t low, uint32_t far) {
    uint32_t joined = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ joined >> 1 ^ (0 - (low & 1) & 0x9908b0dfu);
  };
  // Each loop reads what lies ahead of it, or far enough behind: the compiler makes vectors of them.
#pragma GCC ivdep
  for (int i = 0; i < n - distance; ++i) words[i] = mixed(words[i], words[i + 1], words[i + distance]);
  for (int i = n - distance; i < n - 1; ++i) words[i] = mixed(words[i], words[i + 1], words[i + distance - n]);
  words[n - 1] = mixed(words[n - 1], words[0], words[distance - 1]);
  engine.next = 0;
}

void uniform(const Tensor& self, double from, double to, Generator& generator) {
  if (self.is_complex()) return uniform(parts_of(self), from, to, generator);
  std::lock_guard lock(generator.engine().mutex);
  visit<FloatingTypes>(self.dtype(), "check_uniform_bounds", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    C low = static_cast<C>(from), range = static_cast<C>(to) - low, high = static_cast<T>(static_cast<C>(to));
    fill_each<T>(self, [&] {
      T value = static_cast<T>(std::fma(draw_unit<C>(generator), range, low));
      // Rounding must not reach the bound that is excluded.
      return static_cast<C>(value) == high ? static_cast<T>(low) : value;
    });
  });
}

void normal(const Tensor& self, double mean, double deviation, Generator& generator) {
  if (self.numel() == 0) return;  // of any type
  if (self.is_complex()) return normal(parts_of(self), mean, deviation / std::numbers::sqrt2, generator);
  std::lock_guard lock(generator.engine().mutex);
  bool blocks = self.numel() >= kBlock && self.is_contiguous();
  visit<FloatingTypes>(self.dtype(), "normal_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (!blocks) fill_each<T>(self, [&] { return std::fma(draw_normal(generator), deviation, mean); });
    else if constexpr (std::is_same_v<T, Compute<T>>) normal_blocks<T>(self, mean, deviation, generator);
    else narrow_normal_blocks<T>(self, mean, deviation, generator);
  });
}

void bernoulli(const Tensor& self, double p, Generator& generator) {
  if (self.numel() == 0) return;
  std::lock_guard lock(generator.engine().mutex);
  visit<RealOrBool>(self.dtype(), "bernoulli_scalar_cpu_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_each<T>(self, [&] { return static_cast<T>(Compute<T>(draw_unit<double>(generator) < p)); });
  });
}

void bernoulli(const Tensor& self, const Tensor& p, Generator& generator) {
  if (self.numel() == 0) return;
  std::lock_guard lock(generator.engine().mutex);
  Strided<2> walk(self.sizes(), {self.strides(), broadcast_strides(p, self.sizes())});
  visit<RealOrBool>(self.dtype(), "bernoulli_tensor_cpu_self_", [&](auto self_tag) {
    using T = typename decltype(self_tag)::type;
    visit<FloatingTypes>(p.dtype(), "bernoulli_tensor_cpu_p_", [&](auto p_tag) {
      using P = typename decltype(p_tag)::type;
      using Draw = std::conditional_t<std::is_same_v<P, double>, double, float>;
      Odometer<2> at(walk);
      for (int64_t i = 0, n = self.numel(); i < n; ++i, at.next()) {
        Draw probability = static_cast<Draw>(p.data<P>()[at[1]]);
        check(probability >= 0 && probability <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
        self.data<T>()[at[0]] = static_cast<T>(Compute<T>(draw_unit<Draw>(generator) < probability));
      }
    });
  });
}

void random_between(const Tensor& self, int64_t from, int64_t to, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  // Below this, 32 bits are spread evenly enough.
  constexpr uint64_t kSmallRange = uint64_t{1} << 28;
  visit<detail::Join<AllTypes, WideUnsigned>>(self.dtype(), "random_from_to_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_each<T>(self, [&] {
      uint64_t bits = range >= kSmallRange ? draw64(generator) : draw32(generator);
      return static_cast<T>(static_cast<Compute<T>>(static_cast<int64_t>(bits % range + static_cast<uint64_t>(from))));
    });
  });
}

void random(const Tensor& self, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<RealOrBool>(self.dtype(), "random_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_each<T>(self, [&] {
      if constexpr (std::is_same_v<T, bool>) return (draw32(generator) & 1) != 0;
      else {
        bool wide = std::is_same_v<T, double> || std::is_same_v<T, int64_t>;
        uint64_t bits = wide ? draw64(generator) : draw32(generator);
        return static_cast<T>(static_cast<Compute<T>>(bits % integer_range<T>()));
      }
    });
  });
}

void random_full(const Tensor& self, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  check(self.dtype() == DType::Int64 || !is_integral(self.dtype(), false),
        "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
  visit<Types<int64_t, float, double, BFloat16>>(self.dtype(), "random_full_64_bits_range_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_each<T>(self,
                 [&] { return static_cast<T>(static_cast<Compute<T>>(static_cast<int64_t>(draw64(generator)))); });
  });
}

void randperm(const Tensor& out, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<detail::Join<RealTypes, WideUnsigned>>(out.dtype(), "randperm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = out.numel(), step = n > 0 ? out.stride(0) : 1;
    T* data = out.data<T>();
    for (int64_t i = 0; i < n; ++i) data[i * step] = static_cast<T>(static_cast<Compute<T>>(i));
    for (int64_t i = 0; i + 1 < n; ++i) std::swap(data[i * step], data[(i + draw32(generator) % (n - i)) * step]);
  });
}

void exponential(const Tensor& self, double lambda, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  fill_floating(self, "exponential_cpu", [&] { return draw_exponential(generator, lambda); });
}

void geometric(const Tensor& self, double p, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<RealTypes>(self.dtype(), "geometric_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_each<T>(self, [&] {
      double value = std::ceil(std::log(draw_unit<double>(generator)) / std::log1p(-p));
      return static_cast<T>(static_cast<Compute<T>>(value));
    });
  });
}

void cauchy(const Tensor& self, double median, double sigma, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  fill_floating(self, "cauchy_cpu", [&] {
    return std::fma(sigma, std::tan(std::numbers::pi * (draw_unit<double>(generator) - 0.5)), median);
  });
}

void log_normal(const Tensor& self, double mean, double deviation, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  fill_floating(self, "log_normal_cpu", [&] { return std::exp(std::fma(draw_normal(generator), deviation, mean)); });
}

}  // namespace umbra::kernels
