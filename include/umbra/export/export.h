// Export: a module and example inputs in, an ExportedProgram out.
//
//     Dim batch("batch", {.max = 4096});
//     ExportedProgram program = export_program(model, {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
//
// nn/export.h has the form for modules; this one takes what a module consists of.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "umbra/capture/make_fx.h"
#include "umbra/export/dim.h"
#include "umbra/export/exported_program.h"
#include "umbra/sym/draft.h"

namespace UMBRA_API umbra {

struct ExportOptions {
  DynamicShapes dynamic_shapes = {};
  std::vector<std::string> argument_names = {};  // of the positional arguments; arg0, arg1, ... where there are none
  /// What guards call arguments by, where that is another name: {"xs_0", "xs[0]"} of a function of `*xs`.
  std::map<std::string, std::string> argument_sources = {};
  /// Symbols get their names from the places of the flat inputs, as strict capture names them; else from the arguments.
  bool flat_names = false;
  /// Conditions on sizes that Dims do not express are asserted by the program when it runs.
  bool defer_guards = false;
  /// Dimensions that conditions relate in ways no Dim can express must become numbers: an error that says so. Without
  /// it the program checks the conditions when it is called.
  bool force_specializations = false;
  /// Where it is given, the program is a draft: questions about data are answered by the example inputs' data, asserted
  /// by the program, and noted here.
  std::vector<sym::DraftAnswer>* draft = nullptr;
};

struct NamedBuffer {
  std::string name;
  Tensor tensor;
  bool persistent = true;
};

/// A call of a module whose signature the program is to keep.
struct RecordedCall {
  std::string path;
  std::vector<Value> inputs, outputs;
  TreeSpec in_spec, out_spec;
};

/// What export needs to know of a module.
struct ExportSource {
  std::function<Tree(const Tree& arguments, const Tree& keywords)> forward;
  NamedTensors parameters;
  std::vector<NamedBuffer> buffers;
  NamedTensors attributes =
      {};  // other tensors of its parts: constants that the program uses are called by these names
  std::vector<ModuleCall> modules;
  /// Asked after the run: buffers that the module has put other tensors in the place of, and those tensors.
  std::function<std::vector<std::pair<Tensor, Tensor>>()> assignments = {};
  /// Asked after the run: the calls to keep, in order.
  std::function<std::vector<RecordedCall>()> calls = {};
};

/// Runs the module once on fake inputs and records what it calls, above autograd: composite operators and writes stay
/// as they are.
ExportedProgram export_program(const ExportSource& source, const Tree& arguments, const Tree& keywords,
                               const ExportOptions& options = {});

}  // namespace umbra
