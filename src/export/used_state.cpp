// Leaves a program the parameters and buffers that it uses, in the order of their first use.
#include <algorithm>

#include "umbra/export/exported_program.h"

namespace umbra {

namespace {

bool is_state(const InputSpec& spec) { return spec.kind == InputKind::Parameter || spec.kind == InputKind::Buffer; }

/// The inputs of a kind in the order of their first use.
std::vector<size_t> in_order_of_use(const ExportedProgram& program, InputKind kind) {
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  std::unordered_map<const fx::Node*, size_t> places;
  for (size_t i = 0; i < placeholders.size(); ++i)
    if (program.signature.inputs[i].kind == kind) places.emplace(placeholders[i], i);
  std::vector<size_t> order;
  for (const fx::Node* node : program.graph().nodes())
    for (const fx::Node* input : node->inputs())
      if (auto found = places.find(input); found != places.end()) {
        order.push_back(found->second);
        places.erase(found);
      }
  return order;
}

/// The first name that a tensor of the program has.
std::string first_name(const ExportedProgram& program, const InputSpec& spec) {
  Tensor tensor = program.find(spec.target);
  auto names_it = [&](const InputSpec& other) {
    return other.kind == spec.kind && tensor.defined() && program.find(other.target).is_same(tensor);
  };
  auto first = std::ranges::find_if(program.signature.inputs, names_it);
  return first == program.signature.inputs.end() ? spec.target : first->target;
}

}  // namespace

void keep_used_state(ExportedProgram& program) {
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  const std::vector<InputSpec> before = program.signature.inputs;
  std::vector<size_t> order = in_order_of_use(program, InputKind::Parameter);
  std::ranges::copy(in_order_of_use(program, InputKind::Buffer), std::back_inserter(order));
  for (size_t i = 0; i < before.size(); ++i)
    if (!is_state(before[i])) order.push_back(i);

  std::vector<InputSpec> kept;
  fx::Node* last = nullptr;
  for (size_t i : order) {
    kept.push_back(before[i]);
    if (is_state(before[i])) kept.back().target = first_name(program, before[i]);
    if (last) placeholders[i]->move_after(last);
    else if (placeholders[i] != placeholders.front()) placeholders[i]->move_before(placeholders.front());
    last = placeholders[i];
  }
  std::vector<bool> used(before.size());
  for (size_t i : order) used[i] = true;
  for (size_t i = 0; i < before.size(); ++i)
    if (!used[i]) program.graph().erase_node(placeholders[i]);
  program.signature.inputs = std::move(kept);
  std::erase_if(program.constants, [&](const auto& constant) {
    return std::ranges::none_of(program.signature.inputs,
                                [&](const InputSpec& spec) { return spec.target == constant.first; });
  });
}

}  // namespace umbra
