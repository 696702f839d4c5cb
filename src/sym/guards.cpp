// Questions: memoised operations, guards, run-time assertions, and the check of inputs against guards.
#include "umbra/core/error.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

constexpr size_t kMemoSize = 2048;

size_t memo_index(SymOp op, SymInt a, SymInt b) {
  uint64_t hash = static_cast<uint64_t>(a.raw()) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 31) ^ static_cast<uint64_t>(b.raw())) * 0xff51afd7ed558ccdu +
         static_cast<uint64_t>(op) * 0x9fb21c651e98df25u;
  return (hash ^ (hash >> 33)) & (kMemoSize - 1);
}

}  // namespace

// ---- operations seen before
ShapeEnv::MemoEntry* ShapeEnv::find_memo(SymOp op, SymInt a, SymInt b) {
  if (memo_.empty()) memo_.resize(kMemoSize);
  size_t at = memo_index(op, a, b);
  for (size_t slot : {at, at ^ 1}) {
    MemoEntry& entry = memo_[slot];
    if (entry.version == version_ && entry.a == a.raw() && entry.b == b.raw() && entry.op == op) return &entry;
  }
  return nullptr;
}

void ShapeEnv::remember(SymOp op, SymInt a, SymInt b, int64_t result) {
  size_t at = memo_index(op, a, b);
  if (memo_[at].version == version_) memo_[at ^ 1] = memo_[at];
  memo_[at] = {a.raw(), b.raw(), result, op, version_};
}

void ShapeEnv::check_same_env(SymInt a, SymInt b) const {
  bool same = (!a.is_symbolic() || &static_cast<const Expression*>(a.node())->env() == this) &&
              (!b.is_symbolic() || &static_cast<const Expression*>(b.node())->env() == this);
  check(same, "symbolic sizes of two different ShapeEnvs cannot be combined");
}

SymInt ShapeEnv::int_binary(SymOp op, SymInt a, SymInt b) {
  if (const MemoEntry* entry = find_memo(op, a, b)) return SymInt::from_raw(entry->result);
  check_same_env(a, b);
  const Expression* x = simplify(expression(a));
  const Expression* y = simplify(expression(b));
  const Expression* both[] = {x, y};
  const Expression* result = nullptr;
  switch (op) {
    case SymOp::Add: result = table_.add(x, y); break;
    case SymOp::Sub: result = table_.subtract(x, y); break;
    case SymOp::Mul: result = table_.multiply(x, y); break;
    case SymOp::FloorDiv: result = table_.floor_divide(x, y); break;
    case SymOp::Mod: result = table_.modulo(x, y); break;
    case SymOp::Pow: result = table_.power(x, y); break;
    case SymOp::Min: result = table_.extremum(Kind::Min, Terms(both, 2)); break;
    case SymOp::Max: result = table_.extremum(Kind::Max, Terms(both, 2)); break;
    default: fail<Error>("not an operation on two integers");
  }
  SymInt answer = sym_int(simplify(result));
  remember(op, a, b, answer.raw());
  return answer;
}

SymBool ShapeEnv::compare(SymOp op, SymInt a, SymInt b) {
  if (op == SymOp::Gt || op == SymOp::Ge) {
    std::swap(a, b);
    op = op == SymOp::Gt ? SymOp::Lt : SymOp::Le;
  }
  // A bool is kept like an int: 0, 1, or a node.
  auto decode = [](int64_t raw) {
    return raw == 0 || raw == 1 ? SymBool(raw == 1) : SymBool(reinterpret_cast<const Expression*>(raw));
  };
  if (const MemoEntry* entry = find_memo(op, a, b)) return decode(entry->result);
  check_same_env(a, b);
  Kind kind = op == SymOp::Eq ? Kind::Eq : op == SymOp::Ne ? Kind::Ne : op == SymOp::Lt ? Kind::Lt : Kind::Le;
  const Expression* condition = table_.relation(kind, simplify(expression(a)), simplify(expression(b)));
  int answer = known(condition);
  int64_t result = answer >= 0 ? answer : static_cast<int64_t>(reinterpret_cast<intptr_t>(condition));
  remember(op, a, b, result);
  return decode(result);
}

// ---- answers
void ShapeEnv::record(const Expression* condition) {
  if (!frozen_) guards_.push_back({condition, current_location()});
  learn(condition);
}

