// What the tests of autograd/ share: small tensors from numbers and back.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "error_of.h"
#include "umbra/umbra.h"

namespace umbra {

/// A vector of float64 numbers.
inline Tensor vector_of(const std::vector<double>& values) {
  Tensor t = allocate_tensor({SymInt(values.size())}, {1}, DType::Float64, Device());
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}
inline Tensor parameter(const std::vector<double>& values) { return vector_of(values).requires_grad_(); }

/// The elements in row-major order.
inline std::vector<double> values(const Tensor& t) {
  if (!t.defined()) return {};
  NoGrad guard;
  Tensor c = t.detach().to(DType::Float64).contiguous();
  return {c.data<double>(), c.data<double>() + c.numel()};
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

}  // namespace umbra
