// Questions: memoised operations, guards, run-time assertions, and the check of inputs against guards.
#include <algorithm>
#include <unordered_set>

#include "sym/observed.h"
#include "sym/rely.h"
#include "umbra/core/call_site.h"
#include "umbra/core/error.h"
#include "umbra/sym/draft.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"
#include "umbra/sym/walk.h"

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

ShapeEnv::MemoEntry& ShapeEnv::remember(SymOp op, SymInt a, SymInt b, int64_t result) {
  size_t at = memo_index(op, a, b);
  if (memo_[at].version == version_) memo_[at ^ 1] = memo_[at];
  memo_[at] = {a.raw(), b.raw(), result, op, MemoEntry::Standing::Settled, version_};
  return memo_[at];
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
    case SymOp::BitAnd: result = table_.bitwise(Kind::BitAnd, x, y); break;
    case SymOp::BitOr: result = table_.bitwise(Kind::BitOr, x, y); break;
    case SymOp::BitXor: result = table_.bitwise(Kind::BitXor, x, y); break;
    default: fail<Error>("not an operation on two integers");
  }
  SymInt answer = sym_int(simplify(result));
  remember(op, a, b, answer.raw());
  return answer;
}

namespace {
const Expression* condition_at(int64_t raw) { return reinterpret_cast<const Expression*>(raw); }
/// A bool is kept like an int: 0, 1, or a node.
SymBool decode(int64_t raw) { return raw == 0 || raw == 1 ? SymBool(raw == 1) : SymBool(condition_at(raw)); }
}  // namespace

const Expression* ShapeEnv::relation(SymOp op, SymInt a, SymInt b) {
  const Expression* x = simplify(expression(a));
  const Expression* y = simplify(expression(b));
  switch (op) {
    case SymOp::Eq: return table_.relation(Kind::Eq, x, y);
    case SymOp::Ne: return table_.relation(Kind::Ne, x, y);
    case SymOp::Lt: return table_.relation(Kind::Lt, x, y);
    case SymOp::Le: return table_.relation(Kind::Le, x, y);
    case SymOp::Gt: return table_.relation(Kind::Lt, y, x, true);
    default: return table_.relation(Kind::Le, y, x, true);
  }
}

ShapeEnv::MemoEntry& ShapeEnv::compare_entry(SymOp op, SymInt a, SymInt b) {
  if (MemoEntry* entry = find_memo(op, a, b)) return *entry;
  check_same_env(a, b);
  const Expression* condition = relation(op, a, b);
  int answer = known(condition);
  MemoEntry& entry =
      remember(op, a, b, answer >= 0 ? answer : static_cast<int64_t>(reinterpret_cast<intptr_t>(condition)));
  if (answer >= 0 && condition->is_relation()) entry.standing = MemoEntry::Standing::Unexamined;
  return entry;
}

SymBool ShapeEnv::answer_of(const MemoEntry& entry) {
  if (entry.standing == MemoEntry::Standing::Held) [[unlikely]]
    return known(condition_at(entry.result)) == 1;
  return decode(entry.result);
}

SymBool ShapeEnv::compare(SymOp op, SymInt a, SymInt b) { return answer_of(compare_entry(op, a, b)); }

SymBool ShapeEnv::hold(SymOp op, SymInt a, SymInt b) {
  MemoEntry& entry = compare_entry(op, a, b);
  if (entry.standing == MemoEntry::Standing::Unexamined && !quiet()) {
    const Expression* condition = relation(op, a, b);
    entry.standing = MemoEntry::Standing::Settled;
    if (!follows_without_assumptions(condition)) {
      entry.standing = MemoEntry::Standing::Held;
      entry.result = static_cast<int64_t>(reinterpret_cast<intptr_t>(condition));
      condition->hold();
    }
  }
  return decode(entry.result);
}

bool ShapeEnv::decide(SymOp op, SymInt a, SymInt b, const void* asker) {
  MemoEntry& entry = compare_entry(op, a, b);
  if (entry.standing != MemoEntry::Standing::Settled && is_user_code(asker)) examine(entry);
  return answer_of(entry).guard_bool();
}

void rely_on(SymOp op, SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return;
  const SymNode* node = a.is_symbolic() ? a.node() : b.node();
  static_cast<const Expression*>(node)->env().rely_on(op, a, b);
}

