// Random numbers whose distribution is given by tensors, element by element in row-major order.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/copy.h"
#include "kernels/random.h"
#include "kernels/random_draws.h"
#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

// ---- Poisson ----

// Knuth's method: how many factors in [0, 1) a product takes to fall below exp(-rate).
int64_t few_events(double rate, Generator& g) {
  double limit = std::exp(-rate), product = 1;
  for (int64_t count = 0;; ++count) {
    product *= draw_unit<double>(g);
    if (!(product > limit)) return count;
  }
}

// Hörmann's transformed rejection (PTRS, 1993).
int64_t many_events(double rate, Generator& g) {
  double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    double u = draw_unit<double>(g) - 0.5, v = draw_unit<double>(g), us = 0.5 - std::fabs(u);
    auto count = static_cast<int64_t>(std::floor((2 * a / us + b) * u + rate + 0.43));
    if (us >= 0.07 && v <= accepted) return count;
    if (count < 0 || (us < 0.013 && v > us)) continue;
    double events = static_cast<double>(count);
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + events * log_rate - std::lgamma(events + 1))
      return count;
  }
}

int64_t draw_poisson(double rate, Generator& g) {
  check(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
  if (rate >= 10) return many_events(rate, g);
  return rate == 0 ? 0 : few_events(rate, g);
}

// ---- binomial; T is the type of counts and probabilities, whose rounding shows in the numbers ----

// The waiting times between successes, added up until they pass the number of trials.
template <class T> T few_successes(T count, T p, Generator& g) {
  double log_failure = std::log1p(-p), trials = 0;
  for (T successes = 0;; successes += 1) {
    trials += std::ceil(std::log(draw_unit<double>(g)) / log_failure);
    if (trials > count) return successes;
  }
}

// log(k!) less Stirling's approximation of it.
double stirling_rest(double k) {
  constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                               0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                               0.00925546218271273, 0.00833056343336287};
  if (k < static_cast<double>(std::size(kFirst))) return kFirst[static_cast<size_t>(k)];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Hörmann's transformed rejection (BTRS, 1993).
template <class T> T many_successes(T count, T p, Generator& g) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  const double accepted = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  while (true) {
    double u = draw_unit<double>(g) - 0.5, v = draw_unit<double>(g), us = 0.5 - std::abs(u);
    T k = static_cast<T>(std::floor((2 * a / us + b) * u + c));
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= accepted) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                   (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                   (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_rest(mode) +
                   stirling_rest(count - mode) - stirling_rest(k) - stirling_rest(count - k);
    if (v <= bound) return k;
  }
}

template <class T> T draw_binomial(T count, T p, Generator& g) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(p)) return p;
  bool successes = p <= T(0.5);  // what is rarer is counted
  T rare = successes ? p : static_cast<T>(1.0 - p);
  T drawn = count * rare >= 10 ? many_successes(count, rare, g) : few_successes(count, rare, g);
  return successes ? drawn : count - drawn;
}

// ---- gamma ----

// Marsaglia and Tsang's method (2000); a shape below 1 is raised by 1 and corrected for. The constants are floats.
template <class T> double draw_gamma(T alpha, Generator& g) {
  double scale = 1;
  if (alpha < 1.0f) {
    if (alpha == 0) return 0;
    scale = std::pow(1 - draw_unit<double>(g), static_cast<double>(1.0f / alpha));
    alpha += 1.0f;
  }
  const double d = alpha - 1.0f / 3.0f, c = 1.0f / std::sqrt(9.0f * d);
  while (true) {
    double x, y;
    do {
      x = draw_normal(g);
      y = 1.0f + c * x;
    } while (y <= 0);
    double v = y * y * y, u = 1 - draw_unit<double>(g), square = x * x;
    if (u < 1.0f - 0.0331f * square * square) return scale * d * v;
    if (std::log(u) < 0.5f * square + d * (1.0f - v + std::log(v))) return scale * d * v;
  }
}

