#include "umbra/export/unlift.h"

#include "umbra/capture/effects.h"

namespace umbra {

namespace {

fx::AttributeKind attribute_kind(const InputSpec& spec) {
  switch (spec.kind) {
    case InputKind::Parameter: return fx::AttributeKind::Parameter;
    case InputKind::Buffer: return fx::AttributeKind::Buffer;
    default: return fx::AttributeKind::Constant;
  }
}

bool is_user_input(const InputSpec& spec) {
  return spec.kind == InputKind::UserInput || spec.kind == InputKind::ConstantInput;
}

/// Puts the program's own tensors in place of the inputs that stand for them; gives the node for each target by name.
std::unordered_map<std::string, fx::Node*> replace_lifted(const ExportedProgram& program, fx::GraphModule& module) {
  fx::Graph& graph = module.graph();
  std::unordered_map<std::string, fx::Node*> nodes;
  std::vector<fx::Node*> placeholders = graph.placeholders();
  fx::Node* last = placeholders.empty() ? nullptr : placeholders.back();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec& spec = program.signature.inputs.at(i);
    if (is_user_input(spec)) {
      nodes.emplace(spec.name, placeholders[i]);
      continue;
    }
    if (spec.kind == InputKind::Token) continue;
    module.set(spec.target, Value(program.find(spec.target)), attribute_kind(spec));
    auto scope = graph.inserting_after(last);
    fx::Node* node = last = graph.get_attr(spec.target);
    node->meta = placeholders[i]->meta;
    placeholders[i]->replace_all_uses_with(node);
    nodes.emplace(spec.target, node);
  }
  return nodes;
}

}  // namespace

IntrusivePtr<fx::GraphModule> unlift(const ExportedProgram& program) {
  IntrusivePtr<fx::GraphModule> module = program.graph_module->copy();
  fx::Graph& graph = module->graph();
  std::vector<fx::Node*> lifted = graph.placeholders();
  std::unordered_map<std::string, fx::Node*> targets = replace_lifted(program, *module);
  fx::Node* output = graph.output_node();
  fx::Arguments results = graph.outputs(), kept;
  auto scope = graph.inserting_before(output);
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = program.signature.outputs.at(i);
    bool mutation = spec.kind == OutputKind::BufferMutation || spec.kind == OutputKind::ParameterMutation ||
                    spec.kind == OutputKind::UserInputMutation;
    if (mutation) graph.call(get_operator("aten::copy_"), {targets.at(spec.target), results[i]});
    else if (spec.kind != OutputKind::Token) kept.push_back(results[i]);
  }
  output->set_args({fx::Argument::tuple(std::move(kept))});
  drop_tokens(graph);
  for (size_t i = 0; i < lifted.size(); ++i)
    if (!is_user_input(program.signature.inputs[i])) graph.erase_node(lifted[i]);
  return module;
}

}  // namespace umbra
