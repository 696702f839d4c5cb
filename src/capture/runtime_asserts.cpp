#include "umbra/capture/runtime_asserts.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "capture/symbol_calls.h"
#include "sym/most_size.h"
#include "umbra/sym/print.h"
#include "umbra/sym/walk.h"

namespace umbra {

namespace {

const sym::Expression* expression_of(const Value& value) {
  const SymNode* node = nullptr;
  if (value.tag() == Value::Tag::SymInt) node = value.to_sym_int().node();
  if (value.tag() == Value::Tag::SymFloat) node = value.to_sym_float().node();
  if (value.tag() == Value::Tag::SymBool) node = value.to_sym_bool().node();
  return static_cast<const sym::Expression*>(node);
}

/// The symbol that a value is; null where it is none.
const sym::Expression* bare_symbol(const Value& value) {
  const sym::Expression* e = expression_of(value);
  return e && e->is(sym::Kind::Symbol) ? e : nullptr;
}

/// A bool from data is a symbol of 0 or 1, compared with 1; this is the symbol. Null where the value is no such bool.
const sym::Expression* symbol_of_bool(const Value& value) {
  const sym::Expression* e = expression_of(value);
  bool from_data = e && e->is(sym::Kind::Eq) && e->arg(0)->is(sym::Kind::Symbol) && e->arg(1)->is_integer(1);
  return from_data && !e->arg(0)->has_hint() ? e->arg(0) : nullptr;
}

/// A comparison with what is taken away moved to the other side, as PyTorch keeps checks that the run makes: what is
/// asked by `u0 + 3 <= 16` is `u0 <= 13`, and by `u0 + 1 >= 0` it is `0 <= u0 + 1`.
struct Sides {
  const sym::Expression *left, *right;
};

Integer common_divisor(Integer a, Integer b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a < 0 ? -a : a;
}

std::optional<Sides> sides_of(const sym::Expression* condition) {
  if (!condition->is_relation() || condition->arg(0)->type() != sym::Type::Int) return std::nullopt;
  sym::ExpressionTable& table = condition->env().table();
  const sym::Expression* difference = table.subtract(condition->arg(1), condition->arg(0));
  Integer common = 0;
  for (const sym::Expression* term : sym::terms_of(difference))
    common = common_divisor(common, sym::split_coefficient(term).coefficient);
  if (common == 0) return std::nullopt;
  Sides sides{table.integer(0), table.integer(0)};
  for (const sym::Expression* term : sym::terms_of(difference)) {
    auto [coefficient, rest] = sym::split_coefficient(term);
    const sym::Expression*& side = coefficient < 0 ? sides.left : sides.right;
    Integer times = (coefficient < 0 ? -coefficient : coefficient) / common;
    side = table.add(side, table.multiply(table.integer(times), rest));
  }
  return sides;
}

const sym::Expression* with_sides(const sym::Expression* condition) {
  std::optional<Sides> sides = sides_of(condition);
  return sides ? condition->env().table().relation(condition->kind(), sides->left, sides->right) : condition;
}

/// What the program has stated, as PyTorch tells it: 0 < u0.
std::string condition_text(const sym::Expression* condition) {
  if (condition->is(sym::Kind::And) || condition->is(sym::Kind::Or)) {
    std::string text;
    for (const sym::Expression* part : condition->args()) {
      bool ordered = part->is(sym::Kind::Lt) || part->is(sym::Kind::Le);
      text += text.empty() ? "" : condition->is(sym::Kind::And) ? " & " : " | ";
      text += ordered ? "(" + condition_text(part) + ")" : condition_text(part);
    }
    return text;
  }
  std::optional<Sides> sides = sides_of(condition);
  if (!sides) return sym::to_text(condition);
  std::string left = sym::to_text(sides->left), right = sym::to_text(sides->right);
  if (condition->is(sym::Kind::Lt)) return left + " < " + right;
  if (condition->is(sym::Kind::Le)) return left + " <= " + right;
  return concat(condition->is(sym::Kind::Eq) ? "Eq(" : "Ne(", left, ", ", right, ")");
}

using Conditions = std::vector<const sym::Expression*>;

/// What the graphs of a program have between them.
struct Covered {
  std::unordered_set<const sym::Expression*> symbols, conditions;  // that one of them computes and checks
};

class Inserter {
 public:
  /// `inner`: of a function that a call is given, whose inputs' symbols are checked where the call is made.
  Inserter(fx::Graph& graph, sym::ShapeEnv& env, bool first_ranges, bool inner, Covered& covered,
           const Conditions& earlier)
      : graph_(graph), env_(env), first_ranges_(first_ranges), inner_(inner), covered_(covered), pending_(earlier) {
    for (const sym::RuntimeAssert& a : env.runtime_asserts()) pending_.push_back(a.condition);
    for (const sym::Expression* condition : pending_)
      if (std::optional<Bound> bound = bound_of(condition)) narrow(*bound);
  }