// ---- a row's sum, in the order in which PyTorch adds: four lanes by four rows, and partial sums by levels ----

constexpr int kLanes = 4, kRows = 4, kLevels = 4, kWidth = kLanes * kRows;
using Partial = std::array<double, kWidth>;

void add_to(Partial& sums, const double* x) {
  for (int i = 0; i < kWidth; ++i) sums[i] += x[i];
}

/// The sums of every sixteenth element.
Partial sums_by_place(const double* x, int64_t steps) {
  int power =
      std::max(4, static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(steps - 1, 0)))) / kLevels);
  const int64_t together = int64_t{1} << power;
  std::array<Partial, kLevels> levels{};
  int64_t i = 0;
  while (i + together <= steps) {
    for (int64_t j = 0; j < together; ++j, ++i) add_to(levels[0], x + i * kWidth);
    for (int level = 1; level < kLevels; ++level) {
      add_to(levels[level], levels[level - 1].data());
      levels[level - 1].fill(0);
      if (i & ((together - 1) << (level * power))) break;
    }
  }
  for (; i < steps; ++i) add_to(levels[0], x + i * kWidth);
  for (int level = 1; level < kLevels; ++level) add_to(levels[0], levels[level].data());
  return levels[0];
}

double row_sum(const double* x, int64_t n) {
  Partial sums = sums_by_place(x, n / kWidth);
  int64_t i = n / kWidth * kWidth;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane];
  for (int row = 1; row < kRows; ++row)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += sums[row * kLanes + lane];
  double sum = 0;
  for (; i < n; ++i) sum += x[i];
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

/// All elements of `out` from those of an input, in row-major order.
template <class T, class Draw> void draw_from(const Tensor& out, const Tensor& in, const Draw& draw) {
  std::vector<T> values = read_vector<T>(in);
  for (T& value : values) value = draw(value);
  write_vector(out, values);
}

}  // namespace

void poisson(const Tensor& out, const Tensor& rate, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<FloatingTypes>(rate.dtype(), "poisson_cpu", [&](auto tag) {
    using T = Compute<typename decltype(tag)::type>;
    draw_from<T>(out, rate, [&](T each) { return static_cast<T>(draw_poisson(each, generator)); });
  });
}

void binomial(const Tensor& out, const Tensor& count, const Tensor& p, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<Floating>(out.dtype(), "binomial_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor counts = scratch(out.sizes(), out.dtype());
    copy(counts, count);
    Tensor chances = scratch(out.sizes(), out.dtype());
    copy(chances, p);
    const T* chance = chances.data<T>();
    draw_from<T>(out, counts, [&](T each) { return draw_binomial<T>(each, *chance++, generator); });
  });
}

void standard_gamma(const Tensor& out, const Tensor& alpha, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<Floating>(alpha.dtype(), "gamma_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    draw_from<T>(out, alpha, [&](T each) {
      return std::max(std::numeric_limits<T>::min(), static_cast<T>(draw_gamma(each, generator)));
    });
  });
}

void dirichlet(const Tensor& out, const Tensor& alpha, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<Floating>(alpha.dtype(), "dirichlet", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor shares = scratch(alpha.sizes(), DType::Float64);
    // What is no number, since alpha is negative, counts as the least one.
    draw_from<double>(shares, alpha, [&](double each) {
      return std::max(std::numeric_limits<double>::min(), draw_gamma(each, generator));
    });
    int64_t n = alpha.dim() == 0 ? 1 : alpha.size(-1), rows = n == 0 ? 0 : alpha.numel() / n;
    std::vector<T> values(alpha.numel());
    const T most = std::nextafter(T(1), T(0));
    for (int64_t row = 0; row < rows; ++row) {
      const double* share = shares.data<double>() + row * n;
      double sum = row_sum(share, n);
      for (int64_t i = 0; i < n; ++i) {
        T part = static_cast<T>(share[i] / sum);
        values[row * n + i] = std::min(most, std::max(std::numeric_limits<T>::min(), part));
      }
    }
    write_vector(out, values);
  });
}

