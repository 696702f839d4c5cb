#include "umbra/export/input_check.h"

#include <cmath>

#include "export/guard_text.h"
#include "umbra/sym/parse.h"
#include "umbra/sym/print.h"

namespace umbra {

// ---- sizes ----

/// Compares the sizes of inputs with what the graph was captured for, giving each symbol its value on the way.
class InputCheck::Sizes {
 public:
  explicit Sizes(const InputCheck& check) : env_(*check.env_), ranges_(check.ranges_) {}

  void number(const std::string& text, SymInt expected, int64_t actual) {
    if (!expected.is_symbolic()) {
      check<InputMismatch>(expected.value() == actual, "Guard failed: ", text, " == ", expected.value());
      return;
    }
    const sym::Expression* e = env_.expression(expected);
    if (e->is(sym::Kind::Symbol) && !bindings_.find(e)) {
      bindings_.set(e, actual);
      first_use_.emplace(e, text);
      check_range(text, promised_range(env_.symbol(e)), actual);
      return;
    }
    if (auto range = ranges_.find(sym::to_text(e)); range != ranges_.end() && !e->is(sym::Kind::Symbol))
      check_range(text, range->second, actual);
    pending_.push_back({text, e, actual});
  }

  /// A size that is symbolic itself, in a capture of the program: it is held to what the program was captured for.
  void symbol(const std::string& text, SymInt expected, SymInt actual) {
    auto hold = [&](const SymBool& condition, const std::string& guard) {
      check<InputMismatch>(actual.has_hint() ? condition.guard_bool() : condition.expect_true(guard.c_str()),
                           "Guard failed: ", guard);
    };
    if (!expected.is_symbolic())
      return hold(sym_compare(SymOp::Eq, actual, expected), concat(text, " == ", expected.value()));
    const sym::Expression* e = env_.expression(expected);
    if (!e->is(sym::Kind::Symbol)) return;
    auto [first, is_new] = symbolic_.try_emplace(e, text, actual);
    if (!is_new) return hold(sym_compare(SymOp::Eq, actual, first->second.second), text + " == " + first->second.first);
    sym::Range range = promised_range(env_.symbol(e));
    if (fits_int64(range.upper)) {
      int64_t upper = to_int64(range.upper);
      hold(sym_compare(SymOp::Le, actual, upper), concat(text, " <= ", upper));
    }
    if (range.lower > 2) {
      int64_t lower = to_int64(range.lower);
      hold(sym_compare(SymOp::Ge, actual, lower), concat(text, " >= ", lower));
    }
  }

  /// Expressions can be checked once all symbols have values. A symbol that stands in no size by itself follows from
  /// the first one that it determines.
  void finish() {
    for (const Pending& p : pending_) solve(p);
    for (const Pending& p : pending_) {
      std::optional<sym::Number> value = env_.evaluate(p.expected, bindings_);
      if (!value && !all_bound(p.expected)) continue;
      auto same = first_use_.find(p.expected);
      std::string expected = same != first_use_.end() ? same->second : p.expected->to_string();
      check<InputMismatch>(value && value->integer == p.actual, "Guard failed: ", p.text, " == ", expected);
    }
  }

 private:
  struct Pending {
    std::string text;
    const sym::Expression* expected;
    int64_t actual;
  };

  static sym::Range promised_range(const sym::Symbol& symbol) {
    return symbol.promised ? symbol.range.intersect(*symbol.promised) : symbol.range;
  }

  static void check_range(const std::string& text, const sym::Range& range, int64_t actual) {
    check<InputMismatch>(!range.is_point() || range.lower <= 2 || actual == range.lower, "Guard failed: ", text,
                         " == ", integer_text(range.lower));
    check<InputMismatch>(actual <= range.upper, "Guard failed: ", text, " <= ", integer_text(range.upper));
    // A lower bound of 2 comes from the example not having been 0 or 1, not from the program; what the program makes of
    // that stands among its assumptions.
    check<InputMismatch>(range.lower <= 2 || actual >= range.lower, "Guard failed: ", text,
                         " >= ", integer_text(range.lower));
  }

  bool all_bound(const sym::Expression* a) const {
    for (const sym::Expression* symbol : sym::free_symbols(a))
      if (!bindings_.find(symbol)) return false;
    return true;
  }

