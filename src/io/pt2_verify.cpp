#include "umbra/io/pt2_verify.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "umbra/core/error.h"

namespace umbra::io::pt2 {
namespace {

enum class ValueKind { Tensor, SymInt, SymFloat, SymBool, CustomObject };

using NameVisitor = std::function<void(const std::string&, ValueKind)>;

// Plain values name nothing; without these they would convert to unions that may.
void visit_name(const std::string&, const NameVisitor&) {}
void visit_name(int64_t, const NameVisitor&) {}
void visit_name(double, const NameVisitor&) {}
void visit_name(bool, const NameVisitor&) {}
void visit_name(const TensorArgument& value, const NameVisitor& visit) { visit(value.name, ValueKind::Tensor); }
void visit_name(const CustomObjArgument& value, const NameVisitor& visit) {
  visit(value.name, ValueKind::CustomObject);
}
void visit_name(const OptionalTensorArgument& value, const NameVisitor& visit) {
  if (value) visit_name(*value, visit);
}
void visit_name(const SymIntArgument& value, const NameVisitor& visit) {
  if (auto* name = std::get_if<std::string>(&value)) visit(*name, ValueKind::SymInt);
}
void visit_name(const SymFloatArgument& value, const NameVisitor& visit) {
  if (auto* name = std::get_if<std::string>(&value)) visit(*name, ValueKind::SymFloat);
}
void visit_name(const SymBoolArgument& value, const NameVisitor& visit) {
  if (auto* name = std::get_if<std::string>(&value)) visit(*name, ValueKind::SymBool);
}
void visit_names(const Argument& argument, const NameVisitor& visit);
void visit_name(const Entry<Argument>& entry, const NameVisitor& visit) { visit_names(entry.value, visit); }
template <class T> void visit_name(const std::vector<T>& values, const NameVisitor& visit) {
  if constexpr (requires(const T& value) { visit_name(value, visit); })
    for (const T& value : values) visit_name(value, visit);
}

/// Calls `visit` for every value that the argument names, subgraphs excluded: those have names of their own.
void visit_names(const Argument& argument, const NameVisitor& visit) {
  std::visit(
      [&](const auto& value) {
        if constexpr (requires { visit_name(value, visit); }) visit_name(value, visit);
      },
      argument.value);
}

/// Functions that programs call beside operators: those that PyTorch's files have, and others of numbers, which PyTorch
/// cannot save.
bool is_known_function(std::string_view target) {
  constexpr std::string_view kOperators[] = {"add", "sub",  "mul", "floordiv", "mod",    "pow", "truediv",
                                             "neg", "pos",  "eq",  "ne",       "lt",     "le",  "gt",
                                             "ge",  "and_", "or_", "lshift",   "rshift", "xor", "not_"};
  constexpr std::string_view kFunctions[] = {"math.trunc",    "math.floor",    "math.ceil",       "math.pow",
                                             "torch.sym_not", "torch.sym_int", "torch.sym_float", "torch.sym_ite",
                                             "torch.sym_max", "torch.sym_min", "torch.sym_and",   "torch.sym_or",
                                             "torch.sym_sum", "builtins.round"};
  constexpr std::string_view kOfFloats[] = {"sqrt", "sin",  "cos",  "tan",  "sinh", "cosh",
                                            "tanh", "asin", "acos", "atan", "log2"};
  if (target.starts_with("torch._functorch.predispatch.")) return true;  // the parts of a vmap
  auto is_one_of = [](const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != std::end(names);
  };
  if (target.starts_with("_operator.")) return is_one_of(kOperators, target.substr(10));
  for (std::string_view prefix : {"torch._sym_", "math."})
    if (target.starts_with(prefix) && is_one_of(kOfFloats, target.substr(prefix.size()))) return true;
  return is_one_of(kFunctions, target);
}

class Verifier {
 public:
  explicit Verifier(std::string label) : label_(std::move(label)) {}

  void program(const ExportedProgram& program) {
    graph(program.graph_module.graph);
    signature(program.graph_module.graph, program.graph_module.signature);
    for (const auto& [symbol, range] : program.range_constraints)
      if (range.min_val && range.max_val && *range.min_val > *range.max_val)
        refuse("the range of '", symbol, "' is reversed: from ", *range.min_val, " to ", *range.max_val);
  }

