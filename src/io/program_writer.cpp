// From an ExportedProgram to the plain data of a .pt2 file.
#include <algorithm>

#include "export/used_symbols.h"
#include "umbra/graph/operator_value.h"
#include "umbra/graph/origin.h"
#include "umbra/io/program.h"
#include "umbra/io/pt2_program.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"

namespace umbra::io {

namespace {

// ---- values ----

const sym::Expression* expression_of(SymInt value) { return static_cast<const sym::Expression*>(value.node()); }

/// A number as it turned out: of sizes that are equal, one symbol is the other.
pt2::SymIntValue sym_int_value(SymInt value) {
  if (value.is_symbolic()) value = expression_of(value)->env().simplify(value);
  if (!value.is_symbolic()) return value.value();
  pt2::SymExpr out{sym::to_srepr(expression_of(value)), {}};
  if (value.has_hint()) out.hint = value.hint();
  return out;
}

/// A symbolic float or bool, with its value in the example.
pt2::SymExpr symbolic_value(const SymNode* node) {
  const auto* expression = static_cast<const sym::Expression*>(node);
  expression = expression->env().simplify(expression);
  pt2::SymExpr out{sym::to_srepr(expression), {}};
  if (!expression->has_hint()) return out;
  sym::Number hint = expression->hint();
  if (hint.type == sym::Type::Float) out.hint = hint.real;
  else if (hint.type == sym::Type::Bool) out.hint = hint.integer != 0;
  else out.hint = to_int64(hint.integer);
  return out;
}

pt2::TensorMeta tensor_meta(const Tensor& t, bool requires_grad) {
  pt2::TensorMeta meta;
  meta.dtype = t.dtype();
  for (SymInt s : t.sym_sizes()) meta.sizes.push_back(sym_int_value(s));
  for (SymInt s : t.sym_strides()) meta.strides.push_back(sym_int_value(s));
  meta.storage_offset = sym_int_value(t.sym_storage_offset());
  meta.requires_grad = requires_grad;
  meta.device = t.device();
  return meta;
}

class Writer {
 public:
  explicit Writer(const ExportedProgram& program) : program_(program) {}

  Pt2Program write() {
    Pt2Program out;
    pt2::ExportedProgram& p = out.program;
    p.verifiers = {program_.dialect};
    p.torch_version = "2.15.0";
    p.guards_code = program_.guards;
    for (const RangeConstraint& r : program_.ranges) {
      pt2::RangeConstraint range;
      // A bound that 64 bits do not hold is none that a size could pass.
      if (fits_int64(r.range.lower)) range.min_val = static_cast<int64_t>(r.range.lower);
      if (fits_int64(r.range.upper)) range.max_val = static_cast<int64_t>(r.range.upper);
      p.range_constraints.emplace_back(r.expression, range);
    }
    for (const std::string& name : float_symbols(program_.graph()))
      if (std::ranges::find(program_.ranges, name, &RangeConstraint::expression) == program_.ranges.end())
        p.range_constraints.emplace_back(name, pt2::RangeConstraint{});
    p.graph_module.graph = graph(*program_.graph_module, true);
    p.graph_module.signature = signature();
    p.graph_module.module_call_graph = module_calls();
    p.graph_module.treespec_namedtuple_fields = std::move(fields_);
    tensors(program_.state, out.weights);
    tensors(program_.constants, out.constants);
    out.sample_inputs = Bytes(program_.example_inputs);
    return out;
  }

 private:
  bool is_parameter(const std::string& name) const {
    for (const InputSpec& spec : program_.signature.inputs)
      if (spec.kind == InputKind::Parameter && spec.target == name) return true;
    return false;
  }

  void tensors(const NamedTensors& from, std::vector<Pt2Tensor>& to) const {
    for (const auto& [name, tensor] : from) to.push_back({name, tensor, is_parameter(name), tensor.requires_grad()});
  }

  // ---- graphs ----

