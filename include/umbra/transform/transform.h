// Transforms of functions: derivatives and batching, in any nesting.
//
//     auto f = [](const Tensor& x) { return x.sin().sum(); };
//     Tensor g = grad(f)(x);                                     // cos(x)
//     Tensor h = hessian(f)(x);
//     Tensor per_sample = vmap(grad(loss), {kNone, 0})(weight, rows);
//
// A function takes tensors and returns one, or a std::vector of them. Tensors that it closes over are constants to
// `grad` and unmapped to `vmap`; both may themselves belong to an outer transform.
#pragma once

#include <concepts>
#include <functional>
#include <optional>

#include "umbra/capture/make_fx.h"
#include "umbra/dispatch/batching.h"

namespace UMBRA_API umbra {

/// A function over tensors as the transforms see it.
using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

namespace transform {

/// The results of a function, and the map from cotangents of the results to those of the inputs. It may be called more
/// than once.
struct PullBack {
  std::vector<Tensor> outputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>& cotangents)> pull_back;
};
PullBack vjp(const TensorFunction& function, const std::vector<Tensor>& primals);

/// The results and their derivatives along `tangents`.
struct PushForward {
  std::vector<Tensor> outputs, tangents;
};
PushForward jvp(const TensorFunction& function, const std::vector<Tensor>& primals,
                const std::vector<Tensor>& tangents);

/// Gradients of a function with one scalar result with respect to the inputs at `positions`.
struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;
};
ValueAndGradients grad_and_value(const TensorFunction& function, const std::vector<Tensor>& inputs,
                                 const std::vector<int64_t>& positions);

/// The Jacobian of each result with respect to the input at `position`, by rows (reverse mode) or by columns (forward).
std::vector<Tensor> jacrev(const TensorFunction& function, const std::vector<Tensor>& inputs, int64_t position);
std::vector<Tensor> jacfwd(const TensorFunction& function, const std::vector<Tensor>& inputs, int64_t position);

struct FunctionalizeOptions {
  /// Operators that are made of others are called as they are, where they neither write nor give views.
  bool whole_composites = false;
  /// Views become copies (view_copy): nothing in the program shares memory.
  bool copy_views = false;
};

/// `function` without mutation and aliasing inside; at the end, inputs that it wrote are written by one copy_ each.
ValueFunction functionalize(ValueFunction function, FunctionalizeOptions options = {});

using Dims = std::vector<std::optional<int64_t>>;
struct VmapOptions {
  Dims out_dims = {};  // one for each result; left out: 0
  Randomness randomness = Randomness::Error;
};
/// Calls the function on slices of the inputs along their dimension in `in_dims`, all at once, and stacks the results.
std::vector<Tensor> vmap(const TensorFunction& function, const std::vector<Tensor>& inputs, const Dims& in_dims,
                         const VmapOptions& options = {});

namespace detail {
inline std::vector<Tensor> as_list(Tensor result) { return {std::move(result)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> results) { return results; }

/// f(Tensor...) or f(std::vector<Tensor>), given `kCount` tensors, as a function over lists.
template <size_t kCount, class F> TensorFunction over_lists(F f) {
  return [f = std::move(f)](const std::vector<Tensor>& inputs) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return as_list(f(inputs[I]...)); }
    (std::make_index_sequence<kCount>());
  };
}
template <class F, class... T>
inline constexpr bool kReturnsTensor = std::is_same_v<std::decay_t<std::invoke_result_t<F, const T&...>>, Tensor>;

/// Results in the form the function gave them.
template <bool kOne> auto like_function(std::vector<Tensor> results) {
  if constexpr (kOne) return std::move(results.at(0));
  else return results;
}
}  // namespace detail
}  // namespace transform

using transform::functionalize;
using transform::FunctionalizeOptions;

/// For `in_dims` and `out_dims`: not mapped.
inline constexpr std::nullopt_t kNone = std::nullopt;

/// The gradient of a function with a scalar result, with respect to one argument.
template <class F> auto grad(F f, int64_t argument = 0) {
  return [ f = std::move(f),
           argument ]<class... T>(const T&... inputs) -> Tensor requires std::invocable<const F&, const T&...> {
    auto function = transform::detail::over_lists<sizeof...(inputs)>(f);
    return transform::grad_and_value(function, {inputs...}, {argument}).gradients[0];
  };
}