namespace {

template <class T> void check_probabilities(const T* p, int64_t n) {
  bool negative = false, infinite = false;
  for (int64_t i = 0; i < n; ++i) negative |= p[i] < 0;
  for (int64_t i = 0; i < n; ++i) infinite |= !(std::abs(p[i]) <= std::numeric_limits<T>::max());
  if (!negative && !infinite) return;
  for (int64_t i = 0; i < n; ++i) {  // what comes first is said
    check(p[i] >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
    check(std::isfinite(p[i]), "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  }
}

/// The running sums of rows of probabilities, each in relation to its whole. Rows go side by side, since a step of one
/// waits for the step before.
template <int ways, class T> void cumulate(T* upto, const T* p, int64_t n) {
  T sums[ways] = {};
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) upto[w * n + i] = sums[w] += p[w * n + i];
  for (int w = 0; w < ways; ++w) {
    const T sum = sums[w];
    check(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
    for (int64_t i = 0; i < n; ++i) upto[w * n + i] /= sum;
    upto[w * n + n - 1] = 1;
  }
}

/// How many of the sums are below u.
template <class T> int64_t place_among(const T* upto, int64_t n, double u) {
  int64_t first = 0;
  while (n > 1) {
    int64_t half = n / 2;
    first = upto[first + half - 1] < u ? first + half : first;
    n -= half;
  }
  return first + (n == 1 && upto[first] < u);
}

}  // namespace

void multinomial(const Tensor& out, const Tensor& probabilities, Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  int64_t n = probabilities.size(-1), rows = probabilities.size(0), count = out.size(-1);
  DenseOutput drawn(out);
  visit<FloatingTypes>(probabilities.dtype(), "multinomial", [&](auto tag) {
    using T = Compute<typename decltype(tag)::type>;
    constexpr int kWays = 4;
    Tensor dense = contiguous(cast(probabilities, dtype_of<T>));
    std::vector<T> upto(static_cast<size_t>(kWays * n));
    std::vector<uint32_t> words(static_cast<size_t>(2 * count));
    int64_t* to = rows * count > 0 ? drawn.tensor().data<int64_t>() : nullptr;
    const T* p = rows * n > 0 ? dense.data<T>() : nullptr;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t way = row % kWays, group = row - way;
      if (group + kWays <= rows && n > 0) {
        if (way == 0) check_probabilities(p + row * n, kWays * n), cumulate<kWays>(upto.data(), p + row * n, n);
      } else {
        check_probabilities(p + row * n, n);
        cumulate<1>(upto.data() + way * n, p + row * n, n);
      }
      draw_words(generator, words.data(), 2 * count);
      for (int64_t k = 0; k < count; ++k)
        *to++ = place_among(upto.data() + way * n, n, unit_of<double>(words.data() + 2 * k));
    }
  });
  drawn.finish();
}

void randomized_relu(const Tensor& out, const Tensor& noise, const Tensor& self, double lower, double upper,
                     Generator& generator) {
  std::lock_guard lock(generator.engine().mutex);
  visit<detail::Join<Floating, Types<BFloat16>>>(self.dtype(), "rrelu_with_noise_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values = read_vector<T>(self), slopes(values.size());
    const double low = static_cast<Compute<T>>(lower), range = static_cast<Compute<T>>(upper) - low;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] <= Compute<T>(0)) {
        slopes[i] = static_cast<T>(static_cast<Compute<T>>(draw_unit<double>(generator) * range + low));
        values[i] = static_cast<T>(values[i] * slopes[i]);
      } else {
        slopes[i] = static_cast<T>(Compute<T>(1));
      }
    }
    write_vector(noise, slopes);
    write_vector(out, values);
  });
}

}  // namespace umbra::kernels
