// From typed functions to boxed ones: how a lambda over Tensors and ints becomes a function over a frame of Values.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

namespace boxing {

/// A Value read as the C++ type that a definition's function declares.
template <class T> struct Unbox;
#define UMBRA_UNBOX(type, expression)                       \
  template <> struct Unbox<type> {                          \
    static type from(const Value& v) { return expression; } \
  }
UMBRA_UNBOX(int64_t, v.to_int());
UMBRA_UNBOX(SymInt, v.to_sym_int());
UMBRA_UNBOX(double, v.to_double());
UMBRA_UNBOX(bool, v.to_bool());
UMBRA_UNBOX(Scalar, v.to_scalar());
UMBRA_UNBOX(std::string, v.to_string());
UMBRA_UNBOX(DType, v.to_dtype());
UMBRA_UNBOX(Device, v.to_device());
UMBRA_UNBOX(Layout, v.to_layout());
UMBRA_UNBOX(MemoryFormat, v.to_memory_format());
UMBRA_UNBOX(SymIntArrayRef, v.int_list());
UMBRA_UNBOX(std::vector<int64_t>, guard_ints(v.int_list()));
UMBRA_UNBOX(std::vector<SymInt>, v.int_list().vec());
UMBRA_UNBOX(ArrayRef<double>, v.double_list());
UMBRA_UNBOX(std::vector<double>, v.double_list().vec());
UMBRA_UNBOX(std::vector<bool>, v.bool_list());
UMBRA_UNBOX(TensorList, v.tensor_list());
UMBRA_UNBOX(std::vector<Tensor>, v.tensor_list().vec());
UMBRA_UNBOX(IntrusivePtr<Generator>, v.to_generator());
UMBRA_UNBOX(Value, v);
#undef UMBRA_UNBOX
template <> struct Unbox<Tensor> {
  static const Tensor& from(const Value& v) { return v.tensor_ref(); }
};
template <size_t N> struct Unbox<std::array<bool, N>> {
  static std::array<bool, N> from(const Value& v) {
    std::array<bool, N> out{};
    std::vector<bool> bits = v.bool_list();
    for (size_t i = 0; i < N && i < bits.size(); ++i) out[i] = bits[i];
    return out;
  }
};
template <class T> struct Unbox<std::optional<T>> {
  static std::optional<T> from(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return Unbox<T>::from(v);
  }
};

/// Stores a function's result in a frame.
inline void store(Value* frame, Tensor result) { frame[0] = Value(std::move(result)); }
template <class T> void store(Value* frame, T result) { frame[0] = Value(std::move(result)); }
template <class... Ts> void store(Value* frame, std::tuple<Ts...> result) {
  std::apply(
      [&](auto&... items) {
        size_t i = 0;
        ((frame[i++] = Value(std::move(items))), ...);
      },
      result);
}
template <size_t N> void store(Value* frame, std::array<Tensor, N> result) {
  for (size_t i = 0; i < N; ++i) frame[i] = Value(std::move(result[i]));
}

inline void append(SpecList& out, TensorSpec spec) { out.push_back(std::move(spec)); }
inline void append(SpecList& out, std::vector<TensorSpec> specs) {
  for (TensorSpec& s : specs) out.push_back(std::move(s));
}
template <class... Ts> void append(SpecList& out, std::tuple<Ts...> specs) {
  std::apply([&](auto&... items) { (append(out, std::move(items)), ...); }, specs);
}

template <class F> using Argument0 = std::tuple_element_t<0, typename Signature<F>::Arguments>;

/// The callable behind a context pointer: a captureless lambda needs none, a function pointer is the context itself,
/// anything else lives on the heap for as long as the operator does.
template <class F> decltype(auto) callable(const void* context) {
  if constexpr (std::is_pointer_v<F>) return reinterpret_cast<F>(const_cast<void*>(context));
  else if constexpr (std::is_empty_v<F> && std::is_default_constructible_v<F>) return F{};
  else return *static_cast<const F*>(context);
}
template <class F> const void* context_of(F f) {
  if constexpr (std::is_pointer_v<F>) return reinterpret_cast<const void*>(f);
  else if constexpr (std::is_empty_v<F> && std::is_default_constructible_v<F>) return nullptr;
  else return new F(std::move(f));
}

/// Calls a function with arguments read from a frame, the first ones given directly.
template <size_t kSkip, class F, size_t... I, class... First>
decltype(auto) apply_frame(const F& f, const Value* frame, std::index_sequence<I...>, First&&... first) {
  using Arguments = typename Signature<F>::Arguments;
  return f(std::forward<First>(first)..., Unbox<std::tuple_element_t<I + kSkip, Arguments>>::from(frame[I])...);
}

/// f(arguments...) -> results.
template <class F> BoxedFunction box_function(F f) {
  return {[](const void* context, Value* frame) {
            decltype(auto) call = callable<F>(context);
            constexpr size_t n = Signature<F>::kCount;
            if constexpr (std::is_void_v<typename Signature<F>::Return>)
              apply_frame<0, F>(call, frame, std::make_index_sequence<n>());
            else store(frame, apply_frame<0, F>(call, frame, std::make_index_sequence<n>()));
          },
          context_of(std::move(f)), &kSignature<F>};
}

/// f(arguments...) -> TensorSpec, a tuple or a vector of them.
template <class F> BoxedMeta box_meta(F f) {
  return {[](const void* context, SpecList& out, Value* frame) {
            decltype(auto) call = callable<F>(context);
            append(out, apply_frame<0, F>(call, frame, std::make_index_sequence<Signature<F>::kCount>()));
          },
          context_of(std::move(f)), &kSignature<F>};
}

/// f(outputs..., arguments...), which fills the outputs; those of a list are one TensorList.
template <class F, size_t kOutputs> BoxedKernel box_kernel(F f) {
  static_assert(Signature<F>::kCount >= kOutputs, "a kernel takes its outputs first");
  return {[](const void* context, TensorList outputs, Value* frame) {
            decltype(auto) call = callable<F>(context);
            constexpr size_t n = Signature<F>::kCount - kOutputs;
            if constexpr (std::is_same_v<Argument0<F>, TensorList>) {
              apply_frame<1, F>(call, frame, std::make_index_sequence<n>(), outputs);
            } else {
              [&]<size_t... O>(std::index_sequence<O...>) {
                apply_frame<kOutputs, F>(call, frame, std::make_index_sequence<n>(), outputs[O]...);
              }
              (std::make_index_sequence<kOutputs>());
            }
          },
          context_of(std::move(f)), &kSignature<F>};
}

}  // namespace boxing
}  // namespace umbra
