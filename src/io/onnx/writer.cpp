// A program as a file of ONNX: decomposed, each call by the table of its subject, then the file.
#include <algorithm>
#include <cctype>
#include <ranges>
#include <utility>

#include "io/onnx/call.h"
#include "umbra/export/decompose.h"
#include "umbra/generated/functions.h"
#include "umbra/io/file.h"
#include "umbra/io/onnx.h"
#include "umbra/sym/print.h"

namespace umbra::io {

namespace onnx {

namespace {

const Table& table() {
  static const Table all = [] {
    Table table;
    add_pointwise(table);
    add_shapes(table);
    add_indexing(table);
    add_places(table);
    add_reductions(table);
    add_networks(table);
    add_composed(table);
    return table;
  }();
  return all;
}

/// In terms of few operators; composites that ONNX has a good form for stay whole.
ExportedProgram prepare(const ExportedProgram& program) {
  DecomposeOptions options{.table = core_decompositions()};
  for (const auto& [name, convert] : table())
    if (const Operator* op = find_operator(name)) options.table.remove(*op);
  options.keeps = [](const Operator& op) {
    return op.name() == "aten::linear" || op.name() == "aten::matmul" ||
           op.name() == "aten::scaled_dot_product_attention";
  };
  return decompose(program, options);
}

class Writer {
 public:
  Writer(const ExportedProgram& program, const OnnxOptions& options) : program_(prepare(program)), options_(options) {}

  const Builder& run() {
    for (const auto* names : {&options_.input_names, &options_.output_names})
      for (const std::string& name : *names)
        check<ValueError>(model_.reserve(name) == name, "ONNX: two inputs or outputs are called '", name, "'");
    add_inputs();
    convert(*program_.graph_module);
    add_outputs();
    model_.set_opset(options_.opset);
    return model_;
  }

 private:
  /// Results first; then the new values of what the program writes, which a model of ONNX cannot keep itself.
  void add_outputs() {
    fx::Arguments results = program_.graph().outputs();
    size_t given = 0;
    for (bool writes : {false, true})
      for (size_t i = 0; i < results.size(); ++i) {
        const OutputSpec& spec = program_.signature.outputs.at(i);
        fx::Node* node = results[i].node();
        // A plain value is the same for all calls; a token is that of calls with effects, refused by their own names.
        if (!node || is_write(spec) != writes || spec.kind == OutputKind::Token) continue;
        std::string name = writes ? "new_" + spec.target : node->name();
        if (given < options_.output_names.size()) model_.release(name = options_.output_names[given++]);
        add_output(*node, name);
      }
  }

  static bool is_write(const OutputSpec& spec) {
    return spec.kind == OutputKind::BufferMutation || spec.kind == OutputKind::ParameterMutation ||
           spec.kind == OutputKind::UserInputMutation;
  }

  bool is_written(const std::string& target) const {
    return std::ranges::any_of(program_.signature.outputs,
                               [&](const OutputSpec& spec) { return is_write(spec) && spec.target == target; });
  }

  std::vector<std::string> shape_of(const Tensor& tensor) const {
    std::vector<std::string> out;
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      SymInt size = program_.shape_env ? program_.shape_env->simplify(tensor.sym_sizes()[d]) : tensor.sym_sizes()[d];
      out.push_back(size.is_symbolic() ? renamed(sym::to_text(static_cast<const sym::Expression*>(size.node())))
                                       : std::to_string(size.value()));
    }
    return out;
  }

  /// The text of a size with the names that its symbols were given.
  std::string renamed(const std::string& text) const {
    auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::string out;
    for (size_t begin = 0, end; begin < text.size(); begin = end) {
      for (end = begin + 1; in_name(text[begin]) && end < text.size() && in_name(text[end]);) ++end;
      auto found = options_.dimension_names.find(text.substr(begin, end - begin));
      out += found == options_.dimension_names.end() ? text.substr(begin, end - begin) : found->second;
    }
    return out;
  }

