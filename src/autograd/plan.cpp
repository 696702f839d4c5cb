#include "autograd/plan.h"

#include <array>
#include <cctype>
#include <mutex>

namespace umbra::autograd {

namespace {

/// Overloads of a name in the order in which PyTorch numbers their nodes ("" is the unnamed one). Names that are not
/// here have one differentiable overload, or number them in the order of definition.
struct OverloadOrder {
  std::string_view name;
  std::array<std::string_view, 4> overloads;
};
constexpr OverloadOrder kOrders[] = {
    {"add", {"Tensor", "Scalar"}},
    {"any", {"", "dim", "dims"}},
    {"all", {"", "dim", "dims"}},
    {"clamp", {"Tensor", ""}},
    {"clamp_min", {"", "Tensor"}},
    {"clamp_max", {"", "Tensor"}},
    {"copysign", {"Tensor", "Scalar"}},
    {"count_nonzero", {"dim_IntList", ""}},
    {"div", {"Tensor", "Scalar", "Tensor_mode", "Scalar_mode"}},
    {"fill", {"Scalar", "Tensor"}},
    {"fmod", {"Scalar", "Tensor"}},
    {"index_fill", {"int_Scalar", "int_Tensor"}},
    {"lerp", {"Scalar", "Tensor"}},
    {"xlogy", {"Tensor", "Scalar_Self", "Scalar_Other"}},
    {"masked_fill", {"Scalar", "Tensor"}},
    {"max", {"dim", ""}},
    {"mean", {"", "dim"}},
    {"median", {"", "dim"}},
    {"nanmedian", {"", "dim"}},
    {"min", {"dim", ""}},
    {"mul", {"Tensor", "Scalar"}},
    {"_native_batch_norm_legit", {"", "no_stats"}},
    {"norm", {"Scalar", "ScalarOpt_dim", "ScalarOpt_dtype", "ScalarOpt_dim_dtype"}},
    {"normal", {"Tensor_float", "float_Tensor", "Tensor_Tensor"}},
    {"pow", {"Tensor_Scalar", "Tensor_Tensor", "Scalar"}},
    {"prod", {"", "dim_int"}},
    {"remainder", {"Scalar", "Tensor"}},
    {"round", {"", "decimals"}},
    {"scatter", {"src", "value"}},
    {"sort", {"", "stable"}},
    {"squeeze", {"", "dim", "dims"}},
    {"sub", {"Tensor", "Scalar"}},
    {"rsub", {"Tensor", "Scalar"}},
    {"sum", {"", "dim_IntList"}},
    {"view", {"", "dtype"}},
    {"eq", {"Scalar", "Tensor"}},
    {"ge", {"Scalar", "Tensor"}},
    {"gt", {"Scalar", "Tensor"}},
    {"le", {"Scalar", "Tensor"}},
    {"lt", {"Scalar", "Tensor"}},
    {"ne", {"Scalar", "Tensor"}},
};

/// Nodes whose names do not follow from the operator's: formulas of in-place variants that PyTorch numbers apart, and
/// operators whose forward pass has a name of its own. Here batch_norm is made of the last three, there of
/// native_batch_norm.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"aten::copy_", "CopyBackwards"},
    {"aten::acosh_", "AcoshBackward1"},
    {"aten::asinh_", "AsinhBackward1"},
    {"aten::atanh_", "AtanhBackward1"},
    {"aten::bernoulli_.float", "BernoulliBackward2"},
    {"aten::celu_", "CeluBackward1"},
    {"aten::elu_", "EluBackward1"},
    {"aten::fill_.Scalar", "FillBackward2"},
    {"aten::fill_.Tensor", "FillBackward3"},
    {"aten::leaky_relu_", "LeakyReluBackward1"},
    {"aten::threshold_", "ThresholdBackward1"},
    {"aten::log_sigmoid_forward", "LogSigmoidBackward0"},
    {"aten::nll_loss_forward", "NllLossBackward0"},
    {"aten::nll_loss2d_forward", "NllLoss2DBackward0"},
    {"aten::_native_batch_norm_legit", "NativeBatchNormBackward0"},
    {"aten::_native_batch_norm_legit.no_stats", "NativeBatchNormBackward0"},
    {"aten::_native_batch_norm_legit_no_training", "NativeBatchNormBackward0"},
};

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

int overload_index(const Operator& op) {
  const Schema& schema = op.schema();
  if (schema.space == "aten")
    for (const OverloadOrder& order : kOrders)
      if (order.name == schema.name)
        for (int i = 0; i < 4; ++i)
          if (order.overloads[i] == schema.overload) return i;
  int index = 0;
  for (const Operator* other : operator_overloads(schema.space + "::" + schema.name)) {
    if (other == &op) break;
    index += !other->definition().gradients.empty();
  }
  return index;
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
  plan->real_only = source.has_tag("real_gradient");
  return plan;
}

}  // namespace

std::string node_name(const Operator& op) {
  for (const auto& [operator_name, name] : kNames)
    if (op.name() == operator_name) return std::string(name);
  const Operator* source = op.functional() ? op.functional() : &op;
  std::string name = source->schema().name;
  if (source->is_inplace()) name.pop_back();
  return camel_case(name) + "Backward" + std::to_string(overload_index(*source));
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
