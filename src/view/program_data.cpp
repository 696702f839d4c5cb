// The data of a program's page. Nodes refer to one another, to modules and to source lines by number.
#include <map>
#include <unordered_map>

#include "umbra/graph/graph_module.h"
#include "umbra/graph/print.h"
#include "umbra/view/page.h"
#include "umbra/view/program_cost.h"

namespace umbra {

namespace {

using io::Json;

template <class... Members> Json object(Members&&... members) {
  Json::Object out;
  (out.emplace_back(std::forward<Members>(members)), ...);
  return Json(std::move(out));
}
std::pair<std::string, Json> member(const char* name, Json value) { return {name, std::move(value)}; }

class ProgramData {
 public:
  ProgramData(const ExportedProgram& program, const ProgramCost* cost) : program_(program), cost_(cost) {
    modules_.push_back(object(member("name", ""), member("path", ""), member("type", ""), member("parent", -1)));
    add_graph(*program.graph_module, 0, &program.signature, nullptr);
  }

  Json::Object take() {
    Json::Object out;
    if (cost_) add_cost(out);
    Json::Array nodes;
    for (Json::Object& node : nodes_) nodes.emplace_back(std::move(node));
    out.emplace_back("modules", Json(std::move(modules_)));
    out.emplace_back("nodes", Json(std::move(nodes)));
    out.emplace_back("sources", Json(std::move(sources_)));
    return out;
  }

 private:
  /// `caller`: the call that runs a subgraph; its arguments are the subgraph's inputs.
  void add_graph(const fx::GraphModule& graph_module, int64_t outer, const GraphSignature* signature,
                 const fx::Node* caller) {
    std::vector<const fx::Node*> operands;
    if (caller) operands = operands_of(*caller);
    size_t inputs = 0;
    for (const fx::Node* node : graph_module.graph().nodes()) {
      if (node->op() == fx::Op::GetAttr && graph_of(graph_module, *node)) continue;  // shown where it is called
      std::vector<const fx::GraphModule*> called;
      std::vector<int64_t> results;
      int64_t module = module_of(*node, outer);
      for (const fx::Node* input : node->inputs())
        if (input->op() == fx::Op::GetAttr)
          if (const fx::GraphModule* part = graph_of(graph_module, *input))
            results.push_back(add_subgraph(*part, module, input->target().name(), *node));
      Json::Object row = describe(*node, module);
      Json::Array takes;
      for (const fx::Node* input : node->inputs())
        if (auto found = numbers_.find(input); found != numbers_.end()) takes.emplace_back(found->second);
      for (int64_t result : results) takes.emplace_back(result);
      if (node->op() == fx::Op::Placeholder) {
        const InputSpec* spec = signature && inputs < signature->inputs.size() ? &signature->inputs[inputs] : nullptr;
        add_input(row, spec);
        if (inputs < operands.size())
          if (auto found = numbers_.find(operands[inputs]); found != numbers_.end()) takes.emplace_back(found->second);
        ++inputs;
      }
      row.emplace_back("in", Json(std::move(takes)));
      numbers_.emplace(node, static_cast<int64_t>(nodes_.size()));
      if (!caller) by_name_.emplace(node->name(), nodes_.size());
      nodes_.push_back(std::move(row));
    }
  }

  /// Gives the number of the subgraph's output.
  int64_t add_subgraph(const fx::GraphModule& part, int64_t outer, const std::string& name, const fx::Node& caller) {
    int64_t module = add_module(name, name, "subgraph of " + caller.target().text(), outer);
    add_graph(part, module, nullptr, &caller);
    return static_cast<int64_t>(nodes_.size()) - 1;
  }

  static const fx::GraphModule* graph_of(const fx::GraphModule& owner, const fx::Node& node) {
    for (const auto& [path, part] : owner.submodules())
      if (path == node.target().name()) return part;
    return nullptr;
  }