  /// A parameter or buffer. One that the program writes is an input, with a value to begin with.
  void add_constant(const InputSpec& spec, const fx::Node& node) {
    Tensor tensor = program_.find(spec.target);
    Name name = options_.parameters ? model_.constant(tensor, spec.target) : model_.constant_without_value(spec.target);
    values_[&node] = {name};
    if (options_.parameters_are_inputs || is_written(spec.target)) further_inputs_.push_back({name, tensor});
  }

  void add_inputs() {
    size_t given = 0;
    std::vector<fx::Node*> nodes = program_.graph().placeholders();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const InputSpec& spec = program_.signature.inputs.at(i);
      if (spec.kind == InputKind::ConstantInput || spec.kind == InputKind::Token) continue;
      if (spec.kind != InputKind::UserInput) {
        if (!nodes[i]->users().empty()) add_constant(spec, *nodes[i]);
        continue;
      }
      Name name = given < options_.input_names.size() ? options_.input_names[given] : model_.reserve(spec.name);
      ++given;
      bool tensor = nodes[i]->meta.val.is_tensor();
      DType dtype = tensor ? nodes[i]->meta.val.tensor_ref().dtype() : DType::Int64;
      model_.add_input(name, dtype, tensor ? shape_of(nodes[i]->meta.val.tensor_ref()) : std::vector<std::string>());
      values_[nodes[i]] = {name};
    }
    for (const auto& [name, tensor] : further_inputs_) model_.add_input(name, tensor.dtype(), shape_of(tensor));
  }

  void convert(const fx::GraphModule& module) {
    for (const fx::Node* node : module.graph().nodes()) {
      if (node->op() == fx::Op::CallFunction) convert_call(module, *node);
      else if (node->op() == fx::Op::GetAttr) convert_attribute(module, *node);
    }
  }

  void convert_attribute(const fx::GraphModule& module, const fx::Node& node) {
    const Value* value = module.find(node.target().name());
    if (value && value->is_tensor()) values_[&node] = {model_.constant(value->tensor(), node.name())};
  }

  void convert_call(const fx::GraphModule& module, const fx::Node& node) {
    if (const Operator* op = node.target().op()) {
      auto found = table().find(op->name());
      check<NotImplementedError>(found != table().end(), "ONNX: ", node.target().text(), " (", node.name(),
                                 ") has no counterpart in Umbra yet");
      Call call(model_, values_, node);
      return goes_along_scalar(*op, node) ? convert_as_row(call, found->second) : found->second(call);
    }
    const std::string& name = node.target().function()->name;
    if (name == "operator.getitem") return pick(node);
    if (name == "torch.ops.higher_order.wrap_with_set_grad_enabled") return run_part(module, node, 1);
    if (name == "torch.ops.higher_order.cond") return choose(module, node);
    if (name == "torch.ops.higher_order.while_loop") return repeat(module, node);
    if (name == "torch.ops.higher_order.map_impl")
      return go_through(module, node, fx::Argument(), node.arg(1), node.arg(2));
    if (name == "torch.ops.higher_order.scan") return go_through(module, node, node.arg(1), node.arg(2), node.arg(3));
    check<NotImplementedError>(convert_number(model_, values_, node), "ONNX: ", name, " (", node.name(),
                               ") has no counterpart in Umbra yet");
  }

  static bool is_scalar(const Value& value) { return value.is_tensor() && value.tensor_ref().dim() == 0; }

  /// Whether it is told a dimension of a tensor that has none, which PyTorch takes for one of size 1.
  static bool goes_along_scalar(const Operator& op, const fx::Node& node) {
    const Schema& schema = op.schema();
    return (schema.find("dim") >= 0 || schema.find("dims") >= 0) && schema.arguments[0].name == "self" &&
           node.arg(0).node() && is_scalar(node.arg(0).node()->meta.val) && op.name() != "aten::unsqueeze";
  }

