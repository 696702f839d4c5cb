#include "umbra/export/unlift.h"

#include "umbra/capture/effects.h"
#include "umbra/graph/origin.h"

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

/// Says of the nodes of a copy which nodes of the program they are.
void set_origins(const fx::Graph& from, const fx::Graph& graph) {
  auto made = graph.nodes().begin();
  for (const fx::Node* node : from.nodes()) {
    set_origin(**made, make_counted<fx::Origin>(*node, "ExportedProgram.module()", "create"));
    ++made;
  }
}

IntrusivePtr<fx::Origin> replaced(const fx::Node& node) {
  return make_counted<fx::Origin>(node, "ExportedProgram.module().unlift()", "create+replace");
}

/// Puts the program's own tensors in place of the inputs that stand for them; gives the node for each target by name.
std::unordered_map<std::string, fx::Node*> replace_lifted(const ExportedProgram& program, fx::GraphModule& module) {
  fx::Graph& graph = module.graph();
  std::unordered_map<std::string, fx::Node*> nodes;
  std::vector<fx::Node*> placeholders = graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec& spec = program.signature.inputs.at(i);
    if (is_user_input(spec)) {
      nodes.emplace(spec.name, placeholders[i]);
      continue;
    }
    if (spec.kind == InputKind::Token) continue;
    module.set(spec.target, Value(program.find(spec.target)), attribute_kind(spec));
    auto scope = graph.inserting_after(placeholders[i]);
    fx::Node* node = graph.get_attr(spec.target);
    node->meta = placeholders[i]->meta;
    set_origin(*node, replaced(*placeholders[i]));
    placeholders[i]->replace_all_uses_with(node);
    nodes.emplace(spec.target, node);
  }
  return nodes;
}

}  // namespace

IntrusivePtr<fx::GraphModule> unlift(const ExportedProgram& program) {
  IntrusivePtr<fx::GraphModule> module = program.graph_module->copy();
  fx::Graph& graph = module->graph();
  set_origins(program.graph(), graph);
  std::vector<fx::Node*> lifted = graph.placeholders();
  std::unordered_map<std::string, fx::Node*> targets = replace_lifted(program, *module);
  fx::Node* output = graph.output_node();
  fx::Arguments results = graph.outputs(), kept;
  auto scope = graph.inserting_before(output);
  std::unordered_map<const fx::Node*, fx::Node*> written;  // what a tensor becomes, and the tensor that has become it
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = program.signature.outputs.at(i);
    bool mutation = spec.kind == OutputKind::BufferMutation || spec.kind == OutputKind::ParameterMutation ||
                    spec.kind == OutputKind::UserInputMutation;
    if (mutation)
      written[results[i].node()] = graph.create_node(fx::Op::CallFunction, get_operator("aten::copy_"),
                                                     {targets.at(spec.target), results[i]}, {}, "copy__default");
    else if (spec.kind != OutputKind::Token) kept.push_back(results[i]);
  }
  for (fx::Argument& result : kept)
    if (auto now = written.find(result.node()); result.node() && now != written.end()) result = now->second;
  output->set_args({fx::Argument::tuple(std::move(kept))});
  set_origin(*output, replaced(*output));
  drop_tokens(graph);
  for (size_t i = 0; i < lifted.size(); ++i)
    if (!is_user_input(program.signature.inputs[i])) graph.erase_node(lifted[i]);
  return module;
}

}  // namespace umbra
