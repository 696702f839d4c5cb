#include <algorithm>

#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {
namespace {

/// The value that a chain of attributes of `self` has, or null where it is no such chain.
const Value* attribute_value(const Variable* v, const Variable* self, const Value& module) {
  if (v == self) return &module;
  if (!v->node()->is("prim::GetAttr")) return nullptr;
  const Value* owner = attribute_value(v->node()->inputs[0], self, module);
  auto* instance = owner ? object_as<Instance>(*owner) : nullptr;
  return instance ? &instance->attribute(v->node()->attribute("name")->to_string()) : nullptr;
}

/// Puts the attributes that a method reads into it. Attributes that are written stay attributes.
void fold(Graph& graph, const Value& module, const std::vector<std::string>& preserved) {
  Variable* self = graph.block().input(0);
  each_node(graph.block(), [](const Node& n) {
    check<NotImplementedError>(!n.is("prim::SetAttr"),
                               "torch.jit.freeze: a module whose methods set attributes cannot be frozen yet");
  });
  std::vector<Node*> reads;
  each_node(graph.block(), [&](Node& n) {
    if (n.is("prim::GetAttr")) reads.push_back(&n);
  });
  for (Node* n : reads) {
    const Value* value = attribute_value(n->output(), self, module);
    const std::string& name = n->attribute("name")->to_string();
    bool kept = n->inputs[0] == self && std::find(preserved.begin(), preserved.end(), name) != preserved.end();
    if (!value || kept || object_as<Instance>(*value)) continue;
    Value constant = value->is_tensor() ? Value(value->tensor_ref().detach()) : *value;
    graph.set_before(n);
    Variable* c = graph.insert_constant(constant, constant.is_none() ? nullptr : n->output()->type());
    graph.set_before(nullptr);
    graph.replace_uses(n->output(), c);
  }
  graph.set_current(&graph.block());
  eliminate_dead_code(graph);
}

}  // namespace

Value freeze(const Value& module, const std::vector<std::string>& preserved) {
  auto& instance = expect_object<Instance>(module, "a module");
  auto cls = std::make_shared<ClassType>();
  cls->name = instance.cls->name;
  cls->is_module = true;
  for (const std::string& method : instance.cls->method_order) {
    bool kept = method == "forward" || std::find(preserved.begin(), preserved.end(), method) != preserved.end();
    FunctionPtr function = instance.cls->method(method);
    if (!kept || function->ignored) continue;
    auto copy = std::make_shared<Function>(*function);
    function->ensure();
    copy->define = nullptr;
    copy->program = nullptr;
    copy->result = function->result;
    copy->graph = function->graph->copy();
    inline_calls(*copy->graph);
    fold(*copy->graph, module, preserved);
    copy->graph->block().input(0)->set_type(class_type(cls));
    copy->parameters[0].type = class_type(cls);
    cls->add_method(method, copy);
  }
  auto made = make_counted<Instance>(cls);
  for (size_t i = 0; i < instance.cls->attributes.size(); ++i) {
    const Attribute& a = instance.cls->attributes[i];
    bool kept = a.name == "training" || std::find(preserved.begin(), preserved.end(), a.name) != preserved.end();
    if (!kept) continue;
    cls->add_attribute(a);
    made->slots.push_back(instance.slots[i]);
  }
  return Value::object(made);
}

}  // namespace umbra::jit
