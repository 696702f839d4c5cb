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

// The elements in the order in which those of the first tensor, whose sizes they have, lie in memory, which is the
// order PyTorch draws in.
template <class... Others> Strided<1 + sizeof...(Others)> memory_order(const Tensor& t, const Others&... others) {
  std::vector<size_t> dims(t.dim());
  std::iota(dims.begin(), dims.end(), 0);
  auto strides = t.strides();
  std::stable_sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  Strided<1 + sizeof...(Others)> walk;
  for (size_t d : dims) walk.push(t.sizes()[d], {strides[d], others[d]...});
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

// Each element from `kEach` words of its own: `make(words)`. Words are drawn many at a time, so that loops over them
// have nothing to ask and become loops of vectors.
constexpr int64_t kChunk = 512;

template <class T, int64_t kEach, class Make> void fill_by_words(const Tensor& self, Generator& g, const Make& make) {
  uint32_t words[kChunk * kEach];
  T* data = self.data<T>();
  Strided<1> walk;
  bool side_by_side = self.is_contiguous();
  if (!side_by_side) walk = memory_order(self);
  Odometer<1> at(walk);
  for (int64_t done = 0, n = self.numel(); done < n; done += kChunk) {
    int64_t count = std::min(kChunk, n - done);
    draw_words(g, words, count * kEach);
    if (side_by_side)
      for (int64_t i = 0; i < count; ++i) data[done + i] = static_cast<T>(make(words + i * kEach));
    else
      for (int64_t i = 0; i < count; ++i, at.next()) data[at[0]] = static_cast<T>(make(words + i * kEach));
  }
}

/// Each element from a number in [0, 1) of type double.
template <class Make> void fill_by_units(const Tensor& self, const char* kernel, Generator& g, const Make& make) {
  visit<FloatingTypes>(self.dtype(), kernel, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_by_words<T, 2>(self, g, [&](const uint32_t* words) { return make(unit_of<double>(words)); });
  });
}

template <class T> void draw_units(Generator& g, T* units, int64_t n) {
  uint32_t words[kChunk * kWordsOf<T>];
  for (int64_t done = 0; done < n; done += kChunk) {
    int64_t count = std::min(kChunk, n - done);
    draw_words(g, words, count * kWordsOf<T>);
    for (int64_t i = 0; i < count; ++i) units[done + i] = unit_of<T>(words + i * kWordsOf<T>);
  }
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

// Where the last block is not full, its uniform numbers are drawn all the same, and the last sixteen elements anew.
template <class T> void normal_blocks(const Tensor& self, double mean, double deviation, Generator& g) {
  static_assert(kChunk % kBlock == 0);
  T* data = self.data<T>();
  int64_t n = self.numel();
  auto make_normal = [&, blocks = row_functions<T>().normal_blocks](T* at, int64_t count) {
    draw_units(g, at, count);
    blocks(at, static_cast<T>(mean), static_cast<T>(deviation), count / kBlock);
  };
  for (int64_t i = 0; i < n; i += kChunk) make_normal(data + i, std::min(kChunk, n - i));
  if (n % kBlock != 0) make_normal(data + n - kBlock, kBlock);
}

// Narrow types: each block is drawn and computed in float.
template <class T> void narrow_normal_blocks(const Tensor& self, double mean, double deviation, Generator& g) {
  T* data = self.data<T>();
  auto block = [&](int64_t at) {
    float values[kBlock];
    draw_units(g, values, kBlock);
    row_functions<float>().normal_blocks(values, static_cast<float>(mean), static_cast<float>(deviation), 1);
    for (int64_t i = 0; i < kBlock; ++i) data[at + i] = values[i];
  };
  int64_t n = self.numel();
  for (int64_t i = 0; i + kBlock <= n; i += kBlock) block(i);
  if (n % kBlock != 0) block(n - kBlock);
}

// Each element changes places with one that is not before it. The places are known ahead, so that memory can be asked
// for them early.
template <class T> void shuffle(T* data, int64_t n, int64_t step, Generator& g) {
  uint32_t words[kChunk];
  int64_t places[kChunk];
  constexpr int64_t kAhead = 16;
  const bool short_range = n <= std::numeric_limits<uint32_t>::max();
  for (int64_t done = 0; done + 1 < n; done += kChunk) {
    int64_t count = std::min(kChunk, n - 1 - done);
    draw_words(g, words, count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t left = n - done - i;
      int64_t distance = short_range ? words[i] % static_cast<uint32_t>(left) : words[i] % left;
      places[i] = (done + i + distance) * step;
    }
    for (int64_t i = 0; i < count; ++i) {
      __builtin_prefetch(data + places[std::min(i + kAhead, count - 1)], 1);
      std::swap(data[(done + i) * step], data[places[i]]);
    }
  }
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
    return far ^ joined >> 1 ^ ((0 - (low & 1)) & 0x9908b0dfu);
  };
  // Each loop reads what lies ahead of it, or far enough behind: the compiler makes vectors of them.
  for (int i = 0; i < n - distance; ++i) words[i] = mixed(words[i], words[i + 1], words[i + distance]);
  for (int i = n - distance; i < n - 1; ++i) words[i] = mixed(words[i], words[i + 1], words[i + distance - n]);
  words[n - 1] = mixed(words[n - 1], words[0], words[distance - 1]);
  engine.next = 0;
}

