#include "sym/observed.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace umbra::sym {

namespace {

// Few environments have any: a table beside them costs the others nothing.
struct Seen {
  std::mutex mutex;
  std::unordered_map<const ShapeEnv*, Bindings> values;
  std::atomic<size_t> environments = 0;
};
Seen& seen() {
  static Seen& table = *new Seen;
  return table;
}

const Expression* symbol_of(const Scalar& scalar) {
  if (!scalar.is_symbolic() || scalar.is_bool()) return nullptr;
  const SymNode* node = scalar.is_floating() ? scalar.to_sym_float().node() : scalar.to_sym_int().node();
  auto* expression = static_cast<const Expression*>(node);
  return expression->is(Kind::Symbol) && !expression->has_hint() ? expression : nullptr;
}

}  // namespace

void observe(const Scalar& symbol, const Scalar& value) {
  const Expression* unbacked = symbol_of(symbol);
  if (!unbacked || value.is_symbolic()) return;
  Seen& table = seen();
  std::lock_guard lock(table.mutex);
  Bindings& bindings = table.values[&unbacked->env()];
  if (unbacked->type() == Type::Float) bindings.set(unbacked, value.to_double());
  else bindings.set(unbacked, value.to_int());
  table.environments = table.values.size();
}

std::optional<Number> observed(const Expression* a) {
  Seen& table = seen();
  if (table.environments == 0) return std::nullopt;
  std::lock_guard lock(table.mutex);
  auto found = table.values.find(&a->env());
  if (found == table.values.end()) return std::nullopt;
  Bindings bindings = found->second;
  for (const Expression* symbol : free_symbols(a)) {
    if (!symbol->has_hint() && !bindings.find(symbol)) return std::nullopt;
    if (!symbol->has_hint()) continue;
    if (symbol->type() == Type::Float) bindings.set(symbol, symbol->hint_float());
    else bindings.set(symbol, symbol->hint_int());
  }
  return a->env().evaluate(a, bindings);
}

std::optional<int64_t> observed(SymInt value) {
  if (!value.is_symbolic()) return value.value();
  std::optional<Number> number = observed(static_cast<const Expression*>(value.node()));
  return number ? std::optional(static_cast<int64_t>(number->integer)) : std::nullopt;
}

void forget_observed(const ShapeEnv& env) noexcept {
  Seen& table = seen();
  if (table.environments == 0) return;
  std::lock_guard lock(table.mutex);
  table.values.erase(&env);
  table.environments = table.values.size();
}

}  // namespace umbra::sym
