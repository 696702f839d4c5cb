// A value under libtorch's names: `IValue(3).toInt()`.
#pragma once

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

class IValue : public Value {
 public:
  using Value::Value;
  IValue() = default;
  IValue(Value value) : Value(std::move(value)) {}

  bool isNone() const { return is_none(); }
  bool isTensor() const { return is_tensor(); }
  bool isInt() const { return is_int(); }
  bool isDouble() const { return is_double(); }
  bool isBool() const { return is_bool(); }
  bool isString() const { return is_string(); }
  bool isScalar() const { return is_scalar(); }
  bool isTuple() const { return is_list(); }
  bool isTensorList() const { return is_tensor_list(); }
  Tensor toTensor() const { return tensor_ref(); }
  int64_t toInt() const { return to_int(); }
  double toDouble() const { return to_double(); }
  bool toBool() const { return to_bool(); }
  Scalar toScalar() const { return to_scalar(); }
  const std::string& toStringRef() const { return to_string(); }
  std::vector<int64_t> toIntVector() const {
    std::vector<int64_t> out;
    for (const SymInt& i : int_list()) out.push_back(i.guard_int());
    return out;
  }
  std::vector<double> toDoubleVector() const { return {double_list().begin(), double_list().end()}; }
  std::vector<Tensor> toTensorVector() const { return {tensor_list().begin(), tensor_list().end()}; }

  /// The parts of a tuple.
  struct Elements {
    std::vector<IValue> values;
    const std::vector<IValue>& elements() const { return values; }
    size_t size() const { return values.size(); }
    const Elements* operator->() const { return this; }
    const Elements& operator*() const { return *this; }
  };
  Elements toTuple() const {
    Elements out;
    if (is_tensor_list())
      for (const Tensor& t : tensor_list()) out.values.emplace_back(t);
    else
      for (const Value& v : list()) out.values.emplace_back(v);
    return out;
  }
};

}  // namespace umbra