void draw_words(Generator& g, uint32_t* words, int64_t n) {
  Generator::Engine& engine = g.engine();
  while (n > 0) {
    if (engine.next == Generator::Engine::kWords) refill(engine);
    int64_t count = std::min<int64_t>(n, Generator::Engine::kWords - engine.next);
    const uint32_t* from = engine.words + engine.next;
    for (int64_t i = 0; i < count; ++i) words[i] = tempered(from[i]);
    engine.next += static_cast<int>(count);
    words += count;
    n -= count;
  }
}

void uniform(const Tensor& self, double from, double to, Generator& generator) {
  if (self.is_complex()) return uniform(parts_of(self), from, to, generator);
  std::lock_guard lock(generator.engine().mutex);
  visit<FloatingTypes>(self.dtype(), "check_uniform_bounds", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    C low = static_cast<C>(from), range = static_cast<C>(to) - low, high = static_cast<T>(static_cast<C>(to));
    fill_by_words<T, kWordsOf<C>>(self, generator, [=](const uint32_t* words) {
      T value = static_cast<T>(std::fma(unit_of<C>(words), range, low));
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
    // A number in [0, 1) is 53 bits over 2^53: it lies below p where its bits lie below p times that.
    const auto limit = static_cast<int64_t>(std::ceil(p * 0x1p53));
    fill_by_words<T, 2>(self, generator, [=](const uint32_t* words) {
      constexpr int64_t kBits = (int64_t{1} << 53) - 1;
      return static_cast<T>(Compute<T>((static_cast<int64_t>(joined(words)) & kBits) < limit));
    });
  });
}

void bernoulli(const Tensor& self, const Tensor& p, Generator& generator) {
  if (self.numel() == 0) return;
  std::lock_guard lock(generator.engine().mutex);
  Strided<2> walk = memory_order(self, broadcast_strides(p, self.sizes()));
  visit<RealOrBool>(self.dtype(), "bernoulli_tensor_cpu_self_", [&](auto self_tag) {
    using T = typename decltype(self_tag)::type;
    visit<FloatingTypes>(p.dtype(), "bernoulli_tensor_cpu_p_", [&](auto p_tag) {
      using P = typename decltype(p_tag)::type;
      using Draw = std::conditional_t<std::is_same_v<P, double>, double, float>;
      uint32_t words[kChunk * kWordsOf<Draw>];
      Odometer<2> at(walk);
      for (int64_t done = 0, n = self.numel(); done < n; done += kChunk) {
        int64_t count = std::min(kChunk, n - done);
        draw_words(generator, words, count * kWordsOf<Draw>);
        for (int64_t i = 0; i < count; ++i, at.next()) {
          Draw probability = static_cast<Draw>(p.data<P>()[at[1]]), unit = unit_of<Draw>(words + i * kWordsOf<Draw>);
          check(probability >= 0 && probability <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
          self.data<T>()[at[0]] = static_cast<T>(Compute<T>(unit < probability));
        }
      }
    });
  });
}

void random_between(const Tensor& self, int64_t from, int64_t to, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  // Below this, 32 bits are spread evenly enough.
  constexpr uint64_t kSmallRange = uint64_t{1} << 28;
  // The remainder without a division (Lemire, Kaser and Kurz, 2019): the fraction of a quotient, times the divisor.
  const uint64_t inverse = range > 0 ? ~uint64_t{0} / range + 1 : 0;
  visit<detail::Join<AllTypes, WideUnsigned>>(self.dtype(), "random_from_to_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto element = [from](uint64_t distance) {
      return static_cast<T>(static_cast<Compute<T>>(static_cast<int64_t>(distance + static_cast<uint64_t>(from))));
    };
    if (range >= kSmallRange)
      fill_by_words<T, 2>(self, generator, [=](const uint32_t* words) { return element(joined(words) % range); });
    else
      fill_by_words<T, 1>(self, generator, [=](const uint32_t* word) {
        uint64_t fraction = inverse * *word;
        return element(static_cast<uint64_t>(static_cast<unsigned __int128>(fraction) * range >> 64));
      });
  });
}