  void run() {
    if (!first_ranges_) remove_earlier();
    bool any = !pending_.empty();
    for (const sym::Symbol& symbol : env_.symbols()) any |= !symbol.backed;
    if (!any) return;
    bool among_inputs = true;
    for (fx::Node* node : graph_.nodes()) {
      if (among_inputs && node->op() != fx::Op::Placeholder) {
        if (!inner_) check_sizes_of_inputs();
        among_inputs = false;
      }
      if (inner_ && among_inputs) {
        meet_given(node);
        continue;
      }
      if (first_ranges_ && node->calls(assert_scalar_) && !added_.contains(node) && is_repeated(*node)) {
        erase_assertion(node);
        continue;
      }
      if (const sym::Expression* e = bare_symbol(node->meta.val)) bind(e, node);
      if (const sym::Expression* e = symbol_of_bool(node->meta.val)) meet_bool(e, node);
      if (node->op() == fx::Op::Output || !node->meta.val.is_tensor()) continue;
      const Tensor& tensor = node->meta.val.tensor_ref();
      if (!tensor.defined() || !tensor.is_symbolic()) continue;
      for (int64_t d = 0; d < tensor.dim(); ++d)
        if (const sym::Expression* e = bare_symbol(Value(tensor.sym_sizes()[d]))) meet_size(e, node, d);
    }
  }

 private:
  // ---- bounds of single symbols: only the tightest are checked ----

  struct Bound {
    const sym::Expression* symbol;
    sym::Range range;
    bool is_equality;
  };

  static std::optional<Bound> bound_of(const sym::Expression* condition) {
    std::optional<Sides> sides = sides_of(condition);
    if (!sides) return std::nullopt;
    const sym::Expression *a = sides->left, *b = sides->right;
    bool flipped = a->is(sym::Kind::Integer);
    if (flipped) std::swap(a, b);
    if (!a->is(sym::Kind::Symbol) || !b->is(sym::Kind::Integer) || a->has_hint()) return std::nullopt;
    Integer number = b->integer(), strict = condition->is(sym::Kind::Lt);
    if (condition->is(sym::Kind::Eq)) return Bound{a, sym::Range::point(number), true};
    if (condition->is(sym::Kind::Ne)) return std::nullopt;
    return flipped ? Bound{a, {number + strict, sym::kInfinity}, false}
                   : Bound{a, {sym::kMinusInfinity, number - strict}, false};
  }

  void narrow(const Bound& bound) {
    auto [at, added] = ranges_.emplace(bound.symbol, env_.symbol(bound.symbol).initial);
    at->second = at->second.intersect(bound.range);
  }

  sym::Range range_of(const sym::Expression* symbol) const {
    auto found = ranges_.find(symbol);
    sym::Range own = found == ranges_.end() ? env_.symbol(symbol).initial : found->second;
    return own.intersect(env_.symbol(symbol).range);
  }

  // ---- where symbols come from ----

  /// Whether an assertion says, in the same words, what is checked already: `u0 > 2` is not `2 < u0`, as in PyTorch.
  bool is_repeated(const fx::Node& assertion) {
    const fx::Argument& holds = assertion.arg(0);
    if (!holds.is_node()) return holds.value().to_bool();
    return !said_.insert(words_of(*holds.node())).second;
  }

  /// A condition as the node that computes it has it.
  static std::string words_of(const fx::Node& node) {
    static const std::unordered_map<const fx::Function*, const char*> signs = {{&fx::function("operator.lt"), " < "},
                                                                               {&fx::function("operator.le"), " <= "},
                                                                               {&fx::function("operator.gt"), " > "},
                                                                               {&fx::function("operator.ge"), " >= "}};
    auto sign = signs.find(node.target().function());
    const sym::Expression* condition = expression_of(node.meta.val);
    if (sign == signs.end() || node.args().size() != 2) return condition ? condition_text(condition) : node.name();
    auto side = [&](size_t i) {
      const fx::Argument& argument = node.arg(i);
      if (!argument.is_node()) return to_string(argument.value());
      const sym::Expression* e = expression_of(argument.node()->meta.val);
      return e ? sym::to_text(e) : argument.node()->name();
    };
    return side(0) + sign->second + side(1);
  }

