// Graphs as Python code.
#include <algorithm>

#include "graph/names.h"
#include "umbra/graph/graph_module.h"
#include "umbra/graph/print.h"

namespace umbra::fx {

namespace {

enum class Color { Red, Dim, Blue, DimBlue, DimGreen };
std::string painted(const std::string& text, Color color, bool wanted) {
  constexpr const char* kCodes[] = {"\033[31m", "\033[2m", "\033[34m", "\033[2m\033[34m", "\033[2m\033[32m"};
  return wanted ? concat(kCodes[static_cast<int>(color)], text, "\033[0m") : text;
}

/// `layers.0.weight` as an expression: getattr(self.layers, "0").weight.
std::string attribute_path(const std::string& path) {
  std::string out = "self";
  for (size_t from = 0; from <= path.size();) {
    size_t dot = std::min(path.find('.', from), path.size());
    std::string part = path.substr(from, dot - from);
    out = is_identifier(part) ? out + "." + part : "getattr(" + out + ", \"" + part + "\")";
    from = dot + 1;
  }
  return out;
}

std::string joined(const std::vector<std::string>& items, const char* separator) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i ? separator : "") + items[i];
  return out;
}

std::string call_arguments(const Node& node, size_t first = 0) {
  std::vector<std::string> out;
  for (size_t i = first; i < node.args().size(); ++i) out.push_back(python_repr(node.arg(i)));
  for (const auto& [key, value] : node.kwargs()) out.push_back(key + " = " + python_repr(value));
  return joined(out, ", ");
}

/// Fills "{} + {}" with the arguments; what the format does not ask for is left out.
std::string formatted(const std::string& format, const Node& node) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format.compare(i, 2, "{}") == 0) {
      out += python_repr(node.arg(next++));
      ++i;
    } else {
      out += format[i];
    }
  }
  return out;
}

/// What `operator.iadd` and its like are as statements, which bind the name of what they change anew; empty for other
/// functions.
std::string statement_format(const Node& node) {
  constexpr std::pair<std::string_view, const char*> kStatements[] = {
      {"operator.iadd", "{} += {}"},     {"operator.iand", "{} &= {}"},       {"operator.ifloordiv", "{} //= {}"},
      {"operator.ilshift", "{} <<= {}"}, {"operator.imod", "{} %= {}"},       {"operator.imul", "{} *= {}"},
      {"operator.imatmul", "{} @= {}"},  {"operator.ior", "{} |= {}"},        {"operator.ipow", "{} **= {}"},
      {"operator.irshift", "{} >>= {}"}, {"operator.isub", "{} -= {}"},       {"operator.itruediv", "{} /= {}"},
      {"operator.ixor", "{} ^= {}"},     {"operator.setitem", "{}[{}] = {}"},
  };
  const Function* function = node.op() == Op::CallFunction ? node.target().function() : nullptr;
  if (!function || node.args().empty() || !node.arg(0).is_node()) return "";
  auto found = std::ranges::find(kStatements, std::string_view(function->name), [](const auto& s) { return s.first; });
  return found == std::end(kStatements) ? "" : found->second;
}

class CodePrinter {
 public:
  CodePrinter(const Graph& graph, const CodeOptions& options) : graph_(graph), options_(options) {}

  std::string print() {
    find_last_uses();
    for (Node* node : graph_.nodes()) {
      if (options_.verbose) add_origin(*node);
      add_node(*node);
    }
    if (body_.empty()) body_ = "pass\n";
    body_.erase(0, body_.find_first_not_of('\n'));
    std::string code = "    ";
    for (char c : body_) code += c == '\n' ? std::string("\n    ") : std::string(1, c);
    return "\n" + joined(wrapped_functions(), "\n") + "\n\n" + definition() + "\n" + code;
  }

 private:
  /// Functions that symbolic tracing was told to call whole: who traces the code again has to be told, too.
  std::vector<std::string> wrapped_functions() const {
    std::vector<std::string> out;
    for (const Node* node : graph_.nodes()) {
      if (!node->target().function() || !node->meta.find("is_wrapped")) continue;
      std::string line = "torch.fx._symbolic_trace.wrap(\"" + node->target().function()->code_name() + "\")";
      if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(std::move(line));
    }
    return out;
  }

