// From the plain data of a .pt2 file to an ExportedProgram.
#include <unordered_map>
#include <unordered_set>

#include "annotations.h"
#include "export/used_symbols.h"
#include "umbra/fake/fake_mode.h"
#include "umbra/graph/operator_value.h"
#include "umbra/graph/origin.h"
#include "umbra/graph/passes.h"
#include "umbra/io/program.h"
#include "umbra/io/pt2_program.h"
#include "umbra/sym/parse.h"

namespace umbra::io {

namespace {

/// Builds one graph; subgraphs are built by readers of their own that share the symbols.
class GraphReader {
 public:
  GraphReader(FakeModeImpl& mode, const pt2::Graph& from, fx::GraphModule& module)
      : mode_(mode), from_(from), module_(module), graph_(module.graph()) {
    for (const auto& [name, meta] : from.tensor_values) tensors_.emplace(name, &meta);
    for (const auto& [name, v] : from.sym_int_values) numbers_.emplace(name, Value(sym_int(v)));
    for (const auto& [name, v] : from.sym_float_values) numbers_.emplace(name, sym_float(v));
    for (const auto& [name, v] : from.sym_bool_values) numbers_.emplace(name, sym_bool(v));
  }

  /// `names` gives the placeholders that the inputs themselves leave nameless: constants.
  void read(const std::vector<std::string>& names) {
    for (size_t i = 0; i < from_.inputs.size(); ++i)
      input(from_.inputs[i], i < names.size() ? names[i] : "arg" + std::to_string(i));
    for (const pt2::Node& node : from_.nodes) call(node);
    fx::Arguments results;
    for (const pt2::Argument& a : from_.outputs) results.push_back(argument(a));
    if (from_.is_single_tensor_return && results.size() == 1) graph_.output(results[0]);
    else graph_.output(fx::Argument::tuple(std::move(results)));
  }

 private:
  // ---- symbols and metadata ----

  const sym::Expression* expression(const pt2::SymExpr& e) { return sym::parse(*mode_.shape_env(), e.expr_str); }
  SymInt sym_int(const pt2::SymIntValue& v) {
    if (const int64_t* number = std::get_if<int64_t>(&v)) return *number;
    return sym::ShapeEnv::sym_int(expression(std::get<pt2::SymExpr>(v)));
  }
  Value sym_float(const pt2::SymFloatValue& v) {
    if (const double* number = std::get_if<double>(&v)) return *number;
    return sym::ShapeEnv::sym_float(expression(std::get<pt2::SymExpr>(v)));
  }
  Value sym_bool(const pt2::SymBoolValue& v) {
    if (const bool* truth = std::get_if<bool>(&v)) return *truth;
    return sym::ShapeEnv::sym_bool(expression(std::get<pt2::SymExpr>(v)));
  }

  Value value_of(const std::string& name) {
    if (auto found = numbers_.find(name); found != numbers_.end()) return found->second;
    auto found = tensors_.find(name);
    check<ValueError>(found != tensors_.end(), "the program says nothing about the value '", name, "'");
    const pt2::TensorMeta& meta = *found->second;
    TensorSpec spec;
    for (const auto& s : meta.sizes) spec.sizes.push_back(sym_int(s));
    for (const auto& s : meta.strides) spec.strides.push_back(sym_int(s));
    spec.dtype = meta.dtype;
    spec.device = meta.device;
    check<ValueError>(spec.sizes.size() == spec.strides.size(), "the tensor '", name,
                      "' has sizes and strides of different length");
    return Value(mode_.make(spec));
  }

  // ---- nodes ----

  void define(const std::string& name, fx::Node* node) {
    check<ValueError>(nodes_.emplace(name, node).second, "the value '", name, "' is defined twice");
  }
  fx::Node* node_named(const std::string& name) const {
    auto found = nodes_.find(name);
    check<ValueError>(found != nodes_.end(), "the value '", name, "' is used before it is defined");
    return found->second;
  }

  static const std::string* name_of(const pt2::Argument& a) {
    if (const auto* t = a.get<pt2::TensorArgument>()) return &t->name;
    if (const auto* s = a.get<pt2::SymIntArgument>()) return std::get_if<std::string>(s);
    if (const auto* s = a.get<pt2::SymFloatArgument>()) return std::get_if<std::string>(s);
    if (const auto* s = a.get<pt2::SymBoolArgument>()) return std::get_if<std::string>(s);
    return nullptr;
  }

