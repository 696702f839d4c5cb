#include "export/used_symbols.h"

#include "umbra/sym/print.h"
#include "umbra/sym/walk.h"

namespace umbra {

namespace {

void add_symbols(const fx::GraphModule& module, std::unordered_set<const sym::Expression*>& used) {
  auto add = [&](const SymNode* node) {
    for (const sym::Expression* e : sym::free_symbols(static_cast<const sym::Expression*>(node))) used.insert(e);
  };
  for (const fx::Node* node : module.graph().nodes()) {
    const Value& value = node->meta.val;
    if (value.tag() == Value::Tag::SymInt) add(value.to_sym_int().node());
    if (value.tag() == Value::Tag::SymFloat) add(value.to_sym_float().node());
    if (value.tag() == Value::Tag::SymBool) add(value.to_sym_bool().node());
    value.each_tensor([&](const TensorImpl* t) {
      for (SymInt s : t->sym_sizes())
        if (s.is_symbolic()) add(s.node());
    });
  }
  for (const auto& [path, part] : module.submodules()) add_symbols(*part, used);
}

}  // namespace

std::unordered_set<const sym::Expression*> used_symbols(const fx::GraphModule& module) {
  std::unordered_set<const sym::Expression*> used;
  add_symbols(module, used);
  return used;
}

std::vector<std::string> float_symbols(const fx::Graph& graph) {
  std::vector<std::string> out;
  for (const fx::Node* node : graph.nodes()) {
    if (node->meta.val.tag() != Value::Tag::SymFloat) continue;
    auto* number = static_cast<const sym::Expression*>(node->meta.val.to_sym_float().node());
    if (number && number->is(sym::Kind::Symbol)) out.push_back(sym::to_text(number));
  }
  return out;
}

}  // namespace umbra