void ShapeEnv::rely_on(SymOp op, SymInt a, SymInt b) {
  MemoEntry& entry = compare_entry(op, a, b);
  if (entry.standing != MemoEntry::Standing::Settled) examine(entry);
}

void ShapeEnv::examine(MemoEntry& entry) {
  if (quiet()) return;
  const Expression* condition = relation(entry.op, SymInt::from_raw(entry.a), SymInt::from_raw(entry.b));
  if (entry.standing == MemoEntry::Standing::Unexamined) entry.standing = MemoEntry::Standing::Settled;
  rely_on(known(condition) == 0 ? table_.logical_not(condition) : condition);
}

/// An answer that the program goes by, and that holds only for sizes of two and more, becomes an assumption. One on
/// what only the run tells cannot be asked of inputs; the sizes that it follows from can.
void ShapeEnv::rely_on(const Expression* condition) {
  if (quiet() || condition->is(Kind::Boolean) || follows_without_assumptions(condition)) return;
  if (condition->unbacked()) {
    for (const Expression* one : free_symbols(condition)) rely_on_least(*this, symbol(one));
    return;
  }
  for (const std::vector<Guard>* conditions : {&guards_, &assumptions_})
    for (const Guard& guard : *conditions)
      if (guard.condition == condition) return;
  assumptions_.push_back({condition, current_location()});
}

// ---- answers
void ShapeEnv::record(const Expression* condition) {
  if (DeferGuards::defers(condition)) {  // asked again it holds, but sizes are not taken to be as it says
    runtime_asserts_.push_back({condition, "", current_location()});
    condition->answer_ = 1;
    table_.logical_not(condition)->answer_ = 0;
    return;
  }
  guards_.push_back({condition, current_location()});
  learn(condition);
}

namespace {
bool rests_on_floats(const Expression* relation) { return relation->arg(0)->type() == Type::Float; }

/// Whether the condition is, or has a part that is, a relation which is relied on where its answer is asked.
bool is_relied_on_late(const Expression* condition) {
  auto late = [](const Expression* relation) { return rests_on_floats(relation) || relation->is_unasked(); };
  if (condition->is_relation()) return late(condition);
  bool found = false;
  std::unordered_set<const Expression*> seen;
  bottom_up(
      condition, [&](const Expression* part) { return !found && part->type() == Type::Bool && !seen.count(part); },
      [&](const Expression* part) {
        seen.insert(part);
        found |= part->is_relation() && late(part);
      });
  return found;
}

/// What the example says of a question that has no answer yet, where a draft is made or real tensors are carried along.
std::optional<Number> example_value(ShapeEnv& env, const Expression* a) {
  std::optional<Number> value = Draft::current() ? Draft::current()->value(env, a) : std::nullopt;
  return value ? value : observed(a);
}

/// The program goes by a fact that only the example tells: it asserts it when it runs, and a draft says so.
void assert_of_example(ShapeEnv& env, const Expression* fact) {
  Draft* draft = Draft::current();
  if (draft) draft->note({to_text(fact), current_location()});
  env.expect_true(fact, draft ? nullptr : "");
}

}  // namespace

/// What is known of a condition that the program goes by. Comparisons of integers are relied on where they are made;
/// those of floats, and those that the program was given unasked, are here.
int ShapeEnv::known_and_relied_on(const Expression* condition) {
  int answer = known(condition);
  if (answer < 0 || !is_relied_on_late(condition)) return answer;
  rely_on(answer ? condition : table_.logical_not(condition));
  if (condition->is_unasked() && !quiet()) condition->held_ = Expression::Held::Asked;
  return answer;
}