  void input(const pt2::Argument& a, const std::string& fallback) {
    const std::string* name = name_of(a);
    fx::Node* node = graph_.placeholder(name ? *name : fallback);
    node->set_reserved_name(node->target().name());
    if (name) {
      define(*name, node);
      node->meta.val = value_of(*name);
    }
  }

  void call(const pt2::Node& stored) {
    fx::Node* node = stored.target.starts_with("torch.ops.") && !stored.target.starts_with("torch.ops.higher_order.")
                         ? operator_call(stored)
                         : function_call(stored);
    for (const auto& [key, text] : stored.metadata) {
      if (key == "stack_trace") node->meta.source = make_counted<fx::TextLocation>(text);
      else if (key == "nn_module_stack") node->meta.modules = module_stack(text);
      else if (key == "torch_fn") node->meta.set(key, function_called(text));
      else if (key == "from_node") fx::set_origins_text(node->meta, text);
      else if (key == "custom") node->meta.custom = read_annotations(text);
    }
    auto share = [&](fx::Node* other) {
      Value value = std::move(other->meta.val);
      other->meta = node->meta;
      other->meta.val = std::move(value);
    };
    for (fx::Node* element : node->users()) share(element);  // so far only what takes its results apart
    for (fx::Node* part : node->inputs())
      if (part->op() == fx::Op::GetAttr) share(part);  // a subgraph
  }

  static Value function_called(const std::string& text) {
    std::vector<Value> parts;
    for (size_t at = 0, end; at <= text.size(); at = end + 1) {
      end = std::min(text.find(';', at), text.size());
      parts.push_back(Value(text.substr(at, end - at)));
    }
    return Value(std::move(parts));
  }

  static IntrusivePtr<fx::ModuleStack> module_stack(const std::string& text) {
    std::vector<fx::ModuleFrame> frames;
    size_t at = 0;
    while (at <= text.size()) {
      size_t end = std::min(text.find(';', at), text.size());
      std::string part = text.substr(at, end - at);
      size_t first = part.find(','), second = first == std::string::npos ? first : part.find(',', first + 1);
      if (second != std::string::npos)
        frames.push_back({part.substr(0, first), part.substr(first + 1, second - first - 1), part.substr(second + 1)});
      at = end + 1;
    }
    return make_counted<fx::ModuleStack>(std::move(frames));
  }

  fx::Node* operator_call(const pt2::Node& stored) {
    std::string name = stored.target.substr(10);
    size_t dot = name.find('.');
    check<ValueError>(dot != std::string::npos, "not an operator: ", stored.target);
    const Operator* op = find_operator(name.substr(0, dot) + "::" + name.substr(dot + 1));
    if (!op) return unknown_call(stored);
    fx::Arguments positional;
    fx::KeywordArguments keywords;
    const auto& schema = op->schema().arguments;
    for (const pt2::NamedArgument& a : stored.inputs) {
      int position = op->schema().find(a.name);
      check<ValueError>(position >= 0, stored.target, " has no argument '", a.name, "'");
      // Arguments that earlier ones were left out before have to be named.
      bool in_place =
          static_cast<size_t>(position) == positional.size() && keywords.empty() && !schema[position].keyword_only;
      if (in_place) positional.push_back(argument(a.arg));
      else keywords.emplace_back(a.name, argument(a.arg));
    }
    fx::Node* node =
        graph_.create_node(fx::Op::CallFunction, *op, std::move(positional), std::move(keywords), node_name(stored));
    results(stored, node, op->schema().returns.size() == 1 && !op->schema().returns[0].type.list);
    return node;
  }

  /// A call of an operator that this build does not have: it can be shown, changed and saved, and running it names it.
  /// The names of its arguments are kept, for there is no schema to ask.
  fx::Node* unknown_call(const pt2::Node& stored) {
    fx::Arguments positional;
    fx::KeywordArguments keywords;
    std::vector<Value> names;
    for (const pt2::NamedArgument& a : stored.inputs) {
      if (a.kind == pt2::ArgumentKind::Keyword) {
        keywords.emplace_back(a.name, argument(a.arg));
      } else {
        positional.push_back(argument(a.arg));
        names.push_back(Value(a.name));
      }
    }
    fx::Node* node = graph_.create_node(fx::Op::CallFunction, fx::function(stored.target), std::move(positional),
                                        std::move(keywords), node_name(stored));
    node->meta.set("argument_names", Value(std::move(names)));
    bool list = stored.outputs.size() == 1 && !name_of(stored.outputs[0]);
    results(stored, node, stored.outputs.size() == 1 && !list);
    node->meta.set("returns_list", Value(list));
    return node;
  }

