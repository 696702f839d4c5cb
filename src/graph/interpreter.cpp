#include "umbra/graph/interpreter.h"

#include "graph/plan.h"

namespace umbra::fx {

std::vector<Value> Interpreter::run(std::vector<Value> inputs) {
  Plan::Hooks hooks{hook_ ? &hook_ : nullptr, value_hook_ ? &value_hook_ : nullptr};
  return module_->plan()->run(std::move(inputs), hooks);
}

void propagate_values(const IntrusivePtr<GraphModule>& module, std::vector<Value> inputs) {
  Interpreter interpreter(module);
  interpreter.on_value([](Node& node, const Value& value) { node.meta.val = value; });
  interpreter.run(std::move(inputs));
}

}  // namespace umbra::fx
