// The family of pointwise operators: a functor over a number-like type becomes metadata and kernel.
//
//     UMBRA_OPERATOR("gelu(Tensor self, *, str approximate='none') -> Tensor")
//         .inplace().out()
//         .use(pointwise<functors::Gelu, 1>(Promotion::Same, [](const std::string& approximate) { return functors::Gelu{...}; }))
//         .gradient(...);
//
// The first `kArity` arguments are the tensors; the function makes the functor of the rest.
#pragma once

#include "kernels/pointwise.h"
#include "ops/common/promotion.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

/// How the type of the computation and of the result follow from the inputs.
enum class Promotion : uint8_t {
  Default,        // the common type, for both
  IntToFloat,     // integers are computed as the default float
  ToBool,         // computed in the common type, result bool
  ComplexToReal,  // the result is real (abs)
  AlwaysBoolOut,  // one input, any type, result bool (isnan, logical_not)
};

struct PointwiseTypes {
  DType compute, result;
};
PointwiseTypes pointwise_types(ArrayRef<const Tensor*> inputs, Promotion promotion);
/// The output's metadata: broadcast shape, promoted type, memory order of the inputs.
TensorSpec pointwise_spec(ArrayRef<const Tensor*> inputs, Promotion promotion);
TensorSpec pointwise_spec(ArrayRef<const Tensor*> inputs, DType result);

namespace detail {
template <size_t kArity> struct Inputs {
  const Tensor* pointers[kArity];
  explicit Inputs(Value* frame) {
    for (size_t i = 0; i < kArity; ++i) pointers[i] = &frame[i].tensor_ref();
  }
  ArrayRef<const Tensor*> ref() const { return {pointers, kArity}; }
};
}  // namespace detail

template <class Functor, size_t kArity, class Make> struct PointwiseFamily {
  Promotion promotion;
  Make make;

  void operator()(OperatorBuilder& builder) const {
    auto* context = new PointwiseFamily(*this);
    builder.definition().meta = {[](const void* c, SpecList& out, Value* frame) {
                                   out.push_back(pointwise_spec(detail::Inputs<kArity>(frame).ref(), self(c).promotion));
                                 },
                                 context};
    builder.definition().cpu = {run, context};
    builder.elementwise();
  }

 private:
  static const PointwiseFamily& self(const void* context) { return *static_cast<const PointwiseFamily*>(context); }
  static void run(const void* context, const Tensor* outputs, Value* frame) {
    detail::Inputs<kArity> inputs(frame);
    constexpr size_t n = boxing::Signature<Make>::kCount;
    const Make& make = self(context).make;
    Functor functor = boxing::apply_frame<0, Make>(make, frame + kArity, std::make_index_sequence<n>());
    kernels::pointwise(functor, outputs[0], inputs.ref(), pointwise_types(inputs.ref(), self(context).promotion).compute);
  }
};

template <class Functor, size_t kArity, class Make> auto pointwise(Promotion promotion, Make make) {
  return PointwiseFamily<Functor, kArity, Make>{promotion, make};
}
template <class Functor, size_t kArity> auto pointwise(Promotion promotion) {
  return pointwise<Functor, kArity>(promotion, [] { return Functor{}; });
}

}  // namespace umbra::ops