void random(const Tensor& self, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<RealOrBool>(self.dtype(), "random_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool wide = std::is_same_v<T, double> || std::is_same_v<T, int64_t>;
    fill_by_words<T, wide ? 2 : 1>(self, generator, [](const uint32_t* words) {
      if constexpr (std::is_same_v<T, bool>) return (*words & 1) != 0;
      else {
        uint64_t bits = wide ? joined(words) : uint64_t{*words};
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
    fill_by_words<T, 2>(self, generator, [](const uint32_t* words) {
      return static_cast<T>(static_cast<Compute<T>>(static_cast<int64_t>(joined(words))));
    });
  });
}

void randperm(const Tensor& out, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<RealTypes>(out.dtype(), "randperm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = out.numel(), step = n > 0 ? out.stride(0) : 1;
    T* data = out.data<T>();
    for (int64_t i = 0; i < n; ++i) data[i * step] = static_cast<T>(static_cast<Compute<T>>(i));
    shuffle(data, n, step, generator);
  });
}

void exponential(const Tensor& self, double lambda, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  fill_by_units(self, "exponential_cpu", generator, [=](double unit) { return -1 / lambda * std::log1p(-unit); });
}

void geometric(const Tensor& self, double p, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<RealTypes>(self.dtype(), "geometric_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_by_words<T, 2>(self, generator, [log_failure = std::log1p(-p)](const uint32_t* words) {
      double value = std::ceil(std::log(unit_of<double>(words)) / log_failure);
      return static_cast<T>(static_cast<Compute<T>>(value));
    });
  });
}

void cauchy(const Tensor& self, double median, double sigma, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  fill_by_units(self, "cauchy_cpu", generator,
                [=](double unit) { return std::fma(sigma, std::tan(std::numbers::pi * (unit - 0.5)), median); });
}

void log_normal(const Tensor& self, double mean, double deviation, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<FloatingTypes>(self.dtype(), "log_normal_cpu", [&](auto tag) {
    fill_each<typename decltype(tag)::type>(
        self, [&] { return std::exp(std::fma(draw_normal(generator), deviation, mean)); });
  });
}

}  // namespace umbra::kernels
