#include "umbra/jit/convert.h"

#include <algorithm>
#include <unordered_set>

#include "umbra/export/unlift.h"
#include "umbra/jit/interpreter.h"

namespace umbra::jit {
namespace {

// ---- between programs' values and trees ----

Tree to_tree(const Value& value) {
  std::vector<Tree> items;
  if (value.is_list()) {
    for (const Value& v : value.list()) items.push_back(to_tree(v));
    return Tree::tuple(std::move(items));
  }
  if (auto* list = object_as<ListObject>(value)) {
    for (const Value& v : list->items) items.push_back(to_tree(v));
    return Tree::list(std::move(items));
  }
  if (auto* dict = object_as<DictObject>(value)) {
    std::vector<std::pair<std::string, Tree>> pairs;
    for (auto& [k, v] : dict->items) {
      check<NotImplementedError>(k.is_string(),
                                 "a dict whose keys are no texts cannot be an argument or a result of an "
                                 "exported program");
      pairs.emplace_back(k.to_string(), to_tree(v));
    }
    return Tree::dict(std::move(pairs));
  }
  check<NotImplementedError>(!value.is_object(), "a value of type ", type_of(value)->annotation(),
                             " cannot be an argument or a result of an exported program");
  return Tree(value);
}

Value from_tree(const Tree& tree, const TypePtr& type) {
  const TypePtr& inner = type->is(TypeKind::Optional) ? type->element() : type;
  auto items = [&](auto&& element) {
    std::vector<Value> out;
    for (size_t i = 0; i < tree.children.size(); ++i) out.push_back(from_tree(tree.children[i], element(i)));
    return out;
  };
  switch (tree.kind) {
    case TreeSpec::Kind::Leaf: return tree.value;
    case TreeSpec::Kind::List:
      check<TypeError>(inner->is(TypeKind::List), "expected ", type->annotation(), ", but got a list");
      return make_list(inner->element(), items([&](size_t) { return inner->element(); }));
    case TreeSpec::Kind::Dict: {
      check<TypeError>(inner->is(TypeKind::Dict), "expected ", type->annotation(), ", but got a dict");
      auto dict = make_counted<DictObject>(inner->element(0), inner->element(1));
      for (size_t i = 0; i < tree.children.size(); ++i)
        dict->items.emplace_back(Value(tree.keys[i]), from_tree(tree.children[i], inner->element(1)));
      return Value::object(dict);
    }
    default:
      check<TypeError>(inner->is(TypeKind::Tuple) && inner->elements.size() == tree.children.size(), "expected ",
                       type->annotation(), ", but got a tuple of ", tree.children.size());
      return Value(items([&](size_t i) { return inner->elements[i]; }));
  }
}

// ---- the module ----

/// The modules of a program with their paths, each once.
void each_module(const Value& module, const std::string& path, std::unordered_set<const void*>& seen,
                 const std::function<void(Instance&, const std::string&)>& visit) {
  auto* instance = object_as<Instance>(module);
  if (!instance || !instance->cls->is_module || !seen.insert(instance).second) return;
  visit(*instance, path);
  for (size_t i = 0; i < instance->slots.size(); ++i) {
    const std::string& name = instance->cls->attributes[i].name;
    each_module(instance->slots[i], path.empty() ? name : path + "." + name, seen, visit);
  }
}

/// What a module's attributes were before a run, to be told and put back after it.
class Snapshot {
 public:
  explicit Snapshot(const Value& module) {
    std::unordered_set<const void*> seen;
    each_module(module, "", seen, [&](Instance& instance, const std::string& path) {
      kept_.push_back({&instance, path, instance.slots});
    });
  }
  ~Snapshot() { restore(); }
  Snapshot(const Snapshot&) = delete;

