// `umbra estimate`: what a program costs, from a run without data.
#pragma once

#include <string>
#include <vector>

#include "umbra/export/exported_program.h"

namespace umbra {

struct EstimateOptions {
  std::vector<std::string> sizes;  // "s0=64"
  bool training = false;           // a backward pass too
  std::string plot;                // where to write the page with the plot; empty for none
};

/// Prints what a call of a program costs; `path` is where it is from.
void estimate_program(const ExportedProgram& program, const std::string& path, const EstimateOptions& options);

}  // namespace umbra
