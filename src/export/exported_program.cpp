#include "umbra/export/exported_program.h"

#include <algorithm>
#include <ostream>

#include "export/used_symbols.h"
#include "umbra/capture/effects.h"
#include "umbra/capture/retrace.h"
#include "umbra/export/input_check.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/operator_value.h"
#include "umbra/graph/print.h"

namespace umbra {

Tensor ExportedProgram::find(const std::string& name) const {
  for (const NamedTensors* list : {&state, &constants})
    for (const auto& [key, tensor] : *list)
      if (key == name) return tensor;
  return Tensor();
}

NamedTensors ExportedProgram::named_parameters() const {
  NamedTensors found;
  for (const std::string& name : signature.parameters()) found.emplace_back(name, find(name));
  return found;
}

NamedTensors ExportedProgram::named_buffers() const {
  NamedTensors found;
  for (const std::string& name : signature.buffers()) found.emplace_back(name, find(name));
  return found;
}

std::vector<Tensor> ExportedProgram::parameters() const {
  std::vector<Tensor> found;
  for (const std::string& name : signature.parameters()) found.push_back(find(name));
  return found;
}

ExportedModule ExportedProgram::module() const { return ExportedModule(*this); }

// ---- what can be run ----

namespace {

void add_missing(const fx::GraphModule& module, std::vector<std::string>& names) {
  for (const fx::Node* node : module.graph().nodes()) {
    auto add = [&](const std::string& name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    const fx::Function* function = node->target().function();
    if (!function) continue;
    if (!function->evaluate) add(node->target().text());
    for (const fx::Argument& a : node->args())  // of auto_functionalized and its like
      if (const std::string* missing = a.is_value() ? fx::missing_operator_in(a.value()) : nullptr) add(*missing);
  }
  for (const auto& [path, part] : module.submodules()) add_missing(*part, names);
}

}  // namespace

std::vector<std::string> missing_operators(const ExportedProgram& program) {
  std::vector<std::string> names;
  add_missing(*program.graph_module, names);
  return names;
}

void check_operators(const ExportedProgram& program) {
  std::string missing;
  for (const std::string& name : missing_operators(program)) missing += (missing.empty() ? "" : ", ") + name;
  check<NotImplementedError>(missing.empty(), "the program calls ", missing, ", which this build does not have");
}

// ---- running ----

ExportedModule::ExportedModule(ExportedProgram program)
    : program_(std::move(program)), check_(std::make_shared<const InputCheck>(program_)) {
  check_operators(program_);
  std::unordered_map<std::string_view, Tensor> tensors;
  for (const NamedTensors* list : {&program_.state, &program_.constants})
    for (const auto& [name, tensor] : *list) tensors.try_emplace(name, tensor);
  for (const InputSpec& spec : program_.signature.inputs) {
    bool given = spec.kind == InputKind::UserInput || spec.kind == InputKind::ConstantInput;
    if (spec.kind == InputKind::Token) lifted_.push_back(make_token());
    else lifted_.push_back(given ? std::nullopt : std::optional<Tensor>(tensors[spec.target]));
  }
  for (const OutputSpec& spec : program_.signature.outputs) {
    int64_t written = -1;
    bool of_state = spec.kind == OutputKind::BufferMutation || spec.kind == OutputKind::ParameterMutation;
    if (of_state || spec.kind == OutputKind::UserInputMutation)
      for (size_t k = 0; k < lifted_.size() && written < 0; ++k) {
        const InputSpec& input = program_.signature.inputs[k];
        if (of_state ? lifted_[k] && input.target == spec.target : input.name == spec.target)
          written = static_cast<int64_t>(k);
      }
    written_.push_back(written);
  }
}

std::vector<Value> ExportedModule::run(const std::vector<Value>& inputs) const {
  check_->run(inputs);
  std::vector<Value> all;
  all.reserve(lifted_.size());
  size_t next = 0;
  for (const std::optional<Tensor>& tensor : lifted_) all.push_back(tensor ? Value(*tensor) : inputs[next++]);
  std::vector<Value> results = run_with_origins(program_.graph_module, all);
  std::vector<Value> user;
  for (size_t i = 0; i < results.size(); ++i) {
    if (program_.signature.outputs.at(i).kind == OutputKind::Token) continue;  // as in unlift: nobody is given it
    if (written_.at(i) < 0) {
      user.push_back(std::move(results[i]));
      continue;
    }
    Tensor target = all[static_cast<size_t>(written_[i])].tensor();
    bool of_user = program_.signature.outputs[i].kind == OutputKind::UserInputMutation;
    (of_user ? target : target.detach()).copy_(results[i].tensor());
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
  std::string out = "ExportedProgram:\n" + indent(fx::readable_code(*program.graph_module)) + "\nGraph signature:\n" +
                    indent(to_string(program.signature).substr(1));
  std::vector<std::string> ranges;
  for (const RangeConstraint& r : program.ranges) ranges.push_back(r.expression + ": VR" + to_string(r.range));
  for (const std::string& name : float_symbols(program.graph()))
    if (std::ranges::find(program.ranges, name, &RangeConstraint::expression) == program.ranges.end())
      ranges.push_back(name + ": VR[-oo, oo]");
  out += "\nRange constraints: {";
  for (size_t i = 0; i < ranges.size(); ++i) out += (i ? ", " : "") + ranges[i];
  return out + "}\n";
}

std::ostream& operator<<(std::ostream& out, const ExportedProgram& program) { return out << to_string(program); }

}  // namespace umbra
