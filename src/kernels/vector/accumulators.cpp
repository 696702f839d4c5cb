#include "kernels/vector/accumulators.h"

#include <limits>

#include "kernels/math.h"
#include "kernels/vector/extreme_of.h"

namespace umbra::kernels::UMBRA_ISA {

namespace {

using Parameters = ReduceParameters;
using math::maximum, math::minimum, math::select, math::pow;

// Sums are begun in the elements' own type, over a few dozen elements in each lane, and go on in a wider one.
template <class T> struct WideType { using type = T; };
template <> struct WideType<float> { using type = double; };
template <> struct WideType<std::complex<float>> { using type = std::complex<double>; };
template <class T> using Wide = typename WideType<T>::type;
template <class T> struct RealType { using type = T; };
template <class T> struct RealType<std::complex<T>> { using type = T; };
template <class T> using Real = typename RealType<T>::type;

/// Lanes of what is stored: registers of float and double, single elements of the rest.
template <class Stored> struct Lanes {
  static constexpr int size = 1;
  static Stored load(const Stored* from) { return *from; }
};
template <class Stored>
requires std::is_floating_point_v<Stored> || is_narrow<Stored>
struct Lanes<Stored> {
  static constexpr int size = decltype(load_lanes(std::declval<const Stored*>()))::size;
  static auto load(const Stored* from) { return load_lanes(from); }
};

// ---- operations that take one element after the other. A step is written over V, a T or a register of them. --------

template <class T> struct SumStep {
  using Partial = T;
  using State = Wide<T>;
  explicit SumStep(const Parameters&) {}
  static T first() { return T(0); }
  template <class V> V step(V sum, V x) const { return math::add(sum, x); }
  template <class V> V combine(V a, V b) const { return math::add(a, b); }
  static State finish(State state, int64_t, const Parameters&) { return state; }
};

template <class T> struct MeanStep : SumStep<T> {
  using SumStep<T>::SumStep;
  static Wide<T> finish(Wide<T> state, int64_t n, const Parameters&) { return state / Wide<T>(n); }
};

template <class T> struct NanSumStep : SumStep<T> {
  using SumStep<T>::SumStep;
  template <class V> V step(V sum, V x) const { return select(x != x, sum, sum + x); }
};

template <class T> struct ProdStep {
  using Partial = T;
  using State = Wide<T>;
  explicit ProdStep(const Parameters&) {}
  static T first() { return T(1); }
  template <class V> V step(V product, V x) const { return math::multiply(product, x); }
  template <class V> V combine(V a, V b) const { return math::multiply(a, b); }
  static State finish(State state, int64_t, const Parameters&) { return state; }
};

template <class T> T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <class T> T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

template <class T> struct MaxStep {
  using Partial = T;
  using State = T;
  static constexpr bool largest = true;
  explicit MaxStep(const Parameters&) {}
  static T first() { return lowest<T>(); }
  template <class V> V step(V so_far, V x) const { return maximum(x, so_far); }
  template <class V> V combine(V a, V b) const { return maximum(a, b); }
  static State finish(State state, int64_t, const Parameters&) { return state; }
};
template <class T> struct MinStep : MaxStep<T> {
  using MaxStep<T>::MaxStep;
  static constexpr bool largest = false;
  static T first() { return highest<T>(); }
  template <class V> V step(V so_far, V x) const { return minimum(x, so_far); }
  template <class V> V combine(V a, V b) const { return minimum(a, b); }
};

struct AnyStep {
  using Partial = bool;
  using State = bool;
  explicit AnyStep(const Parameters&) {}
  static bool first() { return false; }
  static bool step(bool a, bool b) { return a | b; }
  static bool combine(bool a, bool b) { return a | b; }
  static bool finish(bool state, int64_t, const Parameters&) { return state; }
};
struct AllStep : AnyStep {
  using AnyStep::AnyStep;
  static bool first() { return true; }
  static bool step(bool a, bool b) { return a & b; }
  static bool combine(bool a, bool b) { return a & b; }
};

/// Norms: a transform of the absolute value, summed.
template <class T> struct NormStep {
  using Partial = Real<T>;
  using State = Wide<Real<T>>;
  explicit NormStep(const Parameters&) {}
  static Partial first() { return 0; }
  template <class V> V combine(V a, V b) const { return a + b; }
};
template <class T> struct Norm2Step : NormStep<T> {
  using NormStep<T>::NormStep;
  template <class P, class V> P step(P sum, V x) const {
    if constexpr (math::is_complex<V>) return sum + std::norm(x);
    else return sum + x * x;
  }
  static auto finish(Wide<Real<T>> state, int64_t, const Parameters&) { return std::sqrt(state); }
};
template <class T> struct Norm1Step : NormStep<T> {
  using NormStep<T>::NormStep;
  template <class P, class V> P step(P sum, V x) const {
    using math::abs;
    return sum + abs(x);
  }
  static auto finish(Wide<Real<T>> state, int64_t, const Parameters&) { return state; }
};
template <class T> struct Norm0Step : NormStep<T> {
  using NormStep<T>::NormStep;
  template <class P, class V> P step(P sum, V x) const { return sum + select(x == V(0), P(0), P(1)); }
  static auto finish(Wide<Real<T>> state, int64_t, const Parameters&) { return state; }
};
template <class T> struct NormPowerStep : NormStep<T> {
  Real<T> exponent;
  explicit NormPowerStep(const Parameters& parameters)
      : NormStep<T>(parameters), exponent(static_cast<Real<T>>(parameters.exponent)) {}
  template <class P, class V> P step(P sum, V x) const {
    using math::abs;
    return sum + pow(P(abs(x)), P(exponent));
  }
  static auto finish(Wide<Real<T>> state, int64_t, const Parameters& parameters) {
    return std::pow(state, 1 / parameters.exponent);
  }
};
template <class T> struct NormMaxStep {
  using Partial = Real<T>;
  using State = Real<T>;
  explicit NormMaxStep(const Parameters&) {}
  static Partial first() { return 0; }
  template <class P, class V> P step(P largest, V x) const {
    using math::abs;
    return maximum(P(abs(x)), largest);
  }
  template <class V> V combine(V a, V b) const { return maximum(a, b); }
  static auto finish(State state, int64_t, const Parameters&) { return state; }
};
template <class T> struct NormMinStep : NormMaxStep<T> {
  using NormMaxStep<T>::NormMaxStep;
  static Real<T> first() { return highest<Real<T>>(); }
  template <class P, class V> P step(P smallest, V x) const {
    using math::abs;
    return minimum(P(abs(x)), smallest);
  }
  template <class V> V combine(V a, V b) const { return minimum(a, b); }
};

/// A kernel's functions from a step over elements of type T, which may be stored as a narrow type.
template <class Step, class T, class Stored = T> struct StepKernel {
  using Partial = typename Step::Partial;
  using State = typename Step::State;
  using Result = decltype(Step::finish(State(), 1, Parameters()));
  static constexpr DType compute = dtype_of<Stored>;
  static constexpr DType result[2] = {dtype_of<Result>, DType::Undefined};

  static void start(void* states, int64_t count) {
    std::fill_n(static_cast<State*>(states), count, State(Step::first()));
  }

  static void run(void* state_memory, const void* values, int64_t n, const Parameters& parameters) {
    const Step op(parameters);
    const Stored* in = static_cast<const Stored*>(values);
    State& state = *static_cast<State*>(state_memory);
    if constexpr (std::is_integral_v<T>) {  // the compiler vectorises these
      Partial partial = Step::first();
      for (int64_t i = 0; i < n; ++i) partial = op.step(partial, in[i]);
      state = op.combine(state, State(partial));
      return;
    }
    if constexpr (std::is_floating_point_v<T> && requires { Step::largest; }) {
      state = op.combine(state, extreme_of<Step::largest>(in, n));
      return;
    }
    constexpr int width = Lanes<Stored>::size, ways = 8;
    using V = std::conditional_t<width == 1, Partial, Vec<Partial>>;
    V whole(Step::first());
    int64_t i = 0;
    if (n >= ways * width) {
      V partial[ways];
      for (V& p : partial) p = V(Step::first());
      for (; i + ways * width <= n; i += ways * width)
        for (int w = 0; w < ways; ++w) partial[w] = op.step(partial[w], Lanes<Stored>::load(in + i + w * width));
      auto pairs = [&](int a) { return op.combine(partial[a], partial[a + 1]); };
      whole = op.combine(op.combine(pairs(0), pairs(2)), op.combine(pairs(4), pairs(6)));
    }
    V other(Step::first());  // of what is left, or of a short run: two by two
    for (; i + 2 * width <= n; i += 2 * width) {
      whole = op.step(whole, Lanes<Stored>::load(in + i));
      other = op.step(other, Lanes<Stored>::load(in + i + width));
    }
    if (i + width <= n) {
      whole = op.step(whole, Lanes<Stored>::load(in + i));
      i += width;
    }
    whole = op.combine(whole, other);
    if constexpr (width == 1) {
      state = op.combine(state, State(whole));
    } else {
      state = op.combine(state, State(reduce(whole, [&](V a, V b) { return op.combine(a, b); })));
      for (; i < n; ++i) state = op.combine(state, State(op.step(Step::first(), static_cast<T>(in[i]))));
    }
  }

  /// Takes a register of partial results into the states of its columns.
  static void combine_lanes(const Step& op, State* states, Vec<Partial> partial) {
    if constexpr (std::is_same_v<State, Partial>) {
      op.combine(Vec<Partial>::load(states), partial).store(states);
    } else {
      static_assert(sizeof(State) == 2 * sizeof(Partial));
      Partial lanes[2 * Vec<State>::size];
      partial.store(lanes);
      for (int half = 0; half < 2; ++half) {
        typedef Partial Half __attribute__((vector_size(kVectorBytes / 2)));
        Half narrow;
        std::memcpy(&narrow, lanes + half * Vec<State>::size, sizeof(narrow));
        Vec<State> wide(__builtin_convertvector(narrow, typename Vec<State>::Raw));
        State* at = states + half * Vec<State>::size;
        op.combine(Vec<State>::load(at), wide).store(at);
      }
    }
  }

  static void strip(void* state_memory, const void* const* rows, int row_count, int64_t columns,
                    const Parameters& parameters) {
    const Step op(parameters);
    State* states = static_cast<State*>(state_memory);
    auto row = [&](int r) { return static_cast<const Stored*>(rows[r]); };
    if constexpr (std::is_integral_v<T>) {  // row by row: the compiler makes vectors of the columns
      for (int r = 0; r < row_count; ++r) {
        const Stored* values = row(r);
        for (int64_t j = 0; j < columns; ++j) states[j] = op.step(states[j], values[j]);
      }
      return;
    }
    constexpr int width = Lanes<Stored>::size;
    int64_t j = 0;
    if constexpr (width > 1) {
      // Several registers at a time: a step of one need not wait for the other's.
      auto take = [&](auto ways) {
        Vec<Partial> partial[ways];
        for (auto& p : partial) p = Vec<Partial>(Step::first());
        for (int r = 0; r < row_count; ++r)
          for (int w = 0; w < ways; ++w) partial[w] = op.step(partial[w], Lanes<Stored>::load(row(r) + j + w * width));
        for (int w = 0; w < ways; ++w) combine_lanes(op, states + j + w * width, partial[w]);
        j += ways * width;
      };
      constexpr int most = kVectorBytes == 64 ? 16 : 8;  // as many as there are registers for
      while (j + most * width <= columns) take(std::integral_constant<int, most>());
      while (j + 4 * width <= columns) take(std::integral_constant<int, 4>());
      // What is left, with a register that is not full as the last.
      auto take_rest = [&](auto ways) {
        constexpr int last = ways - 1;
        const int64_t lanes = columns - j - last * width;
        Vec<Partial> partial[ways];
        for (auto& p : partial) p = Vec<Partial>(Step::first());
        for (int r = 0; r < row_count; ++r) {
#pragma GCC unroll 3
          for (int w = 0; w < last; ++w) partial[w] = op.step(partial[w], Lanes<Stored>::load(row(r) + j + w * width));
          partial[last] = op.step(partial[last], load_lanes(row(r) + j + last * width, lanes));
        }
        for (int w = 0; w < last; ++w) combine_lanes(op, states + j + w * width, partial[w]);
        State* rest = states + j + last * width;
        for (int64_t k = 0; k < lanes; ++k) rest[k] = op.combine(rest[k], State(partial[last][static_cast<int>(k)]));
      };
      int64_t registers = (columns - j + width - 1) / width;
      if (registers == 1) take_rest(std::integral_constant<int, 1>());
      else if (registers == 2) take_rest(std::integral_constant<int, 2>());
      else if (registers == 3) take_rest(std::integral_constant<int, 3>());
      else if (registers == 4) take_rest(std::integral_constant<int, 4>());
      return;
    }
    for (; j < columns; ++j) {
      Partial partial = Step::first();
      for (int r = 0; r < row_count; ++r) partial = op.step(partial, static_cast<T>(row(r)[j]));
      states[j] = op.combine(states[j], State(partial));
    }
  }

  static void merge(void* states, const void* others, int64_t count, const Parameters& parameters) {
    const Step op(parameters);
    for (int64_t i = 0; i < count; ++i) {
      State& state = static_cast<State*>(states)[i];
      state = op.combine(state, static_cast<const State*>(others)[i]);
    }
  }

  static void finish(void* results, const void* states, int64_t count, int64_t n, int, const Parameters& parameters) {
    for (int64_t i = 0; i < count; ++i)
      static_cast<Result*>(results)[i] = Step::finish(static_cast<const State*>(states)[i], n, parameters);
  }
};

// ---- operations that look at a few elements at once
// ------------------------------------------------------------------

/// Mean and squared deviations of what was seen, merged by the parallel form of Welford's algorithm.
template <class T> struct VarianceKernel {
  using Number = Wide<T>;
  using Squared = Wide<Real<T>>;
  struct State {
    double count;
    Number mean;
    Squared deviations;
  };
  static constexpr DType compute = dtype_of<T>;
  static constexpr DType result[2] = {dtype_of<Squared>, dtype_of<Number>};

  static void start(void* states, int64_t count) { std::fill_n(static_cast<State*>(states), count, State{}); }

  static Number not_a_number() {
    constexpr Squared nan = std::numeric_limits<Squared>::quiet_NaN();
    if constexpr (math::is_complex<Number>) return {nan, nan};
    else return nan;
  }
  static Squared square(Number x) {
    if constexpr (math::is_complex<Number>) return std::norm(x);
    else return x * x;
  }
  static void add(State& a, const State& b) {
    if (b.count == 0) return;
    double count = a.count + b.count;
    Number step = b.mean - a.mean;
    a.mean += step * static_cast<Squared>(b.count / count);
    a.deviations += b.deviations + square(step) * static_cast<Squared>(a.count * b.count / count);
    a.count = count;
  }

  static void run(void* state, const void* values, int64_t n, const Parameters&) {
    const T* in = static_cast<const T*>(values);
    if (n == 0) return;
    State seen{static_cast<double>(n), Number(0), 0};
    Number sum(0);
    StepKernel<SumStep<T>, T>::run(&sum, values, n, {});
    seen.mean = sum / static_cast<Squared>(n);
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      // Deviations from the rounded mean; what that shifts them by is taken off again.
      T centre = static_cast<T>(seen.mean);
      Vec<T> squares(0), deviations(0);
      for (; i + Vec<T>::size <= n; i += Vec<T>::size) {
        Vec<T> d = Vec<T>::load(in + i) - Vec<T>(centre);
        squares = fma(d, d, squares);
        deviations += d;
      }
      auto plus = [](Vec<T> a, Vec<T> b) { return a + b; };
      Squared total = reduce(squares, plus), shift = reduce(deviations, plus);
      for (; i < n; ++i) {
        Squared d = in[i] - centre;
        total += d * d;
        shift += d;
      }
      seen.deviations = total - shift * shift / static_cast<Squared>(n);
      if (seen.deviations < 0) seen.deviations = 0;
    }
    for (; i < n; ++i) seen.deviations += square(Number(in[i]) - seen.mean);
    add(*static_cast<State*>(state), seen);
  }

