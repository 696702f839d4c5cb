#include "estimate.h"

#include <cstdio>

#include "files.h"
#include "umbra/io/file.h"
#include "umbra/umbra.h"
#include "umbra/view/program_cost.h"

namespace umbra {

namespace {

/// What a call costs, or why nobody can say it without the data.
ProgramCost cost_without_data(const ExportedProgram& program, const ProgramCostOptions& options) {
  auto refuse = [](const std::exception& e) {
    std::string text = e.what();
    fail<ValueError>(text.substr(0, text.find('\n')),
                     " gives what only data can tell, so what a call costs depends on ",
                     "them; `umbra run --profile` measures a call");
  };
  try {
    return cost_of(program, options);
  } catch (const DynamicOutputShapeException& e) {
    refuse(e);
  } catch (const DataDependentOutputException& e) {
    refuse(e);
  }
  return {};
}

}  // namespace

void estimate_program(const ExportedProgram& program, const std::string& path, const EstimateOptions& options) {
  ProgramCost cost = cost_without_data(program, {.sizes = options.sizes, .training = options.training});
  for (const auto& [name, size] : cost.sizes)
    std::printf("%-12s %s = %lld\n", "Size", name.c_str(), static_cast<long long>(size));
  const CostReport& report = cost.report;
  const CostOperation* at = report.peak_operation();
  auto bytes = [](int64_t value) { return cli::amount(value, "B"); };
  std::vector<std::pair<std::string, std::string>> rows = {{"Weights", bytes(cost.weights)},
                                                           {"Constants", bytes(cost.constants)}};
  for (const auto& [name, value] : rows) std::printf("%-12s %s\n", name.c_str(), value.c_str());
  std::printf("%-12s %s, at %s\n", "Peak", bytes(report.peak).c_str(),
              at ? std::string(at->name).c_str() : "the start");
  std::printf("%-12s %s\n", "Operations", cli::amount(report.flops(), "FLOP").c_str());
  if (!options.plot.empty()) io::save_file(options.plot, cost_page(report, path, rows));
}

}  // namespace umbra
