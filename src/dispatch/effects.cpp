#include "umbra/dispatch/effects.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "umbra/dispatch/operator.h"

namespace umbra {

namespace {

struct Effects {
  std::shared_mutex mutex;
  std::unordered_set<std::string> names = {"aten::_linalg_check_errors", "aten::_print"};
};
Effects& effects() {
  static auto* all = new Effects;  // asked while the process ends, too
  return *all;
}

bool has_aliases(const Schema& schema) {
  for (const SchemaArgument& a : schema.arguments)
    if (!a.alias.set.empty() || a.alias.write) return true;
  for (const SchemaReturn& r : schema.returns)
    if (!r.alias.set.empty()) return true;
  return false;
}

}  // namespace

void set_effect(const std::string& name, bool ordered) {
  std::unique_lock lock(effects().mutex);
  if (ordered) effects().names.insert(name);
  else effects().names.erase(name);
}

bool is_effectful(const std::string& name) {
  std::shared_lock lock(effects().mutex);
  return effects().names.contains(name);
}

bool has_effect(const Operator& op) { return is_effectful(op.name()) && !has_aliases(op.schema()); }

}  // namespace umbra
