// The family of pointwise operators: a functor over a number-like type becomes metadata and kernel.
//
//     UMBRA_OPERATOR("gelu(Tensor self, *, str approximate='none') -> Tensor")
//         .inplace("gelu_").out("gelu.out")
//         .use(pointwise<functors::Gelu, 1>(Promotion::Same, [](const std::string& approximate) { return
//         functors::Gelu{...}; })) .gradient(...);
//
// The first `kArity` arguments are the inputs; the function makes the functor of the rest. An input may be a plain
// number (the Scalar of `eq.Scalar`): it takes part in promotion as one.
#pragma once

#include "kernels/run_functor.h"
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

/// A tensor that stands for a number where only its type counts: a symbolic one is not asked for its value.
const Tensor& number_of_type(DType dtype);

namespace detail {
template <size_t kArity> struct Inputs {
  enum class Numbers : uint8_t { TypesOnly, Values };
  const Tensor* pointers[kArity];
  Tensor numbers[kArity];

  Inputs(const Value* frame, Numbers wanted) {
    for (size_t i = 0; i < kArity; ++i) {
      if (!frame[i].is_scalar()) pointers[i] = &frame[i].tensor_ref();
      else if (wanted == Numbers::TypesOnly) pointers[i] = &number_of_type(frame[i].to_scalar().dtype());
      else pointers[i] = &(numbers[i] = wrapped_number(frame[i].to_scalar()));
    }
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
                                   Inputs inputs(frame, Inputs::Numbers::TypesOnly);
                                   out.push_back(pointwise_spec(inputs.ref(), self(c).promotion));
                                 },
                                 context};
    builder.definition().kernels[Backend::CPU] = {run, context};
    builder.functor({&typeid(Functor), kArity, make_functor, compute_type, context}, boxing::kSignature<Make>);
    builder.elementwise();
    // What keeps the type of its one input does not cast to that of an output.
    if (kArity == 1 && (promotion == Promotion::Default || promotion == Promotion::ComplexToReal))
      builder.tags({Tag::ExactOut});
  }

 private:
  using Inputs = detail::Inputs<kArity>;
  static const PointwiseFamily& self(const void* context) { return *static_cast<const PointwiseFamily*>(context); }
  static Functor functor_for(const void* context, const Value* frame) {
    constexpr size_t n = boxing::Signature<Make>::kCount;
    return boxing::apply_frame<0, Make>(self(context).make, frame + kArity, std::make_index_sequence<n>());
  }
  static std::shared_ptr<const void> make_functor(const void* context, const Value* frame) {
    return std::make_shared<const Functor>(functor_for(context, frame));
  }
  static DType compute_type(const void* context, const Value* frame) {
    Inputs inputs(frame, Inputs::Numbers::TypesOnly);
    return pointwise_types(inputs.ref(), self(context).promotion).compute;
  }
  static void run(const void* context, TensorList outputs, Value* frame) {
    Inputs inputs(frame, Inputs::Numbers::Values);
    kernels::pointwise(functor_for(context, frame), outputs[0], inputs.ref(),
                       pointwise_types(inputs.ref(), self(context).promotion).compute);
  }
};

template <class Functor, size_t kArity, class Make> auto pointwise(Promotion promotion, Make make) {
  return PointwiseFamily<Functor, kArity, Make>{promotion, make};
}
template <class Functor, size_t kArity> auto pointwise(Promotion promotion) {
  return pointwise<Functor, kArity>(promotion, [] { return Functor{}; });
}

// ---- what gradients share ----

inline Scalar conj(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to_complex())) : s; }
/// grad times the conjugate of a number.
inline Tensor scaled(const Tensor& grad, const Scalar& factor) {
  return factor.equals(1) ? grad : grad.mul(conj(factor));
}
/// The gradient of what stays the same around its input.
inline Tensor zero_gradient(const Tensor& grad) { return zeros_like(grad); }
inline Tensor same_gradient(const Tensor& grad) { return grad; }

}  // namespace umbra::ops
