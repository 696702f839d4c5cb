#include "autograd/plan.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <numeric>

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

/// The view that a copying operator is a copy of: `select.int` for `select_copy.int`. Null for other operators.
const Operator* copied_view(const Operator& op) {
  constexpr std::string_view kSuffix = "_copy";
  const Schema& schema = op.schema();
  if (!op.has_tag(Tag::ViewCopy) || op.has_out() || !schema.name.ends_with(kSuffix)) return nullptr;
  std::string name = schema.name.substr(0, schema.name.size() - kSuffix.size());
  const Operator* view =
      find_operator(concat(schema.space, "::", name, schema.overload.empty() ? "" : ".", schema.overload));
  return view && view->is_view() ? view : nullptr;
}

/// The operator whose gradients count: a variant's own ones, where it has some, come first.
const Operator& gradient_source(const Operator& op) {
  if (!op.definition().gradients.empty()) return op;
  if (const Operator* view = copied_view(op)) return *view;
  return op.functional() ? *op.functional() : op;
}

/// Whether an argument says which elements are meant: it has no derivative, and what cannot be one is refused by the
/// operator itself.
bool chooses_elements(const SchemaArgument& argument) {
  return argument.name == "index" || argument.name == "mask" || argument.name == "condition" ||
         (argument.name == "indices" && argument.type.list);
}

/// Whether a gradient that an argument without a formula asks for would be lost. `output` is what another operator made
/// of an argument that has a formula. A generated form says so of running statistics, if it has formulas.
bool loses_gradient(const Operator& op, const SchemaArgument& argument) {
  bool statistics = !op.definition().gradients.empty() && argument.name.starts_with("running_");
  bool ours = op.schema().space == "aten" && (!op.has_tag(Tag::Generated) || statistics);
  return ours && argument.type.base == SchemaType::Base::Tensor && argument.name != "output" &&
         !chooses_elements(argument);
}

/// A factory's generated form does not know the factory, whose options it lacks, but has its name.
bool makes_blank(const Operator& op) {
  if (op.has_tag(Tag::MakesBlank) || !op.has_tag(Tag::Generated)) return op.has_tag(Tag::MakesBlank);
  const Operator* made_of = find_operator(op.schema().space + "::" + op.schema().name);
  return made_of && made_of->has_tag(Tag::MakesBlank);
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
  if (plan->is_differentiable())
    for (size_t i = 0; i < op.argument_count(); ++i)
      if (plan->formula[i] < 0 && loses_gradient(op, op.schema().arguments[i])) plan->refused.push_back(int(i));
  plan->order.resize(d.gradients.size());
  std::iota(plan->order.begin(), plan->order.end(), size_t{0});
  auto name_of = [&](size_t f) {
    const std::vector<int>& inputs = d.gradients[f].inputs;
    return inputs.empty() ? std::string() : source.schema().arguments[inputs[0]].name;
  };
  std::ranges::stable_sort(plan->order, {}, name_of);
  const auto& returns = op.schema().returns;
  plan->list_result = returns.size() == 1 && returns[0].type.is_tensor_list();
  plan->edge_count = plan->formula.size() - std::count(plan->formula.begin(), plan->formula.end(), -1);
  plan->real_only = source.has_tag(Tag::RealGradient);
  plan->makes_blank = makes_blank(op);
  return plan;
}

}  // namespace

std::string node_name(const Operator& op) {
  if (!op.definition().node_name.empty()) return op.definition().node_name;
  if (op.functional()) return node_name(*op.functional());
  if (const Operator* view = copied_view(op); view && !op.is_composite()) return node_name(*view) + "_copy";
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