  static std::string node_name(const pt2::Node& stored) {
    if (stored.name) return *stored.name;
    if (stored.outputs.size() == 1)
      if (const std::string* name = name_of(stored.outputs[0])) return *name;
    std::string target =
        stored.target.starts_with("torch.ops.") ? stored.target.substr(stored.target.find('.', 10) + 1) : stored.target;
    return target.substr(0, target.find('.'));
  }

  fx::Node* function_call(const pt2::Node& stored) {
    std::string name = stored.target.starts_with("_operator.") ? stored.target.substr(1) : stored.target;
    const fx::Function* function = &fx::function(name);
    fx::Arguments arguments;
    fx::KeywordArguments keywords;
    for (const pt2::NamedArgument& a : stored.inputs) {
      if (a.kind == pt2::ArgumentKind::Keyword) keywords.emplace_back(a.name, argument(a.arg));
      else arguments.push_back(argument(a.arg));
    }
    fx::Node* node = graph_.create_node(fx::Op::CallFunction, function, std::move(arguments), std::move(keywords),
                                        node_name(stored));
    bool one = stored.outputs.size() == 1 && !stored.target.starts_with("torch.ops.higher_order.");
    bool single = stored.is_hop_single_tensor_return.value_or(one);
    results(stored, node, single);
    return node;
  }

  /// Names the results: the node itself where there is one, getitem nodes where there are several.
  void results(const pt2::Node& stored, fx::Node* node, bool single) {
    if (stored.outputs.empty()) return;
    if (single) {
      if (const std::string* name = name_of(stored.outputs[0])) {
        define(*name, node);
        node->meta.val = value_of(*name);
      }
      return;
    }
    std::vector<Value> values;
    if (stored.outputs.size() == 1 && stored.outputs[0].get<std::vector<pt2::TensorArgument>>()) {
      node->meta.val = elements(*stored.outputs[0].get<std::vector<pt2::TensorArgument>>(), node);
      return;
    }
    for (size_t i = 0; i < stored.outputs.size(); ++i) {
      const pt2::Argument& output = stored.outputs[i];
      if (const auto* list = output.get<std::vector<pt2::TensorArgument>>()) {  // one of several results is a list
        fx::Node* item = element_of(node, i, "getitem");
        item->meta.val = elements(*list, item);
        values.push_back(item->meta.val);
        continue;
      }
      const std::string* name = name_of(output);
      values.push_back(name ? named_element(node, i, *name) : Value());
    }
    node->meta.val = Value(std::move(values));
  }

  fx::Node* element_of(fx::Node* node, size_t i, const std::string& name) {
    return graph_.create_node(fx::Op::CallFunction, fx::function("operator.getitem"), {node, static_cast<int64_t>(i)},
                              {}, name);
  }

  Value named_element(fx::Node* node, size_t i, const std::string& name) {
    fx::Node* item = element_of(node, i, name);
    item->meta.val = value_of(name);
    define(name, item);
    return item->meta.val;
  }

  Value elements(const std::vector<pt2::TensorArgument>& list, fx::Node* node) {
    std::vector<Value> values;
    for (size_t i = 0; i < list.size(); ++i) values.push_back(named_element(node, i, list[i].name));
    return Value(std::move(values));
  }

  // ---- arguments ----

  template <class T> fx::Argument list(const std::vector<T>& items) {
    fx::Arguments out;
    for (const T& item : items) out.push_back(element(item));
    return fx::Argument::list(std::move(out));
  }
  fx::Argument element(const pt2::TensorArgument& t) { return node_named(t.name); }
  fx::Argument element(const pt2::OptionalTensorArgument& t) {
    return t ? fx::Argument(node_named(t->name)) : fx::Argument(Value());
  }
  template <class T> fx::Argument element(const std::variant<std::string, T>& s) {
    if (const std::string* name = std::get_if<std::string>(&s)) return node_named(*name);
    return Value(std::get<T>(s));
  }
  fx::Argument element(const std::string& s) { return Value(s); }