  void solve(const Pending& p) {
    std::vector<const sym::Expression*> unknown;
    for (const sym::Expression* s : sym::free_symbols(p.expected))
      if (!bindings_.find(s)) unknown.push_back(s);
    if (unknown.size() != 1) return;
    auto at = [&](int64_t value) {
      sym::Bindings trial = bindings_;
      trial.set(unknown[0], value);
      return env_.evaluate(p.expected, trial);
    };
    std::optional<sym::Number> zero = at(0), one = at(1);
    Integer slope = zero && one ? one->integer - zero->integer : 0;
    if (slope == 0) return;
    int64_t root = to_int64((p.actual - zero->integer) / slope);
    bindings_.set(unknown[0], root);
    // What is promised of the root, in terms of the size.
    sym::Range range = promised_range(env_.symbol(unknown[0]));
    auto size_at = [&](Integer value) { return integer_text(slope * value + zero->integer); };
    if (range.lower > 2 && root < range.lower)
      fail<InputMismatch>("Guard failed: ", p.text, slope > 0 ? " >= " : " <= ", size_at(range.lower));
    if (root > range.upper)  // the bound may be the largest number there is: a text of it is made where it is asked for
      fail<InputMismatch>("Guard failed: ", p.text, slope > 0 ? " <= " : " >= ", size_at(range.upper));
  }

  sym::ShapeEnv& env_;
  const std::unordered_map<std::string, sym::Range>& ranges_;
  sym::Bindings bindings_;
  std::unordered_map<const sym::Expression*, std::string> first_use_;
  std::unordered_map<const sym::Expression*, std::pair<std::string, SymInt>> symbolic_;  // what stands for a symbol
  std::vector<Pending> pending_;
};

// ---- preparing ----

namespace {

/// What guards call each flat input ("parts['b'][0]"), and its place in a call ("*args[1]['b'][0]").
std::vector<std::pair<std::string, std::string>> input_texts(const ExportedProgram& program) {
  std::vector<std::pair<std::string, std::string>> texts;
  if (program.in_spec.children.size() != 2) return texts;
  const TreeSpec& positional = program.in_spec.children[0];
  const TreeSpec& keywords = program.in_spec.children[1];
  auto add = [&](const std::string& name, const std::string& place, const TreeSpec& spec) {
    for (const std::string& path : leaf_paths(spec)) texts.emplace_back(name + path, place + path);
  };
  for (size_t i = 0; i < positional.children.size(); ++i) {
    std::string place = "args[" + std::to_string(i) + "]";
    bool named = i < program.argument_names.size();
    add(named ? program.argument_names[i] : place, "*" + place, positional.children[i]);
  }
  for (size_t i = 0; i < keywords.children.size(); ++i)
    add(keywords.keys[i], "'" + keywords.keys[i] + "'", keywords.children[i]);
  return texts;
}

/// What users are told, "parts['b'][0]", as guards have it: "L['parts']['b'][0]".
std::string guard_source(const std::string& text) {
  size_t end = text.find_first_of("[.");
  return "L['" + text.substr(0, end) + "']" + (end == std::string::npos ? "" : text.substr(end));
}

/// "L['x'].size()[0] > 4" as users are told of it: "x.size()[0] > 4".
std::string without_locals(std::string text) {
  for (size_t at; (at = text.find("L['")) != std::string::npos;) {
    text.erase(at, 3);
    text.erase(text.find("']", at), 2);
  }
  return text;
}

/// "L['xs'][1].size()[0]", of an element of the function's own `*xs`, by the other names that the element goes by: that
/// of its placeholder, "L['xs_1'].size()[0]", or where inputs have no names, "L['args'][1].size()[0]". Of `**kw`,
/// "L['kw']['z']" is "L['z']".
std::vector<std::string> other_names(std::string_view path) {
  size_t end = path.find("'][");
  if (!path.starts_with("L['") || end == std::string_view::npos) return {};
  if (path.substr(end).starts_with("']['")) return {"L" + std::string(path.substr(end + 2))};
  size_t close = path.find(']', end + 2);
  std::string name(path.substr(3, end - 3)), number(path.substr(end + 3, close - end - 3)),
      rest(path.substr(close + 1));
  return {"L['" + name + "_" + number + "']" + rest, "L['args'][" + number + "]" + rest};
}

/// The input or the size that is this symbol; empty where none is.
std::string source_of(const ExportedProgram& program, const sym::Expression* symbol) {
  auto is_symbol = [&](SymInt number) { return number.is_symbolic() && number.node() == symbol; };
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  auto texts = input_texts(program);
  size_t next = 0;
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    if (spec.kind != InputKind::ConstantInput && spec.kind != InputKind::UserInput) continue;
    std::string source = guard_source(next < texts.size() ? texts[next].first : spec.name);
    ++next;
    const Value& value = placeholders.at(i)->meta.val;
    if (value.is_sym_int() && is_symbol(value.to_sym_int())) return source;
    for (int64_t d = 0; value.is_tensor() && d < value.tensor_ref().dim(); ++d)
      if (is_symbol(value.tensor_ref().sym_sizes()[d])) return concat(source, ".size()[", d, "]");
  }
  return {};
}

}  // namespace

