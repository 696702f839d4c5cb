// Symbolic numbers in graphs: an expression becomes calls of Python's operators on the sizes of inputs.
#include "umbra/capture/tracer.h"
#include "umbra/sym/shape_env.h"

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
    case sym::Kind::Min: return "torch.sym_min";
    case sym::Kind::Max: return "torch.sym_max";
    case sym::Kind::IntTrueDiv:
    case sym::Kind::FloatTrueDiv: return "operator.truediv";
    case sym::Kind::ToFloat: return "torch.sym_float";
    case sym::Kind::Sqrt: return "torch._sym_sqrt";
    case sym::Kind::FloorToInt: return "math.floor";
    case sym::Kind::CeilToInt: return "math.ceil";
    case sym::Kind::TruncToInt: return "math.trunc";
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

bool takes_all_at_once(sym::Kind kind) { return kind == sym::Kind::Where || kind == sym::Kind::Not; }

Value value_of(const sym::Expression* e) {
  switch (e->type()) {
    case sym::Type::Int: return sym::ShapeEnv::sym_int(e);
    case sym::Type::Float: return sym::ShapeEnv::sym_float(e);
    default: return sym::ShapeEnv::sym_bool(e);
  }
}

const sym::Expression* combine(sym::ExpressionTable& table, sym::Kind kind, const sym::Expression* a, const sym::Expression* b) {
  if (kind == sym::Kind::Add) return table.add(a, b);
  if (kind == sym::Kind::Mul) return table.multiply(a, b);
  return nullptr;
}

}  // namespace

fx::Argument Tracer::expression_argument(const SymNode* node, int64_t key) {
  auto* e = static_cast<const sym::Expression*>(node);
  if (auto found = floats_.find(node); found != floats_.end()) return found->second;
  if (e->type() == sym::Type::Int) {
    SymInt simple = e->env().simplify(sym::ShapeEnv::sym_int(e));
    if (simple.raw() != key) return symbol_argument(simple);
  }
  if (e->is(sym::Kind::Integer)) return e->integer();
  if (e->is(sym::Kind::Float)) return e->real();
  if (e->is(sym::Kind::Boolean)) return e->truth();
  const char* name = function_name(e->kind());
  check(name, "the symbol ", e->to_string(), " is the size of no input of the graph, so the graph cannot compute it");
  auto part = [&](const sym::Expression* a) { return argument(value_of(a)); };
  auto emit = [&](fx::Arguments arguments, const sym::Expression* result) {
    fx::Node* made = graph().call(fx::function(name), std::move(arguments));
    made->meta.val = value_of(result);
    if (result->type() == sym::Type::Int) symbols_[sym::ShapeEnv::sym_int(result).raw()] = made;
    else floats_[result] = made;
    return made;
  };
  if (takes_all_at_once(e->kind()) || e->args().size() <= 2) {
    fx::Arguments arguments;
    for (const sym::Expression* a : e->args()) arguments.push_back(part(a));
    // A coefficient stands first in an expression and last in code: `size * 2`.
    if (e->is(sym::Kind::Mul) && e->arg(0)->is(sym::Kind::Integer)) std::swap(arguments[0], arguments[1]);
    return emit(std::move(arguments), e);
  }
  // Sums and products of many terms, two at a time.
  fx::Argument left = part(e->arg(0));
  const sym::Expression* so_far = e->arg(0);
  for (size_t i = 1; i < e->args().size(); ++i) {
    const sym::Expression* next = i + 1 == e->args().size() ? e : combine(e->env().table(), e->kind(), so_far, e->arg(i));
    left = emit({left, part(e->arg(i))}, next ? next : e);
    so_far = next ? next : so_far;
  }
  return left;
}

}  // namespace umbra
