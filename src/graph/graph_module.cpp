#include "umbra/graph/graph_module.h"

#include <mutex>
#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include "graph/plan.h"
#include "umbra/graph/print.h"

namespace umbra::fx {

struct GraphModule::Derived final : RefCounted {
  std::unordered_map<std::string, std::list<Attribute>::iterator> index;
  std::mutex plan_mutex;
  std::shared_ptr<const Plan> plan;
};

GraphModule::GraphModule(IntrusivePtr<Graph> graph, std::string class_name)
    : graph_(std::move(graph)), class_name_(std::move(class_name)), derived_(make_counted<Derived>()) {}
GraphModule::~GraphModule() = default;

void GraphModule::set_graph(IntrusivePtr<Graph> graph) {
  graph_ = std::move(graph);
  ++attribute_version_;
}
uint32_t GraphModule::references_to_graph() const {
  std::lock_guard lock(derived_->plan_mutex);
  return derived_->plan && derived_->plan->keeps(*graph_) ? 2 : 1;
}

// ---- attributes ----

void GraphModule::set(std::string_view path, Value value, AttributeKind kind) {
  auto found = derived_->index.find(std::string(path));
  if (found != derived_->index.end()) {
    // In place: a plan that points to the value sees the new one.
    store_shared(found->second->value, std::move(value));
    found->second->kind = kind;
    return;
  }
  attributes_.push_back({std::string(path), std::move(value), kind});
  derived_->index.emplace(path, std::prev(attributes_.end()));
  ++attribute_version_;
}

void GraphModule::set_submodule(std::string_view path, IntrusivePtr<GraphModule> module) {
  set(path, Value::object(std::move(module)), AttributeKind::Module);
}

void GraphModule::remove(std::string_view path) {
  auto found = derived_->index.find(std::string(path));
  if (found == derived_->index.end()) fail<AttributeError>("the module has no attribute '", std::string(path), "'");
  store_shared(found->second->value, Value());
  removed_.splice(removed_.end(), attributes_, found->second);
  derived_->index.erase(found);
  ++attribute_version_;
}

const Value* GraphModule::find(std::string_view path) const {
  auto found = derived_->index.find(std::string(path));
  if (found != derived_->index.end()) return &found->second->value;
  // "block.weight" may be the attribute "weight" of the submodule "block".
  for (size_t dot = path.rfind('.'); dot != std::string_view::npos && dot > 0; dot = path.rfind('.', dot - 1)) {
    auto owner = derived_->index.find(std::string(path.substr(0, dot)));
    if (owner == derived_->index.end()) continue;
    const Value& value = owner->second->value;
    const auto* module = value.is_object() ? dynamic_cast<const GraphModule*>(value.object()) : nullptr;
    if (module) return module->find(path.substr(dot + 1));
  }
  return nullptr;
}

const Value& GraphModule::get(std::string_view path) const {
  const Value* value = find(path);
  if (!value) fail<AttributeError>("'", class_name_, "' object has no attribute '", std::string(path), "'");
  return *value;
}

GraphModule& GraphModule::submodule(std::string_view path) const {
  const Value& value = get(path);
  auto* module = value.is_object() ? dynamic_cast<GraphModule*>(value.object()) : nullptr;
  if (!module) fail<AttributeError>("attribute '", std::string(path), "' of '", class_name_, "' is not a graph module");
  return *module;
}

std::vector<std::pair<std::string, GraphModule*>> GraphModule::submodules() const {
  std::vector<std::pair<std::string, GraphModule*>> out;
  for (const Attribute& attribute : attributes_)
    if (attribute.value.is_object())
      if (auto* module = dynamic_cast<GraphModule*>(attribute.value.object())) out.emplace_back(attribute.path, module);
  return out;
}

std::string GraphModule::unused_path(std::string_view prefix) const {
  for (size_t i = 0;; ++i) {
    std::string path = std::string(prefix) + std::to_string(i);
    if (!derived_->index.contains(path)) return path;
  }
}

void GraphModule::remove_unused_attributes() {
  std::unordered_set<std::string_view> wanted;
  for (Node* node : graph_->nodes())
    if (node->op() == Op::GetAttr || node->op() == Op::CallModule) {
      std::string_view path = node->target().name();
      for (size_t dot = path.size(); dot != std::string_view::npos && dot > 0; dot = path.rfind('.', dot - 1))
        wanted.insert(path.substr(0, dot));
    }
  std::vector<std::string> unused;
  for (const Attribute& attribute : attributes_)
    if (!wanted.contains(attribute.path)) unused.push_back(attribute.path);
  for (const std::string& path : unused) remove(path);
}

// ---- running ----

std::shared_ptr<const Plan> GraphModule::plan() const {
  std::unique_lock lock(derived_->plan_mutex);
  std::shared_ptr<const Plan> plan = derived_->plan;
  lock.unlock();  // what plans hold may be Python's, which is let go under its lock
  if (plan && plan->is_current(graph_->version(), attribute_version_)) return plan;
  plan = std::make_shared<Plan>(*this, graph_->version(), attribute_version_);
  std::shared_ptr<const Plan> before = plan;
  lock.lock();
  derived_->plan.swap(before);
  lock.unlock();
  return plan;
}

std::vector<Value> GraphModule::run(std::vector<Value> inputs) const { return plan()->run(std::move(inputs), {}); }

Value GraphModule::call(std::vector<Value> inputs) const {
  std::shared_ptr<const Plan> current = plan();
  std::vector<Value> results = current->run(std::move(inputs), {});
  if (current->returns_sequence()) return Value(std::move(results));
  return results.empty() ? Value() : std::move(results[0]);
}

// ---- copies and text ----

IntrusivePtr<GraphModule> GraphModule::copy(NodeMap* map) const {
  auto result = make_counted<GraphModule>(graph_->copy(map), class_name_);
  for (const Attribute& attribute : attributes_) result->set(attribute.path, attribute.value, attribute.kind);
  return result;
}

std::string GraphModule::code() const { return python_code(*graph_); }

namespace {

/// The tree of modules that an attribute's dotted path runs through.
struct Outline {
  std::string type = "Module";
  std::vector<std::pair<std::string, std::unique_ptr<Outline>>> children;

  Outline& child(const std::string& name) {
    for (auto& [known, outline] : children)
      if (known == name) return *outline;
    children.emplace_back(name, std::make_unique<Outline>());
    return *children.back().second;
  }

  std::string text(const std::string& indent) const {
    if (children.empty()) return type + "()";
    std::string out = type + "(\n";
    for (const auto& [name, outline] : children)
      out += indent + "  (" + name + "): " + outline->text(indent + "  ") + "\n";
    return out + indent + ")";
  }
};

void add_modules(const GraphModule& module, Outline& outline) {
  outline.type = module.class_name();
  for (const Attribute& attribute : module.attributes()) {
    Outline* owner = &outline;
    size_t from = 0;
    for (size_t dot; (dot = attribute.path.find('.', from)) != std::string::npos; from = dot + 1)
      owner = &owner->child(attribute.path.substr(from, dot - from));
    const auto* graph =
        attribute.value.is_object() ? dynamic_cast<const GraphModule*>(attribute.value.object()) : nullptr;
    if (graph) add_modules(*graph, owner->child(attribute.path.substr(from)));
  }
}

}  // namespace

std::string to_string(const GraphModule& module) {
  Outline outline;
  add_modules(module, outline);
  return outline.text("") + "\n" + module.code() +
         "\n# To see more debug info, please use `graph_module.print_readable()`";
}

std::ostream& operator<<(std::ostream& out, const GraphModule& module) { return out << to_string(module); }

}  // namespace umbra::fx
