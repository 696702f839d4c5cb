#include "umbra/export/exported_program.h"

#include <ostream>

#include "umbra/generated/functions.h"
#include "umbra/graph/print.h"
#include "umbra/sym/parse.h"
#include "umbra/sym/print.h"

namespace umbra {

Tensor ExportedProgram::find(const std::string& name) const {
  for (const NamedTensors* list : {&state, &constants})
    for (const auto& [key, tensor] : *list)
      if (key == name) return tensor;
  return Tensor();
}

ExportedModule ExportedProgram::module() const { return ExportedModule(*this); }

// ---- checking inputs ----

namespace {

/// Compares the sizes of inputs with what the graph was captured for, giving each symbol its value on the way.
class InputCheck {
 public:
  explicit InputCheck(const ExportedProgram& program) : program_(program) {}

  void number(const std::string& text, SymInt expected, int64_t actual) {
    if (!expected.is_symbolic()) {
      check<AssertionError>(expected.value() == actual, "Guard failed: ", text, " == ", expected.value());
      return;
    }
    const sym::Expression* e = program_.shape_env->expression(expected);
    if (e->is(sym::Kind::Symbol) && !bindings_.find(e)) {
      bindings_.set(e, actual);
      first_use_.emplace(e, text);
      check_range(text, program_.shape_env->symbol(e), actual);
      return;
    }
    pending_.push_back({text, e, actual});
  }

  /// Expressions can be checked once all symbols have values. A symbol that stands in no size by itself follows from the first one that
  /// it determines.
  void finish() {
    for (const Pending& p : pending_) solve(p);
    for (const Pending& p : pending_) {
      std::optional<sym::Number> value = program_.shape_env->evaluate(p.expected, bindings_);
      if (!value) continue;
      auto same = first_use_.find(p.expected);
      std::string expected = same != first_use_.end() ? same->second : p.expected->to_string();
      check<AssertionError>(value->integer == p.actual, "Guard failed: ", p.text, " == ", expected);
    }
  }

 private:
  static void check_range(const std::string& text, const sym::Symbol& symbol, int64_t actual) {
    sym::Range range = symbol.range;
    if (symbol.promised) range = range.intersect(*symbol.promised);
    check<AssertionError>(actual <= range.upper, "Guard failed: ", text, " <= ", range.upper);
    // A lower bound of 2 comes from the example not having been 0 or 1, not from the program.
    check<AssertionError>(range.lower <= 2 || actual >= range.lower, "Guard failed: ", text, " >= ", range.lower);
  }

  struct Pending;

  void solve(const Pending& p) {
    std::vector<const sym::Expression*> unknown;
    for (const sym::Expression* s : sym::free_symbols(p.expected))
      if (!bindings_.find(s)) unknown.push_back(s);
    if (unknown.size() != 1) return;
    auto at = [&](int64_t value) {
      sym::Bindings trial = bindings_;
      trial.set(unknown[0], value);
      return program_.shape_env->evaluate(p.expected, trial);
    };
    std::optional<sym::Number> zero = at(0), one = at(1);
    int64_t slope = zero && one ? one->integer - zero->integer : 0;
    if (slope == 0) return;
    int64_t root = (p.actual - zero->integer) / slope;
    bindings_.set(unknown[0], root);
    check_range(p.text + " in terms of " + unknown[0]->to_string(), program_.shape_env->symbol(unknown[0]), root);
  }

