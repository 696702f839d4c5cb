// What only the out variant of an operator refuses.
#pragma once

#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// The out variant of that name.
Operator& out_variant(const Operator& functional, const char* name);

template <class F> struct OutAsks {
  const char* variant;
  F check;
  void operator()(OperatorBuilder& builder) const {
    out_variant(builder.op(), variant).mutable_definition().meta = {
        [](const void* context, SpecList&, Value* frame) {
          decltype(auto) call = boxing::callable<F>(context);
          boxing::apply_frame<0, F>(call, frame, std::make_index_sequence<boxing::Signature<F>::kCount>());
        },
        boxing::context_of(F(check)), &boxing::kSignature<F>};
  }
};

/// `check(arguments..., outputs...)` is called before the operator's own metadata is asked for: PyTorch looks at these
/// outputs first. Stands behind the variant: `.out("cat.out").use(out_asks("cat.out", [](...) { ... }))`.
template <class F> OutAsks<F> out_asks(const char* variant, F check) { return {variant, std::move(check)}; }

/// The tensor that a variant with outputs reads in the place of the argument of that name: `see(arguments...,
/// outputs...)` gives it, and may refuse outputs. Stands behind the variant.
template <class F> struct OutReads {
  static constexpr FunctionSignature kGivesNoMetadata{boxing::kSignature<F>.parameters, {}};
  const char *variant, *argument;
  F see;
  void operator()(OperatorBuilder& builder) const {
    Operator& out = out_variant(builder.op(), variant);
    out.mutable_definition().meta = {[](const void* context, SpecList&, Value* frame) {
                                       const auto& [place, see] = *static_cast<const std::pair<size_t, F>*>(context);
                                       frame[place] = boxing::apply_frame<0, F>(
                                           see, frame, std::make_index_sequence<boxing::Signature<F>::kCount>());
                                     },
                                     new std::pair<size_t, F>(out.schema().find(argument), see), &kGivesNoMetadata};
  }
};
template <class F> OutReads<F> out_reads(const char* variant, const char* argument, F see) {
  return {variant, argument, std::move(see)};
}

/// Refuses an output of another type than the input's: the kernel writes elements of that type alone.
void check_written_type(const Tensor& self, const Tensor& out);

/// The out variant of that name, of an operator that is told a type, computes in its output's type where it is told
/// none, and takes no other output where it is. Stands behind the variant.
struct OutDecidesType {
  const char* variant;
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops
