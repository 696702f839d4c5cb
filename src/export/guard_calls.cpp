#include "umbra/export/guard_calls.h"

#include <algorithm>
#include <array>

#include "umbra/export/input_check.h"
#include "umbra/sym/print.h"

namespace umbra {

namespace {

using Name = std::pair<std::string_view, const char*>;

/// The operators of Python, the longer ones first, and what calls of them are named.
constexpr std::array<Name, 13> kOperators{{{"==", "eq"},
                                           {"!=", "ne"},
                                           {"<=", "le"},
                                           {">=", "ge"},
                                           {"//", "floordiv"},
                                           {"**", "pow"},
                                           {"<", "lt"},
                                           {">", "gt"},
                                           {"*", "mul"},
                                           {"%", "mod"},
                                           {"+", "add"},
                                           {"-", "sub"},
                                           {"/", "truediv"}}};

/// The operators of a guard's text; what stands in brackets is a place, and (-1) a number.
void add_operators(std::string_view text, std::vector<std::string>& names) {
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '[') {
      i = std::min(text.find(']', i), text.size() - 1) + 1;
      continue;
    }
    bool sign = text[i] == '-' && (i == 0 || text[i - 1] == '(');
    auto found =
        std::ranges::find_if(kOperators, [&](const Name& name) { return text.substr(i).starts_with(name.first); });
    if (sign || found == kOperators.end()) {
      ++i;
      continue;
    }
    names.emplace_back(found->second);
    i += found->first.size();
  }
}

/// What the example's not having been 0 or 1 tells, which is no guard of PyTorch's.
bool is_about_low_numbers(const sym::Expression* condition) {
  return condition->is(sym::Kind::Le) && condition->arg(0)->is(sym::Kind::Integer) &&
         condition->arg(0)->integer() <= 2 && condition->arg(1)->is(sym::Kind::Symbol);
}

}  // namespace

GuardCalls InputCheck::calls() const {
  GuardCalls calls;
  auto read = [&](GuardCalls::Size size) {
    if (size.dimension >= 0 && std::ranges::count(calls.sizes, size) == 0) calls.sizes.push_back(size);
  };
  std::unordered_map<const sym::Expression*, GuardCalls::Size> first;
  auto meet = [&](SymInt number, GuardCalls::Size size) {
    if (!number.is_symbolic()) return;
    const sym::Expression* e = env_->simplify(env_->expression(number));
    auto [known, added] = first.try_emplace(e, size);
    if (!added) {
      read(size);
      read(known->second);
      calls.operators.insert(calls.operators.end(), compares(known->second, size) ? 1 : 2, "eq");
      return;
    }
    auto range = ranges_.find(sym::to_text(e));
    if (range == ranges_.end()) return;
    bool above = range->second.lower > 2, below = fits_int64(range->second.upper);
    if (above || below) read(size);
    if (above) calls.operators.emplace_back("ge");
    if (below) calls.operators.emplace_back("le");
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value& expected = inputs_[i].expected;
    if (expected.is_sym_int()) meet(expected.to_sym_int(), {i, -1});
    for (int64_t d = 0; expected.is_tensor() && d < expected.tensor_ref().dim(); ++d)
      meet(expected.tensor_ref().sym_sizes()[d], {i, d});
  }
  for (const Condition& c : conditions_) {
    if (!c.condition || is_about_low_numbers(c.condition)) continue;
    std::vector<const sym::Expression*> symbols = sym::free_symbols(c.condition);
    for (const Source& source : sources_)
      if (std::ranges::count(symbols, source.symbol) > 0) read({source.input, source.dim});
    add_operators(c.text, calls.operators);
  }
  return calls;
}

bool InputCheck::compares(const GuardCalls::Size& a, const GuardCalls::Size& b) const {
  return std::ranges::any_of(conditions_, [&](const Condition& c) {
    if (!c.condition || !c.condition->is(sym::Kind::Eq)) return false;
    std::vector<const sym::Expression*> symbols = sym::free_symbols(c.condition);
    auto asks = [&](const GuardCalls::Size& size) {
      return std::ranges::any_of(sources_, [&](const Source& source) {
        return source.input == size.input && source.dim == size.dimension && std::ranges::count(symbols, source.symbol);
      });
    };
    return symbols.size() == 2 && asks(a) && asks(b);
  });
}

void take_names(const GuardCalls& calls, fx::Graph& graph, ArrayRef<fx::Node*> inputs) {
  static const Operator& size = get_operator("aten::sym_size.int");
  for (const GuardCalls::Size& s : calls.sizes)
    if (fx::Node* input = inputs[s.input])
      graph.call(size, {input, s.dimension})->meta.val = Value(input->meta.val.tensor_ref().sym_sizes()[s.dimension]);
  for (const std::string& name : calls.operators) graph.names().create(name);
}

}  // namespace umbra