  void erase_assertion(fx::Node* assertion) {
    const fx::Argument& holds = assertion->arg(0);
    fx::Node* unused = holds.is_node() ? holds.node() : nullptr;
    graph_.erase_node(assertion);
    while (unused && unused->users().empty() && condition_of_numbers(*unused)) {
      fx::Node* part = unused->arg(0).is_node() ? unused->arg(0).node() : nullptr;
      graph_.erase_node(unused);
      unused = part;
    }
  }

  /// What was captured before has its assertions, which the capture has made conditions again.
  void remove_earlier() {
    for (fx::Node* node : graph_.nodes()) {
      if (!node->calls(assert_scalar_)) continue;
      const fx::Argument& holds = node->arg(0);
      const sym::Expression* condition = holds.is_node() ? expression_of(holds.node()->meta.val) : nullptr;
      bool known = std::find(pending_.begin(), pending_.end(), condition) != pending_.end();
      bool trivial = !holds.is_node() && holds.value().to_bool();
      if (trivial || (condition && known)) erase_assertion(node);
    }
  }

  static bool condition_of_numbers(const fx::Node& node) {
    return node.op() == fx::Op::CallFunction && node.meta.val.tag() == Value::Tag::SymBool;
  }

  /// An input of an inner graph.
  void meet_given(fx::Node* input) {
    if (const sym::Expression* e = bare_symbol(input->meta.val)) nodes_.try_emplace(e, input);
    if (!input->meta.val.is_tensor() || !input->meta.val.tensor_ref().defined()) return;
    const Tensor& tensor = input->meta.val.tensor_ref();
    for (int64_t d = 0; tensor.is_symbolic() && d < tensor.dim(); ++d)
      if (const sym::Expression* e = bare_symbol(Value(tensor.sym_sizes()[d]))) sizes_.try_emplace(e, Size{input, d});
  }

  /// PyTorch takes an item with a new size once more, and lets the first one go: its name is the next.
  void take_anew(fx::Node* item) {
    if (item->target().function() != &fx::function("operator.getitem") || !items_.insert(item).second) return;
    item->set_name("item_with_size");
    item->set_name("getitem");
  }

  void meet_size(const sym::Expression* symbol, fx::Node* tensor, int64_t dim) {
    if (nodes_.count(symbol) || sizes_.count(symbol)) return;
    if (symbol->has_hint()) {
      sizes_.try_emplace(symbol, Size{tensor, dim});
      return;
    }
    if (!first_ranges_ && !is_mentioned(symbol)) return;
    take_anew(tensor);
    for (fx::Node* user : tensor->users())  // the recorder has asked for it: it is met there
      if (user->calls(sym_size_) && user->arg(1).value().to_int() == dim) return;
    bind(symbol, size_after(tensor, tensor, dim));
  }

  /// Whether conditions that are still to be checked are about the symbol.
  bool is_mentioned(const sym::Expression* symbol) const {
    return std::any_of(pending_.begin(), pending_.end(), [&](const sym::Expression* condition) {
      if (!condition) return false;
      std::vector<const sym::Expression*> symbols = sym::free_symbols(condition);
      return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
    });
  }

  /// A bool that conditions are about becomes a number.
  void meet_bool(const sym::Expression* symbol, fx::Node* truth) {
    if (nodes_.count(symbol) || !is_mentioned(symbol)) return;
    auto scope = graph_.inserting_after(truth);
    place_ = truth;
    fx::Node* number = graph_.call(fx::function("torch.sym_ite"), {truth, 1, 0});
    number->meta.val = symbol_value(symbol);
    describe(number);
    bind(symbol, number);
  }

  fx::Node* size_after(fx::Node* place, fx::Node* tensor, int64_t dim) {
    auto scope = graph_.inserting_after(place);
    fx::Node* node = graph_.create_node(fx::Op::CallFunction, sym_size_, {tensor, dim}, {}, "sym_size_int");
    node->meta.val = Value(tensor->meta.val.tensor_ref().sym_sizes()[dim]);
    node->meta.source = tensor->meta.source;
    node->meta.modules = tensor->meta.modules;
    return node;
  }