  /// An operator that is there for what it writes, and what sets the thread's state. PyTorch 2.15 lets go of their
  /// results too, 2.4 did not: code is as 2.4 has it, what is printed to be read as 2.15 has it.
  bool gives_nothing(const Node& node) const {
    if (options_.verbose || !node.is_impure()) return false;
    if (const Operator* op = node.target().op()) return op->schema().is_mutable() || op->schema().name.ends_with('_');
    return node.target().function() && node.target().function()->name.starts_with("torch._C.");
  }

  /// Which values are dead after each node.
  void find_last_uses() {
    std::vector<bool> used(graph_.id_bound());
    released_.resize(graph_.id_bound());
    for (Node* node : graph_.reversed())
      for (Node* input : node->inputs()) {
        if (used[input->id()]) continue;
        used[input->id()] = true;
        released_[node->id()].push_back(name_in_code(*input));
      }
    for (Node* node : graph_.nodes())
      if (node->users().empty() && !gives_nothing(*node)) released_[node->id()].push_back(node->name());
  }

  std::string annotation(const Node& node) const {
    if (!options_.verbose) return "";
    std::string type = type_annotation(node.meta.val, options_);
    return type.empty() ? "" : ": \"" + type + "\"";
  }

  void add_origin(const Node& node) {
    if (node.op() == Op::Placeholder || node.op() == Op::Output) return;
    std::string text = "#";
    if (std::string notes = node.meta.custom ? node.meta.custom->shown() : ""; !notes.empty())
      text += " Annotation: " + notes;
    text += " ";
    std::vector<SourceFrame> frames = node.meta.source ? node.meta.source->frames() : std::vector<SourceFrame>();
    SourceFrame inner = frames.empty() ? SourceFrame() : frames.back();
    std::string function = inner.function.substr(0, inner.function.find("+0x"));
    if (function.empty()) {
      text += "No stacktrace found for following nodes";
    } else if (inner.line == 0) {  // a program without debug information: the function is all that is known
      text += "In " + function;
    } else {
      const Value* backward = node.meta.find("autograd_backward");
      if (backward && backward->to_bool()) text += "Backward of forward node: ";
      text +=
          "File: " + inner.file + ":" + std::to_string(inner.line) + " in " + inner.function + ", code: " + inner.code;
    }
    if (text == last_origin_) return;
    last_origin_ = text;
    body_ += "\n" + painted(text, Color::Dim, options_.colored) + "\n";
  }

  void add_node(const Node& node) {
    std::string left = node.name() + annotation(node) + " = ";
    switch (node.op()) {
      case Op::Placeholder: return add_placeholder(node);
      case Op::Output: return void(body_ += result(node) + "\n");
      case Op::GetAttr: body_ += left + attribute_path(node.target().name()); break;
      case Op::CallModule:
        body_ += left + attribute_path(node.target().name()) + "(" + call_arguments(node) + ")";
        break;
      case Op::CallMethod:
        body_ += left + python_repr(node.arg(0)) + "." + node.target().name() + "(" + call_arguments(node, 1) + ")";
        break;
      case Op::CallFunction: {
        std::string statement = statement_format(node);
        if (statement.empty()) body_ += left + call(node);
        else body_ += formatted(statement, node) + ";  " + left + python_repr(node.arg(0));
        break;
      }
      case Op::Root: return;
    }
    add_releases(node);
  }

  static std::string call(const Node& node) {
    const Function* function = node.target().function();
    if (!function) return node.target().text() + "(" + call_arguments(node) + ")";
    if (function->name == "builtins.getattr" && node.args().size() == 2 && node.arg(1).is_value() &&
        node.arg(1).value().is_string() && is_identifier(node.arg(1).value().to_string()))
      return python_repr(node.arg(0)) + "." + node.arg(1).value().to_string();
    if (!function->format.empty()) return formatted(function->format, node);
    return function->code_name() + "(" + call_arguments(node) + ")";
  }

  void add_placeholder(const Node& node) {
    const std::string& parameter = node.target().name();
    std::string default_value = node.args().empty() ? "" : " = " + python_repr(node.arg(0));
    parameters_.push_back(parameter + annotation(node) + default_value);
    std::string name = parameter.substr(std::min(parameter.find_first_not_of('*'), parameter.size()));
    if (std::string own = name_in_code(node); name != own) body_ += own + " = " + name + "\n";
  }