/// The same together with the function's result: `auto [gradient, value] = grad_and_value(f)(x);`
template <class F> auto grad_and_value(F f, int64_t argument = 0) {
  return [ f = std::move(f), argument ]<class... T>(const T&... inputs) requires std::invocable<const F&, const T&...> {
    auto function = transform::detail::over_lists<sizeof...(inputs)>(f);
    auto both = transform::grad_and_value(function, {inputs...}, {argument});
    return std::pair(std::move(both.gradients[0]), std::move(both.value));
  };
}

/// `auto [outputs, pull_back] = vjp(f, x, y);` Both speak of lists, of one tensor too:
/// `pull_back({ones_like(outputs[0])})[0]`.
template <class F, class... T> transform::PullBack vjp(F f, const T&... primals) {
  return transform::vjp(transform::detail::over_lists<sizeof...(T)>(std::move(f)), {primals...});
}

/// `jvp(f, tangents)(x, y)`: results, and derivatives along the tangents.
template <class F> auto jvp(F f, std::vector<Tensor> tangents) {
  return [ f = std::move(f), tangents = std::move(tangents) ]<class... T>(
      const T&... primals) requires std::invocable<const F&, const T&...> {
    return transform::jvp(transform::detail::over_lists<sizeof...(primals)>(f), {primals...}, tangents);
  };
}

/// The same in one call, as torch.func has it: `jvp(f, {x, y}, {dx, dy})`.
template <class F, size_t N> transform::PushForward jvp(F f, const Tensor (&primals)[N], const Tensor (&tangents)[N]) {
  return transform::jvp(transform::detail::over_lists<N>(std::move(f)), {primals, primals + N},
                        {tangents, tangents + N});
}

/// For a function of one tensor that gives one: `auto [y, dy] = jvp(f, x, dx);`
template <class F, std::same_as<Tensor> T> std::pair<Tensor, Tensor> jvp(F f, const T& primal, const T& tangent) {
  auto both = transform::jvp(transform::detail::over_lists<1>(std::move(f)), {primal}, {tangent});
  return {std::move(both.outputs.at(0)), std::move(both.tangents.at(0))};
}

template <class F> auto jacrev(F f, int64_t argument = 0) {
  return [ f = std::move(f), argument ]<class... T>(const T&... inputs) requires std::invocable<const F&, const T&...> {
    constexpr bool one = transform::detail::kReturnsTensor<F, T...>;
    auto function = transform::detail::over_lists<sizeof...(inputs)>(f);
    return transform::detail::like_function<one>(transform::jacrev(function, {inputs...}, argument));
  };
}
template <class F> auto jacfwd(F f, int64_t argument = 0) {
  return [ f = std::move(f), argument ]<class... T>(const T&... inputs) requires std::invocable<const F&, const T&...> {
    constexpr bool one = transform::detail::kReturnsTensor<F, T...>;
    auto function = transform::detail::over_lists<sizeof...(inputs)>(f);
    return transform::detail::like_function<one>(transform::jacfwd(function, {inputs...}, argument));
  };
}
/// The second derivatives of a function with a scalar result.
template <class F> auto hessian(F f, int64_t argument = 0) { return jacfwd(jacrev(std::move(f), argument), argument); }

/// `vmap(f, {0, kNone})(rows, weight)`: f of each row. Without `in_dims`, every argument is mapped along its first
/// dimension.
template <class F> auto vmap(F f, transform::Dims in_dims = {}, transform::VmapOptions options = {}) {
  return [ f = std::move(f), in_dims = std::move(in_dims), options = std::move(options) ]<class... T>(
      const T&... inputs) requires std::invocable<const F&, const T&...> {
    constexpr bool one = transform::detail::kReturnsTensor<F, T...>;
    auto function = transform::detail::over_lists<sizeof...(inputs)>(f);
    return transform::detail::like_function<one>(transform::vmap(function, {inputs...}, in_dims, options));
  };
}

}  // namespace umbra