  /// The nodes whose values a higher-order operator hands to its functions: those in its last list of arguments.
  static std::vector<const fx::Node*> operands_of(const fx::Node& caller) {
    std::vector<const fx::Node*> operands;
    for (const fx::Argument& argument : caller.args())
      if (argument.is_sequence()) argument.each_node([&](const fx::Node* node) { operands.push_back(node); });
    return operands;
  }

  // ---- modules ----

  int64_t add_module(const std::string& name, const std::string& path, const std::string& type, int64_t parent) {
    modules_.push_back(
        object(member("name", name), member("path", path), member("type", type), member("parent", parent)));
    return static_cast<int64_t>(modules_.size()) - 1;
  }

  /// The module that a node was made in, by its stack of modules below the program's own.
  int64_t module_of(const fx::Node& node, int64_t outer) {
    int64_t module = outer;
    if (!node.meta.modules) return module;
    std::string above;
    for (const fx::ModuleFrame& frame : node.meta.modules->frames()) {
      if (frame.path == frame.type && frame.path == frame.key) continue;  // how PyTorch writes that there is none
      if (frame.path.empty()) {                                           // the program
        if (outer == 0)
          modules_[0] =
              object(member("name", ""), member("path", ""), member("type", frame.type), member("parent", -1));
        continue;
      }
      auto [found, fresh] = by_key_.try_emplace({module, frame.key}, 0);
      if (fresh) found->second = add_module(short_path(frame, above), frame.path, frame.type, module);
      module = found->second;
      above = frame.path;
    }
    return module;
  }

  /// The path below that of the module around it, with the number of the call where it is not the first.
  static std::string short_path(const fx::ModuleFrame& frame, const std::string& above) {
    bool inside = !above.empty() && frame.path.starts_with(above + ".");
    size_t at = frame.key.rfind('@');
    std::string call = at == std::string::npos ? "" : frame.key.substr(at);
    return frame.path.substr(inside ? above.size() + 1 : 0) + call;
  }

  // ---- nodes ----

  Json::Object describe(const fx::Node& node, int64_t module) {
    Json::Object row;
    row.emplace_back("name", node.name());
    row.emplace_back("op", node.op() == fx::Op::CallFunction ? "call" : fx::to_string(node.op()));
    row.emplace_back("target", node.target().text());
    row.emplace_back("module", module);
    if (node.op() == fx::Op::CallFunction) row.emplace_back("args", arguments_text(node));
    if (node.target().op() && node.target().op()->definition().view) row.emplace_back("view", true);
    Json::Array values;
    add_values(node.meta.val, values);
    if (!values.empty()) row.emplace_back("values", Json(std::move(values)));
    if (node.meta.source) row.emplace_back("source", source_number(node.meta.source->text()));
    return row;
  }

  static std::string arguments_text(const fx::Node& node) {
    std::string out;
    for (const fx::Argument& argument : node.args()) out += (out.empty() ? "" : ", ") + fx::python_repr(argument);
    for (const auto& [name, argument] : node.kwargs())
      out += (out.empty() ? "" : ", ") + name + "=" + fx::python_repr(argument);
    return out;
  }

  void add_values(const Value& value, Json::Array& out) {
    if (value.is_tensor()) {
      const Tensor& t = value.tensor_ref();
      Json row = object(member("dtype", fx::short_name(t.dtype())), member("shape", to_string(t.sym_sizes())));
      if (std::optional<int64_t> bytes = bytes_of(t)) row.object().emplace_back("bytes", *bytes);
      out.push_back(std::move(row));
    } else if (value.is_list()) {
      for (const Value& item : value.list()) add_values(item, out);
    } else if (value.is_tensor_list()) {
      for (const Tensor& item : value.tensor_list()) add_values(Value(item), out);
    } else if (!value.is_none()) {
      out.push_back(object(member("dtype", "number"), member("shape", to_string(value))));
    }
  }

