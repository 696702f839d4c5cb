// make_fx: a function in, the graph of the operators it calls out.
//
//     auto module = make_fx([](const Tensor& x) { return x.sin().cos(); }, {randn({3})});
//     std::cout << module->code();
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "umbra/capture/decomposition.h"
#include "umbra/core/callable.h"
#include "umbra/fake/fake_mode.h"
#include "umbra/graph/graph_module.h"

namespace UMBRA_API umbra {

/// What the function runs on while it is recorded.
enum class TracingMode : uint8_t {
  Real,      // the inputs themselves
  Fake,      // fake tensors of the same sizes
  Symbolic,  // fake tensors whose sizes are symbols
};

struct CaptureOptions {
  TracingMode mode = TracingMode::Real;
  /// Records above autograd: composite operators stay whole.
  bool pre_dispatch = false;
  DecompositionTable decompositions = {};
  std::vector<std::string> names = {};  // of the inputs; arg0_1, arg1_1, ... where there are none
  size_t later_inputs = 0;  // the last ones, which are not there yet while most of the graph runs: gradients
  /// The fake mode to use; one of its own otherwise.
  IntrusivePtr<FakeModeImpl> fake_mode = {};
  bool locations = true;  // nodes know the line of the user's program they come from
  /// Whether numbers that are read from data stay what they are; refused otherwise in the mode real.
  bool keeps_read_data = false;
  /// Tensors that the function closes over become attributes. With this, each use of one is a node of its own, as
  /// PyTorch's make_fx has it, and those of which it is true are called parameters.
  std::function<bool(const Tensor&)> is_parameter = {};
};

/// Records one run of `function`. Nothing stays behind on the thread, however it ends.
IntrusivePtr<fx::GraphModule> make_fx(const ValueFunction& function, const std::vector<Value>& inputs,
                                      const CaptureOptions& options = {});

/// Removes the arithmetic on sizes that nothing uses. Calls of operators stay, as PyTorch's make_fx leaves them.
void remove_unused_sizes(fx::Graph& graph);

namespace detail {
std::vector<Value> as_values(Tensor result);
std::vector<Value> as_values(const std::vector<Tensor>& results);
std::vector<Tensor> as_tensors(const std::vector<Value>& values);
template <class... Ts> std::vector<Value> as_values(std::tuple<Ts...> results) {
  return std::apply([](auto&... items) { return std::vector<Value>{Value(std::move(items))...}; }, results);
}
/// A function whose parameters can be told from its type.
template <class F>
concept Signed = std::is_pointer_v<F> || requires {
  &F::operator();
};

template <class F, class Indices> inline constexpr bool kTakesTensors = false;
template <class F, size_t... I>
inline constexpr bool kTakesTensors<F, std::index_sequence<I...>> =
    std::is_invocable_v<const F&, decltype((void(I), std::declval<const Tensor&>()))...>;

template <class F> constexpr size_t input_count() {
  if constexpr (Signed<F>) return boxing::Signature<F>::kCount;
  else if constexpr (kTakesTensors<F, std::make_index_sequence<1>>) return 1;
  else if constexpr (kTakesTensors<F, std::make_index_sequence<2>>) return 2;
  else if constexpr (kTakesTensors<F, std::make_index_sequence<3>>) return 3;
  else if constexpr (kTakesTensors<F, std::make_index_sequence<4>>) return 4;
  else static_assert(kTakesTensors<F, std::make_index_sequence<0>>, "a function of tensors is captured");
}

/// Whether a function of tensors gives a tensor, not several.
template <class F> constexpr bool gives_one_tensor() {
  if constexpr (Signed<F>) return std::is_same_v<std::decay_t<typename boxing::Signature<F>::Return>, Tensor>;
  else return []<size_t... I>(std::index_sequence<I...>) {
      using Result = std::invoke_result_t<const F&, decltype((void(I), std::declval<const Tensor&>()))...>;
      return std::is_same_v<std::decay_t<Result>, Tensor>;
    }
  (std::make_index_sequence<input_count<F>()>());
}

/// Whether a function takes a list of tensors and nothing else: then all inputs are the list.
template <class F> constexpr bool takes_list() {
  if constexpr (Signed<F>)
    return std::is_same_v<typename boxing::Signature<F>::Arguments, std::tuple<std::vector<Tensor>>>;
  else return false;
}

/// A typed function of tensors as one of values. Functions whose parameters are deduced, as those that `grad` and its
/// like return, are asked how many tensors they take.
template <class F> ValueFunction value_function(F f) {
  return [f](const std::vector<Value>& inputs) {
    if constexpr (takes_list<F>())
      if (inputs.size() != 1 || inputs[0].is_tensor()) return as_values(f(as_tensors(inputs)));
    constexpr size_t n = input_count<F>();
    check<TypeError>(inputs.size() == n, "the function takes ", n, " inputs, ", inputs.size(), " were given");
    if constexpr (Signed<F>) {
      return as_values(boxing::apply_frame<0, F>(f, inputs.data(), std::make_index_sequence<n>()));
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) { return as_values(f(inputs[I].tensor_ref()...)); }
      (std::make_index_sequence<n>());
    }
  };
}
}  // namespace detail

/// The same for a function of tensors.
template <class F>
requires(!std::is_convertible_v<F, ValueFunction>) IntrusivePtr<fx::GraphModule> make_fx(
    F function, const std::vector<Tensor>& inputs, const CaptureOptions& options = {}) {
  return make_fx(detail::value_function(std::move(function)), detail::as_values(inputs), options);
}

}  // namespace umbra