  /// The call with rows of one element in the place of scalars.
  void convert_as_row(Call& call, const std::function<void(Call&)>& convert) {
    const fx::Node& node = call.node();
    std::vector<std::pair<const fx::Node*, Names>> before;
    for (size_t i = 0; i < node.target().op()->argument_count(); ++i) {
      const fx::Argument* given = node.argument(i);
      const fx::Node* scalar = given ? given->node() : nullptr;
      if (!scalar || !is_scalar(scalar->meta.val)) continue;
      before.emplace_back(scalar, values_.at(scalar));
      values_[scalar] = {model_.emit("Reshape", {values_.at(scalar).at(0), model_.list({1})})};
    }
    convert(call);
    for (auto& [scalar, names] : std::ranges::reverse_view(before)) values_[scalar] = names;
    Names& results = values_.at(&node);
    for (size_t i = 0; i < results.size(); ++i)
      if (!results[i].empty() && call.result(i).dim() == 0)
        results[i] = model_.emit("Reshape", {results[i], model_.list({})});
  }

  void pick(const fx::Node& node) {
    const Names& names = values_.at(node.arg(0).node());
    const Name& name = names.at(static_cast<size_t>(node.arg(1).value().to_int()));
    check<NotImplementedError>(!name.empty() || node.users().empty(), "ONNX: ", node.name(), " of ",
                               node.arg(0).node()->name(), " has no counterpart in Umbra yet");
    values_[&node] = {name};
  }

  // ---- parts of the program ----

  static fx::GraphModule& part_of(const fx::GraphModule& module, const fx::Argument& argument) {
    return module.submodule(argument.node()->target().name());
  }

  /// The value of an argument of a part: what stands for its node, or a number.
  Name value_of(const fx::Argument& argument) {
    if (argument.node()) return values_.at(argument.node()).at(0);
    const Value& value = argument.value();
    check<NotImplementedError>(value.is_int() || value.is_bool() || value.is_double(),
                               "ONNX: a part of the program is given a plain value that is no number");
    return model_.scalar(value.to_scalar(), type_of(value));
  }
  Names values_of(const fx::Argument& arguments) {
    Names names;
    for (const fx::Argument& argument : arguments.elements()) names.push_back(value_of(argument));
    return names;
  }

  static DType type_of(const Value& value) {
    if (value.is_tensor()) return value.tensor_ref().dtype();
    bool real = value.tag() == Value::Tag::SymFloat || value.is_double();
    bool truth = value.tag() == Value::Tag::SymBool || value.is_bool();
    return real ? DType::Float64 : truth ? DType::Bool : DType::Int64;
  }

  /// The nodes of a part with these values as its inputs; gives the values of its results.
  Names convert_part(const fx::GraphModule& part, const Names& inputs) {
    std::vector<fx::Node*> nodes = part.graph().placeholders();
    for (size_t i = 0; i < nodes.size(); ++i) values_[nodes[i]] = {inputs.at(i)};
    convert(part);
    Names results;
    for (const fx::Argument& result : part.graph().outputs()) results.push_back(value_of(result));
    return results;
  }

  // A part with another grad mode computes the same.
  void run_part(const fx::GraphModule& module, const fx::Node& node, size_t at) {
    Names inputs;
    for (size_t i = at + 1; i < node.args().size(); ++i) inputs.push_back(value_of(node.arg(i)));
    values_[&node] = convert_part(part_of(module, node.arg(at)), inputs);
  }

  /// cond: an If whose branches see the operands.
  void choose(const fx::GraphModule& module, const fx::Node& node) {
    Names operands = values_of(node.arg(3));
    Attributes branches;
    size_t results = 0;
    for (auto [name, at] : {std::pair("then_branch", size_t{1}), {"else_branch", size_t{2}}}) {
      fx::GraphModule& part = part_of(module, node.arg(at));
      model_.begin_graph();
      results = add_results(part, convert_part(part, operands));
      branches.set(name, model_.end_graph());
    }
    values_[&node] = model_.emit_many("If", {value_of(node.arg(0))}, results, branches);
  }

