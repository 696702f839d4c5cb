// Symbols, handles, substitution and evaluation.
#include "umbra/sym/shape_env.h"

#include "core/low_numbers.h"
#include "sym/low_numbers.h"
#include "sym/observed.h"
#include "sym/rename.h"
#include "sym/source_hash.h"
#include "sym/tables.h"
#include "umbra/core/error.h"
#include "umbra/sym/print.h"
#include "umbra/sym/walk.h"

namespace umbra::sym {

// ---- bindings
void Bindings::set(const Expression* symbol, int64_t value) {
  if (symbol->symbol_index() >= values_.size()) values_.resize(symbol->symbol_index() + 1);
  values_[symbol->symbol_index()] = Number{Type::Int, value, 0};
}

void Bindings::set(const Expression* symbol, double value) {
  if (symbol->symbol_index() >= values_.size()) values_.resize(symbol->symbol_index() + 1);
  values_[symbol->symbol_index()] = Number{Type::Float, 0, value};
}

const Number* Bindings::find(const Expression* symbol) const {
  uint32_t index = symbol->symbol_index();
  return index < values_.size() && values_[index] ? &*values_[index] : nullptr;
}

// ---- symbols
void rename_symbol(ShapeEnv& env, const Expression* symbol, std::string name) {
  const_cast<Symbol&>(env.symbol(symbol)).name = std::move(name);  // the environment's own, which is not const here
}

ShapeEnv::ShapeEnv(ShapeEnvOptions options) : options_(options), tables_(make_counted<Tables>()), table_(*this) {}
ShapeEnv::~ShapeEnv() { forget_observed(*this); }

void ShapeEnv::add_source(const Expression* symbol, const std::string& source) {
  symbols_[symbol->symbol_index()].sources.push_back(source);
}

void ShapeEnv::add_use(const Expression* symbol, DimUse use) {
  symbols_[symbol->symbol_index()].uses.push_back(std::move(use));
}

const Expression* ShapeEnv::new_symbol(Symbol symbol, const Number* hint) {
  auto index = static_cast<uint32_t>(symbols_.size());
  symbol.initial = symbol.range;
  bool backed = symbol.backed;
  symbols_.push_back(std::move(symbol));
  auto* node = const_cast<Expression*>(table_.symbol(index));
  node->unbacked_ = !backed;
  if (hint) {
    node->has_hint_ = true;
    if (hint->type == Type::Float) node->hint_real_ = hint->real;
    else node->hint_integer_ = hint->integer;
  }
  symbols_.back().expression = node;
  tables_->names.emplace(symbols_.back().name, node);
  return node;
}

std::string ShapeEnv::symbol_name(const std::string& source) {
  if (options_.naming == Naming::Sequential) return "s" + std::to_string(backed_count_++);
  // The next number that is free. Those of sources are below 100; behind them so many are known to be taken.
  constexpr uint32_t kOfSources = 100;
  uint32_t number = source_number(source);
  while (tables_->names.count("s" + std::to_string(number)))
    if (++number == kOfSources) number += backed_count_;
  if (number >= kOfSources) backed_count_ = number - kOfSources + 1;
  return "s" + std::to_string(number);
}

SymInt ShapeEnv::create_symbol(int64_t hint, const std::string& source, const SymbolOptions& options) {
  if (options.range && !options.range->contains(hint)) {
    Range shown = options.range->upper < 2 ? *options.range : options.range->intersect({2});
    fail<ConstraintViolationError>(hint, " not in range ", to_string(shown));
  }
  if (options.policy == Policy::Static) return hint;
  if (options_.specialize_zero_one && !options.keep_zero_one && (hint == 0 || hint == 1)) {
    if (!options.dim.empty() || options.marked_dynamic) specialized_dims_.push_back({options.dim, source, hint});
    return hint;
  }
  bool duck = options.policy == Policy::Duck && options_.duck_shape && options.dim.empty() && options.size;
  if (duck) {
    if (auto known = tables_->duck.find(hint); known != tables_->duck.end()) {
      add_source(known->second, source);
      return SymInt(known->second);
    }
  }
  Symbol symbol;
  symbol.name = symbol_name(source.empty() ? options.dim : source);
  symbol.positive = options.size && hint >= 0;
  symbol.promised = options.range;
  symbol.dim = options.dim;
  symbol.marked_dynamic = options.marked_dynamic;
  if (!source.empty()) symbol.sources.push_back(source);
  if (options.size) symbol.range.lower = options_.specialize_zero_one ? 2 : 0;
  if (options.range) {
    // The program is captured for sizes of two and more, whatever smaller ones the Dim promises.
    Range both = options.range->intersect(symbol.range);
    symbol.range = both.contains(hint) ? both : *options.range;
    // Dim(min=1, max=2): a range of one value would make a number of the symbol.
    if (symbol.range.is_point() && !options.range->is_point()) ++symbol.range.upper;
  }
  Number number{Type::Int, hint, 0};
  const Expression* expression = new_symbol(std::move(symbol), &number);
  if (duck) tables_->duck.emplace(hint, expression);
  return SymInt(expression);
}

SymInt ShapeEnv::create_unbacked(Range range, bool size_like) {
  Symbol symbol;
  symbol.name = "u" + std::to_string(unbacked_count_++);
  symbol.backed = false;
  symbol.size_like = size_like;
  symbol.range = size_like ? range.intersect({0}) : range;
  return SymInt(new_symbol(std::move(symbol), nullptr));
}

SymFloat ShapeEnv::create_unbacked_float() {
  Symbol symbol;
  do symbol.name = "zuf" + std::to_string(unbacked_float_count_++);
  while (tables_->names.count(symbol.name));
  symbol.backed = false;
  symbol.type = Type::Float;
  return SymFloat(new_symbol(std::move(symbol), nullptr));
}

SymBool ShapeEnv::create_unbacked_bool() { return sym_eq(create_unbacked({0, 1}), 1); }

const Expression* ShapeEnv::declare_symbol(std::string_view name, bool positive, std::optional<int64_t> hint,
                                           Range range) {
  if (const Expression* known = find_symbol(name)) return known;
  Symbol symbol;
  symbol.name = std::string(name);
  bool floating = name.starts_with("zuf") || name.starts_with("zf");
  symbol.backed = !name.starts_with('u') && !name.starts_with("zuf");
  if (floating) {
    symbol.type = Type::Float;
    return new_symbol(std::move(symbol), nullptr);
  }
  symbol.positive = positive;
  symbol.range = positive ? range.intersect({1}) : range;
  if (positive && hint && *hint >= 2 &&
      range.lower < 2) {  // as where the program was captured, for a Dim of that range
    symbol.range = range.intersect({2});
    symbol.promised = range;
    symbol.dim = symbol.name;
  }
  Number number{Type::Int, hint.value_or(0), 0};
  return new_symbol(std::move(symbol), hint ? &number : nullptr);
}

const Expression* ShapeEnv::find_symbol(std::string_view name) const {
  auto known = tables_->names.find(std::string(name));
  return known == tables_->names.end() ? nullptr : known->second;
}

void ShapeEnv::mark_size_like(SymInt value) {
  if (!value.is_symbolic()) return;
  const Expression* a = simplify(expression(value));
  if (a->is(Kind::Symbol) && a->unbacked()) symbols_[a->symbol_index()].size_like = true;
  sym_bool(table_.relation(Kind::Le, table_.integer(0), a)).expect_true("");
}

// ---- handles
const Expression* ShapeEnv::own(const SymNode* node) const {
  auto* expression = static_cast<const Expression*>(node);
  check(&expression->env() == this, "symbolic numbers of two different ShapeEnvs cannot be combined");
  return expression;
}

const Expression* ShapeEnv::expression(SymInt value) {
  if (!value.is_symbolic()) return table_.integer(value.value());
  // A number is the same in every environment.
  auto* given = static_cast<const Expression*>(value.node());
  return given->is(Kind::Integer) ? table_.integer(given->integer()) : own(given);
}
const Expression* ShapeEnv::expression(const SymFloat& value) {
  return value.is_symbolic() ? own(value.node()) : table_.real(value.value());
}
const Expression* ShapeEnv::expression(const SymBool& value) {
  return value.is_symbolic() ? own(value.node()) : table_.boolean(value.value());
}

SymInt ShapeEnv::sym_int(const Expression* a) {
  if (!a->is(Kind::Integer)) return SymInt(a);
  // A number that a SymInt cannot hold stays an expression.
  if (!fits_int64(a->integer()) || !SymInt::can_hold(static_cast<int64_t>(a->integer()))) return SymInt(a);
  return static_cast<int64_t>(a->integer());
}
SymInt plain_number(int64_t value) {
  if (SymInt::can_hold(value)) return value;
  static thread_local IntrusivePtr<ShapeEnv> constants = make_counted<ShapeEnv>();
  return ShapeEnv::sym_int(constants->table().integer(value));
}
namespace {
[[maybe_unused]] const bool low_numbers_are_expressions = (make_low_number = plain_number, true);

SymBool hold_in_env(SymOp op, SymInt a, SymInt b) {
  return static_cast<const Expression*>((a.is_symbolic() ? a : b).node())->env().hold(op, a, b);
}
[[maybe_unused]] const bool comparisons_are_held = (hold_comparison = hold_in_env, true);
}  // namespace

SymFloat ShapeEnv::sym_float(const Expression* a) { return a->is(Kind::Float) ? SymFloat(a->real()) : SymFloat(a); }
SymBool ShapeEnv::sym_bool(const Expression* a) { return a->is(Kind::Boolean) ? SymBool(a->truth()) : SymBool(a); }

// ---- rewriting
namespace {
/// Kinds whose normal form depends on ranges, and which may therefore become simpler as more is known.
bool depends_on_ranges(Kind kind) {
  return kind == Kind::Min || kind == Kind::Max || kind == Kind::FloorDiv || kind == Kind::Mod || kind == Kind::Where;
}
}  // namespace

/// What the expression is now known to be, if that has been found out since the last fact; null if not.
const Expression* ShapeEnv::simplified(const Expression* a) const {
  if (version_ == 1 || a->is_number() || a->is(Kind::Boolean)) return a;
  if (a->is(Kind::Symbol) && !symbols_[a->symbol_index()].replacement) return a;
  return a->simplified_version_ == version_ ? a->simplified_ : nullptr;
}

/// One expression, when its parts, or what stands for a symbol, have been simplified.
const Expression* ShapeEnv::simplify_node(const Expression* a) {
  if (a->is(Kind::Symbol)) return simplified(symbols_[a->symbol_index()].replacement);
  SmallVector<const Expression*, 8> args;
  bool changed = depends_on_ranges(a->kind());
  for (const Expression* arg : a->args()) {
    args.push_back(simplified(arg));
    changed |= args.back() != arg;
  }
  const Expression* result = changed ? table_.remake(a, args) : a;
  if (!tables_->bounds.empty())
    if (auto bound = tables_->bounds.find(result); bound != tables_->bounds.end() && bound->second.is_point())
      result = table_.integer(bound->second.lower);
  return result;
}

const Expression* ShapeEnv::simplify(const Expression* a) {
  if (const Expression* known = simplified(a)) return known;
  DivisorScope as_is(table_, false);  // what is kept for longer than a question keeps its divisions
  // Symbols are replaced by expressions of other symbols, and so on: all that is pending stands on one list.
  SmallVector<const Expression*, 16> pending = {a};
  while (!pending.empty()) {
    const Expression* top = pending.back();
    size_t before = pending.size();
    if (simplified(top)) {
      pending.pop_back();
      continue;
    }
    if (top->is(Kind::Symbol)) {
      if (const Expression* by = symbols_[top->symbol_index()].replacement; !simplified(by)) pending.push_back(by);
    }
    for (const Expression* arg : top->args())
      if (!simplified(arg)) pending.push_back(arg);
    if (pending.size() != before) continue;
    pending.pop_back();
    top->simplified_ = simplify_node(top);
    top->simplified_version_ = version_;
  }
  return simplified(a);
}

SymInt ShapeEnv::simplify(SymInt value) { return value.is_symbolic() ? sym_int(simplify(expression(value))) : value; }

const Expression* ShapeEnv::substitute(const Expression* a,
                                       const std::function<const Expression*(const Expression*)>& symbol) {
  return rebuild(a, table_, [&](const Expression* atom) { return atom->is(Kind::Symbol) ? symbol(atom) : atom; });
}

const Expression* ShapeEnv::translate(const Expression* a,
                                      const std::function<const Expression*(const Expression*)>& symbol) {
  return rebuild(a, table_, [&](const Expression* atom) -> const Expression* {
    if (atom->is(Kind::Symbol)) return symbol(atom);
    if (atom->is(Kind::Integer)) return table_.integer(atom->integer());
    return atom->is(Kind::Float) ? table_.real(atom->real()) : table_.boolean(atom->truth());
  });
}

namespace {
/// The value of a node from those of its arguments, which `of` gives.
template <class Of> std::optional<Number> value_of_node(const Expression* a, Of of) {
  SmallVector<Number, 8> values;
  for (const Expression* arg : a->args()) {
    std::optional<Number> value = of(arg);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  Number result;
  if (!evaluate_node(*a, values, result)) return std::nullopt;
  return result;
}
}  // namespace

std::optional<Number> ShapeEnv::evaluate(const Expression* a, const Bindings& bindings) const {
  constexpr uint32_t kShallow = 4;  // what is this small is quicker computed twice than looked up
  if (a->is(Kind::Symbol)) {
    if (const Number* bound = bindings.find(a)) return *bound;
    // A symbol that is known to be another's function is bound through it.
    const Expression* by = symbols_[a->symbol_index()].replacement;
    return by ? evaluate(by, bindings) : std::nullopt;
  }
  if (a->depth() <= kShallow) return value_of_node(a, [&](const Expression* arg) { return evaluate(arg, bindings); });
  std::unordered_map<const Expression*, std::optional<Number>> values;
  auto of = [&](const Expression* part) {
    return part->depth() <= kShallow ? evaluate(part, bindings) : values.at(part);
  };
  bottom_up(
      a, [&](const Expression* part) { return part->depth() > kShallow && !values.count(part); },
      [&](const Expression* part) { values.emplace(part, value_of_node(part, of)); });
  return values.at(a);
}

std::optional<int64_t> ShapeEnv::evaluate(SymInt value, const Bindings& bindings) const {
  if (!value.is_symbolic()) return value.value();
  std::optional<Number> number = evaluate(static_cast<const Expression*>(value.node()), bindings);
  if (!number || !fits_int64(number->integer)) return std::nullopt;
  return static_cast<int64_t>(number->integer);
}

}  // namespace umbra::sym