  pt2::Graph graph(const fx::GraphModule& module, bool root) {
    pt2::Graph out;
    graphs_.push_back(&out);
    modules_.push_back(&module);
    size_t position = 0;
    for (fx::Node* node : module.graph().nodes()) {
      if (node->op() == fx::Op::Placeholder) {
        bool parameter = root && program_.signature.inputs.at(position).kind == InputKind::Parameter;
        bool constant = root && program_.signature.inputs[position].kind == InputKind::ConstantInput;
        out.inputs.push_back(constant ? plain(program_.signature.inputs[position].value)
                                      : value_named(node->name(), node->meta.val, parameter));
        ++position;
      } else if (node->op() == fx::Op::CallFunction && !is_getitem(node)) {
        out.nodes.push_back(call(*node));
      } else if (node->op() == fx::Op::Output) {
        const fx::Argument& result = node->arg(0);
        out.is_single_tensor_return = !root && result.is_node();
        for (const fx::Argument& a : module.graph().outputs()) out.outputs.push_back(argument(a, nullptr));
      }
    }
    graphs_.pop_back();
    modules_.pop_back();
    return out;
  }

  static bool is_getitem(const fx::Node* node) {
    return node->target().function() && node->target().function()->name == "operator.getitem";
  }

  /// Records what is known about a value and gives the argument that refers to it.
  pt2::Argument value_named(const std::string& name, const Value& value, bool requires_grad = false) {
    pt2::Graph& g = *graphs_.back();
    switch (value.tag()) {
      case Value::Tag::Tensor:
        g.tensor_values.emplace_back(name, tensor_meta(value.tensor_ref(), requires_grad));
        return {pt2::TensorArgument{name}};
      case Value::Tag::SymInt:
      case Value::Tag::Int:
        g.sym_int_values.emplace_back(name, sym_int_value(value.to_sym_int()));
        return {pt2::SymIntArgument{name}};
      case Value::Tag::SymFloat:
      case Value::Tag::Double: {
        SymFloat f = value.to_sym_float();
        pt2::SymFloatValue stored = f.value();
        if (f.is_symbolic()) stored = symbolic_value(f.node());
        g.sym_float_values.emplace_back(name, stored);
        return {pt2::SymFloatArgument{name}};
      }
      case Value::Tag::SymBool:
      case Value::Tag::Bool: {
        SymBool b = value.to_sym_bool();
        pt2::SymBoolValue stored = b.value();
        if (b.is_symbolic()) stored = symbolic_value(b.node());
        g.sym_bool_values.emplace_back(name, stored);
        return {pt2::SymBoolArgument{name}};
      }
      default: return {std::monostate{}};
    }
  }

  // ---- nodes ----

  pt2::Node call(const fx::Node& node) {
    pt2::Node out;
    out.name = node.name();
    if (const Operator* op = node.target().op()) operator_call(node, *op, out);
    else if (node.meta.find("argument_names")) unknown_call(node, out);
    else function_call(node, *node.target().function(), out);
    metadata(node, out);
    return out;
  }

  void operator_call(const fx::Node& node, const Operator& op, pt2::Node& out) {
    const Schema& schema = op.schema();
    out.target =
        "torch.ops." + schema.space + "." + schema.name + "." + (schema.overload.empty() ? "default" : schema.overload);
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const fx::Argument* a = node.argument(i);
      if (!a) continue;
      // One that follows others which are left out has to be named, whatever the schema allows.
      bool keyword = schema.arguments[i].keyword_only || i >= node.args().size();
      out.inputs.push_back({schema.arguments[i].name, argument(*a, &schema.arguments[i].type),
                            keyword ? pt2::ArgumentKind::Keyword : pt2::ArgumentKind::Positional});
    }
    results(node, schema, out);
  }

  void results(const fx::Node& node, const Schema& schema, pt2::Node& out) {
    const Value& value = node.meta.val;
    if (schema.returns.empty()) return;
    if (schema.returns.size() == 1 && !schema.returns[0].type.list) {
      out.outputs.push_back(value_named(node.name(), value));
      return;
    }
    std::vector<pt2::Argument> results = elements(node, value);
    if (schema.returns.size() > 1) out.outputs = std::move(results);
    else out.outputs.push_back({tensors_among(results)});
  }

