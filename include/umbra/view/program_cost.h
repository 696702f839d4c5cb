// What a call of an exported program costs, from a run without data: memory over time and operations, node by node.
//
//     ProgramCost cost = cost_of(load("mlp.pt2"), {.sizes = {"s77=64"}});
//     cost.report.peak;                                  // bytes
//     cost.report.flops_by_scope();                      // by the modules that the program was exported from
#pragma once

#include <string>
#include <vector>

#include "umbra/export/exported_program.h"
#include "umbra/fake/cost.h"

namespace UMBRA_API umbra {

struct ProgramCostOptions {
  /// Dynamic sizes by their names in the program, "s77=64", or "64" where there is one; others are the example's, or the
  /// least possible.
  std::vector<std::string> sizes = {};
  bool training = false;                // with a backward pass
};

struct ProgramCost {
  CostReport report;                                   // its scopes are paths of modules
  std::vector<std::pair<std::string, int64_t>> sizes;  // the dynamic sizes it was run with
  sym::Bindings bindings;                              // the same, to evaluate expressions with
  std::vector<std::pair<std::string, size_t>> nodes;   // calls of the graph in order, and the operations done by then
  int64_t weights = 0, constants = 0;                  // bytes
};

/// Runs the program on fake tensors. An error where a size is not allowed or depends on data, or an operator is
/// missing.
ProgramCost cost_of(const ExportedProgram& program, const ProgramCostOptions& options = {});

}  // namespace umbra
