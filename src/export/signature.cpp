#include "umbra/export/signature.h"

namespace umbra {

namespace {
std::vector<std::string> input_targets(const GraphSignature& s, InputKind kind) {
  std::vector<std::string> out;
  for (const InputSpec& spec : s.inputs)
    if (spec.kind == kind) out.push_back(spec.target);
  return out;
}
}  // namespace

std::vector<std::string> GraphSignature::user_inputs() const {
  std::vector<std::string> out;
  for (const InputSpec& spec : inputs)
    if (spec.kind == InputKind::UserInput || spec.kind == InputKind::ConstantInput) out.push_back(spec.name);
  return out;
}
std::vector<std::string> GraphSignature::user_outputs() const {
  std::vector<std::string> out;
  for (const OutputSpec& spec : outputs)
    if (spec.kind == OutputKind::UserOutput || spec.kind == OutputKind::LossOutput) out.push_back(spec.name);
  return out;
}
std::vector<std::string> GraphSignature::parameters() const { return input_targets(*this, InputKind::Parameter); }
std::vector<std::string> GraphSignature::buffers() const { return input_targets(*this, InputKind::Buffer); }

const char* to_string(InputKind kind) {
  constexpr const char* kNames[] = {"PARAMETER", "BUFFER", "CONSTANT_TENSOR", "USER_INPUT", "USER_INPUT", "TOKEN"};
  return kNames[static_cast<int>(kind)];
}

const char* to_string(OutputKind kind) {
  constexpr const char* kNames[] = {
      "USER_OUTPUT",         "LOSS_OUTPUT",           "BUFFER_MUTATION",        "PARAMETER_MUTATION",
      "USER_INPUT_MUTATION", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT", "TOKEN"};
  return kNames[static_cast<int>(kind)];
}

std::string to_string(const GraphSignature& signature) {
  std::string out = "\n# inputs\n";
  for (const InputSpec& spec : signature.inputs) {
    out += spec.name + ": " + to_string(spec.kind);
    if (!spec.target.empty()) out += " target='" + spec.target + "'";
    if (spec.kind == InputKind::Buffer) out += spec.persistent ? " persistent=True" : " persistent=False";
    out += "\n";
  }
  out += "\n# outputs\n";
  for (const OutputSpec& spec : signature.outputs) {
    out += spec.name + ": " + to_string(spec.kind);
    if (!spec.target.empty()) out += " target='" + spec.target + "'";
    out += "\n";
  }
  return out;
}

}  // namespace umbra