  struct Pending {
    std::string text;
    const sym::Expression* expected;
    int64_t actual;
  };
  const ExportedProgram& program_;
  sym::Bindings bindings_;
  std::unordered_map<const sym::Expression*, std::string> first_use_;
  std::vector<Pending> pending_;
};

std::vector<std::string> input_texts(const ExportedProgram& program) {
  std::vector<std::string> texts;
  if (program.in_spec.children.size() != 2) return texts;
  const TreeSpec& positional = program.in_spec.children[0];
  const TreeSpec& keywords = program.in_spec.children[1];
  auto add = [&](const std::string& name, const TreeSpec& spec) {
    for (const std::string& path : leaf_paths(spec)) texts.push_back(name + path);
  };
  for (size_t i = 0; i < positional.children.size(); ++i)
    add(i < program.argument_names.size() ? program.argument_names[i] : "args[" + std::to_string(i) + "]", positional.children[i]);
  for (size_t i = 0; i < keywords.children.size(); ++i) add(keywords.keys[i], keywords.children[i]);
  return texts;
}

void check_constant(const std::string& text, const Value& expected, const Value& actual) {
  check<AssertionError>(actual.equals(expected), "Guard failed: ", text, " == ", to_string(expected));
}

// The conditions that branches of the captured code left behind: Python expressions over the inputs' sizes.
void check_guards(const ExportedProgram& program, const std::vector<std::string>& texts, const std::vector<Value>& inputs) {
  if (program.guards.empty()) return;
  std::unordered_map<std::string, int64_t> sizes;
  for (size_t i = 0; i < inputs.size() && i < texts.size(); ++i) {
    size_t end = texts[i].find_first_of("[.");
    std::string path = "L['" + texts[i].substr(0, end) + "']" + (end == std::string::npos ? "" : texts[i].substr(end));
    if (inputs[i].is_int()) sizes[path] = inputs[i].to_int();
    if (!inputs[i].is_tensor() || inputs[i].tensor_ref().is_symbolic()) continue;
    for (int64_t d = 0; d < inputs[i].tensor_ref().dim(); ++d)
      sizes[path + ".size()[" + std::to_string(d) + "]"] = inputs[i].tensor_ref().size(d);
  }
  auto env = make_counted<sym::ShapeEnv>();
  bool known = true;
  sym::ParseOptions options;
  options.source = [&](std::string_view path) {
    auto found = sizes.find(std::string(path));
    known &= found != sizes.end();
    return env->table().integer(found == sizes.end() ? 1 : found->second);
  };
  for (const std::string& guard : program.guards) {
    known = true;
    const sym::Expression* condition = nullptr;
    try {
      condition = sym::parse(*env, guard, options);
    } catch (const ValueError&) {
      continue;  // a form that we do not read: sizes and ranges were checked all the same
    }
    if (!known || !condition->is(sym::Kind::Boolean) || condition->truth()) continue;
    std::string text = guard;
    for (size_t at; (at = text.find("L['")) != std::string::npos;) {
      text.erase(at, 3);
      text.erase(text.find("']", at), 2);
    }
    fail<AssertionError>("Guard failed: ", text);
  }
}

}  // namespace

void check_inputs(const ExportedProgram& program, const std::vector<Value>& inputs) {
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  std::vector<std::string> texts = input_texts(program);
  InputCheck checker(program);
  size_t next = 0;
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    if (spec.kind != InputKind::UserInput && spec.kind != InputKind::ConstantInput) continue;
    check<ValueError>(next < inputs.size(), "the program takes ", program.signature.user_inputs().size(), " inputs, ", inputs.size(),
                      " were given");
    const Value& actual = inputs[next];
    std::string text = next < texts.size() ? texts[next] : spec.name;
    ++next;
    const Value& expected = placeholders.at(i)->meta.val;
    if (spec.kind == InputKind::ConstantInput) {
      check_constant(text, spec.value, actual);
    } else if (expected.is_tensor()) {
      check<TypeError>(actual.is_tensor(), "input ", text, " should be a tensor, got ", tag_name(actual.tag()));
      const Tensor& want = expected.tensor_ref();
      const Tensor& have = actual.tensor_ref();
      check<AssertionError>(want.dim() == have.dim(), "Guard failed: len(", text, ".size()) == ", want.dim());
      check<AssertionError>(want.dtype() == have.dtype(), "Guard failed: ", text, ".dtype == ", want.dtype());
      for (int64_t d = 0; d < want.dim(); ++d)
        if (!have.sym_sizes()[d].is_symbolic())
          checker.number(text + ".size()[" + std::to_string(d) + "]", want.sym_sizes()[d], have.sym_sizes()[d].value());
    } else if (expected.is_sym_int() && actual.is_int()) {
      checker.number(text, expected.to_sym_int(), actual.to_int());
    }
  }
  check_guards(program, texts, inputs);
  check<ValueError>(next == inputs.size(), "the program takes ", next, " inputs, ", inputs.size(), " were given");
  checker.finish();
}

// ---- running ----

std::vector<Value> ExportedModule::run(const std::vector<Value>& inputs) const {
  check_inputs(program_, inputs);
  std::vector<Value> all;
  size_t next = 0;
  for (const InputSpec& spec : program_.signature.inputs) {
    if (spec.kind == InputKind::UserInput || spec.kind == InputKind::ConstantInput) all.push_back(inputs[next++]);
    else all.push_back(Value(program_.find(spec.target)));
  }
  std::vector<Value> results = program_.graph_module->run(all);
  std::vector<Value> user;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = program_.signature.outputs.at(i);
    switch (spec.kind) {
      case OutputKind::BufferMutation:
      case OutputKind::ParameterMutation: program_.find(spec.target).detach().copy_(results[i].tensor()); break;
      case OutputKind::UserInputMutation:
        for (size_t k = 0; k < program_.signature.inputs.size(); ++k)
          if (program_.signature.inputs[k].name == spec.target) all[k].tensor().copy_(results[i].tensor());
        break;
      default: user.push_back(std::move(results[i]));
    }
  }
  return user;
}

// ---- text ----

std::string to_string(const ExportedProgram& program) {
  auto indent = [](const std::string& text) {
    std::string out = "    ";
    for (char c : text) {
      out += c;
      if (c == '\n') out += "    ";
    }
    return out;
  };
  std::string out = "ExportedProgram:\n" + indent(fx::readable_code(*program.graph_module)) + "\nGraph signature:\n" + indent(to_string(program.signature).substr(1));
  out += "\nRange constraints: {";
  for (size_t i = 0; i < program.ranges.size(); ++i) {
    const RangeConstraint& r = program.ranges[i];
    std::string range = to_string(r.range);
    out += (i ? ", " : "") + r.expression + ": VR" + range;
  }
  return out + "}\n";
}

std::ostream& operator<<(std::ostream& out, const ExportedProgram& program) { return out << to_string(program); }

}  // namespace umbra
