#include "umbra/core/callable.h"

namespace umbra {

namespace {
class FunctionObject final : public Callable {
 public:
  FunctionObject(ValueFunction function, bool is_closed) : closed(is_closed), function_(std::move(function)) {}
  const bool closed;
  Value call(std::vector<Value> inputs) const override { return Value(function_(inputs)); }

 private:
  ValueFunction function_;
};
}  // namespace

const Callable& to_callable(const Value& value) {
  const Callable* callable = value.is_object() ? dynamic_cast<const Callable*>(value.object()) : nullptr;
  check<TypeError>(callable, "expected something that can be called, got ", tag_name(value.tag()));
  return *callable;
}

Value function_value(ValueFunction function, bool closed) {
  return Value::object(make_counted<FunctionObject>(std::move(function), closed));
}

bool is_closed(const Value& function) {
  auto* object = function.is_object() ? dynamic_cast<const FunctionObject*>(function.object()) : nullptr;
  return object && object->closed;
}

std::vector<Value> call_function(const Value& function, std::vector<Value> inputs) {
  return elements(to_callable(function).call(std::move(inputs)));
}

std::vector<Value> detail::elements(const Value& list) {
  switch (list.tag()) {
    case Value::Tag::List: return list.list().vec();
    case Value::Tag::TensorList: {
      TensorList tensors = list.tensor_list();
      return std::vector<Value>(tensors.begin(), tensors.end());
    }
    case Value::Tag::IntList: {
      SymIntArrayRef ints = list.int_list();
      return std::vector<Value>(ints.begin(), ints.end());
    }
    case Value::Tag::DoubleList: {
      ArrayRef<double> numbers = list.double_list();
      return std::vector<Value>(numbers.begin(), numbers.end());
    }
    case Value::Tag::BoolList: {
      std::vector<Value> out;
      for (bool b : list.bool_list()) out.emplace_back(b);
      return out;
    }
    default: return {list};
  }
}

}  // namespace umbra