std::string guard_text(const ExportedProgram& program, const sym::Expression* condition) {
  return sym::to_python(condition, [&](const sym::Expression* symbol) {
    std::string source = source_of(program, symbol);
    return source.empty() ? symbol->to_string() : source;
  });
}

InputCheck::InputCheck(const ExportedProgram& program) : env_(program.shape_env) {
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  auto texts = input_texts(program);
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    bool constant = spec.kind == InputKind::ConstantInput;
    if (!constant && spec.kind != InputKind::UserInput) continue;
    size_t next = inputs_.size();
    auto [text, path] = next < texts.size() ? texts[next] : std::pair(spec.name, spec.name);
    inputs_.push_back({text, path, constant, constant ? spec.value : placeholders.at(i)->meta.val});
  }
  for (const RangeConstraint& r : program.ranges) ranges_.emplace(r.expression, r.range);
  read_guards(program.guards);
}

// The conditions that branches of the captured code left behind: Python expressions over the inputs' sizes.
void InputCheck::read_guards(const std::vector<std::string>& guards) {
  if (guards.empty()) return;
  guards_env_ = make_counted<sym::ShapeEnv>();
  std::unordered_map<std::string, Source> places;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    std::string path = guard_source(inputs_[i].text);
    places.emplace(path, Source{i, -1, nullptr});
    int64_t rank = inputs_[i].expected.is_tensor() ? inputs_[i].expected.tensor_ref().dim() : 0;
    for (int64_t d = 0; d < rank; ++d)
      places.emplace(path + ".size()[" + std::to_string(d) + "]", Source{i, d, nullptr});
  }
  sym::ParseOptions options;
  options.source = [&](std::string_view path) {
    auto place = places.find(std::string(path));
    for (const std::string& name : other_names(path))
      if (place == places.end()) place = places.find(name);
    if (place == places.end()) return guards_env_->declare_symbol(path, false);
    if (!place->second.symbol) {  // guards may call one size by several names
      place->second.symbol = guards_env_->declare_symbol(path, false);
      sources_.push_back(place->second);
    }
    return place->second.symbol;
  };
  for (const std::string& guard : guards) {
    conditions_.push_back({without_locals(guard), nullptr});
    try {
      conditions_.back().condition = sym::parse(*guards_env_, guard, options);
    } catch (const ValueError&) {
      // A form that we do not read: the program can be looked at, but a call is refused.
    }
  }
}

// ---- checking ----

void InputCheck::run(const std::vector<Value>& inputs) const {
  check<ValueError>(inputs.size() == inputs_.size(), "the program takes ", inputs_.size(),
                    inputs_.size() == 1 ? " input, " : " inputs, ", inputs.size(),
                    inputs.size() == 1 ? " was given" : " were given");
  try {
    run_checks(inputs);
  } catch (const InputMismatch& mismatch) {
    std::string explanation = explain(inputs);
    if (explanation.empty()) throw;
    throw InputMismatch(concat(mismatch.what(), "\n", explanation));
  }
}

void InputCheck::run_checks(const std::vector<Value>& inputs) const {
  Sizes sizes(*this);
  for (size_t i = 0; i < inputs.size(); ++i) check_input(inputs_[i], inputs[i], sizes);
  check_conditions(inputs);
  sizes.finish();
}

namespace {

/// Numbers are the same whatever their types are: 3.0 is 3, as in Python; and what is not a number is what is not one.
bool same_constant(const Value& actual, const Value& expected) {
  auto number = [](const Value& v) { return v.is_int() || v.is_bool() || v.is_double(); };
  if (number(actual) && number(expected))
    return actual.to_double() == expected.to_double() ||
           (std::isnan(actual.to_double()) && std::isnan(expected.to_double()));
  return actual.equals(expected);
}

}  // namespace