  void bind(const sym::Expression* symbol, fx::Node* node) {
    if (!nodes_.emplace(symbol, node).second || symbol->has_hint()) return;
    covered_.symbols.insert(symbol);
    auto scope = graph_.inserting_after(node);
    place_ = node;
    sym::ExpressionTable& table = env_.table();
    sym::Range range = range_of(symbol), known = first_ranges_ ? sym::Range{} : env_.symbol(symbol).initial;
    if (range.lower > known.lower) add_bound(table.relation(sym::Kind::Le, table.integer(range.lower), symbol));
    if (range.upper < std::min(known.upper, sym::kMostSize))
      add_bound(table.relation(sym::Kind::Le, symbol, table.integer(range.upper)));
    for (const sym::Expression*& condition : pending_) {
      if (!condition || !is_computable(condition)) continue;
      std::optional<Bound> bound = bound_of(condition);
      bool covered = bound && !bound->is_equality && (!first_ranges_ || condition->is(sym::Kind::Le));
      if (!covered) add(condition);
      covered_.conditions.insert(condition);
      condition = nullptr;
    }
  }

  /// Conditions on sizes of inputs alone, which were left to the run, come first.
  void check_sizes_of_inputs() {
    auto known = [this](const sym::Expression* symbol) { return nodes_.count(symbol) || sizes_.count(symbol); };
    std::vector<const sym::Expression**> checks;
    for (const sym::Expression*& condition : pending_) {
      if (!condition) continue;
      std::vector<const sym::Expression*> symbols = sym::free_symbols(condition);
      if (std::all_of(symbols.begin(), symbols.end(), known)) checks.push_back(&condition);
    }
    std::vector<fx::Node*> inputs = graph_.placeholders();
    if (checks.empty() || inputs.empty()) return;
    place_ = inputs.back();
    for (const sym::Expression** check : checks)
      for (const sym::Expression* symbol : sym::free_symbols(*check)) compute(symbol);
    fx::Node* next = place_->next();
    while (next->calls(sym_size_)) next = next->next();
    auto scope = graph_.inserting_before(next);
    for (const sym::Expression** check : checks) add(std::exchange(*check, nullptr));
  }

  bool is_computable(const sym::Expression* condition) const {
    bool made_here = false;
    for (const sym::Expression* symbol : sym::free_symbols(condition)) {
      auto node = nodes_.find(symbol);
      if (node == nodes_.end() && !sizes_.count(symbol)) return false;
      bool given = inner_ && (node == nodes_.end() || is_given(node->second));
      made_here |= !symbol->has_hint() && !given;
    }
    return made_here;
  }

  /// Whether it is an input, or the size of one.
  bool is_given(const fx::Node* node) const {
    if (node->op() == fx::Op::Placeholder) return true;
    return node->calls(sym_size_) && node->arg(0).node()->op() == fx::Op::Placeholder;
  }

  // ---- the checks ----

  void add(const sym::Expression* condition) { add(with_sides(condition), condition_text(condition)); }
  /// The bound of a symbol: u0 >= 2.
  void add_bound(const sym::Expression* condition) { add(condition, sym::to_text(condition)); }

  void add(const sym::Expression* condition, const std::string& text) {
    if (condition->is(sym::Kind::Boolean) || !checked_.insert(condition).second) return;
    fx::Node* holds = compute(condition).node();
    if (!holds) return;
    said_.insert(text);
    std::string message = concat("Runtime assertion failed for expression ", text, " on node '", holds->name(), "'");
    fx::Node* assertion =
        graph_.create_node(fx::Op::CallFunction, assert_scalar_, {holds, Value(message)}, {}, "_assert_scalar_default");
    describe(assertion);
    added_.insert(assertion);
  }

  fx::Argument compute(const sym::Expression* e) {
    if (auto found = nodes_.find(e); found != nodes_.end()) return found->second;
    if (auto size = sizes_.find(e); size != sizes_.end()) {
      std::vector<fx::Node*> inputs = graph_.placeholders();
      bool of_input = size->second.tensor->op() == fx::Op::Placeholder;
      return nodes_[e] =
                 size_after(of_input ? inputs.back() : size->second.tensor, size->second.tensor, size->second.dim);
    }
    if (e->args().empty()) return symbol_value(e);
    if (e->depth() > sym::kDeep)  // its parts first: it is not gone down into by recursion
      for (const sym::Expression* arg : e->args())
        sym::bottom_up(
            arg, [&](const sym::Expression* part) { return part->depth() > 0 && !nodes_.count(part); },
            [&](const sym::Expression* part) { compute(part); });
    SymbolCalls calls{[this](const sym::Expression* part) { return compute(part); },
                      [this](const char* function, fx::Arguments arguments, const sym::Expression* result) {
                        fx::Node* node = graph_.call(fx::function(function), std::move(arguments));
                        node->meta.val = symbol_value(result);
                        describe(node);
                        return nodes_[result] = node;
                      },
                      true};
    return calls.compute(e);
  }

