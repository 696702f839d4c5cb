// What each input and output of an exported graph is to the program's caller.
#pragma once

#include <string>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

enum class InputKind : uint8_t {
  Parameter,
  Buffer,
  TensorConstant,
  UserInput,
  ConstantInput,
  Token,  // of the first call with effects (capture/effects.h); nobody gives it
};

struct InputSpec {
  InputKind kind = InputKind::UserInput;
  std::string name;    // of the input, which may be a word that nodes are not called: the node of `input` is input_1
  std::string target;  // the parameter's, buffer's or constant's name in the state; empty for user inputs
  bool persistent = true;  // of a buffer: part of the state dict
  Value value;             // of a constant input
};

enum class OutputKind : uint8_t {
  UserOutput,
  LossOutput,
  BufferMutation,
  ParameterMutation,
  UserInputMutation,
  GradientToParameter,
  GradientToUserInput,
  Token,  // of the last call with effects
};

struct OutputSpec {
  OutputKind kind = OutputKind::UserOutput;
  std::string name;    // of the node; empty where the output is a plain value
  std::string target;  // what is written, or whose gradient it is
  Value value;         // of an output that is a plain value
};

struct GraphSignature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;

  std::vector<std::string> user_inputs() const;
  std::vector<std::string> user_outputs() const;
  std::vector<std::string> parameters() const;
  std::vector<std::string> buffers() const;
};

const char* to_string(InputKind kind);
const char* to_string(OutputKind kind);
/// As PyTorch prints it: "# inputs", a line each, "# outputs".
std::string to_string(const GraphSignature& signature);

}  // namespace umbra