  void add_releases(const Node& node) {
    std::vector<std::string> names = released_[node.id()];
    if (!names.empty()) {
      names.push_back("None");
      body_ += ";  " + painted(joined(names, " = "), Color::Dim, options_.colored);
    }
    body_ += "\n";
  }

  std::string result(const Node& node) const {
    std::string value = node.args().empty() ? "None" : python_repr(node.arg(0));
    if (graph_.pytree && graph_.pytree->has_output_tree)
      return "return pytree.tree_unflatten(" + value + ", self._out_spec)";
    return "return " + value;
  }

  std::string definition() const {
    auto with_self = [](std::vector<std::string> names) {
      if (names.empty() || names[0] != "self") names.insert(names.begin(), "self");
      return "def forward(" + joined(names, ", ") + "):";
    };
    if (!graph_.pytree) return with_self(parameters_);
    std::string out = with_self(graph_.pytree->arguments);
    return parameters_.empty() ? out : out + flattening(*graph_.pytree);
  }

  /// The lines that take the caller's nested arguments apart into placeholders.
  std::string flattening(const PytreeSignature& tree) const {
    std::vector<std::string> annotated, plain;
    for (const std::string& parameter : parameters_) {
      if (parameter.find(':') != std::string::npos) annotated.push_back(parameter);
      plain.push_back(parameter.substr(0, parameter.find_first_of(":#")));
    }
    std::string out = annotated.empty() ? "" : "\n    " + joined(annotated, "; ") + ";\n";
    out += "\n    " + joined(plain, ", ") + ", = fx_pytree.tree_flatten_spec(";
    if (!tree.keywords) return out + "[" + joined(tree.arguments, ", ") + "], self._in_spec)";
    size_t positional = tree.arguments.size() - std::min(tree.keywords->size(), tree.arguments.size());
    std::vector<std::string> positionals(tree.arguments.begin(),
                                         tree.arguments.begin() + static_cast<ptrdiff_t>(positional));
    std::vector<std::string> keywords;
    for (size_t i = positional; i < tree.arguments.size(); ++i)
      keywords.push_back("'" + (*tree.keywords)[i - positional] + "':" + tree.arguments[i]);
    return out + "([" + joined(positionals, ", ") + "], {" + joined(keywords, ", ") + "}), self._in_spec)";
  }

  const Graph& graph_;
  const CodeOptions& options_;
  std::vector<std::vector<std::string>> released_;  // by node id
  std::vector<std::string> parameters_;
  std::string body_, last_origin_;
};

/// Indents all lines but the first; blank ones stay empty.
std::string indented(const std::string& text) {
  std::string out;
  for (size_t from = 0; from <= text.size();) {
    size_t end = std::min(text.find('\n', from), text.size());
    std::string line = text.substr(from, end - from);
    if (from == 0) out = line;
    else out += line.find_first_not_of(' ') == std::string::npos ? "\n" : "\n    " + line;
    from = end + 1;
  }
  return out;
}

std::string readable_class(const GraphModule& module, const std::string& name, const CodeOptions& options) {
  std::string code = python_code(module.graph(), options);
  code.erase(0, code.find_first_not_of('\n'));
  std::string children;
  for (const auto& [child, submodule] : module.submodules())
    children += "\n" + readable_class(*submodule, child, options);
  return indented("class " + name + "(torch.nn.Module):\n" + code) + indented(children);
}

}  // namespace

bool has_statements(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) { return !statement_format(*node).empty(); });
}

std::string type_annotation(const Value& value, const CodeOptions& options) {
  bool colored = options.colored;
  if (value.is_symbolic()) return "Sym(" + umbra::to_string(value) + ")";
  if (!value.is_tensor()) return "";
  const Tensor& tensor = value.tensor_ref();
  std::string out = painted(short_name(tensor.dtype()), Color::Red, colored);
  out += painted(umbra::to_string(tensor.sym_sizes()), Color::Blue, colored);
  if (options.include_stride) out += painted(umbra::to_string(tensor.sym_strides()), Color::DimBlue, colored);
  if (options.include_device) out += painted(umbra::to_string(tensor.device()), Color::DimGreen, colored);
  return out;
}

std::string python_code(const Graph& graph, const CodeOptions& options) { return CodePrinter(graph, options).print(); }

std::string readable_code(const GraphModule& module, CodeOptions options) {
  options.verbose = true;
  return readable_class(module, module.class_name(), options);
}

}  // namespace umbra::fx