  fx::Argument argument(const pt2::Argument& a) {
    return std::visit([&](const auto& v) { return convert(v); }, a.value);
  }
  fx::Argument convert(std::monostate) { return Value(); }
  fx::Argument convert(const pt2::TensorArgument& v) { return element(v); }
  fx::Argument convert(const pt2::OptionalTensorArgument& v) { return element(v); }
  template <class T> fx::Argument convert(const std::variant<std::string, T>& v) { return element(v); }
  fx::Argument convert(const std::vector<pt2::TensorArgument>& v) { return list(v); }
  fx::Argument convert(const std::vector<pt2::OptionalTensorArgument>& v) { return list(v); }
  template <class T> fx::Argument convert(const std::vector<std::variant<std::string, T>>& v) { return list(v); }
  fx::Argument convert(const std::vector<std::string>& v) { return list(v); }
  fx::Argument convert(const std::vector<int64_t>& v) { return Value(v); }
  fx::Argument convert(const std::vector<double>& v) { return Value(v); }
  fx::Argument convert(const std::vector<bool>& v) { return Value(v); }
  fx::Argument convert(const pt2::GraphArgument& v) {
    auto sub = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
    GraphReader(mode_, *v.graph, *sub).read({});
    std::string path = module_.find(v.name) ? module_.unused_path(v.name) : v.name;
    module_.set_submodule(path, sub);
    return graph_.get_attr(path);
  }
  fx::Argument convert(const pt2::OperatorArgument& v) {
    size_t dot = v.target.find('.', 10);
    bool named = v.target.starts_with("torch.ops.") && dot != std::string::npos;
    const Operator* op =
        named ? find_operator(v.target.substr(10, dot - 10) + "::" + v.target.substr(dot + 1)) : nullptr;
    return op ? fx::operator_value(*op) : fx::missing_operator_value(v.target);
  }
  template <class T>
  requires(std::is_constructible_v<Value, T>) fx::Argument convert(const T& v) { return Value(v); }
  template <class T>
  requires(!std::is_constructible_v<Value, T>) fx::Argument convert(const T&) {
    fail<NotImplementedError>("the program has an argument of a kind that this build does not read");
  }

