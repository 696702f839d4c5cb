// How the out variants of composites come apart.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// The out variant of an operator; an error where it has none, or several.
Operator& out_variant_of(const Operator& functional);

/// The out variant by other operators, most often by another one's out variant: `f` takes the arguments and the
/// outputs. Stands behind the variant: `.out("square.out").use(out_parts([](const Tensor& self, const Tensor& out) {
/// ... }))`.
template <class F> auto out_parts(F f) {
  return [f](OperatorBuilder& builder) { OperatorBuilder(out_variant_of(builder.op())).composite(f); };
}

/// The out variant calls the operator and copies what that gives.
struct OutCopied {
  const char* refuses_as = nullptr;  // by which name it refuses an output of another type in words of its own
  void operator()(OperatorBuilder& builder) const;
};

/// What is handed to another out variant in the place of an output that nobody asked for.
Tensor unwanted_out(const Tensor& like, DType dtype);
/// The output; one of another size gets this one.
Tensor resized_out(const Tensor& out, SymIntArrayRef sizes);
/// The result in `out`, which gets its size.
Tensor copied_out(const Tensor& out, const Tensor& result);

}  // namespace umbra::ops