  static void strip(void* state_memory, const void* const* rows, int row_count, int64_t columns, const Parameters&) {
    State* states = static_cast<State*>(state_memory);
    for (int64_t j = 0; j < columns; ++j) {
      State seen{static_cast<double>(row_count), Number(0), 0};
      for (int r = 0; r < row_count; ++r) seen.mean += Number(static_cast<const T*>(rows[r])[j]);
      seen.mean /= static_cast<Squared>(row_count);
      for (int r = 0; r < row_count; ++r)
        seen.deviations += square(Number(static_cast<const T*>(rows[r])[j]) - seen.mean);
      add(states[j], seen);
    }
  }

  static void merge(void* states, const void* others, int64_t count, const Parameters&) {
    for (int64_t i = 0; i < count; ++i) add(static_cast<State*>(states)[i], static_cast<const State*>(others)[i]);
  }

  static void finish(void* results, const void* states, int64_t count, int64_t n, int which,
                     const Parameters& parameters) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (int64_t i = 0; i < count; ++i) {
      const State& state = static_cast<const State*>(states)[i];
      if (which == 1) {
        static_cast<Number*>(results)[i] = n == 0 ? not_a_number() : state.mean;
      } else {
        double divisor = std::max(0.0, static_cast<double>(n) - parameters.correction);
        double variance = n == 0 ? nan : state.deviations / divisor;
        static_cast<Squared*>(results)[i] = parameters.root ? std::sqrt(variance) : variance;
      }
    }
  }
};