  FakeModeImpl& mode_;
  const pt2::Graph& from_;
  fx::GraphModule& module_;
  fx::Graph& graph_;
  std::unordered_map<std::string, const pt2::TensorMeta*> tensors_;
  std::unordered_map<std::string, Value> numbers_;
  std::unordered_map<std::string, fx::Node*> nodes_;
};

// ---- signature ----

Value constant_value(const pt2::ConstantValue& v) {
  return std::visit(
      [](const auto& x) -> Value {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>) return Value();
        else return Value(x);
      },
      v);
}

std::string argument_name(const pt2::Argument& a) {
  if (const auto* t = a.get<pt2::TensorArgument>()) return t->name;
  if (const auto* s = a.get<pt2::SymIntArgument>())
    if (const std::string* name = std::get_if<std::string>(s)) return *name;
  if (const auto* s = a.get<pt2::SymFloatArgument>())
    if (const std::string* name = std::get_if<std::string>(s)) return *name;
  if (const auto* s = a.get<pt2::SymBoolArgument>())
    if (const std::string* name = std::get_if<std::string>(s)) return *name;
  return "";
}

Value plain_value(const pt2::Argument& a) {
  if (const auto* v = a.get<int64_t>()) return *v;
  if (const auto* v = a.get<double>()) return *v;
  if (const auto* v = a.get<bool>()) return *v;
  if (const auto* v = a.get<std::string>()) return *v;
  return Value();
}

struct ReadInput {
  InputSpec operator()(const pt2::UserInputSpec& s) const {
    std::string name = argument_name(s.arg);
    if (name.empty()) return {InputKind::ConstantInput, "", "", true, plain_value(s.arg)};
    return {InputKind::UserInput, name, "", true, {}};
  }
  InputSpec operator()(const pt2::InputToParameterSpec& s) const {
    return {InputKind::Parameter, s.arg.name, s.parameter_name, true, {}};
  }
  InputSpec operator()(const pt2::InputToBufferSpec& s) const {
    return {InputKind::Buffer, s.arg.name, s.buffer_name, s.persistent, {}};
  }
  InputSpec operator()(const pt2::InputToTensorConstantSpec& s) const {
    return {InputKind::TensorConstant, s.arg.name, s.tensor_constant_name, true, {}};
  }
  InputSpec operator()(const pt2::InputToConstantInputSpec& s) const {
    return {InputKind::ConstantInput, s.name, "", true, constant_value(s.value)};
  }
  InputSpec operator()(const pt2::InputTokenSpec& s) const { return {InputKind::Token, s.arg.name, "", true, {}}; }
  InputSpec operator()(const pt2::InputToCustomObjSpec&) const {
    fail<NotImplementedError>("the program takes custom objects, which this build does not read");
  }
};

struct ReadOutput {
  OutputSpec operator()(const pt2::UserOutputSpec& s) const {
    return {OutputKind::UserOutput, argument_name(s.arg), "", plain_value(s.arg)};
  }
  OutputSpec operator()(const pt2::LossOutputSpec& s) const { return {OutputKind::LossOutput, s.arg.name, "", {}}; }
  OutputSpec operator()(const pt2::BufferMutationSpec& s) const {
    return {OutputKind::BufferMutation, s.arg.name, s.buffer_name, {}};
  }
  OutputSpec operator()(const pt2::ParameterMutationSpec& s) const {
    return {OutputKind::ParameterMutation, s.arg.name, s.parameter_name, {}};
  }
  OutputSpec operator()(const pt2::UserInputMutationSpec& s) const {
    return {OutputKind::UserInputMutation, s.arg.name, s.user_input_name, {}};
  }
  OutputSpec operator()(const pt2::GradientToParameterSpec& s) const {
    return {OutputKind::GradientToParameter, s.arg.name, s.parameter_name, {}};
  }
  OutputSpec operator()(const pt2::GradientToUserInputSpec& s) const {
    return {OutputKind::GradientToUserInput, s.arg.name, s.user_input_name, {}};
  }
  OutputSpec operator()(const pt2::OutputTokenSpec& s) const { return {OutputKind::Token, s.arg.name, "", {}}; }
};

/// The symbol that an expression is: "s77", "Symbol('s77', positive=True, integer=True)". Empty where it is more.
std::string bare_symbol(const std::string& expression) {
  constexpr std::string_view kStart = "Symbol('";
  if (!expression.starts_with(kStart)) return expression.find_first_of("(*+ ") == std::string::npos ? expression : "";
  bool single = expression.find('(', kStart.size()) == std::string::npos && expression.ends_with(')');
  return single ? expression.substr(kStart.size(), expression.find('\'', kStart.size()) - kStart.size()) : "";
}

/// What a file says of a symbol besides its range.
struct StoredSymbol {
  std::optional<int64_t> example;  // its value when the program was captured: branches that ask are answered by it
  bool positive = true;            // a size; an integer that the program takes may be any
};

std::unordered_map<std::string, StoredSymbol> stored_symbols(const pt2::Graph& graph) {
  std::unordered_map<std::string, StoredSymbol> symbols;
  auto add = [&](const pt2::SymIntValue& value) {
    const auto* expression = std::get_if<pt2::SymExpr>(&value);
    std::string name = expression ? bare_symbol(expression->expr_str) : "";
    if (name.empty()) return;
    StoredSymbol& symbol = symbols[name];
    if (const auto* number = expression->hint ? std::get_if<int64_t>(&*expression->hint) : nullptr)
      symbol.example = *number;
    bool spelled_out = expression->expr_str != name;
    if (spelled_out) symbol.positive = expression->expr_str.find("positive=True") != std::string::npos;
  };
  for (const auto& [name, meta] : graph.tensor_values)
    for (const pt2::SymIntValue& size : meta.sizes) add(size);
  for (const auto& [name, value] : graph.sym_int_values) add(value);
  return symbols;
}

void declare_symbols(sym::ShapeEnv& env, const pt2::ExportedProgram& program, ExportedProgram& out) {
  std::unordered_map<std::string, StoredSymbol> symbols = stored_symbols(program.graph_module.graph);
  for (const auto& [text, range] : program.range_constraints) {
    sym::Range r;
    if (range.min_val) r.lower = *range.min_val;
    if (range.max_val) r.upper = *range.max_val;
    out.ranges.push_back({text, r});
    bool name = !text.empty() && (text[0] == 's' || text[0] == 'u');
    for (size_t i = 1; i < text.size(); ++i) name &= std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (!name || text.size() < 2) continue;
    bool backed = text[0] == 's';
    const StoredSymbol& symbol = symbols[text];
    env.declare_symbol(text, backed && symbol.positive, backed ? symbol.example : std::nullopt, r);
  }
}

/// Of the symbols that a file gives ranges for, those that its graph is about: as in PyTorch, the others are let go.
void forget_unused_ranges(ExportedProgram& program) {
  std::unordered_set<const sym::Expression*> used = used_symbols(*program.graph_module);
  std::erase_if(program.ranges, [&](const RangeConstraint& r) {
    const sym::Expression* symbol = program.shape_env->find_symbol(r.expression);
    return symbol && symbol->unbacked() && !used.contains(symbol);
  });
}

CallSignature call_signature(const pt2::ModuleCallSignature& s, const pt2::Named<pt2::NamedTupleDef>& fields) {
  auto arguments = [](const std::vector<pt2::Argument>& list) {
    std::vector<CallArgument> out;
    for (const pt2::Argument& a : list) out.push_back({argument_name(a), plain_value(a)});
    return out;
  };
  return {arguments(s.inputs), arguments(s.outputs), parse_tree_spec(s.in_spec, fields),
          parse_tree_spec(s.out_spec, fields)};
}

ExportedProgram read_program(const Pt2Program& stored) {
  ExportedProgram out;
  out.shape_env = make_counted<sym::ShapeEnv>();
  declare_symbols(*out.shape_env, stored.program, out);
  FakeOptions fake{.shape_env = out.shape_env};
  fake.allow_non_fake_inputs = fake.allow_scalar_outputs = fake.allow_dynamic_output_shapes = true;
  auto mode = make_counted<FakeModeImpl>(std::move(fake));
  for (const pt2::InputSpec& s : stored.program.graph_module.signature.input_specs)
    out.signature.inputs.push_back(std::visit(ReadInput(), s));
  for (const pt2::OutputSpec& s : stored.program.graph_module.signature.output_specs)
    out.signature.outputs.push_back(std::visit(ReadOutput(), s));
  out.graph_module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
  out.graph().keep_alive(out.shape_env);
  std::vector<std::string> names;
  for (const InputSpec& s : out.signature.inputs) names.push_back(s.name);
  GraphReader(*mode, stored.program.graph_module.graph, *out.graph_module).read(names);
  std::vector<fx::Node*> placeholders = out.graph().placeholders();
  check<ValueError>(placeholders.size() == out.signature.inputs.size(), "the signature has ",
                    out.signature.inputs.size(), " inputs, the graph ", placeholders.size());
  for (const Pt2Tensor& t : stored.weights) {
    Tensor tensor = t.tensor;
    if (t.is_param && t.requires_grad && is_differentiable(tensor.dtype())) tensor.requires_grad_();
    out.state.emplace_back(t.name, tensor);
  }
  for (const Pt2Tensor& t : stored.constants) out.constants.emplace_back(t.name, t.tensor);
  const auto& fields = stored.program.graph_module.treespec_namedtuple_fields;
  for (const pt2::ModuleCallEntry& m : stored.program.graph_module.module_call_graph) {
    if (m.fqn.empty() && m.signature) {
      out.in_spec = parse_tree_spec(m.signature->in_spec, fields);
      out.out_spec = parse_tree_spec(m.signature->out_spec, fields);
      out.argument_names = m.signature->forward_arg_names.value_or(std::vector<std::string>());
    }
    out.module_calls.push_back({m.fqn});
    if (!m.fqn.empty() && m.signature) out.module_calls.back().signature = call_signature(*m.signature, fields);
  }
  out.guards = stored.program.guards_code;
  if (!stored.program.verifiers.empty()) out.dialect = stored.program.verifiers[0];
  out.example_inputs = stored.sample_inputs.text();
  fx::lint(*out.graph_module);
  forget_unused_ranges(out);
  out.shape_env->suppress_guards(true);
  return out;
}

}  // namespace

ExportedProgram from_pt2(const Pt2Program& stored) {
  if (stored.label.empty()) return read_program(stored);
  try {
    return read_program(stored);
  } catch (const NotImplementedError& e) {
    fail<NotImplementedError>("'", stored.label, "': ", e.what());
  } catch (const Error& e) {
    fail<ValueError>("'", stored.label, "' is not a valid program: ", e.what());
  }
}

}  // namespace umbra::io

namespace umbra {

ExportedProgram load(const std::string& path) {
  io::Pt2Archive archive = io::load_pt2(path);
  check<ValueError>(archive.programs.size() == 1, path, " holds ", archive.programs.size(),
                    " programs; io::load_pt2 reads them all");
  return io::from_pt2(archive.programs[0]);
}

}  // namespace umbra
