// Programs as ONNX models, for the many runtimes that read them.
//
//     save_onnx("model.onnx", program);        // opset 18; sizes that may vary are named dimensions
#pragma once

#include <string>

#include "umbra/export/exported_program.h"

namespace UMBRA_API umbra {
namespace io {

/// The bytes of a ModelProto. The program is taken apart first (`decompose`), and each operator that is left becomes
/// nodes of ONNX; one that has no counterpart is refused by name. Inputs are the program's user inputs that vary, by
/// their names; outputs are its tensors and symbolic numbers. What a program writes (buffers, inputs) follows as
/// further outputs ("new_running_mean"), and buffers that it writes are inputs that may be left out: a caller who wants
/// the model to remember gives it its own new values. What a program asserts is not checked by the model.
std::string to_onnx(const ExportedProgram& program);

struct OnnxOptions {
  /// Large constants lie in a file beside the model ("model.onnx.data"). So do those of a model of 2 GB in any case:
  /// protocol buffers hold no more.
  bool external_data = false;
};

/// Writes it, each file atomically.
void save_onnx(const std::string& path, const ExportedProgram& program, const OnnxOptions& options = {});

}  // namespace io
}  // namespace umbra