  /// The parts of a node's value, by the names of the getitem nodes that take them.
  std::vector<pt2::Argument> elements(const fx::Node& node, const Value& value) {
    size_t count = value.is_tensor_list() ? value.tensor_list().size() : value.is_list() ? value.list().size() : 0;
    std::vector<pt2::Argument> out;
    for (size_t i = 0; i < count; ++i) {
      Value item = value.is_tensor_list() ? Value(value.tensor_list()[i]) : value.list()[i];
      const fx::Node* taken = element_node(node, i);
      if (!item.is_tensor_list() && !item.is_list()) out.push_back(value_named(element_name(node, i), item));
      else if (taken) out.push_back({tensors_among(elements(*taken, item))});
      else out.push_back({std::vector<pt2::TensorArgument>()});
    }
    return out;
  }

  static std::vector<pt2::TensorArgument> tensors_among(const std::vector<pt2::Argument>& arguments) {
    std::vector<pt2::TensorArgument> list;
    for (const pt2::Argument& a : arguments)
      if (const auto* t = a.get<pt2::TensorArgument>()) list.push_back(*t);
    return list;
  }

  /// An operator that this build does not have, as it was read.
  void unknown_call(const fx::Node& node, pt2::Node& out) {
    out.target = node.target().function()->name;
    ArrayRef<Value> names = node.meta.find("argument_names")->list();
    for (size_t i = 0; i < node.args().size(); ++i)
      out.inputs.push_back({i < names.size() ? names[i].to_string() : "", argument(node.args()[i], nullptr),
                            pt2::ArgumentKind::Positional});
    for (const auto& [name, value] : node.kwargs())
      out.inputs.push_back({name, argument(value, nullptr), pt2::ArgumentKind::Keyword});
    const Value& value = node.meta.val;
    if (!value.is_list()) {
      if (!value.is_none()) out.outputs.push_back(value_named(node.name(), value));
      return;
    }
    out.outputs = elements(node, value);
    if (node.meta.find("returns_list")->to_bool()) out.outputs = {{tensors_among(out.outputs)}};
  }

  static const fx::Node* element_node(const fx::Node& node, size_t i) {
    for (fx::Node* user : node.users())
      if (is_getitem(user) && user->arg(1).is_value() && user->arg(1).value().to_int() == static_cast<int64_t>(i))
        return user;
    return nullptr;
  }

  static std::string element_name(const fx::Node& node, size_t i) {
    if (const fx::Node* taken = element_node(node, i)) return taken->name();
    return node.name() + "_unused_" + std::to_string(i);
  }

  void function_call(const fx::Node& node, const fx::Function& function, pt2::Node& out) {
    bool symbolic = function.name.starts_with("operator.");
    out.target = symbolic ? "_" + function.name : function.name;
    static constexpr const char* kNames[] = {"a", "b", "c"};
    bool higher_order = function.name.starts_with("torch.ops.higher_order.");
    for (size_t i = 0; i < node.args().size(); ++i)
      out.inputs.push_back(
          {higher_order || i > 2 ? "" : kNames[i], argument(node.args()[i], nullptr), pt2::ArgumentKind::Positional});
    for (const auto& [key, value] : node.kwargs())
      out.inputs.push_back({key, argument(value, nullptr), pt2::ArgumentKind::Keyword});
    const Value& value = node.meta.val;
    if (value.is_tensor_list() || value.is_list()) {
      out.outputs = elements(node, value);
      if (higher_order) out.is_hop_single_tensor_return = false;
    } else {
      out.outputs.push_back(value_named(node.name(), value));
      if (higher_order) out.is_hop_single_tensor_return = true;
    }
  }

