// functionalize as a transform: a level whose tensors wrap values that nothing writes.
#include "umbra/capture/functionalize.h"

#include "umbra/generated/functions.h"
#include "umbra/transform/level.h"
#include "umbra/transform/transform.h"

namespace umbra::transform {

namespace {

class FunctionalizeLevel final : public Level {
 public:
  void call(const Operator& op, Value* frame) override {
    if (op.is_composite()) return op.definition().composite(frame);
    WithoutLevel off;
    functional_level::call(op, frame, pointer());
  }
  Tensor unwrap(const Tensor& tensor) const override {
    return tensor.defined() ? functional_level::unwrap(tensor, pointer()) : tensor;
  }
  Tensor wrap(const Tensor& value) const { return functional_level::wrap(value, pointer()); }

 private:
  IntrusivePtr<RefCounted> pointer() const { return IntrusivePtr<RefCounted>(const_cast<FunctionalizeLevel*>(this)); }
};

}  // namespace

ValueFunction functionalize(ValueFunction function) {
  return [function = std::move(function)](const std::vector<Value>& inputs) {
    auto level = make_counted<FunctionalizeLevel>();
    std::vector<Value> wrapped, results;
    {
      EnterLevel scope(level);
      for (const Value& v : inputs) wrapped.push_back(map_tensors(v, [&](const Tensor& t) { return level->wrap(t); }));
      results = function(wrapped);
    }
    for (Value& v : results) v = map_tensors(v, [&](const Tensor& t) { return level->unwrap(t); });
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].is_tensor() && functional_level::was_written(wrapped[i].tensor_ref()))
        inputs[i].tensor_ref().copy_(level->unwrap(wrapped[i].tensor_ref()));
    return results;
  };
}

}  // namespace umbra::transform
