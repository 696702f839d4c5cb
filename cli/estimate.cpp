#include "estimate.h"

#include <cstdio>
#include <fstream>

#include "files.h"
#include "umbra/umbra.h"
#include "umbra/view/program_cost.h"

namespace umbra {

namespace {

std::string amount(double value, double base, const char* units, const char* unit) {
  size_t power = 0;
  for (; value >= base && units[power + 1]; ++power) value /= base;
  char text[64];
  std::snprintf(text, sizeof text, "%.4g ", value);
  return (power ? text + std::string(1, units[power]) : text) + unit;
}

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

void estimate_program(const std::string& path, const EstimateOptions& options) {
  ProgramCost cost = cost_without_data(cli::load_program(path), {.sizes = options.sizes, .training = options.training});
  for (const auto& [name, size] : cost.sizes)
    std::printf("%-12s %s = %lld\n", "Size", name.c_str(), static_cast<long long>(size));
  const CostReport& report = cost.report;
  const CostOperation* at = report.peak_operation();
  auto bytes = [](int64_t value) { return amount(static_cast<double>(value), 1000, " KMGTPE", "B"); };
  std::vector<std::pair<std::string, std::string>> rows = {{"Weights", bytes(cost.weights)},
                                                           {"Constants", bytes(cost.constants)}};
  for (const auto& [name, value] : rows) std::printf("%-12s %s\n", name.c_str(), value.c_str());
  std::printf("%-12s %s, at %s\n", "Peak", bytes(report.peak).c_str(),
              at ? std::string(at->name).c_str() : "the start");
  std::printf("%-12s %s\n", "Operations", amount(static_cast<double>(report.flops()), 1000, " KMGTPE", "FLOP").c_str());
  if (options.plot.empty()) return;
  std::ofstream file(options.plot);
  file << cost_page(report, path, rows);
  detail::check(file.good(), "cannot write ", options.plot);
}

}  // namespace umbra