  static void metadata(const fx::Node& node, pt2::Node& out) {
    if (node.meta.source) out.metadata.emplace_back("stack_trace", node.meta.source->text());
    if (node.meta.modules) {
      std::string text;
      for (const fx::ModuleFrame& m : node.meta.modules->frames())
        text += (text.empty() ? "" : ";") + m.key + "," + m.path + "," + m.type;
      out.metadata.emplace_back("nn_module_stack", text);
    }
    if (const Value* called = node.meta.find("torch_fn"); called && called->is_list()) {
      std::string text;
      for (const Value& part : called->list()) text += (text.empty() ? "" : ";") + part.to_string();
      out.metadata.emplace_back("torch_fn", text);
    }
    if (std::string notes = annotations(node); !notes.empty()) out.metadata.emplace_back("custom", notes);
    if (std::optional<std::string> origins = fx::origins_text(node.meta))
      out.metadata.emplace_back("from_node", *origins);
  }

  static std::string annotations(const fx::Node& node) {
    try {
      return node.meta.custom ? node.meta.custom->json() : "";
    } catch (const std::exception& error) {
      fail("Failed to serialize custom metadata for node ", node.name(), " with error ", error.what());
    }
  }

  // ---- arguments ----

  pt2::Argument argument(const fx::Argument& a, const SchemaType* type) {
    if (fx::Node* node = a.node()) return node_argument(node);
    if (a.is_value()) {
      bool graph = a.value().is_object() && !fx::operator_in(a.value()) && !fx::missing_operator_in(a.value());
      return graph ? graph_argument(a.value()) : plain(a.value(), type);
    }
    return list_argument(a.items(), type);
  }

  pt2::Argument node_argument(fx::Node* node) {
    const Value& value = node->meta.val;
    if (node->op() == fx::Op::GetAttr) {
      const fx::GraphModule& owner = modules_.empty() ? *program_.graph_module : *modules_.back();
      const Value& attribute = owner.get(node->target().name());
      check(attribute.is_object(), "the graph refers to the tensor ", node->target().name(), ", which is no input");
      auto* sub = static_cast<fx::GraphModule*>(attribute.object());
      return {pt2::GraphArgument{node->target().name(), std::make_shared<pt2::Graph>(graph(*sub, false))}};
    }
    if (value.tag() == Value::Tag::SymInt || value.is_int()) return {pt2::SymIntArgument{node->name()}};
    if (value.tag() == Value::Tag::SymFloat || value.is_double()) return {pt2::SymFloatArgument{node->name()}};
    if (value.tag() == Value::Tag::SymBool || value.is_bool()) return {pt2::SymBoolArgument{node->name()}};
    return {pt2::TensorArgument{node->name()}};
  }

  pt2::Argument graph_argument(const Value& value) {
    auto* sub = static_cast<fx::GraphModule*>(value.object());
    return {pt2::GraphArgument{sub->class_name(), std::make_shared<pt2::Graph>(graph(*sub, false))}};
  }

  pt2::Argument list_argument(const fx::Arguments& items, const SchemaType* type) {
    // The operands of a higher-order operator are written as tensors, whatever they are: readers go by the names.
    if (!type && !items.empty() &&
        std::ranges::all_of(items, [](const fx::Argument& item) { return item.is_node(); })) {
      std::vector<pt2::TensorArgument> out;
      for (const fx::Argument& item : items) out.push_back({item.node()->name()});
      return {std::move(out)};
    }
    auto is_text = [](const fx::Argument& item) { return item.is_value() && item.value().is_string(); };
    if (!items.empty() && std::ranges::all_of(items, is_text)) {
      std::vector<std::string> texts;
      for (const fx::Argument& item : items) texts.push_back(item.value().to_string());
      return {std::move(texts)};
    }
    bool tensors = type ? type->base == SchemaType::Base::Tensor : true, absent = false, symbolic = false;
    for (const fx::Argument& item : items) {
      absent |= item.is_none();
      if (fx::Node* n = item.node()) symbolic |= !n->meta.val.is_tensor();
      else if (!item.is_none()) tensors = tensors && type != nullptr && type->base == SchemaType::Base::Tensor;
    }
    if (tensors && !symbolic) {
      if (absent) {
        std::vector<pt2::OptionalTensorArgument> out;
        for (const fx::Argument& item : items)
          out.push_back(item.node() ? pt2::OptionalTensorArgument(pt2::TensorArgument{item.node()->name()})
                                    : std::nullopt);
        return {std::move(out)};
      }
      std::vector<pt2::TensorArgument> out;
      for (const fx::Argument& item : items) out.push_back({item.node()->name()});
      return {std::move(out)};
    }
    std::vector<pt2::SymIntArgument> out;
    for (const fx::Argument& item : items) {
      if (fx::Node* n = item.node()) out.push_back(n->name());
      else out.push_back(item.value().to_int());
    }
    return {std::move(out)};
  }

