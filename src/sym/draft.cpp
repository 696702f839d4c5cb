#include "umbra/sym/draft.h"

#include <utility>

namespace umbra::sym {

namespace {
thread_local Draft* g_current = nullptr;
thread_local bool g_deferred = false;
}  // namespace

Draft::Draft() : before_(std::exchange(g_current, this)) {}
Draft::~Draft() { g_current = before_; }
Draft* Draft::current() { return g_current; }
void Draft::note(DraftAnswer answer) { answers_.push_back(std::move(answer)); }

std::optional<Number> Draft::value(ShapeEnv& env, const Expression* a) const {
  Bindings all = values_;
  for (const Expression* symbol : free_symbols(a))
    if (symbol->has_hint() && symbol->type() == Type::Int) all.set(symbol, ShapeEnv::sym_int(symbol).hint());
  return env.evaluate(a, all);
}

DeferGuards::DeferGuards(bool deferred) : before_(std::exchange(g_deferred, deferred)) {}
DeferGuards::~DeferGuards() { g_deferred = before_; }

bool DeferGuards::defers(const Expression* condition) {
  if (!g_deferred) return false;
  bool simple = condition->is_relation();
  if (simple)
    for (const Expression* side : condition->args()) simple &= side->is(Kind::Symbol) || side->is(Kind::Integer);
  return !simple;
}

}  // namespace umbra::sym