/// log(sum(exp(x))) by the largest x and the sum of exp(x - largest); of complex numbers, the largest real part counts.
template <class T> struct LogSumExpKernel {
  using Height = Real<T>;
  using Sum = Wide<T>;
  struct State {
    Height largest;
    Sum sum;
  };
  static constexpr DType compute = dtype_of<T>;
  static constexpr DType result[2] = {dtype_of<Sum>, DType::Undefined};

  static Height height(T x) {
    if constexpr (math::is_complex<T>) return x.real();
    else return x;
  }
  static Height centre_of(const State& state) { return std::isinf(state.largest) ? Height(0) : state.largest; }

  static void start(void* states, int64_t count) {
    std::fill_n(static_cast<State*>(states), count, State{lowest<Height>(), 0});
  }
  static void add(State& a, const State& b) {
    Height largest = maximum(a.largest, b.largest);
    auto part = [&](const State& s) {
      return s.largest == largest ? s.sum
                                  : s.sum * std::exp(static_cast<double>(s.largest) - static_cast<double>(largest));
    };
    Sum sum = part(a) + part(b);
    a = {largest, std::isinf(largest) ? Sum(largest > 0 ? 1.0 : 0.0) : sum};
  }
  static void run(void* state, const void* values, int64_t n, const Parameters&) {
    const T* in = static_cast<const T*>(values);
    State seen{lowest<Height>(), 0};
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      StepKernel<MaxStep<T>, T>::run(&seen.largest, values, n, {});
      Vec<T> sum(0), centre(centre_of(seen));
      for (; i + Vec<T>::size <= n; i += Vec<T>::size) sum += exp(Vec<T>::load(in + i) - centre);
      seen.sum = reduce(sum, [](Vec<T> a, Vec<T> b) { return a + b; });
    } else {
      for (int64_t k = 0; k < n; ++k) seen.largest = maximum(seen.largest, height(in[k]));
    }
    for (; i < n; ++i) seen.sum += Sum(std::exp(in[i] - centre_of(seen)));
    add(*static_cast<State*>(state), seen);
  }
  static void strip(void* state_memory, const void* const* rows, int row_count, int64_t columns, const Parameters&) {
    int64_t j = 0;
    if constexpr (std::is_floating_point_v<T>) {
      using V = Vec<T>;
      for (; j + V::size <= columns; j += V::size) {
        auto values = [&](int r) { return V::load(static_cast<const T*>(rows[r]) + j); };
        V largest(lowest<T>()), sum(0);
        for (int r = 0; r < row_count; ++r) largest = maximum(values(r), largest);
        V centre = select(isinf(largest), T(0), largest);
        for (int r = 0; r < row_count; ++r) sum += exp(values(r) - centre);
        for (int lane = 0; lane < V::size; ++lane)
          add(static_cast<State*>(state_memory)[j + lane], State{largest[lane], Sum(sum[lane])});
      }
    }
    for (; j < columns; ++j) {
      State seen{lowest<Height>(), 0};
      auto value = [&](int r) { return static_cast<const T*>(rows[r])[j]; };
      for (int r = 0; r < row_count; ++r) seen.largest = maximum(seen.largest, height(value(r)));
      for (int r = 0; r < row_count; ++r) seen.sum += Sum(std::exp(value(r) - centre_of(seen)));
      add(static_cast<State*>(state_memory)[j], seen);
    }
  }
  static void merge(void* states, const void* others, int64_t count, const Parameters&) {
    for (int64_t i = 0; i < count; ++i) add(static_cast<State*>(states)[i], static_cast<const State*>(others)[i]);
  }
  static void finish(void* results, const void* states, int64_t count, int64_t, int, const Parameters&) {
    for (int64_t i = 0; i < count; ++i) {
      const State& state = static_cast<const State*>(states)[i];
      double largest = static_cast<double>(state.largest);
      static_cast<Sum*>(results)[i] = std::isinf(largest) ? Sum(largest) : std::log(state.sum) + largest;
    }
  }
};