  std::optional<int64_t> bytes_of(const Tensor& t) const {
    SymInt numel = t.sym_numel();
    if (!numel.is_symbolic()) return numel.value() * t.item_size();
    if (!cost_ || !program_.shape_env) return std::nullopt;
    std::optional<int64_t> count = program_.shape_env->evaluate(numel, cost_->bindings);
    return count ? std::optional<int64_t>(*count * t.item_size()) : std::nullopt;
  }

  void add_input(Json::Object& row, const InputSpec* spec) {
    if (!spec) return;
    row.emplace_back("input", to_string(spec->kind));
    if (!spec->target.empty()) row.emplace_back("weight", spec->target);
  }

  int64_t source_number(const std::string& text) {
    auto [found, fresh] = source_numbers_.try_emplace(text, static_cast<int64_t>(sources_.size()));
    if (fresh) sources_.emplace_back(text);
    return found->second;
  }

  // ---- cost ----

  /// What each call does, and the memory in use over time: pairs of bytes and the node.
  void add_cost(Json::Object& out) {
    const CostReport& report = cost_->report;
    std::vector<int64_t> owner(report.operations.size(), -1);  // the node of each operation
    size_t from = 0;
    for (const auto& [name, end] : cost_->nodes) {
      auto found = by_name_.find(name);
      if (found != by_name_.end()) {
        int64_t flops = 0;
        for (size_t i = from; i < end; ++i) {
          owner[i] = static_cast<int64_t>(found->second);
          flops += report.operations[i].flops;
        }
        if (flops) nodes_[found->second].emplace_back("flops", flops);
      }
      from = end;
    }
    Json::Array timeline;
    int64_t node = -1;
    for (const MemoryPoint& point : report.timeline) {
      if (point.operation >= 0) node = owner[static_cast<size_t>(point.operation)];
      if (node < 0) timeline.clear();  // what was there before counts as one point
      timeline.emplace_back(Json::Array{Json(point.bytes), Json(node)});
    }
    out.emplace_back("memory", Json(std::move(timeline)));
    out.emplace_back("peak", report.peak);
    out.emplace_back("flops", report.flops());
    out.emplace_back("weights", cost_->weights + cost_->constants);
  }

  const ExportedProgram& program_;
  const ProgramCost* cost_;
  Json::Array modules_, sources_;
  std::vector<Json::Object> nodes_;
  std::unordered_map<const fx::Node*, int64_t> numbers_;
  std::unordered_map<std::string, size_t> by_name_;
  std::map<std::pair<int64_t, std::string>, int64_t> by_key_;
  std::unordered_map<std::string, int64_t> source_numbers_;
};

Json::Array sizes_of(const ExportedProgram& program, const ProgramCost* cost) {
  Json::Array sizes;
  for (const RangeConstraint& range : program.ranges) {
    Json row = object(member("name", range.expression), member("range", to_string(range.range)));
    if (cost)
      for (const auto& [name, value] : cost->sizes)
        if (name == range.expression) row.object().emplace_back("value", value);
    sizes.push_back(std::move(row));
  }
  return sizes;
}

int64_t parameter_count(const ExportedProgram& program) {
  int64_t count = 0;
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind == InputKind::Parameter)
      if (Tensor t = program.find(spec.target); t.defined()) count += t.numel();
  return count;
}

}  // namespace

Json program_data(const ExportedProgram& program, const PageOptions& options) {
  std::optional<ProgramCost> cost;
  std::string reason;
  try {
    cost = cost_of(program, {.sizes = options.sizes});
  } catch (const Error& e) {
    if (!options.sizes.empty()) throw;
    reason = e.what();
  }
  const ProgramCost* known = cost ? &*cost : nullptr;
  Json::Object out = {{"title", options.title},
                      {"dialect", program.dialect},
                      {"parameters", parameter_count(program)},
                      {"sizes", Json(sizes_of(program, known))}};
  if (!known) out.emplace_back("no_cost", reason);
  for (auto& [name, value] : ProgramData(program, known).take()) out.emplace_back(name, std::move(value));
  return Json(std::move(out));
}

}  // namespace umbra
