// The innermost loop of a pointwise kernel, and the table of a functor's loops by type.
#pragma once

#include <array>
#include <utility>

#include "kernels/math.h"
#include "kernels/run_functor.h"
#include "kernels/vector/narrow.h"

namespace umbra::kernels::UMBRA_ISA {

namespace detail {

template <class F> constexpr unsigned masks_of() {
  if constexpr (requires { F::masks; }) return F::masks;
  else return 0;
}

template <class F> constexpr unsigned exact_numbers_of() {
  if constexpr (requires { F::exact_numbers; }) return F::exact_numbers;
  else return 0;
}

/// The callable of a functor for compute type T.
template <class T, class F> auto bound(const F& functor) {
  if constexpr (requires { functor.template bind<T>(); }) return functor.template bind<T>();
  else return functor;
}

/// A functor that has no vector form says so: `static constexpr bool scalar_only = true`.
template <class F, class T> constexpr bool vectorised() {
  if constexpr (requires { F::scalar_only; }) return false;
  else return std::is_floating_point_v<T>;
}

template <class F, class T, size_t I> using Input = std::conditional_t<(masks_of<F>() >> I & 1) != 0, bool, T>;
template <class F, class T, size_t I>
using VecInput = std::conditional_t<(masks_of<F>() >> I & 1) != 0, Mask<T>, Vec<T>>;

template <class F, class T, size_t... I> auto call_once(const F& functor, std::index_sequence<I...>) {
  return bound<T>(functor)(Input<F, T, I>()...);
}
template <class F, class T>
using Result = decltype(call_once<F, T>(std::declval<const F&>(), std::make_index_sequence<F::arity>()));

// What is computed in T may be stored as a narrow type: it is then widened and narrowed in registers.
template <class F, class T, class Stored>
using StoredResult = std::conditional_t<std::is_same_v<Result<F, T>, T>, Stored, Result<F, T>>;

template <class Lanes, class Stored, class... Count> Lanes load_as(const Stored* from, Count... count) {
  if constexpr (is_narrow<Stored>) return load_lanes(from, count...);
  else return Lanes::load(from, count...);
}
template <class Lanes, class Stored, class... Count> void store_as(Lanes lanes, Stored* to, Count... count) {
  if constexpr (is_narrow<Stored>) store_lanes(lanes, to, count...);
  else lanes.store(to, count...);
}

/// A functor may have a form for results of which a bfloat16 holds no more than the first digits.
template <class Fn, class... X> auto call_rough(const Fn& fn, const X&... x) {
  if constexpr (requires { fn.rough(x...); }) return fn.rough(x...);
  else return fn(x...);
}

template <class F, class T, class Stored, size_t... I>
void vector_loop(const F& functor, char* const* data, int64_t n, std::index_sequence<I...>) {
  constexpr int width = Vec<T>::size;
  const auto f = bound<T>(functor);
  auto* out = reinterpret_cast<StoredResult<F, T, Stored>*>(data[0]);
  auto in = std::make_tuple(reinterpret_cast<const Input<F, Stored, I>*>(data[I + 1])...);
  int64_t i = 0;
  if constexpr (std::is_same_v<StoredResult<F, T, Stored>, BFloat16> && masks_of<F>() == 0) {
    for (; i + TwoOfFloat::size <= n; i += TwoOfFloat::size)
      [&](const auto&... x) {
        TwoOfFloat{call_rough(f, x.even...), call_rough(f, x.odd...)}.store(out + i);
      }(TwoOfFloat::load(std::get<I>(in) + i)...);
  }
  for (; i + width <= n; i += width) store_as(f(load_as<VecInput<F, T, I>>(std::get<I>(in) + i)...), out + i);
  if (i < n) store_as(f(load_as<VecInput<F, T, I>>(std::get<I>(in) + i, n - i)...), out + i, n - i);
}

/// One of two inputs is a single number, of type T.
template <class F, class T, class Stored, size_t number>
void vector_loop_with_number(const F& functor, char* const* data, int64_t n) {
  constexpr int width = Vec<T>::size;
  const auto f = bound<T>(functor);
  auto* out = reinterpret_cast<StoredResult<F, T, Stored>*>(data[0]);
  auto* in = reinterpret_cast<const Stored*>(data[2 - number]);
  const Vec<T> value(*reinterpret_cast<const T*>(data[1 + number]));
  auto call = [&](Vec<T> x) {
    if constexpr (number == 0) return f(value, x);
    else return f(x, value);
  };
  int64_t i = 0;
  if constexpr (std::is_same_v<StoredResult<F, T, Stored>, BFloat16>) {
    for (; i + TwoOfFloat::size <= n; i += TwoOfFloat::size) {
      auto x = TwoOfFloat::load(in + i);
      TwoOfFloat{call(x.even), call(x.odd)}.store(out + i);
    }
  }
  for (; i + width <= n; i += width) store_as(call(load_as<Vec<T>>(in + i)), out + i);
  if (i < n) store_as(call(load_as<Vec<T>>(in + i, n - i)), out + i, n - i);
}

template <class F, class T, size_t... I>
void scalar_loop(const F& functor, char* const* data, int64_t n, std::index_sequence<I...>) {
  const auto f = bound<T>(functor);
  auto* out = reinterpret_cast<Result<F, T>*>(data[0]);
  auto in = std::make_tuple(reinterpret_cast<const Input<F, T, I>*>(data[I + 1])...);
  // In place, an element is read before it is written and never again: iterations do not depend on each other.
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < n; ++i) out[i] = f(std::get<I>(in)[i]...);
}

template <class F, class T, class Stored = T> void loop(const void* functor, char* const* data, int64_t n) {
  constexpr auto inputs = std::make_index_sequence<F::arity>();
  if constexpr (vectorised<F, T>()) vector_loop<F, T, Stored>(*static_cast<const F*>(functor), data, n, inputs);
  else scalar_loop<F, T>(*static_cast<const F*>(functor), data, n, inputs);
}

template <class F, class T, class Stored, size_t number>
void loop_with_number(const void* functor, char* const* data, int64_t n) {
  vector_loop_with_number<F, T, Stored, number>(*static_cast<const F*>(functor), data, n);
}

/// The loops over elements that are stored as what they are computed in, or as a narrow type.
template <class F, class T, class Stored> constexpr PointwiseLoops loops() {
  if constexpr (vectorised<F, T>() && F::arity == 2 && masks_of<F>() == 0)
    return {&loop<F, T, Stored>, {&loop_with_number<F, T, Stored, 0>, &loop_with_number<F, T, Stored, 1>}};
  else return {&loop<F, T, Stored>, {}};
}

/// Elements that are stored as a type without arithmetic: the driver converts them.
template <class F, class Stored> constexpr PointwiseEntry stored_entry() {
  using T = Compute<Stored>;
  constexpr DType compute = dtype_of<T>, computed = dtype_of<Result<F, T>>;
  constexpr DType result = computed == compute          ? dtype_of<Stored>
                           : computed == DType::Float32 ? DType::Float16  // the size of a complex number
                                                        : computed;
  return {loops<F, T, T>(), {}, compute, computed, result};
}

template <class F, class T> constexpr void add_computed_entry(PointwiseTable& table) {
  constexpr DType compute = dtype_of<T>, computed = dtype_of<Result<F, T>>;
  static_assert(computed != DType::Undefined, "a functor yields T, bool or the real type of T");
  PointwiseEntry& entry = table.entries[static_cast<int>(compute)];
  entry = {loops<F, T, T>(), {}, compute, computed, computed};
  if constexpr (std::is_same_v<T, float> && !requires { F::full_width_only; }) {
    // The narrow types are computed in float; where a loop has no form that reads and writes them, the driver converts.
    auto add_narrow = [&]<class Narrow>(Narrow) {
      constexpr DType narrow = dtype_of<Narrow>;
      PointwiseEntry& own = table.entries[static_cast<int>(narrow)];
      own = {entry.loops, {}, compute, computed, computed == compute ? narrow : computed};
      if constexpr (vectorised<F, T>()) own.narrow = loops<F, T, Narrow>();
    };
    add_narrow(Half());
    add_narrow(BFloat16());
  }
}

template <class F, class T> constexpr void add_entry(PointwiseTable& table) {
  if constexpr (std::is_same_v<Compute<T>, T>) add_computed_entry<F, T>(table);
  else table.entries[static_cast<int>(dtype_of<T>)] = stored_entry<F, T>();
}

template <class F, class... T> constexpr PointwiseTable make_table(Types<T...>) {
  PointwiseTable table{F::name, F::arity, masks_of<F>(), exact_numbers_of<F>(), {}};
  (add_entry<F, T>(table), ...);
  return table;
}

}  // namespace detail

template <class Functor> const PointwiseTable& pointwise_table() {
  static constexpr PointwiseTable table = detail::make_table<Functor>(typename Functor::types());
  return table;
}

/// Instantiates a functor's kernels for this instruction set.
#define UMBRA_INSTANTIATE_POINTWISE(Functor) template const PointwiseTable& pointwise_table<functors::Functor>()

}  // namespace umbra::kernels::UMBRA_ISA
