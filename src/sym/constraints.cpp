#include "umbra/sym/constraints.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sym/checked.h"
#include "umbra/core/error.h"
#include "umbra/sym/affine.h"
#include "umbra/sym/print.h"

namespace umbra::sym {
namespace {

bool identifier(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

/// root = modulus * new_root + remainder
struct Congruence {
  int64_t modulus = 1, remainder = 0;
};

/// The values with coefficient*x + constant divisible by the modulus, by trial: moduli of shapes are small.
std::optional<Congruence> solve(const Affine& affine, Integer modulus) {
  constexpr Integer kLargest = 1 << 16;
  if (modulus < 0) modulus = -modulus;
  Integer common = greatest_common_divisor(affine.coefficient, modulus);
  if (common == 0 || affine.constant % common != 0 || modulus / common > kLargest) return std::nullopt;
  modulus /= common;
  Integer coefficient = floor_remainder(affine.coefficient / common, modulus);
  Integer constant = floor_remainder(affine.constant / common, modulus);
  for (Integer x = 0; x < modulus; ++x)
    if (floor_remainder(coefficient * x + constant, modulus) == 0)
      return Congruence{static_cast<int64_t>(modulus), static_cast<int64_t>(x)};
  return std::nullopt;
}

std::optional<Congruence> combine(const Congruence& a, const Congruence& b) {
  int64_t modulus = std::lcm(a.modulus, b.modulus);
  for (int64_t x = a.remainder; x < modulus; x += a.modulus)
    if (x % b.modulus == b.remainder) return Congruence{modulus, x};
  return std::nullopt;
}

class Checker {
 public:
  Checker(ShapeEnv& env, const ConstraintOptions& options) : env_(env), options_(options) {}

  /// The lines of the user's program that asked for what the Dims do not promise; empty where they are not known.
  std::string origins() const {
    constexpr int kMost = 4;
    std::set<std::string> names(violated_.begin(), violated_.end()), seen;
    names.insert(specialized_.begin(), specialized_.end());
    std::string text;
    for (const Guard& guard : env_.guards()) {
      if (seen.size() == kMost || !guard.location || guard.condition->is(Kind::Ne)) continue;
      auto symbols = free_symbols(guard.condition);
      bool concerns = std::any_of(symbols.begin(), symbols.end(),
                                  [&](const Expression* one) { return names.count(name(symbol(one))) > 0; });
      std::string place = concerns ? guard.location->text() : "";
      if (place.empty() || !seen.insert(place).second) continue;
      text += to_python(guard.condition, [this](const Expression* a) { return source(symbol(a)); }) + ":\n" + place;
    }
    return text.empty() ? "" : "\nWhere the program asks for it:\n" + text;
  }

  std::optional<std::string> run() {
    if (options_.force_specializations) find_forced();
    find_leaders();
    report_created_constants();
    for (const Symbol& symbol : env_.symbols())
      if (constrained(symbol)) report(symbol);
    report_guards();
    for (const Symbol& symbol : env_.symbols())
      if (auto group = members_.find(symbol.expression); group != members_.end())
        report_ranges(symbol.expression, group->second);
    if (violations_.empty() && specializations_.empty()) return std::nullopt;
    return message();
  }

 private:
  static bool constrained(const Symbol& symbol) {
    return symbol.backed && (!symbol.dim.empty() || symbol.marked_dynamic);
  }
  static std::string source(const Symbol& symbol) {
    return symbol.sources.empty() ? symbol.name : symbol.sources.front();
  }
  static std::string name(const Symbol& symbol) { return symbol.dim.empty() ? source(symbol) : symbol.dim; }
  const Symbol& symbol(const Expression* a) const { return env_.symbol(a); }

  /// What a symbol has turned out to be, in terms of roots; forced dimensions are numbers.
  const Expression* final_form(const Expression* a) {
    return env_.substitute(a, [this](const Expression* one) -> const Expression* {
      if (auto value = forced_.find(one); value != forced_.end()) return env_.table().integer(value->second);
      const Expression* by = symbol(one).replacement;
      return by ? final_form(by) : one;
    });
  }
  /// What the user said it is.
  const Expression* declared_form(const Expression* a) {
    return env_.substitute(a, [this](const Expression* one) {
      const Expression* by = symbol(one).declared;
      return by ? declared_form(by) : one;
    });
  }

  bool all_named(const std::vector<const Expression*>& symbols) const {
    return std::all_of(symbols.begin(), symbols.end(),
                       [this](const Expression* one) { return !symbol(one).dim.empty(); });
  }

  // ---- dimensions too entangled to stay dynamic
  void force(const Expression* a) {
    for (const Expression* one : free_symbols(a))
      if (one->has_hint() && !symbol(one).dim.empty()) forced_.emplace(one, one->hint_int());
  }

  void find_forced() {
    for (const Symbol& one : env_.symbols()) {
      if (one.dim.empty() || !one.replacement || one.declared) continue;
      const Expression* form = final_form(one.expression);
      auto roots = free_symbols(form);
      bool simple = roots.empty() || (roots.size() == 1 && affine_in(form, roots[0]));
      if (simple || !all_named(roots)) continue;
      force(form);
      force(one.expression);
    }
    for (const Guard& guard : env_.guards()) {
      const Expression* condition = final_form(guard.condition);
      auto symbols = free_symbols(condition);
      if (!condition->is_relation() || condition->is(Kind::Ne) || symbols.size() < 2 || !all_named(symbols)) continue;
      if (follows_from_ranges(env_, condition)) continue;
      const Expression* left = condition->arg(0);
      // Of `(s0*s1) % (s0 - 1) == 0`, the divisor has to be a number; the rest can stay.
      if (left->is(Kind::Mod) && !left->arg(1)->is(Kind::Integer)) force(left->arg(1));
      else force(condition);
    }
  }

  // ---- reports
  void violate(const std::string& name, std::string line) {
    violated_.push_back(name);
    violations_.push_back("  - " + std::move(line));
  }

  void report_constant(const std::string& name, Integer number) {
    std::string value = integer_text(number);
    violate(name, concat("You marked ", name, " as dynamic but your code specialized it to be a constant (", value,
                         "). If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using "
                         "Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."));
    if (identifier(name)) add_equation(name, value);
  }

  void report_created_constants() {
    for (const SpecializedDim& one : env_.specialized_dims())
      report_constant(one.dim.empty() ? one.source : one.dim, one.value);
  }

  /// A Dim that has to be a number is one wherever it stands, in derived Dims too.
  void report_specialized(const Symbol& one, Integer number) {
    if (forced_.count(one.expression) || solved_equation(one)) return report_solved(one, number);
    if (one.uses.empty()) return report_constant(name(one), number);
    for (const DimUse& use : one.uses) report_constant(use.dim, number * use.scale + use.offset);
  }

  /// The equation about the Dim alone that has a number for its solution: `dy == 2*dy - 12`; null where there is none.
  const Expression* solved_equation(const Symbol& one) const {
    auto about = [&](const Expression* side) {
      auto symbols = free_symbols(side);
      return symbols.size() == 1 && symbols[0] == one.expression;
    };
    if (!one.dim.empty())
      for (const Guard& guard : env_.guards())
        if (guard.condition->is(Kind::Eq) && about(guard.condition->arg(0)) && about(guard.condition->arg(1)))
          return guard.condition;
    return nullptr;
  }

  void report_solved(const Symbol& one, Integer number) {
    DimUse shown = one.uses.empty() ? DimUse{name(one), source(one)} : one.uses.front();
    std::string value = integer_text(number * shown.scale + shown.offset);
    if (const Expression* equation = solved_equation(one))
      violate(shown.dim, concat("Not all values of ", shown.dim, " = ", shown.source,
                                " in the specified range satisfy the generated guard ",
                                to_python(equation, [&](const Expression* a) { return source(symbol(a)); }), "."));
    specializations_.push_back(concat("  - solving the guards generated for ", shown.dim, " = ", shown.source,
                                      " resulted in a specialized value of ", value, "."));
    specialized_.push_back(one.dim);
    if (!is_hidden(one)) add_equation(one.dim, integer_text(number));
  }

  void report(const Symbol& one) {
    const Expression* form = final_form(one.expression);
    const Expression* declared = declared_form(one.expression);
    if (form->is(Kind::Integer)) {
      if (!declared->is(Kind::Integer)) report_specialized(one, form->integer());
      return;
    }
    if (one.dim.empty() || one.declared) return;
    if (!form->is(Kind::Symbol)) return report_relation(one, form);
    const Symbol& first = leader(form);
    if (&first == &one || first.dim.empty()) return;
    if (is_hidden(first)) report_relation(one, form);
    else report_equal(first, one);
  }

  /// Dimensions that have to be equal go by the name of the first of them.
  void find_leaders() {
    for (const Symbol& one : env_.symbols()) {
      if (!constrained(one) || one.dim.empty() || one.declared) continue;
      const Expression* form = final_form(one.expression);
      if (form->is(Kind::Symbol) && !symbol(form).dim.empty()) members_[form].push_back(&one);
    }
  }
  const Symbol& leader(const Expression* root) const {
    auto found = members_.find(root);
    return found == members_.end() ? symbol(root) : *found->second.front();
  }

  void report_equal(const Symbol& first, const Symbol& second) {
    violate(second.dim, concat("The values of ", second.dim, " = ", source(second), " and ", first.dim, " = ",
                               source(first), " must always be equal."));
    equal_.push_back(&second);
  }

  /// A root that no input has by itself shows as the first Dim that is derived from it.
  static std::string shown(const Symbol& root) {
    if (!is_hidden(root) || root.uses.empty()) return root.dim + " = " + source(root);
    return root.uses.front().dim + " = " + root.uses.front().source;
  }

  void report_relation(const Symbol& one, const Expression* form) {
    auto roots = free_symbols(form);
    if (!all_named(roots)) return;
    if (roots.size() != 1 || !affine_in(form, roots[0])) return;  // kept as a run-time check
    if (is_hidden(leader(roots[0])) && !form->is(Kind::Symbol)) return;
    violate(one.dim, concat("The values of ", one.dim, " = ", source(one), " must always be related to the values of ",
                            shown(leader(roots[0])), " by ", one.dim, " = ", in_dims(form), "."));
    related_.push_back(&one);
  }

  /// What was promised of a dimension, by the name that it goes by.
  static std::string specified_range(const Symbol& one, const Range& promised) {
    std::string text = one.dim + " = " + source(one) + " in the specified range";
    bool lower = promised.lower > 2, upper = promised.upper != kInfinity;
    if (lower) text += concat(" ", integer_text(promised.lower), " <= ", one.dim);
    if (upper) text += concat(lower ? "" : " " + one.dim, " <= ", integer_text(promised.upper));
    return text;
  }
  static Range promise(const Symbol& one) { return one.promised.value_or(Range{0}); }

  /// Of a root that no input has by itself, what holds is left to the check of inputs, as PyTorch does it.
  static bool is_hidden(const Symbol& root) { return source(root).starts_with('('); }

  /// What is left of the range of dimensions that are equal, where one of them was promised more; the first comes last.
  void report_ranges(const Expression* root, const std::vector<const Symbol*>& members) {
    const Symbol& first = *members.front();
    if (is_hidden(first)) return;
    Range known = symbol(root).range;
    std::string upper = known.upper == kInfinity ? "IntInfinity()" : integer_text(known.upper);
    std::string guard = concat(integer_text(known.lower), " <= ", source(first), " and ", source(first), " <= ", upper);
    for (auto one = members.rbegin(); one != members.rend(); ++one) {
      Range promised = promise(**one);
      if (known.lower <= std::max<Integer>(promised.lower, 2) && known.upper >= promised.upper) continue;
      violate(first.dim,
              concat("Not all values of ", specified_range(first, promised), " satisfy the generated guard ", guard));
      if (*one == &first) narrowed_.insert(root);
    }
  }

  // ---- guards that are not ranges

  void report_guards() {
    for (const Guard& guard : env_.guards()) {
      const Expression* condition = final_form(guard.condition);
      auto symbols = free_symbols(condition);
      if (!condition->is_relation() || symbols.size() != 1 || !all_named(symbols)) continue;
      if (!condition->is(Kind::Eq) && follows_from_ranges(env_, condition)) continue;
      const Symbol& root = leader(symbols[0]);
      if (is_hidden(root)) continue;
      std::string text = to_python(condition, [&](const Expression*) { return source(root); });
      violate(root.dim, concat("Not all values of ", specified_range(root, promise(root)),
                               " satisfy the generated guard ", text, "."));
      learn_congruence(condition, symbols[0]);
    }
  }

  void learn_congruence(const Expression* condition, const Expression* root) {
    const Expression *left = condition->arg(0), *right = condition->arg(1);
    if (!condition->is(Kind::Eq) || !right->is(Kind::Integer) || !left->is(Kind::Mod) ||
        !left->arg(1)->is(Kind::Integer))
      return;
    std::optional<Affine> affine = affine_in(left->arg(0), root);
    if (!affine) return;
    affine->constant -= right->integer();
    std::optional<Congruence> found = solve(*affine, left->arg(1)->integer());
    if (!found) return;
    auto known = congruences_.find(root);
    if (known != congruences_.end()) found = combine(known->second, *found);
    if (found) congruences_[root] = *found;
  }

  // ---- fixes
  /// An expression over the names of Dims; a root with a congruence appears as its new root, `3*_dx - 1`.
  std::string in_dims(const Expression* form) {
    auto scratch = make_counted<ShapeEnv>();
    ExpressionTable& table = scratch->table();
    return to_text(scratch->translate(form, [&](const Expression* root) -> const Expression* {
      const std::string& dim = leader(root).dim;
      auto known = congruences_.find(root);
      if (known == congruences_.end()) return scratch->declare_symbol(dim, false);
      auto [modulus, remainder] = known->second;
      if (remainder > 0) remainder -= modulus;
      return table.add(table.multiply(table.integer(modulus), scratch->declare_symbol("_" + dim, false)),
                       table.integer(remainder));
    }));
  }

  void add_equation(const std::string& dim, const std::string& value) {
    equations_[sources_of_dims()[dim]].insert(dim + " = " + value);
  }

  /// A lower bound of 2 goes without saying.
  void add_range(const std::string& dim, const std::string& name, Integer lower, const std::string& upper) {
    std::string text = name + " = Dim('" + name + "'";
    if (lower != 2) text += concat(", min=", integer_text(lower));
    if (!upper.empty()) text += ", max=" + upper;
    ranges_[sources_of_dims()[dim]].insert(text + ")");
  }

  /// What fixes are in the order of.
  std::map<std::string, std::string>& sources_of_dims() {
    if (sources_.empty())
      for (const Symbol& one : env_.symbols())
        if (!one.dim.empty()) sources_.emplace(one.dim, source(one));
    return sources_;
  }

  void suggest() {
    for (const auto& [root, congruence] : congruences_) {
      const Symbol& one = leader(root);
      auto [modulus, remainder] = congruence;
      if (remainder > 0) remainder -= modulus;
      Range shifted = symbol(root).range + Range::point(-remainder), range;
      if (shifted.lower != kMinusInfinity) range.lower = -floor_quotient(-shifted.lower, modulus);
      if (shifted.upper != kInfinity) range.upper = floor_quotient(shifted.upper, modulus);
      add_range(one.dim, "_" + one.dim, range.lower, range.upper == kInfinity ? "oo" : integer_text(range.upper));
      add_equation(one.dim, in_dims(root));
    }
    for (const Expression* root : narrowed_) {
      if (congruences_.count(root)) continue;
      const std::string& dim = leader(root).dim;
      Range range = symbol(root).range;
      add_range(dim, dim, std::max<Integer>(range.lower, 2), range.upper == kInfinity ? "" : integer_text(range.upper));
    }
    for (const auto& list : {equal_, related_})
      for (const Symbol* one : list)
        if (identifier(one->dim)) add_equation(one->dim, in_dims(final_form(one->expression)));
  }

  static std::string join(std::vector<std::string> parts, const char* separator) {
    std::string out;
    std::set<std::string> seen;
    for (const std::string& part : parts) {
      if (!seen.insert(part).second) continue;
      if (!out.empty()) out += separator;
      out += part;
    }
    return out;
  }

  std::string message() {
    suggest();
    std::string text;
    auto section = [&](const char* head, std::vector<std::string> names, const std::vector<std::string>& lines) {
      if (lines.empty()) return;
      std::sort(names.begin(), names.end());
      if (!text.empty()) text += "\n";
      text +=
          std::string(head) + " (" + join(names, ", ") + ")! For more information, run with TORCH_LOGS=\"+dynamic\".\n";
      text += join(lines, "\n");
    };
    section("Constraints violated", violated_, violations_);
    section("Specializations unexpectedly required", specialized_, specializations_);
    if (!ranges_.empty() || !equations_.empty()) text += "\nSuggested fixes:";
    for (const auto* fixes : {&ranges_, &equations_})
      for (const auto& [source, lines] : *fixes)
        for (const std::string& line : lines) text += "\n  " + line;
    return text + "\n";
  }

  ShapeEnv& env_;
  const ConstraintOptions& options_;
  std::map<const Expression*, int64_t> forced_;
  std::vector<std::string> violated_, violations_, specialized_, specializations_;
  std::vector<const Symbol*> equal_, related_;
  std::map<const Expression*, std::vector<const Symbol*>> members_;  // of roots: dimensions that are equal, in order
  std::set<const Expression*> narrowed_;
  std::map<const Expression*, Congruence> congruences_;
  std::map<std::string, std::set<std::string>> ranges_, equations_;  // suggested, by the Dims' sources
  std::map<std::string, std::string> sources_;                       // of Dims
};

}  // namespace

bool follows_from_ranges(const ShapeEnv& env, const Expression* condition) {
  auto scratch = make_counted<ShapeEnv>();
  const Expression* same = scratch->translate(condition, [&](const Expression* one) {
    return scratch->declare_symbol(env.symbol(one).name, false, {}, env.symbol(one).range);
  });
  return scratch->known(same) == 1;
}

std::optional<std::string> constraint_violation(ShapeEnv& env, const ConstraintOptions& options) {
  return Checker(env, options).run();
}

void check_constraints(ShapeEnv& env, const ConstraintOptions& options) {
  Checker checker(env, options);
  if (std::optional<std::string> text = checker.run()) throw ConstraintViolationError(*text + checker.origins());
}

Range exported_range(const Symbol& symbol) {
  Range range = symbol.range;
  // An integer among the inputs is declared as PyTorch does it; negative ones are taken all the same.
  if (symbol.backed && range.lower == kMinusInfinity) range.lower = 0;
  if (!symbol.promised) return range;
  if (range.lower == symbol.initial.lower && !symbol.dim.empty()) range.lower = symbol.promised->lower;
  range.upper = std::min(range.upper, symbol.promised->upper);
  return range;
}

Range exported_range(ShapeEnv& env, const Expression* a) {
  auto scratch = make_counted<ShapeEnv>();
  const Expression* same = scratch->translate(env.simplify(a), [&](const Expression* one) {
    const Symbol& symbol = env.symbol(one);
    return scratch->declare_symbol(symbol.name, false, {}, exported_range(symbol));
  });
  return scratch->range(same);
}

}  // namespace umbra::sym