  /// while_loop: a Loop that asks before the first round, and at the end of each.
  void repeat(const fx::GraphModule& module, const fx::Node& node) {
    fx::GraphModule &condition = part_of(module, node.arg(0)), &body = part_of(module, node.arg(1));
    Names carried = values_of(node.arg(2)), others = values_of(node.arg(3));
    auto with_others = [&](Names names) {
      names.insert(names.end(), others.begin(), others.end());
      return names;
    };
    Name first = convert_part(condition, with_others(carried)).at(0);
    model_.begin_graph();
    model_.add_input(model_.reserve("round"), DType::Int64, {});
    model_.add_input(model_.reserve("goes_on"), DType::Bool, {});
    Names inputs = add_part_inputs(body, carried.size());
    Names next = convert_part(body, with_others(inputs));
    Name again = model_.emit("Identity", {convert_part(condition, with_others(next)).at(0)});
    model_.add_output(again, DType::Bool, {});
    add_results(body, next);
    Attributes attributes;
    attributes.set("body", model_.end_graph());
    Names given{"", first};
    given.insert(given.end(), carried.begin(), carried.end());
    values_[&node] = model_.emit_many("Loop", given, carried.size(), attributes);
  }

  /// map and scan: a Scan over the first dimension, with or without values that are carried along.
  void go_through(const fx::GraphModule& module, const fx::Node& node, const fx::Argument& carried,
                  const fx::Argument& rows, const fx::Argument& others) {
    fx::GraphModule& body = part_of(module, node.arg(0));
    Names states = carried.is_none() ? Names() : values_of(carried), slices = values_of(rows), rest = values_of(others);
    model_.begin_graph();
    Names inputs = add_part_inputs(body, states.size() + slices.size());
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    size_t results = add_results(body, convert_part(body, inputs));
    Attributes attributes;
    attributes.set("body", model_.end_graph()).set("num_scan_inputs", static_cast<int64_t>(slices.size()));
    states.insert(states.end(), slices.begin(), slices.end());
    values_[&node] = model_.emit_many("Scan", states, results, attributes);
  }

  /// Declares the first inputs of a part.
  Names add_part_inputs(const fx::GraphModule& part, size_t count) {
    std::vector<fx::Node*> nodes = part.graph().placeholders();
    Names names;
    for (size_t i = 0; i < count; ++i) {
      const Value& value = nodes.at(i)->meta.val;
      names.push_back(model_.reserve(nodes[i]->name()));
      bool tensor = value.is_tensor();
      model_.add_input(names.back(), type_of(value),
                       tensor ? shape_of(value.tensor_ref()) : std::vector<std::string>());
    }
    return names;
  }

  /// Declares a part's results, each by a name of its own.
  size_t add_results(const fx::GraphModule& part, const Names& values) {
    fx::Arguments results = part.graph().outputs();
    for (size_t i = 0; i < results.size(); ++i) {
      const Value& value = results[i].node() ? results[i].node()->meta.val : results[i].value();
      declare(model_.emit("Identity", {values[i]}), value);
    }
    return results.size();
  }

  void add_output(const fx::Node& node, const std::string& name) {
    declare(model_.emit("Identity", {values_.at(&node).at(0)}, {}, name), node.meta.val);
  }

  void declare(const Name& name, const Value& value) {
    model_.add_output(name, type_of(value),
                      value.is_tensor() ? shape_of(value.tensor_ref()) : std::vector<std::string>());
  }

  ExportedProgram program_;
  const OnnxOptions& options_;
  std::vector<std::pair<Name, Tensor>> further_inputs_;  // after the program's own
  Builder model_;
  Values values_;
};

}  // namespace

}  // namespace onnx

std::string to_onnx(const ExportedProgram& program, const OnnxOptions& options) {
  return onnx::Writer(program, options).run().finish();
}

void save_onnx(const std::string& path, const ExportedProgram& program, const OnnxOptions& options) {
  constexpr size_t kRoom = size_t(1) << 27;  // for the graph, beside constants
  onnx::Writer writer(program, options);
  const onnx::Builder& model = writer.run();
  if (!options.external_data && model.constant_bytes() + kRoom < (size_t(1) << 31))
    return save_file(path, model.finish());
  size_t slash = path.find_last_of('/'), written = 0;
  std::string location = path.substr(slash == std::string::npos ? 0 : slash + 1) + ".data";
  AtomicFile data(path + ".data");
  std::string bytes = model.finish(
      [&](std::string_view constant) {
        data.write(constant.data(), constant.size());
        return std::exchange(written, written + constant.size());
      },
      location);
  data.commit();
  save_file(path, bytes);
}

}  // namespace umbra::io
