// What the arithmetic of pointwise/ does with sparse tensors; their definitions name these functions.
#pragma once

#include "umbra/core/sparse.h"
#include "umbra/dispatch/define.h"

namespace umbra::ops::sparse {

/// self + alpha * other: two sparse tensors of one layout, or a strided one and a sparse one.
Tensor add_tensors(const Tensor& self, const Tensor& other, const Scalar& alpha);
/// The same, written over self: what a step of an optimiser does with a sparse gradient.
Tensor add_in_place(const Tensor& self, const Tensor& other, const Scalar& alpha);
Tensor subtract_tensors(const Tensor& self, const Tensor& other, const Scalar& alpha);
/// Sums with a number would have no zeros.
[[noreturn]] Tensor refuse_number(const Tensor& self, const Scalar& other, const Scalar& alpha);
Tensor multiply_tensors(const Tensor& self, const Tensor& other);
Tensor multiply_in_place(const Tensor& self, const Tensor& other);
Tensor multiply_by_number(const Tensor& self, const Scalar& other);
Tensor divide_tensors(const Tensor& self, const Tensor& other);
Tensor divide_by_number(const Tensor& self, const Scalar& other);
/// Elements of one place are added up before their quotients are rounded.
Tensor divide_rounded(const Tensor& self, const Tensor& other, const std::optional<std::string>& mode);
Tensor raise_to(const Tensor& self, const Scalar& exponent);

/// For an operator of each element that leaves zero zero: of a sparse tensor it takes the values, those of one place
/// added up before. After `.inplace(...)` and `.out(...)`.
struct OnValues {
  bool linear = false;  // elements of one place need not be added up
  void operator()(OperatorBuilder& builder) const;
};

}  // namespace umbra::ops::sparse
