// Operators whose derivative PyTorch names as not implemented: a call is recorded, and a backward pass that comes by is
// refused.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// `name` as PyTorch's message has it, which is not always the operator's.
[[noreturn]] inline Tensor no_derivative(std::string_view name) {
  fail<NotImplementedError>("the derivative for '", name, "' is not implemented.");
}

template <size_t N> struct OperatorName {
  char text[N];
  constexpr OperatorName(const char (&name)[N]) { std::copy_n(name, N, text); }
};

/// For `use`: the first result's derivative by `self`.
///
///     .use(NoDerivative<"_unique2">{})
template <OperatorName kName> struct NoDerivative {
  void operator()(OperatorBuilder& builder) const {
    builder.gradient("self", {"grad"}, [](const Tensor&) { return no_derivative(kName.text); });
  }
};

}  // namespace umbra::ops
