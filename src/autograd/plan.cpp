#include "autograd/plan.h"

#include <cctype>
#include <mutex>

namespace umbra::autograd {

namespace {

// A letter is a capital where no letter stands before it: "max_pool2d" gives "MaxPool2D".
std::string camel_case(std::string_view name) {
  std::string out;
  bool letter_before = false;
  for (char c : name) {
    auto u = static_cast<unsigned char>(c);
    if (c != '_') out += static_cast<char>(letter_before ? std::tolower(u) : std::toupper(u));
    letter_before = std::isalpha(u);
  }
  return out;
}

/// The operator whose gradients count: a variant's own ones, where it has some, come first.
const Operator& gradient_source(const Operator& op) {
  return op.functional() && op.definition().gradients.empty() ? *op.functional() : op;
}

const Plan* make_plan(const Operator& op) {
  const Operator& source = gradient_source(op);
  const Definition& d = source.definition();
  auto* plan = new Plan;  // as long as the operator: for good
  plan->definition = &d;
  plan->gradient_count = d.gradients.size();
  plan->name = node_name(op);
  plan->formula.assign(op.argument_count(), -1);
  for (size_t f = 0; f < d.gradients.size(); ++f)
    for (int argument : d.gradients[f].inputs) plan->formula[argument] = static_cast<int>(f);
  const auto& returns = op.schema().returns;
  plan->list_result = returns.size() == 1 && returns[0].type.is_tensor_list();
  plan->edge_count = plan->formula.size() - std::count(plan->formula.begin(), plan->formula.end(), -1);
  plan->real_only = source.has_tag(Tag::RealGradient);
  return plan;
}

}  // namespace

std::string node_name(const Operator& op) {
  if (!op.definition().node_name.empty()) return op.definition().node_name;
  if (op.functional()) return node_name(*op.functional());
  std::string name = op.schema().name;
  if (op.is_inplace()) name.pop_back();
  return camel_case(name) + "Backward0";
}

const Plan& plan_for(const Operator& op) {
  auto* plan = static_cast<const Plan*>(op.autograd_slot.load(std::memory_order_acquire));
  if (__builtin_expect(plan && plan->gradient_count == plan->definition->gradients.size(), 1)) return *plan;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  plan = make_plan(op);
  op.autograd_slot.store(plan, std::memory_order_release);
  return *plan;
}

}  // namespace umbra::autograd
