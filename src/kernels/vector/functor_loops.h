// The innermost loop of a pointwise kernel, and the table of a functor's loops by type.
#pragma once

#include <array>
#include <utility>

#include "kernels/math.h"
#include "kernels/run_functor.h"
#include "kernels/vector/vec.h"

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

template <class F, class T, size_t... I>
void vector_loop(const F& functor, char* const* data, int64_t n, std::index_sequence<I...>) {
  constexpr int width = Vec<T>::size;
  const auto f = bound<T>(functor);
  auto* out = reinterpret_cast<Result<F, T>*>(data[0]);
  auto in = std::make_tuple(reinterpret_cast<const Input<F, T, I>*>(data[I + 1])...);
  int64_t i = 0;
  for (; i + width <= n; i += width) f(VecInput<F, T, I>::load(std::get<I>(in) + i)...).store(out + i);
  if (i < n) f(VecInput<F, T, I>::load(std::get<I>(in) + i, n - i)...).store(out + i, n - i);
}

/// One of two inputs is a single number.
template <class F, class T, size_t number>
void vector_loop_with_number(const F& functor, char* const* data, int64_t n) {
  constexpr int width = Vec<T>::size;
  const auto f = bound<T>(functor);
  auto* out = reinterpret_cast<Result<F, T>*>(data[0]);
  auto* in = reinterpret_cast<const T*>(data[2 - number]);
  const Vec<T> value(*reinterpret_cast<const T*>(data[1 + number]));
  auto call = [&](Vec<T> x) {
    if constexpr (number == 0) return f(value, x);
    else return f(x, value);
  };
  int64_t i = 0;
  for (; i + width <= n; i += width) call(Vec<T>::load(in + i)).store(out + i);
  if (i < n) call(Vec<T>::load(in + i, n - i)).store(out + i, n - i);
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

template <class F, class T> void loop(const void* functor, char* const* data, int64_t n) {
  constexpr auto inputs = std::make_index_sequence<F::arity>();
  if constexpr (vectorised<F, T>()) vector_loop<F, T>(*static_cast<const F*>(functor), data, n, inputs);
  else scalar_loop<F, T>(*static_cast<const F*>(functor), data, n, inputs);
}

template <class F, class T, size_t number> void loop_with_number(const void* functor, char* const* data, int64_t n) {
  vector_loop_with_number<F, T, number>(*static_cast<const F*>(functor), data, n);
}

template <class F, class T> constexpr void add_entry(PointwiseTable& table) {
  constexpr DType compute = dtype_of<T>, computed = dtype_of<Result<F, T>>;
  static_assert(computed != DType::Undefined, "a functor yields T, bool or the real type of T");
  PointwiseEntry& entry = table.entries[static_cast<int>(compute)];
  entry = {&loop<F, T>, {}, compute, computed, computed};
  if constexpr (vectorised<F, T>() && F::arity == 2 && masks_of<F>() == 0) {
    entry.with_number[0] = &loop_with_number<F, T, 0>;
    entry.with_number[1] = &loop_with_number<F, T, 1>;
  }
  if constexpr (std::is_same_v<T, float> && !requires { F::full_width_only; }) {
    // The narrow types are computed in float; the driver converts.
    for (DType narrow : {DType::Float16, DType::BFloat16})
      table.entries[static_cast<int>(narrow)] = {
          &loop<F, T>, {}, compute, computed, computed == compute ? narrow : computed};
  }
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
