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
    add_reductions(table);
    add_networks(table);
    return table;
  }();
  return all;
}

/// In terms of few operators; composites that ONNX has a good form for stay whole.
ExportedProgram prepare(const ExportedProgram& program) {
  DecomposeOptions options{.table = core_decompositions()};
  for (const auto& [name, convert] : table()) options.table.remove(get_operator(name));
  for (const char* name : {"aten::upsample_bicubic2d.vec", "aten::upsample_trilinear3d.vec"})
    options.table.remove(get_operator(name));
  options.keeps = [](const Operator& op) {
    return op.name() == "aten::linear" || op.name() == "aten::matmul" ||
           op.name() == "aten::scaled_dot_product_attention";
  };
  return decompose(program, options);
}

class Writer {
 public:
  explicit Writer(const ExportedProgram& program) : program_(prepare(program)) {}

  std::string run() {
    refuse_writes();
    add_inputs();
    convert(*program_.graph_module);
    add_outputs();
    return model_.finish();
  }

 private:
  void refuse_writes() const {
    for (const OutputSpec& spec : program_.signature.outputs)
      check<NotImplementedError>(spec.kind == OutputKind::UserOutput || spec.kind == OutputKind::LossOutput,
                                 "ONNX: the program writes ", spec.target,
                                 ", and a model of ONNX keeps nothing between calls (is the module in eval mode?)");
  }

  static std::vector<std::string> shape_of(const Tensor& tensor) {
    std::vector<std::string> out;
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      SymInt size = tensor.sym_sizes()[d];
      out.push_back(size.is_symbolic() ? sym::to_text(static_cast<const sym::Expression*>(size.node()))
                                       : std::to_string(size.value()));
    }
    return out;
  }

  void add_inputs() {
    std::vector<fx::Node*> nodes = program_.graph().placeholders();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const InputSpec& spec = program_.signature.inputs.at(i);
      if (spec.kind == InputKind::ConstantInput) continue;
      if (spec.kind != InputKind::UserInput) {
        if (!nodes[i]->users().empty()) values_[nodes[i]] = {model_.constant(program_.find(spec.target), spec.target)};
        continue;
      }
      Name name = model_.reserve(spec.name);
      bool tensor = nodes[i]->meta.val.is_tensor();
      DType dtype = tensor ? nodes[i]->meta.val.tensor_ref().dtype() : DType::Int64;
      model_.add_input(name, dtype, tensor ? shape_of(nodes[i]->meta.val.tensor_ref()) : std::vector<std::string>());
      values_[nodes[i]] = {name};
    }
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
      return found->second(call);
    }
    const std::string& name = node.target().function()->name;
    if (name == "operator.getitem") return pick(node);
    if (name == "torch.ops.higher_order.wrap_with_set_grad_enabled") return run_part(module, node, 1);
    check<NotImplementedError>(convert_number(model_, values_, node), "ONNX: ", name, " (", node.name(),
                               ") has no counterpart in Umbra yet");
  }

  void pick(const fx::Node& node) {
    const Names& names = values_.at(node.arg(0).node());
    const Name& name = names.at(static_cast<size_t>(node.arg(1).value().to_int()));
    check<NotImplementedError>(!name.empty() || node.users().empty(), "ONNX: ", node.name(), " of ",
                               node.arg(0).node()->name(), " has no counterpart in Umbra yet");
    values_[&node] = {name};
  }

  // A part with another grad mode computes the same.
  void run_part(const fx::GraphModule& module, const fx::Node& node, size_t at) {
    fx::GraphModule& part = module.submodule(node.arg(at).node()->target().name());
    std::vector<fx::Node*> inputs = part.graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const fx::Node* given = node.arg(at + 1 + i).node();
      check<NotImplementedError>(given, "ONNX: a part of the program is given a plain value");
      values_[inputs[i]] = values_.at(given);
    }
    convert(part);
    Names results;
    for (const fx::Argument& result : part.graph().outputs())
      results.push_back(result.node() ? values_.at(result.node()).at(0) : Name());
    values_[&node] = results;
  }

  void add_outputs() {
    fx::Arguments results = program_.graph().outputs();
    for (const fx::Argument& result : results) {
      const fx::Node* node = result.node();
      if (!node) continue;  // a plain value is the same for all calls
      Name name = model_.emit("Identity", {values_.at(node).at(0)}, {}, node->name());
      const Value& value = node->meta.val;
      bool real = value.tag() == Value::Tag::SymFloat, truth = value.tag() == Value::Tag::SymBool;
      if (value.is_tensor()) model_.add_output(name, value.tensor_ref().dtype(), shape_of(value.tensor_ref()));
      else model_.add_output(name, real ? DType::Float64 : truth ? DType::Bool : DType::Int64, {});
    }
  }

  ExportedProgram program_;
  Builder model_;
  Values values_;
};

}  // namespace

}  // namespace onnx

std::string to_onnx(const ExportedProgram& program) { return onnx::Writer(program).run(); }

void save_onnx(const std::string& path, const ExportedProgram& program) { save_file(path, to_onnx(program)); }

}  // namespace umbra::io
