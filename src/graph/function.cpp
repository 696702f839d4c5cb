#include "umbra/graph/function.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "graph/symbolic_functions.h"

namespace umbra::fx {

std::string_view Function::short_name() const {
  std::string_view text = name;
  return text.substr(text.rfind('.') + 1);
}

std::string Function::code_name() const {
  if (name.starts_with("torch.")) return name;
  if (name.starts_with("builtins.")) return std::string(short_name());
  // Other modules are not imported by generated code: it knows their functions by a name of its own.
  std::string out = name.starts_with("operator.") ? "_" + name : name;
  for (char& c : out)
    if (c == '.') c = '_';
  return out;
}

namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<std::string_view, std::unique_ptr<Function>> by_name;  // keys are the functions' own names

  Registry() {
    for (Function& f : symbolic_functions()) add(std::move(f));
  }
  Function& add(Function definition) {
    auto found = by_name.find(definition.name);
    if (found != by_name.end()) {
      // The name stays the same object: it is the key.
      found->second->format = std::move(definition.format);
      found->second->evaluate = std::move(definition.evaluate);
      found->second->has_side_effects = definition.has_side_effects;
      found->second->positional = std::move(definition.positional);
      return *found->second;
    }
    auto made = std::make_unique<Function>(std::move(definition));
    Function& result = *made;
    by_name.emplace(result.name, std::move(made));
    return result;
  }
};

Registry& registry() {
  static Registry* r = new Registry;  // never destroyed: graphs of static objects may outlive this file's
  return *r;
}

}  // namespace

const Function* find_function(std::string_view name) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  auto found = r.by_name.find(name);
  return found == r.by_name.end() ? nullptr : found->second.get();
}

Function& function(std::string_view name) {
  Registry& r = registry();
  {
    std::shared_lock lock(r.mutex);
    auto found = r.by_name.find(name);
    if (found != r.by_name.end()) return *found->second;
  }
  std::unique_lock lock(r.mutex);
  auto found = r.by_name.find(name);
  return found != r.by_name.end() ? *found->second : r.add({.name = std::string(name), .format = {}, .evaluate = {}});
}

Function& define_function(Function definition) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  return r.add(std::move(definition));
}

SymbolCallHook& symbol_call_hook() {
  static SymbolCallHook hook = nullptr;
  return hook;
}

}  // namespace umbra::fx