 private:
  template <class... Args> [[noreturn]] void refuse(const Args&... args) const {
    fail<ValueError>("'", label_, "' is not a valid program: ", args...);
  }

  /// The names of one graph: which are described, and which are defined so far.
  struct Scope {
    std::unordered_set<std::string_view> described[5], defined[5];
  };

  template <class T> void describe(Scope& scope, ValueKind kind, const Named<T>& values) const {
    for (const auto& item : values) scope.described[static_cast<int>(kind)].insert(item.name);
  }

  void graph(const Graph& graph) const {
    Scope scope;
    describe(scope, ValueKind::Tensor, graph.tensor_values);
    describe(scope, ValueKind::SymInt, graph.sym_int_values);
    describe(scope, ValueKind::SymFloat, graph.sym_float_values);
    describe(scope, ValueKind::SymBool, graph.sym_bool_values);
    describe(scope, ValueKind::CustomObject, graph.custom_obj_values);
    for (const Argument& input : graph.inputs) define(scope, input, "an input");
    for (const Node& node : graph.nodes) this->node(scope, node);
    for (const Argument& output : graph.outputs) use(scope, output, "an output");
  }

  void node(Scope& scope, const Node& node) const {
    target(node.target);
    std::string what = concat("a node of '", node.target, "'");
    // The operands of a higher-order operator stand in a list of tensors, whatever they are.
    bool any_kind = node.target.starts_with("torch.ops.higher_order.");
    for (const NamedArgument& input : node.inputs) use(scope, input.arg, what, any_kind);
    for (const Argument& output : node.outputs) define(scope, output, what);
  }

  /// torch.ops.<namespace>.<operator>.<overload>, a higher-order operator, a known function, or a registered
  /// extension.
  void target(const std::string& target) const {
    bool is_operator =
        target.starts_with("torch.ops.") && target.find("..") == std::string::npos && target.back() != '.';
    if (!is_operator && !target.starts_with('#') && !is_known_function(target))
      refuse("the target '", target, "' is no operator");
  }

  void define(Scope& scope, const Argument& argument, const std::string& what) const {
    visit_names(argument, [&](const std::string& name, ValueKind kind) {
      int k = static_cast<int>(kind);
      if (!scope.described[k].contains(name)) refuse("the value '", name, "' of ", what, " has no description");
      if (!scope.defined[k].insert(name).second) refuse("the value '", name, "' is defined twice");
    });
  }

  void use(const Scope& scope, const Argument& argument, const std::string& what, bool any_kind = false) const {
    visit_names(argument, [&](const std::string& name, ValueKind kind) {
      auto defines = [&](const auto& names) { return names.contains(name); };
      if (!(any_kind ? std::ranges::any_of(scope.defined, defines) : defines(scope.defined[static_cast<int>(kind)])))
        refuse(what, " uses '", name, "', which nothing before it defines");
    });
    if (auto* subgraph = argument.get<GraphArgument>()) graph(*subgraph->graph);
  }

  // ---- signature ----
  /// The name a graph input or output has, or "" for constants.
  static std::string name_of(const Argument& argument) {
    std::string result;
    visit_names(argument, [&](const std::string& name, ValueKind) { result = name; });
    return result;
  }
  static std::string name_of(const TensorArgument& argument) { return argument.name; }
  static std::string name_of(const CustomObjArgument& argument) { return argument.name; }

  template <class Spec>
  void match(const std::vector<Argument>& arguments, const std::vector<Spec>& specs, const char* what) const {
    if (arguments.size() != specs.size())
      refuse("the graph has ", arguments.size(), " ", what, "s, and its signature ", specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      std::string graph_name = name_of(arguments[i]);
      std::visit(
          [&](const auto& spec) {
            if constexpr (requires { spec.arg; })
              if (name_of(spec.arg) != graph_name)
                refuse(what, " ", i, " is '", graph_name, "' in the graph and '", name_of(spec.arg),
                       "' in its signature");
          },
          specs[i]);
    }
  }

  void signature(const Graph& graph, const GraphSignature& signature) const {
    match(graph.inputs, signature.input_specs, "input");
    match(graph.outputs, signature.output_specs, "output");
  }

  std::string label_;
};

}  // namespace

void verify(const ExportedProgram& program, const std::string& label) { Verifier(label).program(program); }

}  // namespace umbra::io::pt2
