// Programs in terms of fewer operators: without writes, and with operators taken apart.
#pragma once

#include <functional>

#include "umbra/capture/decomposition.h"
#include "umbra/export/exported_program.h"

namespace UMBRA_API umbra {

struct DecomposeOptions {
  /// What operators are recorded as.
  DecompositionTable table = {};
  /// Which operators that are made of others (composites) stay whole; none where it is empty. Those that give views of
  /// what they are given, or write, always come apart.
  std::function<bool(const Operator& op)> keeps = {};
};

/// The program run again on its own stand-ins and recorded below autograd. Writes to parameters, buffers and inputs
/// become results that the signature names; the dialect is "ATEN".
ExportedProgram decompose(const ExportedProgram& program, const DecomposeOptions& options = {});

}  // namespace umbra