  /// A list that is no list of numbers: of texts, or of nothing.
  static pt2::Argument plain_list(const Value& v, const SchemaType* type) {
    if (v.is_list() && !v.list().empty()) {
      std::vector<std::string> texts;
      for (const Value& item : v.list()) {
        check(item.is_string(), "a list with a value of type ", tag_name(item.tag()),
              " cannot be written to a .pt2 file");
        texts.push_back(item.to_string());
      }
      return {std::move(texts)};
    }
    if (type && type->base != SchemaType::Base::Tensor) return {std::vector<int64_t>()};
    return {std::vector<pt2::TensorArgument>()};
  }

  static pt2::Argument plain(const Value& v, const SchemaType* type = nullptr) {
    switch (v.tag()) {
      case Value::Tag::None: return {std::monostate{}};
      case Value::Tag::Int:
        if (type && !type->list && type->base == SchemaType::Base::Float) return {static_cast<double>(v.to_int())};
        return {v.to_int()};
      case Value::Tag::Double: return {v.to_double()};
      case Value::Tag::Bool: return {v.to_bool()};
      case Value::Tag::Complex: return {v.to_complex()};
      case Value::Tag::String: return {v.to_string()};
      case Value::Tag::DType: return {v.to_dtype()};
      case Value::Tag::Device: return {v.to_device()};
      case Value::Tag::Layout: return {v.to_layout()};
      case Value::Tag::MemoryFormat: return {v.to_memory_format()};
      case Value::Tag::IntList:
        if (v.int_list().empty() && type && type->base == SchemaType::Base::Tensor)
          return {std::vector<pt2::TensorArgument>()};
        return {guard_ints(v.int_list())};
      case Value::Tag::DoubleList: return {v.double_list().vec()};
      case Value::Tag::BoolList: return {v.bool_list()};
      case Value::Tag::TensorList:
      case Value::Tag::List: return plain_list(v, type);
      case Value::Tag::Object:
        if (const Operator* op = fx::operator_in(v)) return {pt2::OperatorArgument{fx::Target(*op).text()}};
        if (const std::string* missing = fx::missing_operator_in(v)) return {pt2::OperatorArgument{*missing}};
        [[fallthrough]];
      default: fail("a value of type ", tag_name(v.tag()), " cannot be written to a .pt2 file");
    }
  }

  // ---- signature ----

  pt2::GraphSignature signature() const {
    pt2::GraphSignature out;
    std::vector<fx::Node*> placeholders = program_.graph().placeholders();
    for (size_t i = 0; i < program_.signature.inputs.size(); ++i) {
      const InputSpec& s = program_.signature.inputs[i];
      switch (s.kind) {
        case InputKind::Parameter: out.input_specs.push_back(pt2::InputToParameterSpec{{s.name}, s.target}); break;
        case InputKind::Buffer:
          out.input_specs.push_back(pt2::InputToBufferSpec{{s.name}, s.target, s.persistent});
          break;
        case InputKind::TensorConstant:
          out.input_specs.push_back(pt2::InputToTensorConstantSpec{{s.name}, s.target});
          break;
        case InputKind::UserInput: {
          bool symbol = placeholders[i]->meta.val.is_sym_int();
          const std::string& name = placeholders[i]->name();
          out.input_specs.push_back(pt2::UserInputSpec{symbol ? pt2::Argument{pt2::SymIntArgument{name}}
                                                              : pt2::Argument{pt2::TensorArgument{name}}});
          break;
        }
        case InputKind::Token: out.input_specs.push_back(pt2::InputTokenSpec{{s.name}}); break;
        case InputKind::ConstantInput:
          out.input_specs.push_back(pt2::InputToConstantInputSpec{s.name, constant(s.value)});
          break;
      }
    }
    fx::Arguments outputs = program_.graph().outputs();
    for (size_t i = 0; i < program_.signature.outputs.size(); ++i)
      out.output_specs.push_back(output_spec(program_.signature.outputs[i], outputs[i]));
    return out;
  }

