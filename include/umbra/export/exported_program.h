// A program that was captured whole: its graph, what its inputs and outputs mean, its weights, and the ranges of its
// sizes.
//
//     ExportedProgram program = load("model.pt2");
//     ExportedModule model = program.module();               // shares the program's weights
//     Tensor y = model(x);
//     Tensor weight = program.find("fc.weight");
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "umbra/capture/pytree.h"
#include "umbra/core/named.h"
#include "umbra/core/only_result.h"
#include "umbra/export/signature.h"
#include "umbra/graph/graph_module.h"
#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {

/// The range of a symbol, or of an expression where a derived dimension is promised.
struct RangeConstraint {
  std::string expression;
  sym::Range range;
};

/// What a module was given or gave: the value of a node, or a plain value.
struct CallArgument {
  std::string name;  // of the node; empty for a plain value
  Value value;
};

/// How a module was called, leaf by leaf.
struct CallSignature {
  std::vector<CallArgument> inputs, outputs;
  TreeSpec in_spec, out_spec;  // of ((positional...), {keyword...}) and of the result
};

/// A submodule of the original and, where it was asked for, how it was called. "leaf@1" is the second call of `leaf`.
struct ModuleCall {
  std::string path;
  std::optional<CallSignature> signature = {};
};

class ExportedModule;

struct ExportedProgram {
  IntrusivePtr<fx::GraphModule> graph_module;
  GraphSignature signature;
  NamedTensors state;      // parameters and persistent buffers, in the state dict's order
  NamedTensors constants;  // constants and other buffers
  std::vector<RangeConstraint> ranges;
  std::vector<std::string> guards;  // Python expressions over the inputs
  TreeSpec in_spec, out_spec;       // of ((positional...), {keyword...}) and of the result
  std::vector<std::string> argument_names;
  std::vector<ModuleCall> module_calls;
  std::string dialect = "TRAINING";  // "ATEN" once it is functional and decomposed
  std::string example_inputs;  // a torch.save file of ((positional...), {keyword...}), not looked at; may be empty
  IntrusivePtr<sym::ShapeEnv> shape_env;

  fx::Graph& graph() const { return graph_module->graph(); }
  /// The program as something to call: inputs are checked, buffers it writes keep what is written. One that calls
  /// operators which this build does not have is refused, and they are named.
  ExportedModule module() const;
  /// The tensor of that name in the state or among the constants; undefined where there is none.
  Tensor find(const std::string& name) const;
  /// Those of the signature, which belong to the program and to every module made of it.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  /// What an optimiser takes.
  std::vector<Tensor> parameters() const;
};

/// Leaves parameters and buffers that the program does not use out of its inputs, and of several names of one tensor
/// all but the first; what is left comes in the order of its use, parameters first. The state stays what it is.
void keep_used_state(ExportedProgram& program);

class InputCheck;

/// A callable program. Copies share the weights.
class ExportedModule {
 public:
  explicit ExportedModule(ExportedProgram program);
  /// Flat user inputs to flat user outputs.
  std::vector<Value> run(const std::vector<Value>& inputs) const;
  /// For programs of one result; an error where there are several.
  template <class... Tensors> Tensor operator()(const Tensors&... inputs) const {
    return detail::only_result(run({Value(inputs)...}));
  }
  const ExportedProgram& program() const { return program_; }
  NamedTensors named_parameters() const { return program_.named_parameters(); }
  NamedTensors named_buffers() const { return program_.named_buffers(); }
  std::vector<Tensor> parameters() const { return program_.parameters(); }

 private:
  ExportedProgram program_;
  std::shared_ptr<const InputCheck> check_;
  std::vector<std::optional<Tensor>>
      lifted_;                    // for each input of the graph: the program's own tensor, or none for the caller's
  std::vector<int64_t> written_;  // for each result: the input that it is written to, or -1
};

/// The operators and functions that the program calls and this build cannot run, by name; none where it can be run.
std::vector<std::string> missing_operators(const ExportedProgram& program);
/// An error that names them, where there are any.
void check_operators(const ExportedProgram& program);

/// The program as PyTorch prints it: code, signature, ranges.
std::string to_string(const ExportedProgram& program);
std::ostream& operator<<(std::ostream& out, const ExportedProgram& program);

}  // namespace umbra