  void describe(fx::Node* node) const {
    node->meta.source = place_->meta.source;
    node->meta.modules = place_->meta.modules;
  }

  struct Size {
    fx::Node* tensor;
    int64_t dim;
  };
  fx::Graph& graph_;
  sym::ShapeEnv& env_;
  bool first_ranges_, inner_;
  Covered& covered_;
  const Operator& sym_size_ = get_operator("aten::sym_size.int");
  const Operator& assert_scalar_ = get_operator("aten::_assert_scalar");
  std::unordered_map<const sym::Expression*, sym::Range> ranges_;
  Conditions pending_;  // null once it is checked
  std::unordered_map<const sym::Expression*, fx::Node*> nodes_;
  std::unordered_map<const sym::Expression*, Size> sizes_;  // of inputs, not asked for so far
  std::unordered_set<const sym::Expression*> checked_;
  std::unordered_set<std::string> said_;       // what is checked, in words
  std::unordered_set<const fx::Node*> added_;  // assertions
  std::unordered_set<const fx::Node*> items_;  // those that are taken anew
  fx::Node* place_ = nullptr;                  // the call behind which checks are put
};

void insert_into_functions(fx::GraphModule& module, sym::ShapeEnv& env, bool first_ranges, Covered& covered,
                           const Conditions& earlier) {
  for (const auto& [path, function] : module.submodules()) {
    Inserter(function->graph(), env, first_ranges, true, covered, earlier).run();
    insert_into_functions(*function, env, first_ranges, covered, earlier);
  }
}

/// A condition on numbers of several graphs, none of which has all of them, would be checked by nobody.
void refuse_scattered(sym::ShapeEnv& env, const Covered& covered) {
  for (const sym::RuntimeAssert& a : env.runtime_asserts()) {
    if (covered.conditions.count(a.condition)) continue;
    size_t unbacked = 0, computed = 0;
    for (const sym::Expression* symbol : sym::free_symbols(a.condition)) {
      unbacked += !symbol->has_hint();
      computed += covered.symbols.count(symbol);
    }
    if (unbacked > 0 && computed == unbacked)
      fail<NotImplementedError>("a check inside a function that is handed to an operator (", sym::to_text(a.condition),
                                ") is about a number from outside that the function does not use: give it to the "
                                "function as an operand");
  }
}

}  // namespace

void insert_runtime_asserts(fx::GraphModule& module, sym::ShapeEnv& env, bool first_ranges, const Conditions& earlier) {
  Covered covered;
  Inserter(module.graph(), env, first_ranges, false, covered, earlier).run();
  insert_into_functions(module, env, first_ranges, covered, earlier);
  if (!module.submodules().empty()) refuse_scattered(env, covered);
}

void insert_metadata_asserts(fx::Graph& graph) {
  for (fx::Node* node : graph.nodes()) {
    const Operator* op = node->target().op();
    if (!op || !op->has_tag(Tag::ConvertsType)) continue;
    fx::Node* input = node->arg(0).node();
    if (!input || !input->meta.val.is_tensor()) continue;
    const Tensor& tensor = input->meta.val.tensor_ref();
    const Operator& check = get_operator("aten::_assert_tensor_metadata");
    fx::Node* before = node->previous();
    if (before->target().op() == &check && before->arg(0).node() == input)
      continue;  // of a program that is captured again
    auto scope = graph.inserting_before(node);
    fx::Node* assertion = graph.create_node(
        fx::Op::CallFunction, check, {input},
        {{"dtype", Value(tensor.dtype())}, {"device", Value(tensor.device())}, {"layout", Value(Layout::Strided)}},
        "_assert_tensor_metadata_default");
    assertion->meta.source = node->meta.source;
    assertion->meta.modules = node->meta.modules;
  }
}

}  // namespace umbra
