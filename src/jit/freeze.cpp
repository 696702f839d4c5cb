// Freezes a module: attributes that nothing writes and nobody asks to keep become constants of its graphs.
#include <algorithm>
#include <set>

#include "umbra/jit/alias.h"
#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Freezer {
 public:
  Freezer(const Value& module, const std::vector<std::string>& preserved) : module_(module), preserved_(preserved) {}

  Value run() {
    Instance& root = expect_object<Instance>(module_, "a module");
    for (const std::string& name : preserved_) keep(root, name, name);
    for (const std::string& method : root.cls->method_order) {
      FunctionPtr function = root.cls->method(method);
      if ((method != "forward" && !contains(preserved_, method)) || function->ignored) continue;
      methods_.emplace_back(method, copy_of(*function));
      find_written(*methods_.back().second->graph);
    }
    Value made = rebuilt(root, true);
    ClassPtr cls = object_as<Instance>(made)->cls;
    for (auto& [name, method] : methods_) {
      fold(*method->graph);
      method->parameters[0].type = class_type(cls);
      cls->add_method(name, method);
    }
    return made;
  }

 private:
  /// Notes an attribute that is kept: "weight", or "layer.weight" of a module inside.
  void keep(Instance& owner, const std::string& path, const std::string& name) {
    size_t dot = path.find('.');
    std::string first = path.substr(0, dot);
    bool is_method = &owner == object_as<Instance>(module_) && owner.cls->method(path);
    check(owner.cls->find(first) >= 0 || is_method, "Unknown name: ", name);
    if (is_method) return;
    if (dot == std::string::npos) return void(preserved_attributes_.emplace(&owner, first));
    Instance* inner = object_as<Instance>(owner.attribute(first));
    check(inner != nullptr, "Unknown name: ", name);
    keep(*inner, path.substr(dot + 1), name);
  }

  FunctionPtr copy_of(Function& function) {
    function.ensure();
    auto copy = std::make_shared<Function>(function);
    copy->define = nullptr;
    copy->program = nullptr;
    copy->graph = function.graph->copy();
    do inline_calls(*copy->graph);
    while (name_modules(*copy->graph));
    fold_training(*copy->graph);
    return copy;
  }

  /// Leaves out what modules do while they are trained, before anybody asks what methods write.
  void fold_training(Graph& graph) {
    std::vector<Node*> reads;
    bool is_set = contains(preserved_, "training");
    each_node(graph.block(), [&](Node& n) {
      bool is_training =
          (n.is("prim::GetAttr") || n.is("prim::SetAttr")) && n.attribute("name")->to_string() == "training";
      if (is_training && n.is("prim::SetAttr")) is_set = true;
      if (is_training && n.is("prim::GetAttr")) reads.push_back(&n);
    });
    if (is_set) return;
    for (Node* n : reads)
      if (const Value* value = value_of(graph, n->output())) put_constant(graph, n, *value);
    graph.set_current(&graph.block());
    do propagate_constants(graph);
    while (fold_branches(graph));
    eliminate_dead_code(graph);
  }

  static void put_constant(Graph& graph, Node* read, const Value& value) {
    graph.set_current(read->block());
    graph.set_before(read);
    Variable* c = graph.insert_constant(value, value.is_none() ? nullptr : read->output()->type());
    graph.set_before(nullptr);
    graph.replace_uses(read->output(), c);
  }

  /// Modules that are known by an interface are what they are now: their calls can be put in place. True where there
  /// was one.
  bool name_modules(Graph& graph) {
    bool found = false;
    each_node(graph.block(), [&](Node& n) {
      if (!n.is("prim::GetAttr") || !n.output()->type()->cls || !n.output()->type()->cls->is_interface) return;
      const Value* value = value_of(graph, n.output());
      auto* instance = value ? object_as<Instance>(*value) : nullptr;
      if (!instance) return;
      n.output()->set_type(class_type(instance->cls));
      found = true;
    });
    return found;
  }

  /// The value that a chain of attributes of `self` has, or null where it is no such chain.
  const Value* value_of(const Graph& graph, const Variable* v) const {
    if (v == graph.block().input(0)) return &module_;
    if (!v->node()->is("prim::GetAttr")) return nullptr;
    const Value* owner = value_of(graph, v->node()->inputs[0]);
    auto* instance = owner ? object_as<Instance>(*owner) : nullptr;
    return instance ? &instance->attribute(v->node()->attribute("name")->to_string()) : nullptr;
  }
  const Instance* owner_of(const Graph& graph, const Node& n) const {
    const Value* owner = value_of(graph, n.inputs[0]);
    return owner ? object_as<Instance>(*owner) : nullptr;
  }

  void find_written(const Graph& graph) {
    each_node(graph.block(), [&](const Node& n) {
      if (!n.is("prim::SetAttr") || !n.inputs[0]->type()->cls || !n.inputs[0]->type()->cls->is_module) return;
      const Instance* owner = owner_of(graph, n);
      check<NotImplementedError>(owner,
                                 "torch.jit.freeze: a method sets an attribute of a module that is chosen when it "
                                 "runs; this is not in Umbra yet");
      const std::string& name = n.attribute("name")->to_string();
      const TypePtr& type = owner->cls->attributes[static_cast<size_t>(owner->cls->find(name))].type;
      check(!type->cls || !type->cls->is_module,
            "Freezing does not support SetAttr on an interface type: a method sets '", name, "'");
      written_.emplace(owner, name);
    });
    AliasAnalysis aliases(graph);
    each_node(graph.block(), [&](const Node& n) {
      if (n.is("prim::GetAttr") && is_written(graph, aliases, n))
        if (const Instance* owner = owner_of(graph, n)) written_.emplace(owner, n.attribute("name")->to_string());
    });
  }

  /// Whether a method changes what an attribute holds: a list by any way, a tensor through what it reads here.
  static bool is_written(const Graph& graph, const AliasAnalysis& aliases, const Node& read) {
    const TypePtr& type = read.output()->type();
    if (type->cls && type->cls->is_module) return false;
    if (!type->is(TypeKind::Tensor)) return aliases.has_writers(read.output());
    bool written = false;
    each_node(graph.block(), [&](const Node& n) {
      if (!n.op || !n.op->is_mutable()) return;
      for (size_t i = 0; i < n.inputs.size(); ++i)
        written |= n.op->schema().arguments[i].alias.write && base_of(n.inputs[i]) == read.output();
    });
    return written;
  }

  /// What a value is a view of, or was written in place.
  static const Variable* base_of(const Variable* v) {
    while (v->node()->op && !v->node()->inputs.empty() && v->offset() < v->node()->op->return_count()) {
      const Schema& schema = v->node()->op->schema();
      const std::string& set = schema.returns[v->offset()].alias.set;
      if (set.empty() || schema.arguments[0].alias.set != set) break;
      v = v->node()->inputs[0];
    }
    return v;
  }

  /// A module with the attributes that are kept; none for a module that keeps nothing.
  Value rebuilt(Instance& instance, bool is_root) {
    auto cls = std::make_shared<ClassType>();
    cls->name = instance.cls->name;
    cls->is_module = true;
    auto made = make_counted<Instance>(cls);
    for (size_t i = 0; i < instance.cls->attributes.size(); ++i) {
      Attribute a = instance.cls->attributes[i];
      Value value = instance.slots[i];
      auto* inner = object_as<Instance>(value);
      if (preserved_attributes_.contains({&instance, a.name}) || written_.contains({&instance, a.name})) {
        // the same tensor, list or object as the original has
      } else if (inner && inner->cls->is_module) {
        value = rebuilt(*inner, false);
        if (value.is_none()) continue;
        a.type = class_type(object_as<Instance>(value)->cls);
      } else {
        continue;
      }
      kept_.emplace(&instance, a.name);
      cls->add_attribute(a);
      made->slots.push_back(value);
    }
    if (cls->attributes.empty() && !is_root) return Value();
    types_[&instance] = class_type(cls);
    return Value::object(made);
  }

  /// A dropout that does not drop is its input.
  static void remove_dropout(Graph& graph) {
    each_node(graph.block(), [&](Node& n) {
      if (!n.op || n.op->name() != "aten::dropout") return;
      const Node& train = *n.inputs[2]->node();
      const Value* value = train.is("prim::Constant") ? train.attribute("value") : nullptr;
      if (value && value->is_bool() && !value->to_bool()) graph.replace_uses(n.output(), n.inputs[0]);
    });
  }

  /// Puts the attributes that a method reads into it, and computes what follows from them.
  void fold(Graph& graph) {
    std::vector<Node*> reads;
    each_node(graph.block(), [&](Node& n) {
      check(!n.is("prim::ModuleContainerIndex"),
            "Freezing modules containing prim::ModuleContainerIndex is not supported");
      if (n.is("prim::GetAttr")) reads.push_back(&n);
    });
    for (Node* n : reads) {
      const Value* value = value_of(graph, n->output());
      const Instance* owner = owner_of(graph, *n);
      if (!value) continue;
      if (auto* inner = object_as<Instance>(*value); inner && inner->cls->is_module) continue;
      if (owner && kept_.contains({owner, n->attribute("name")->to_string()})) continue;
      std::unordered_map<const void*, Value> memo;
      Value constant = value->is_tensor() ? Value(value->tensor_ref().detach()) : deep_copy(*value, false, memo);
      put_constant(graph, n, constant);
    }
    graph.set_current(&graph.block());
    do propagate_constants(graph);
    while (fold_branches(graph));
    propagate_constant_tensors(graph);
    remove_dropout(graph);
    eliminate_dead_code(graph);
    each_node(graph.block(), [&](Node& n) {
      const Value* value = n.is("prim::GetAttr") ? value_of(graph, n.output()) : nullptr;
      auto* inner = value ? object_as<Instance>(*value) : nullptr;
      if (auto found = types_.find(inner); inner && found != types_.end()) n.output()->set_type(found->second);
    });
    graph.block().input(0)->set_type(types_.at(object_as<Instance>(module_)));
    pool_constants(graph);
  }

  const Value& module_;
  const std::vector<std::string>& preserved_;
  std::vector<std::pair<std::string, FunctionPtr>> methods_;
  std::set<std::pair<const Instance*, std::string>> preserved_attributes_, written_, kept_;
  std::unordered_map<const Instance*, TypePtr> types_;
};

}  // namespace

Value freeze(const Value& module, const std::vector<std::string>& preserved) {
  return Freezer(module, preserved).run();
}

}  // namespace umbra::jit