// ---- choice
// ----------------------------------------------------------------------------------------------------------

template <class K> const ReduceKernel* kernel(size_t state_bytes) {
  static const ReduceKernel table = {K::compute,
                                     {K::result[0], K::result[1]},
                                     static_cast<int64_t>(state_bytes),
                                     &K::start,
                                     &K::run,
                                     &K::strip,
                                     &K::merge,
                                     &K::finish};
  return &table;
}
template <class K> const ReduceKernel* kernel() { return kernel<K>(sizeof(typename K::State)); }
template <class Step, class T, class Stored = T> const ReduceKernel* step_kernel() {
  return kernel<StepKernel<Step, T, Stored>>();
}

template <template <class> class Step> const ReduceKernel* for_numbers(DType compute) {
  switch (compute) {
    case DType::Float16: return step_kernel<Step<float>, float, Half>();
    case DType::BFloat16: return step_kernel<Step<float>, float, BFloat16>();
    case DType::Float32: return step_kernel<Step<float>, float>();
    case DType::Float64: return step_kernel<Step<double>, double>();
    case DType::Complex64: return step_kernel<Step<std::complex<float>>, std::complex<float>>();
    case DType::Complex128: return step_kernel<Step<std::complex<double>>, std::complex<double>>();
    default: return nullptr;
  }
}
template <template <class> class Step> const ReduceKernel* for_reals(DType compute) {
  switch (compute) {
    case DType::Float16: return step_kernel<Step<float>, float, Half>();
    case DType::BFloat16: return step_kernel<Step<float>, float, BFloat16>();
    case DType::Float32: return step_kernel<Step<float>, float>();
    case DType::Float64: return step_kernel<Step<double>, double>();
    default: return nullptr;
  }
}
template <template <class> class Step> const ReduceKernel* with_integers(const ReduceKernel* others, DType compute) {
  return compute == DType::Int64 ? step_kernel<Step<int64_t>, int64_t>() : others;
}