void InputCheck::check_input(const Input& input, const Value& actual, Sizes& sizes) const {
  const auto& [text, path, is_constant, expected] = input;
  if (is_constant) {
    check<InputMismatch>(same_constant(actual, expected), "Guard failed: ", text, " == ", to_string(expected));
  } else if (expected.is_tensor()) {
    check<TypeError>(actual.is_tensor(), "input ", text, " should be a tensor, got ", tag_name(actual.tag()));
    const Tensor& want = expected.tensor_ref();
    const Tensor& have = actual.tensor_ref();
    for (int64_t d = 0; d < std::min(want.dim(), have.dim()); ++d) {
      SymInt size = have.sym_sizes()[d], promised = want.sym_sizes()[d];
      std::string place = concat(text, ".size()[", d, "]");
      if (size.is_symbolic()) sizes.symbol(place, promised, size);
      else if (!size.same(promised)) sizes.number(place, promised, size.value());
    }
    check<InputMismatch>(want.dim() >= have.dim(), "Guard failed: len(", text, ".size()) == ", want.dim());
    check<InputMismatch>(want.dim() == have.dim(), "Guard failed: len(", text, ".size()) > ", have.dim());
    check<InputMismatch>(want.dtype() == have.dtype(), "Guard failed: ", text, ".dtype == ", want.dtype());
  } else if (expected.is_sym_int()) {
    if (actual.is_sym_int()) return;
    check<TypeError>(actual.is_int() || actual.is_bool(), "input ", text, " should be an int, got ",
                     tag_name(actual.tag()));
    sizes.number(text, expected.to_sym_int(), actual.to_int());
  }
}

void InputCheck::check_conditions(const std::vector<Value>& inputs) const {
  sym::Bindings bindings;
  std::unordered_map<const sym::Expression*, SymInt> symbolic;
  for (const Source& source : sources_) {
    const Value& input = inputs[source.input];
    SymInt value;
    if (source.dim < 0 && (input.is_int() || input.is_sym_int())) value = input.to_sym_int();
    else if (source.dim >= 0 && input.is_tensor()) value = input.tensor_ref().sym_sizes()[source.dim];
    else continue;
    if (value.is_symbolic()) symbolic.emplace(source.symbol, value);
    else bindings.set(source.symbol, value.value());
  }
  for (const Condition& c : conditions_) {
    check<InputMismatch>(c.condition, "Guard cannot be read, so the call is refused: ", c.text);
    if (!symbolic.empty() && check_symbolically(c, bindings, symbolic)) continue;
    // A condition without a value (it divides by zero, it does not fit) is not met.
    std::optional<sym::Number> holds = guards_env_->evaluate(c.condition, bindings);
    if (!holds || holds->integer == 0) fail<InputMismatch>("Guard failed: ", c.text, given(c, bindings));
  }
}

std::string InputCheck::given(const Condition& c, const sym::Bindings& bindings) const {
  std::vector<const sym::Expression*> used = sym::free_symbols(c.condition);
  std::string text;
  for (const Source& source : sources_) {
    const sym::Number* value = bindings.find(source.symbol);
    if (!value || std::find(used.begin(), used.end(), source.symbol) == used.end()) continue;
    std::string size = inputs_[source.input].text;
    if (source.dim >= 0) size += ".size()[" + std::to_string(source.dim) + "]";
    text += (text.empty() ? "\n" : ", ") + size + " is " + integer_text(value->integer);
  }
  return text;
}

/// A condition on inputs with symbolic sizes, asked in their environment. False where it is on other inputs only.
bool InputCheck::check_symbolically(const Condition& c, const sym::Bindings& bindings,
                                    const std::unordered_map<const sym::Expression*, SymInt>& symbolic) const {
  sym::ShapeEnv* env = nullptr;
  for (const sym::Expression* symbol : sym::free_symbols(c.condition))
    if (auto found = symbolic.find(symbol); found != symbolic.end())
      env = &static_cast<const sym::Expression*>(found->second.node())->env();
  if (!env) return false;
  const sym::Expression* condition = env->translate(c.condition, [&](const sym::Expression* symbol) {
    if (auto found = symbolic.find(symbol); found != symbolic.end()) return env->expression(found->second);
    const sym::Number* value = bindings.find(symbol);
    check<InputMismatch>(value, "Guard failed: ", c.text);
    return env->table().integer(value->integer);
  });
  check<InputMismatch>(sym::ShapeEnv::sym_bool(condition).expect_true(c.text.c_str()), "Guard failed: ", c.text);
  return true;
}

}  // namespace umbra