  void restore() {
    for (Kept& k : kept_) k.instance->slots = k.slots;
  }
  /// Buffers that have another tensor now. Other attributes that changed are refused: exported programs have none.
  std::vector<std::pair<Tensor, Tensor>> assignments() const {
    std::vector<std::pair<Tensor, Tensor>> out;
    for (const Kept& k : kept_)
      for (size_t i = 0; i < k.slots.size(); ++i) {
        const Value &before = k.slots[i], &now = k.instance->slots[i];
        const Attribute& a = k.instance->cls->attributes[i];
        if (before.is_tensor() && now.is_tensor() && before.tensor_impl() == now.tensor_impl()) continue;
        if (!before.is_tensor() && !now.is_tensor() && equal(before, now)) continue;
        check<NotImplementedError>(a.is_buffer && before.is_tensor() && now.is_tensor(),
                                   "the program sets the attribute '", k.path.empty() ? "" : k.path + ".", a.name,
                                   "' of type ", a.type->annotation(), "; an exported program can only set buffers");
        out.emplace_back(before.tensor(), now.tensor());
      }
    return out;
  }

 private:
  struct Kept {
    Instance* instance;
    std::string path;
    std::vector<Value> slots;
  };
  std::vector<Kept> kept_;
};

void add_state(const Value& module, ExportSource& source) {
  std::unordered_set<const void*> seen, tensors;
  each_module(module, "", seen, [&](Instance& instance, const std::string& path) {
    source.modules.push_back({path});
    for (size_t i = 0; i < instance.slots.size(); ++i) {
      const Attribute& a = instance.cls->attributes[i];
      const Value& value = instance.slots[i];
      if (!value.is_tensor() || !tensors.insert(value.tensor_impl()).second) continue;
      std::string name = path.empty() ? a.name : path + "." + a.name;
      if (a.is_parameter) source.parameters.emplace_back(name, value.tensor());
      else if (a.is_buffer) source.buffers.push_back({name, value.tensor()});
      else source.attributes.emplace_back(name, value.tensor());
    }
  });
}

/// A parameter's name without the number that a trace may put behind it.
std::string plain_name(const std::string& name) { return name.substr(0, name.find('.')); }

std::vector<Value> in_place(const Function& forward, const Value& module, const Tree& arguments, const Tree& keywords) {
  std::vector<Value> out{module};
  for (const Tree& t : arguments.children) {
    check<TypeError>(out.size() < forward.parameters.size(), "forward() takes ", forward.parameters.size() - 1,
                     " arguments");
    out.push_back(from_tree(t, forward.parameters[out.size()].type));
  }
  while (out.size() < forward.parameters.size()) {
    const Parameter& p = forward.parameters[out.size()];
    auto found = std::find(keywords.keys.begin(), keywords.keys.end(), p.name);
    if (found != keywords.keys.end())
      out.push_back(from_tree(keywords.children[static_cast<size_t>(found - keywords.keys.begin())], p.type));
    else if (p.default_value) out.push_back(*p.default_value);
    else fail<TypeError>("forward() is missing value for argument '", p.name, "'");
  }
  return out;
}

}  // namespace

ExportedProgram to_exported_program(const Value& module, const std::vector<Value>& arguments,
                                    const std::vector<std::pair<std::string, Value>>& keywords,
                                    const ExportOptions& options) {
  Instance& instance = expect_object<Instance>(module, "a module");
  FunctionPtr forward = instance.cls->method("forward");
  check<ValueError>(forward != nullptr, "the module '", instance.cls->name, "' has no method 'forward'");
  forward->ensure();
  ExportSource source;
  add_state(module, source);
  Snapshot before(module);
  source.forward = [&](const Tree& given, const Tree& named) {
    before.restore();
    return to_tree(run(*forward, in_place(*forward, module, given, named)));
  };
  source.assignments = [&] { return before.assignments(); };
  ExportOptions named = options;
  for (size_t i = 0; named.argument_names.size() < arguments.size() && i < arguments.size(); ++i)
    if (i + 1 < forward->parameters.size() && i >= named.argument_names.size())
      named.argument_names.push_back(plain_name(forward->parameters[i + 1].name));
  std::vector<Tree> positional;
  for (const Value& v : arguments) positional.push_back(to_tree(v));
  std::vector<std::pair<std::string, Tree>> by_name;
  for (const auto& [name, v] : keywords) by_name.emplace_back(name, to_tree(v));
  return export_program(source, Tree::tuple(std::move(positional)), Tree::dict(std::move(by_name)), named);
}

IntrusivePtr<fx::GraphModule> to_graph_module(const Value& module, const std::vector<Value>& arguments) {
  return unlift(to_exported_program(module, arguments));
}

}  // namespace umbra::jit