const ReduceKernel* norm_kernel(DType compute, double exponent) {
  if (exponent == 2) return for_numbers<Norm2Step>(compute);
  if (exponent == 1) return for_numbers<Norm1Step>(compute);
  if (exponent == 0) return for_numbers<Norm0Step>(compute);
  if (std::isinf(exponent)) return exponent > 0 ? for_numbers<NormMaxStep>(compute) : for_numbers<NormMinStep>(compute);
  return for_numbers<NormPowerStep>(compute);
}

template <template <class> class Kernel> const ReduceKernel* for_each_number(DType compute) {
  switch (compute) {
    case DType::Float32: return kernel<Kernel<float>>();
    case DType::Float64: return kernel<Kernel<double>>();
    case DType::Complex64: return kernel<Kernel<std::complex<float>>>();
    case DType::Complex128: return kernel<Kernel<std::complex<double>>>();
    default: return nullptr;
  }
}

}  // namespace

const ReduceKernel* reduce_kernel(ReduceOp op, DType compute, const ReduceParameters& parameters) {
  switch (op) {
    case ReduceOp::Sum: return with_integers<SumStep>(for_numbers<SumStep>(compute), compute);
    case ReduceOp::Mean: return for_numbers<MeanStep>(compute);
    case ReduceOp::NanSum: return with_integers<SumStep>(for_reals<NanSumStep>(compute), compute);
    case ReduceOp::Prod: return with_integers<ProdStep>(for_numbers<ProdStep>(compute), compute);
    case ReduceOp::Max: return with_integers<MaxStep>(for_reals<MaxStep>(compute), compute);
    case ReduceOp::Min: return with_integers<MinStep>(for_reals<MinStep>(compute), compute);
    case ReduceOp::Any: return compute == DType::Bool ? step_kernel<AnyStep, bool>() : nullptr;
    case ReduceOp::All: return compute == DType::Bool ? step_kernel<AllStep, bool>() : nullptr;
    case ReduceOp::Norm: return norm_kernel(compute, parameters.exponent);
    case ReduceOp::Variance: return for_each_number<VarianceKernel>(compute);
    case ReduceOp::LogSumExp: return for_each_number<LogSumExpKernel>(compute);
  }
  return nullptr;
}

}  // namespace umbra::kernels::UMBRA_ISA
