// Small graphs for the tests of graph/.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "umbra/dispatch/operator.h"
#include "umbra/graph/graph_module.h"

namespace umbra::fx {

inline const Operator& op(const char* name) { return get_operator(std::string("aten::") + name); }

/// The text of the error that `f` throws; a failure if it throws none or one of another type.
template <class ErrorType = Error, class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const ErrorType& error) {
    EXPECT_EQ(typeid(error), typeid(ErrorType));
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline Tensor tensor_of(std::vector<float> values, std::vector<int64_t> sizes) {
  Tensor out = allocate_tensor(as_sym(sizes), contiguous_strides(as_sym(sizes)), DType::Float32, Device());
  std::copy(values.begin(), values.end(), out.data<float>());
  return out;
}

inline std::vector<float> values_of(const Value& value) {
  Tensor t = value.tensor();
  EXPECT_TRUE(t.is_contiguous());
  return std::vector<float>(t.data<float>(), t.data<float>() + t.numel());
}

}  // namespace umbra::fx