bool ShapeEnv::guard_bool(const Expression* condition) {
  if (int answer = known(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  if (int answer = known(simpler); answer >= 0) return answer == 1;
  if (!simpler->has_hint()) fail_data_dependent(simpler);
  bool holds = simpler->hint_int() != 0;
  if (frozen_) return holds;
  record(holds ? simpler : table_.logical_not(simpler));
  condition->answer_ = holds;
  return holds;
}

bool ShapeEnv::guard_or(const Expression* condition, bool fallback) {
  if (int answer = known(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  if (int answer = known(simpler); answer >= 0) return answer == 1;
  if (simpler->has_hint()) return guard_bool(simpler);
  if (simpler->is_relation() && simpler->arg(0)->type() == Type::Int)
    if (int answer = known_relation(simpler, true); answer >= 0) return answer == 1;
  return fallback;
}

int64_t ShapeEnv::guard_int(const Expression* a) {
  const Expression* simpler = simplify(a);
  if (simpler->is(Kind::Integer)) return simpler->integer();
  if (Range known = range(simpler); known.is_point()) return known.lower;
  if (!simpler->has_hint()) fail_data_dependent(simpler);
  int64_t value = simpler->hint_int();
  if (!frozen_) record(table_.relation(Kind::Eq, simpler, table_.integer(value)));
  return value;
}

double ShapeEnv::guard_float(const Expression* a) {
  const Expression* simpler = simplify(a);
  if (simpler->is(Kind::Float)) return simpler->real();
  if (!simpler->has_hint()) fail_data_dependent(simpler);
  double value = simpler->hint_float();
  if (!frozen_) record(table_.relation(Kind::Eq, simpler, table_.real(value)));
  return value;
}

bool ShapeEnv::expect_true(const Expression* condition, const char* message) {
  if (int answer = known(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  if (int answer = known(simpler); answer >= 0) return answer == 1;
  if (simpler->has_hint()) return guard_bool(simpler);
  if (frozen_) return true;
  runtime_asserts_.push_back({simpler, message ? message : "", current_location()});
  learn(simpler);
  condition->answer_ = 1;
  return true;
}

void ShapeEnv::fail_data_dependent(const Expression* a) {
  std::string text = to_text(a), size_like;
  for (const Expression* symbol : free_symbols(a))
    if (symbols_[symbol->symbol_index()].size_like)
      size_like += (size_like.empty() ? "" : ", ") + symbols_[symbol->symbol_index()].name;
  if (size_like.empty()) size_like = "none";
  std::string head = a->type() == Type::Bool ? "Could not guard on data-dependent expression "
                     : a->type() == Type::Float
                         ? "Could not extract specialized float from data-dependent expression "
                         : "Could not extract specialized integer from data-dependent expression ";
  std::string message = head + text + " (unhinted: " + text + ").  (Size-like symbols: " + size_like + ")", advice;
  if (a->type() == Type::Bool) {
    auto name = [this](const Expression* symbol) { return symbols_[symbol->symbol_index()].name; };
    advice =
        "The branch depends on a value that only the run will tell. To fix the error, insert one of the following "
        "checks before this call:\n  1. torch._check(" +
        to_python(a, name) + ")\n  2. torch._check(" + to_python(table_.logical_not(a), name) + ")\n" +
        "or let the program decide when it runs, with torch.cond. (In C++: SymBool::expect_true and cond.)\n";
  } else {
    advice = "The value is only known when the program runs; keep it symbolic, or fix it with torch._check(" + text +
             " == ...).\n";
  }
  throw GuardOnDataDependentSymNode(message, advice);
}

// ---- guards over inputs
namespace {

std::string source_text(const Symbol& symbol) {
  if (!symbol.sources.empty()) return symbol.sources.front();
  return symbol.dim.empty() ? symbol.name : symbol.dim;
}

std::string range_text(const std::string& source, const Range& range) {
  std::string text;
  if (range.lower != kMinusInfinity) text = std::to_string(range.lower) + " <= " + source;
  if (range.upper == kInfinity) return text;
  return (text.empty() ? "" : text + " and ") + source + " <= " + std::to_string(range.upper);
}

}  // namespace

std::vector<std::string> ShapeEnv::guard_texts() const {
  std::vector<std::string> texts;
  for (const Symbol& symbol : symbols_)
    for (size_t i = 1; i < symbol.sources.size(); ++i) texts.push_back(symbol.sources[i] + " == " + symbol.sources[0]);
  auto name = [this](const Expression* symbol) { return source_text(symbols_[symbol->symbol_index()]); };
  for (const Guard& guard : guards_) texts.push_back(to_python(guard.condition, name));
  return texts;
}

/// Roots of derived Dims have no input of their own; their values follow from the inputs derived from them.
void ShapeEnv::bind_roots(Bindings& bindings) const {
  for (const Symbol& symbol : symbols_) {
    const Number* value = symbol.declared ? bindings.find(symbol.expression) : nullptr;
    if (!value) continue;
    Linear linear = decompose(symbol.declared);
    if (!linear.form || !linear.form->is(Kind::Symbol) || bindings.find(linear.form)) continue;
    bindings.set(linear.form, floor_divide(value->integer - linear.constant, linear.scale));
  }
}

std::optional<std::string> ShapeEnv::failing_guard(
    const std::function<int64_t(const std::string& source)>& value_of) const {
  Bindings bindings;
  for (const Symbol& symbol : symbols_) {
    if (!symbol.backed || symbol.sources.empty()) continue;
    int64_t value = value_of(symbol.sources.front());
    for (const std::string& source : symbol.sources)
      if (value_of(source) != value) return source + " == " + symbol.sources.front();
    Range allowed = symbol.promised.value_or(symbol.initial);
    if (!allowed.contains(value)) return range_text(symbol.sources.front(), allowed);
    bindings.set(symbol.expression, value);
  }
  bind_roots(bindings);
  auto name = [this](const Expression* symbol) { return source_text(symbols_[symbol->symbol_index()]); };
  for (const Symbol& symbol : symbols_) {
    const Number* value = symbol.declared && symbol.backed ? bindings.find(symbol.expression) : nullptr;
    if (!value) continue;
    std::optional<Number> declared = evaluate(symbol.declared, bindings);
    if (!declared || declared->integer != value->integer)
      return source_text(symbol) + " == " + to_python(symbol.declared, name);
  }
  for (const Guard& guard : guards_) {
    std::optional<Number> holds = evaluate(guard.condition, bindings);
    if (!holds || holds->integer == 0) return to_python(guard.condition, name);
  }
  return std::nullopt;
}

}  // namespace umbra::sym
