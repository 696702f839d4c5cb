// Symbolic numbers in graphs: an expression becomes calls of Python's operators on the sizes of inputs.
#include <unordered_set>

#include "capture/symbol_calls.h"
#include "umbra/capture/tracer.h"
#include "umbra/sym/affine.h"
#include "umbra/sym/print.h"
#include "umbra/sym/walk.h"

namespace umbra {

namespace {

const char* function_name(sym::Kind kind) {
  switch (kind) {
    case sym::Kind::Add: return "operator.add";
    case sym::Kind::Mul: return "operator.mul";
    case sym::Kind::Pow:
    case sym::Kind::PowByNatural:
    case sym::Kind::FloatPow: return "operator.pow";
    case sym::Kind::FloorDiv: return "operator.floordiv";
    case sym::Kind::Mod: return "operator.mod";
    case sym::Kind::BitAnd: return "operator.and_";
    case sym::Kind::BitOr: return "operator.or_";
    case sym::Kind::BitXor: return "operator.xor";
    case sym::Kind::Min: return "torch.sym_min";
    case sym::Kind::Max: return "torch.sym_max";
    case sym::Kind::IntTrueDiv:
    case sym::Kind::FloatTrueDiv: return "operator.truediv";
    case sym::Kind::ToFloat: return "torch.sym_float";
    case sym::Kind::FloorToInt: return "math.floor";
    case sym::Kind::CeilToInt: return "math.ceil";
    case sym::Kind::TruncToInt: return "math.trunc";
    case sym::Kind::RoundToInt:
    case sym::Kind::RoundDecimal: return "builtins.round";
    case sym::Kind::Sqrt: return "torch._sym_sqrt";
    case sym::Kind::Sin: return "torch._sym_sin";
    case sym::Kind::Cos: return "torch._sym_cos";
    case sym::Kind::Tan: return "torch._sym_tan";
    case sym::Kind::Sinh: return "torch._sym_sinh";
    case sym::Kind::Cosh: return "torch._sym_cosh";
    case sym::Kind::Tanh: return "torch._sym_tanh";
    case sym::Kind::Asin: return "torch._sym_asin";
    case sym::Kind::Acos: return "torch._sym_acos";
    case sym::Kind::Atan: return "torch._sym_atan";
    case sym::Kind::Log2: return "torch._sym_log2";
    case sym::Kind::Eq: return "operator.eq";
    case sym::Kind::Ne: return "operator.ne";
    case sym::Kind::Lt: return "operator.lt";
    case sym::Kind::Le: return "operator.le";
    case sym::Kind::And: return "operator.and_";
    case sym::Kind::Or: return "operator.or_";
    case sym::Kind::Not: return "torch.sym_not";
    case sym::Kind::Where: return "torch.sym_ite";
    default: return nullptr;
  }
}

/// -1 * a
bool is_negated(const sym::Expression* e) {
  return e->is(sym::Kind::Mul) && e->args().size() == 2 && e->arg(0)->is_integer(-1);
}

bool takes_all_at_once(sym::Kind kind) { return kind == sym::Kind::Where || kind == sym::Kind::Not; }

}  // namespace

Value symbol_value(const sym::Expression* e) {
  switch (e->type()) {
    case sym::Type::Int: return sym::ShapeEnv::sym_int(e);
    case sym::Type::Float: return sym::ShapeEnv::sym_float(e);
    default: return sym::ShapeEnv::sym_bool(e);
  }
}

fx::Argument SymbolCalls::compute(const sym::Expression* e) const {
  const char* name = function_name(e->kind());
  check(name, "a graph cannot compute the size ", e->to_string());
  if (sym::prints_flipped(e))  // `2 <= u0` is written as it is printed: u0 >= 2
    return call(e->is(sym::Kind::Le) ? "operator.ge" : "operator.gt", {part(e->arg(1)), part(e->arg(0))}, e);
  if (e->is(sym::Kind::Ne))  // as PyTorch has it, whose expressions know no other way
    return call("torch.sym_not", {part(e->env().table().relation(sym::Kind::Eq, e->arg(0), e->arg(1)))}, e);
  if (e->is(sym::Kind::Add) && e->args().size() == 2 && is_negated(e->arg(1)))
    return call("operator.sub", {part(e->arg(0)), part(e->arg(1)->arg(1))}, e);
  if (takes_all_at_once(e->kind()) || e->args().size() <= 2) {
    fx::Arguments arguments;
    for (const sym::Expression* a : e->args()) arguments.push_back(part(a));
    // A coefficient stands first in an expression, and last in the code of operators: `size * 2`.
    bool product = e->is(sym::Kind::Mul) && e->arg(0)->is(sym::Kind::Integer);
    bool sum = e->is(sym::Kind::Add) && e->arg(1)->is(sym::Kind::Integer);  // where it stands first, as sympy has it
    if (as_written ? sum : product) std::swap(arguments[0], arguments[1]);
    if (e->is(sym::Kind::RoundToInt)) arguments.push_back(fx::Argument());  // round(size, None), as PyTorch writes it
    return call(name, std::move(arguments), e);
  }
  // Sums, products, minima and the like of many terms, two at a time. Each step is known as what it computes: numbers
  // that are known as the same are one number.
  fx::Argument left = part(e->arg(0));
  const sym::Expression* so_far = e->arg(0);
  for (size_t i = 1; i < e->args().size(); ++i) {
    bool last = i + 1 == e->args().size();
    so_far = last ? e : e->env().table().make(e->kind(), {so_far, e->arg(i)});
    left = call(name, {left, part(e->arg(i))}, so_far);
  }
  return left;
}

fx::Node* Tracer::symbol_call(const fx::Function& function, fx::Arguments arguments, const sym::Expression* result) {
  fx::Node* node = graph().call(function, std::move(arguments));
  finish(node, symbol_value(result));
  if (result->type() == sym::Type::Int) symbols_[sym::ShapeEnv::sym_int(result).raw()] = node;
  else floats_[result] = node;
  return node;
}

/// The root of a derived Dim: where an input's size is 2*d + 1, d is (size - 1) // 2. Null where no input's size is of
/// that kind.
fx::Node* Tracer::derived_symbol(const sym::Expression* symbol) {
  const SymbolSource* best = nullptr;
  SymInt size;
  for (const auto& [raw, source] : sources_) {
    if (source.dim == SymbolSource::kNumel) continue;
    SymInt candidate = SymInt::from_raw(raw);
    std::optional<sym::Affine> affine = sym::affine_in(symbol->env().expression(candidate), symbol);
    if (!affine || affine->coefficient == 0) continue;
    // The first input, so that the graph is the same every time.
    auto place = [](const SymbolSource& s) { return std::pair(s.input->id(), s.dim); };
    if (best && place(*best) < place(source)) continue;
    best = &source;
    size = candidate;
  }
  if (!best) return nullptr;
  sym::ExpressionTable& table = symbol->env().table();
  sym::Affine affine = *sym::affine_in(symbol->env().expression(size), symbol);
  fx::Argument value = symbol_argument(size);
  if (affine.constant != 0) {
    const sym::Expression* scaled = table.multiply(table.integer(affine.coefficient), symbol);
    bool more = affine.constant > 0;
    int64_t offset = to_int64(more ? affine.constant : -affine.constant);
    value = symbol_call(fx::function(more ? "operator.sub" : "operator.add"), {value, offset}, scaled);
  }
  if (affine.coefficient != 1)
    value = symbol_call(fx::function("operator.floordiv"), {value, to_int64(affine.coefficient)}, symbol);
  return value.node();
}

void Tracer::note_symbol_call(const fx::Function& function, std::vector<Value> arguments, const Value& result) {
  auto node_in = [](const Value& value) -> const SymNode* {
    if (value.is_sym_int()) return value.to_sym_int().node();
    if (value.tag() == Value::Tag::SymFloat) return value.to_sym_float().node();
    return value.tag() == Value::Tag::SymBool ? value.to_sym_bool().node() : nullptr;
  };
  const SymNode* made = node_in(result);
  // A program's arithmetic stands where it is made, as in PyTorch; what nobody uses is removed later.
  bool in_order = key() == DispatchKey::PreProxy && sizes_after_inputs &&
                  std::ranges::all_of(arguments, [this](const Value& v) { return has_node(v); });
  std::vector<Value> used = arguments;
  bool is_known = std::ranges::any_of(arguments, [&](const Value& a) { return node_in(a) == made; });
  bool is_new = made && !static_cast<const sym::Expression*>(made)->is(sym::Kind::Symbol) && !is_known &&
                !(in_order && has_node(result)) &&
                noted_.try_emplace(made, NotedCall{&function, std::move(arguments)}).second;
  if (!in_order) return;
  if (is_new) return void(argument(result));
  // A root of a derived Dim, which no input has by itself, or a number that is computed again: the calls that stay are
  // merged later.
  auto computed = [&] {
    auto at = result.is_sym_int() ? symbols_.find(result.to_sym_int().raw()) : symbols_.end();
    return at != symbols_.end() && at->second->target().function();
  };
  if (made && !is_known && (!has_node(result) || computed())) {
    fx::Arguments items;
    for (const Value& a : used) items.push_back(argument(a));
    symbol_call(function, std::move(items), static_cast<const sym::Expression*>(made));
    return;
  }
  // What is known already is no call here, and one in PyTorch, which has taken a name; but for products with 1.
  if (is_known && function.name == "operator.mul") return;
  for (const Value& a : used) argument(a);
  graph().names().create(function.short_name());
}

bool Tracer::has_node(const Value& value) const {
  if (value.is_sym_int()) {
    int64_t bits = value.to_sym_int().raw();
    return symbols_.contains(bits) || sources_.contains(bits);
  }
  if (value.tag() == Value::Tag::SymFloat) return floats_.contains(value.to_sym_float().node());
  return value.tag() != Value::Tag::SymBool || floats_.contains(value.to_sym_bool().node());
}

bool are_symbol_calls_noted() { return active_tracer(DispatchKey::PreProxy) || active_tracer(DispatchKey::Proxy); }

namespace {

/// Arithmetic; what takes lists apart makes nothing.
bool makes_numbers(const fx::Function& function) {
  std::string_view name = function.name;
  return (name.starts_with("operator.") && name != "operator.getitem") || name.starts_with("torch.sym_") ||
         name.starts_with("torch._sym_") || name.starts_with("math.");
}

[[maybe_unused]] const bool kHooked = [] {
  fx::symbol_call_hook() = [](const fx::Function& function, ArrayRef<Value> arguments, const Value& result) {
    if (!makes_numbers(function)) return;
    for (DispatchKey key : {DispatchKey::PreProxy, DispatchKey::Proxy})
      if (Tracer* tracer = active_tracer(key))
        tracer->note_symbol_call(function, std::vector<Value>(arguments.begin(), arguments.end()), result);
  };
  return true;
}();

}  // namespace

void note_symbol_call(const char* function, std::vector<Value> arguments, const Value& result) {
  for (DispatchKey key : {DispatchKey::PreProxy, DispatchKey::Proxy})
    if (Tracer* tracer = active_tracer(key)) tracer->note_symbol_call(fx::function(function), arguments, result);
}

/// The node of a symbol that was found to be the same number later.
fx::Node* Tracer::equal_symbol(const sym::Expression* symbol) {
  SymInt wanted = symbol_value(symbol).to_sym_int(), found;
  fx::Node* first = nullptr;
  auto consider = [&](int64_t raw, fx::Node* node) {
    SymInt known = SymInt::from_raw(raw);
    if (!known.is_symbolic() || known.same(wanted) || !symbol->env().simplify(known).same(wanted)) return;
    if (first && first->id() <= node->id()) return;
    first = node;
    found = known;
  };
  for (const auto& [raw, node] : symbols_) consider(raw, node);
  for (const auto& [raw, source] : sources_)
    if (source.dim != SymbolSource::kNumel) consider(raw, source.input);
  return first ? symbol_argument(found).node() : nullptr;
}

fx::Argument Tracer::unknown_symbol(const sym::Expression* symbol) {
  if (symbol->type() == sym::Type::Int)
    if (fx::Node* node = derived_symbol(symbol)) return node;
  if (symbol->type() == sym::Type::Int)
    if (fx::Node* node = equal_symbol(symbol)) return node;
  if (on_symbol)
    if (fx::Node* node = on_symbol(symbol_value(symbol))) return node;
  fail("the symbol ", symbol->to_string(), " is the size of no input of the graph, so the graph cannot compute it");
}

fx::Argument Tracer::expression_argument(const SymNode* node, int64_t key) {
  auto* e = static_cast<const sym::Expression*>(node);
  if (auto found = floats_.find(node); found != floats_.end()) return found->second;
  if (e->type() == sym::Type::Int) {
    SymInt simple = e->env().simplify(sym::ShapeEnv::sym_int(e));
    if (simple.raw() != key) return symbol_argument(simple);
  }
  if (e->is(sym::Kind::Integer)) return to_int64(e->integer());
  if (e->is(sym::Kind::Float)) return e->real();
  if (e->is(sym::Kind::Boolean)) return e->truth();
  if (e->is(sym::Kind::Symbol)) return unknown_symbol(e);
  // Taken out first: what it was made of may have been made of it again.
  if (auto noted = noted_.extract(node)) {
    fx::Arguments arguments;
    for (const Value& a : noted.mapped().arguments) arguments.push_back(argument(a));
    return symbol_call(*noted.mapped().function, std::move(arguments), e);
  }
  if (e->depth() > sym::kDeep) {  // its parts first: it is not gone down into by recursion
    std::unordered_set<const sym::Expression*> seen;
    for (const sym::Expression* arg : e->args())
      sym::bottom_up(
          arg, [&](const sym::Expression* part) { return part->depth() > 0 && !is_negated(part) && !seen.count(part); },
          [&](const sym::Expression* part) {
            seen.insert(part);
            argument(symbol_value(part));
          });
  }
  SymbolCalls calls{[this](const sym::Expression* part) { return argument(symbol_value(part)); },
                    [this](const char* function, fx::Arguments arguments, const sym::Expression* result) {
                      return symbol_call(fx::function(function), std::move(arguments), result);
                    },
                    Tracer::key() == DispatchKey::PreProxy};
  return calls.compute(e);
}

}  // namespace umbra
