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

const Expression* expression_of(const Scalar& symbolic) {
  const SymNode* node = symbolic.is_bool()       ? symbolic.to_sym_bool().node()
                        : symbolic.is_floating() ? symbolic.to_sym_float().node()
                                                 : symbolic.to_sym_int().node();
  return static_cast<const Expression*>(node);
}

const Expression* symbol_of(const Scalar& scalar) {
  if (!scalar.is_symbolic()) return nullptr;
  const Expression* expression = expression_of(scalar);
  if (scalar.is_bool() && expression->is_relation()) expression = expression->arg(0);  // a bool that was read: u0 == 1
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
  else bindings.set(unbacked, value.is_bool() ? int64_t{value.to_bool()} : value.to_int());
  table.environments = table.values.size();
}

std::optional<Number> observed(const Expression* a) {
  if (a->has_hint()) return a->hint();
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

std::optional<Scalar> observed(const Scalar& value) {
  if (!value.is_symbolic()) return value;
  std::optional<Number> number = observed(expression_of(value));
  if (!number) return std::nullopt;
  if (value.is_bool()) return Scalar(number->integer != 0);
  return value.is_floating() ? Scalar(number->as_double()) : Scalar(static_cast<int64_t>(number->integer));
}

void forget_observed(const ShapeEnv& env) noexcept {
  Seen& table = seen();
  if (table.environments == 0) return;
  std::lock_guard lock(table.mutex);
  table.values.erase(&env);
  table.environments = table.values.size();
}

}  // namespace umbra::sym