bool ShapeEnv::guard_bool(const Expression* condition) {
  if (int answer = known_and_relied_on(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  if (int answer = known_and_relied_on(simpler); answer >= 0) return answer == 1;
  if (!simpler->has_hint()) {
    std::optional<Number> value = example_value(*this, simpler);
    if (!value) fail_unknown(simpler);
    bool holds = value->integer != 0;
    assert_of_example(*this, holds ? simpler : table_.logical_not(simpler));
    return holds;
  }
  bool holds = simpler->hint_integer_ != 0;
  if (quiet()) return holds;
  record(holds ? simpler : table_.logical_not(simpler));
  condition->answer_ = holds;
  return holds;
}

bool ShapeEnv::guard_or(const Expression* condition, bool fallback) {
  if (int answer = known_and_relied_on(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  if (int answer = known_and_relied_on(simpler); answer >= 0) return answer == 1;
  return simpler->has_hint() ? guard_bool(simpler) : fallback;
}

bool ShapeEnv::guard_size_oblivious(const Expression* condition) {
  if (int answer = known_and_relied_on(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  bool relation = simpler->is_relation() && simpler->arg(0)->type() == Type::Int && simpler->unbacked();
  if (int answer = relation ? known_relation(simpler, Sizes::AboveOne) : -1; answer >= 0) return answer == 1;
  return guard_bool(simpler);
}

int64_t ShapeEnv::guard_int(const Expression* a) {
  const Expression* simpler = simplify(a);
  if (simpler->has_hint()) to_int64(simpler->hint_integer_);  // refused before a guard is left
  return to_int64(guard_integer(simpler));
}

Integer ShapeEnv::guard_integer(const Expression* a) {
  const Expression* simpler = simplify(a);
  if (simpler->is(Kind::Integer)) return simpler->integer();
  if (Range known = range(simpler); known.is_point()) {
    rely_on(table_.relation(Kind::Eq, simpler, table_.integer(known.lower)));
    return known.lower;
  }
  if (!simpler->has_hint()) {
    std::optional<Number> value = example_value(*this, simpler);
    if (!value) fail_unknown(simpler);
    assert_of_example(*this, table_.relation(Kind::Eq, simpler, table_.integer(value->integer)));
    return value->integer;
  }
  Integer value = simpler->hint_integer_;
  if (!quiet()) record(table_.relation(Kind::Eq, simpler, table_.integer(value)));
  return value;
}

double ShapeEnv::guard_float(const Expression* a) {
  const Expression* simpler = simplify(a);
  if (simpler->is(Kind::Float)) return simpler->real();
  if (!simpler->has_hint()) {
    std::optional<Number> value = example_value(*this, simpler);
    if (!value) fail_unknown(simpler);
    assert_of_example(*this, table_.relation(Kind::Eq, simpler, table_.real(value->as_double())));
    return value->as_double();
  }
  double value = simpler->hint_float();
  if (!quiet()) record(table_.relation(Kind::Eq, simpler, table_.real(value)));
  return value;
}

bool ShapeEnv::expect_true(const Expression* condition, const char* message) {
  if (int answer = known_and_relied_on(condition); answer >= 0) return answer == 1;
  const Expression* simpler = simplify(condition);
  if (int answer = known_and_relied_on(simpler); answer >= 0) return answer == 1;
  if (simpler->has_hint()) return guard_bool(simpler);
  if (quiet()) return true;
  runtime_asserts_.push_back({simpler, message ? message : "", current_location()});
  learn(simpler);
  condition->answer_ = 1;
  return true;
}

/// Whether a part of the expression has no value for the example inputs since it divides by zero.
static bool divides_by_zero(const Expression* a) {
  std::unordered_set<const Expression*> seen;
  bool found = false;
  auto is_zero = [](const Expression* divisor) { return divisor->has_hint() && divisor->hint().as_double() == 0; };
  bottom_up(
      a, [&](const Expression* node) { return !seen.contains(node); },
      [&](const Expression* node) {
        seen.insert(node);
        bool divides = node->is(Kind::FloorDiv) || node->is(Kind::Mod) || node->is(Kind::IntTrueDiv) ||
                       node->is(Kind::FloatTrueDiv);
        found |= divides && is_zero(node->arg(1));
      });
  return found;
}

/// A question that the hints do not answer: some symbol has none, or the example's own value cannot be computed.
void ShapeEnv::fail_unknown(const Expression* a) {
  std::vector<const Expression*> symbols = free_symbols(a);
  auto hinted = [](const Expression* symbol) { return symbol->has_hint(); };
  if (!std::all_of(symbols.begin(), symbols.end(), hinted)) fail_data_dependent(a);
  check<ZeroDivisionError>(!divides_by_zero(a), "division by zero: ", to_text(a),
                           " has no value for the example inputs");
  fail<OverflowError>("overflow: the value of ", to_text(a), " for the example inputs does not fit 128 bits");
}

namespace {
/// The expression with the example's numbers for the symbols that have them.
std::string with_example(ShapeEnv& env, const Expression* a) {
  auto number = [&](const Expression* symbol) {
    bool integer = symbol->has_hint() && symbol->type() == Type::Int;
    return integer ? env.table().integer(symbol->hint().integer) : symbol;
  };
  try {
    return to_text(env.substitute(a, number));
  } catch (const ZeroDivisionError&) {
    return to_text(a);
  }
}
}  // namespace

void ShapeEnv::fail_data_dependent(const Expression* a) {
  std::string text = to_text(a), size_like;
  for (const Expression* symbol : free_symbols(a))
    if (symbols_[symbol->symbol_index()].size_like)
      size_like += (size_like.empty() ? "" : ", ") + symbols_[symbol->symbol_index()].name;
  if (size_like.empty()) size_like = "none";
  std::string message = a->type() == Type::Int ? "Could not extract specialized integer from data-dependent expression "
                                               : "Could not guard on data-dependent expression ";
  message += with_example(*this, a) + " (unhinted: " + text + ").  (Size-like symbols: " + size_like + ")";
  std::string advice;
  if (a->type() == Type::Bool) {
    auto name = [this](const Expression* symbol) { return symbols_[symbol->symbol_index()].name; };
    advice =
        "The branch depends on a value that only the run will tell. To fix the error, insert one of the following "
        "checks before this call:\n  1. torch._check(" +
        to_python(a, name) + ")\n  2. torch._check(" + to_python(table_.logical_not(a), name) + ")\n" +
        "or let the program decide when it runs, with torch.cond, or ask with guard_or_false, guard_or_true or\n"
        "statically_known_true, which have an answer without data. (In C++: SymBool::expect_true, cond and "
        "guard_or.)\n";
  } else {
    advice = "The value is only known when the program runs; keep it symbolic, or fix it with torch._check(" + text +
             " == ...).\nA branch on it is decided when the program runs with torch.cond (in C++: cond).\n";
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
  if (range.lower != kMinusInfinity) text = integer_text(range.lower) + " <= " + source;
  if (range.upper == kInfinity) return text;
  return (text.empty() ? "" : text + " and ") + source + " <= " + integer_text(range.upper);
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

std::vector<std::string> ShapeEnv::assumption_texts() const {
  std::vector<std::string> texts;
  auto name = [this](const Expression* symbol) { return source_text(symbols_[symbol->symbol_index()]); };
  for (const Guard& guard : assumptions_) texts.push_back(to_python(guard.condition, name));
  return texts;
}

/// Roots of derived Dims have no input of their own; their values follow from the inputs derived from them.
void ShapeEnv::bind_roots(Bindings& bindings) const {
  for (const Symbol& symbol : symbols_) {
    const Number* value = symbol.declared ? bindings.find(symbol.expression) : nullptr;
    if (!value) continue;
    Linear linear = decompose(symbol.declared);
    if (!linear.form || !linear.form->is(Kind::Symbol) || bindings.find(linear.form)) continue;
    bindings.set(linear.form, to_int64(floor_quotient(value->integer - linear.constant, linear.scale)));
  }
}

bool ShapeEnv::accepts(ArrayRef<std::pair<SymInt, int64_t>> sizes, bool numbers) const {
  Bindings bindings;
  for (const auto& [expected, actual] : sizes) {
    if (!expected.is_symbolic()) continue;
    const Expression* symbol = own(expected.node());
    if (!symbol->is(Kind::Symbol) || bindings.find(symbol)) continue;
    if (!symbols_[symbol->symbol_index()].initial.contains(actual)) return false;
    bindings.set(symbol, actual);
  }
  for (const auto& [expected, actual] : sizes) {
    if (!expected.is_symbolic() && !numbers) continue;
    std::optional<int64_t> value = evaluate(expected, bindings);
    if (!value || *value != actual) return false;
  }
  for (const std::vector<Guard>* conditions : {&guards_, &assumptions_})
    for (const Guard& guard : *conditions) {
      std::optional<Number> holds = evaluate(guard.condition, bindings);
      if (!holds || holds->integer == 0) return false;
    }
  return true;
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
  for (const std::vector<Guard>* conditions : {&guards_, &assumptions_})
    for (const Guard& guard : *conditions) {
      std::optional<Number> holds = evaluate(guard.condition, bindings);
      if (!holds || holds->integer == 0) return to_python(guard.condition, name);
    }
  return std::nullopt;
}

}  // namespace umbra::sym
