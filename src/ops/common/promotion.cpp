#include "ops/common/promotion.h"

#include "core/stored_types.h"

namespace umbra::ops {

namespace {
// A plain number counts as the default float (or its complex), not as the double that holds it.
DType number_type(DType t) {
  if (is_complex(t)) return complex_type(default_dtype());
  return is_floating(t) ? default_dtype() : t;
}
int category(DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : t == DType::Bool ? 0 : 1; }
}  // namespace

ResultType& ResultType::add(const Tensor& t) {
  if (t.impl()->is_wrapped_number()) number_ = promote_types(number_, number_type(t.dtype()));
  else if (t.dim() == 0) zero_dim_ = promote_types(zero_dim_, t.dtype());
  else dimensioned_ = promote_types(dimensioned_, t.dtype());
  return *this;
}

ResultType& ResultType::add(const Scalar& s) {
  number_ = promote_types(number_, number_type(s.dtype()));
  return *this;
}

DType ResultType::combine(DType higher, DType lower) {
  if (higher == DType::Undefined) return lower;
  if (lower == DType::Undefined) return higher;
  if (category(lower) <= category(higher)) return higher;
  // A complex number meets a floating tensor: the tensor's precision decides.
  if (is_complex(lower) && is_floating(higher)) return complex_type(higher);
  if (is_complex(lower) && is_wide_unsigned(higher)) return lower;
  return promote_types(higher, lower);
}

DType ResultType::get() const { return combine(dimensioned_, combine(zero_dim_, number_)); }

}  // namespace umbra::ops