  static pt2::ConstantValue constant(const Value& v) {
    if (v.is_bool()) return v.to_bool();
    if (v.is_int()) return v.to_int();
    if (v.is_double()) return v.to_double();
    if (v.is_string()) return v.to_string();
    return std::monostate{};
  }

  static pt2::OutputSpec output_spec(const OutputSpec& s, const fx::Argument& a) {
    pt2::TensorArgument tensor{s.name};
    switch (s.kind) {
      case OutputKind::LossOutput: return pt2::LossOutputSpec{tensor};
      case OutputKind::BufferMutation: return pt2::BufferMutationSpec{tensor, s.target};
      case OutputKind::ParameterMutation: return pt2::ParameterMutationSpec{tensor, s.target};
      case OutputKind::UserInputMutation: return pt2::UserInputMutationSpec{tensor, s.target};
      case OutputKind::GradientToParameter: return pt2::GradientToParameterSpec{tensor, s.target};
      case OutputKind::GradientToUserInput: return pt2::GradientToUserInputSpec{tensor, s.target};
      case OutputKind::Token: return pt2::OutputTokenSpec{tensor};
      case OutputKind::UserOutput: break;
    }
    if (!a.node()) return pt2::UserOutputSpec{plain(s.value)};
    const Value& v = a.node()->meta.val;
    if (v.is_sym_int()) return pt2::UserOutputSpec{{pt2::SymIntArgument{s.name}}};
    if (v.tag() == Value::Tag::SymFloat) return pt2::UserOutputSpec{{pt2::SymFloatArgument{s.name}}};
    return pt2::UserOutputSpec{{tensor}};
  }

  std::string tree_spec(const TreeSpec& spec) {
    note_fields(spec, fields_);
    return write_tree_spec(spec);
  }

  std::vector<pt2::ModuleCallEntry> module_calls() {
    pt2::ModuleCallSignature root;
    root.in_spec = tree_spec(program_.in_spec);
    root.out_spec = tree_spec(program_.out_spec);
    root.forward_arg_names = program_.argument_names;
    std::vector<pt2::ModuleCallEntry> out{{"", root}};
    for (const ModuleCall& m : program_.module_calls)
      if (!m.path.empty()) out.push_back({m.path, m.signature ? std::optional(call(*m.signature)) : std::nullopt});
    return out;
  }

  pt2::ModuleCallSignature call(const CallSignature& s) {
    auto arguments = [&](const std::vector<CallArgument>& list) {
      std::vector<pt2::Argument> out;
      for (const CallArgument& a : list) {
        fx::Node* node = a.name.empty() ? nullptr : program_.graph().find_node(a.name);
        out.push_back(node ? node_argument(node) : plain(a.value));
      }
      return out;
    };
    return {arguments(s.inputs), arguments(s.outputs), tree_spec(s.in_spec), tree_spec(s.out_spec), {}};
  }

  const ExportedProgram& program_;
  std::vector<pt2::Graph*> graphs_;
  pt2::Named<pt2::NamedTupleDef> fields_;  // of the named tuples in the tree specifications
  std::vector<const fx::GraphModule*> modules_;
};

}  // namespace

Pt2Program to_pt2(const ExportedProgram& program) { return Writer(program).write(); }

}  // namespace umbra::io

namespace umbra {

void save(const ExportedProgram& program, const std::string& path) {
  io::Pt2Archive archive;
  archive.programs.push_back(io::to_pt2(program));
  io::save_pt2(path, archive);
}

}  // namespace umbra
