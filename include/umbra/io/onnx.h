// Programs as ONNX models, for the many runtimes that read them.
//
//     save_onnx("model.onnx", program);        // opset 18; sizes that may vary are named dimensions
#pragma once

#include <map>
#include <string>
#include <vector>

#include "umbra/export/exported_program.h"

namespace UMBRA_API umbra {
namespace io {

struct OnnxOptions {
  /// Names of the first inputs and outputs, instead of the program's.
  std::vector<std::string> input_names, output_names;
  /// Names of sizes that vary, by their symbols ("s77").
  std::map<std::string, std::string> dimension_names;
  /// Whether parameters and buffers come with their values.
  bool parameters = true;
  /// Whether they are inputs too, after the program's own, so that a caller may give others.
  bool parameters_are_inputs = false;
  /// The version of ONNX's operators that the model names, 13 to 23. The model is of operators of version 18: one that
  /// is newer than the version asked for, or means something else there, is refused by name.
  int opset = 18;
  /// Large constants lie in a file beside the model ("model.onnx.data"). So do those of a model of 2 GB in any case:
  /// protocol buffers hold no more.
  bool external_data = false;
};

/// The bytes of a ModelProto. The program is taken apart first (`decompose`), and each operator that is left becomes
/// nodes of ONNX; one that has no counterpart is refused by name. Inputs are the program's user inputs that vary, by
/// their names; outputs are its tensors and symbolic numbers. What a program writes (buffers, inputs) follows as
/// further outputs ("new_running_mean"), and buffers that it writes are inputs that may be left out: a caller who wants
/// the model to remember gives it its own new values. What a program asserts is not checked by the model.
std::string to_onnx(const ExportedProgram& program, const OnnxOptions& options = {});

/// Writes it, each file atomically.
void save_onnx(const std::string& path, const ExportedProgram& program, const OnnxOptions& options = {});

}  // namespace io
}  // namespace umbra
