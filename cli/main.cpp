// umbra: looks into exported programs from the command line.
//
//     umbra show mlp.pt2               the program: code, signature, ranges
//     umbra show mlp.pt2 --graph       its nodes, as torch.fx lists them
//     umbra weights mlp.pt2            names, types and shapes of its weights
//     umbra check *.pt2                whether files are sound programs that this build can run
//     umbra estimate mlp.pt2 --size s0=64   what a call costs: memory, operations
//     umbra operators [TEXT]           the operators of this build
//     umbra operators --facts          what each one's definition has, in columns parted by tabs
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "estimate.h"
#include "umbra/transform/vmap.h"
#include "umbra/umbra.h"

namespace umbra {
namespace {

void show(const std::string& path, bool as_graph) {
  ExportedProgram program = load(path);
  std::puts((as_graph ? to_string(program.graph()) : to_string(program)).c_str());
}

void list_weights(const std::string& path) {
  ExportedProgram program = load(path);
  int64_t elements = 0, bytes = 0;
  for (const NamedTensors* list : {&program.state, &program.constants})
    for (const auto& [name, tensor] : *list) {
      std::printf("%-60s %-10s %s\n", name.c_str(), umbra::name(tensor.dtype()), to_string(tensor.sizes()).c_str());
      elements += tensor.numel();
      bytes += tensor.numel() * tensor.item_size();
    }
  std::printf("%lld elements, %.1f MB\n", static_cast<long long>(elements), static_cast<double>(bytes) / 1e6);
}

int check_files(const std::vector<std::string>& paths) {
  int refused = 0;
  for (const std::string& path : paths) {
    try {
      ExportedProgram program = load(path);
      std::printf("%s: ok, %zu nodes\n", path.c_str(), program.graph().size());
    } catch (const std::exception& e) {
      std::printf("%s: %s\n", path.c_str(), e.what());
      ++refused;
    }
  }
  return refused ? 1 : 0;
}

void list_operators(const std::string& text) {
  for (const Operator* op : all_operators())
    if (op->name().find(text) != std::string::npos) std::puts(to_string(op->schema()).c_str());
}

const char* way_to_run(const Operator& op) {
  const Definition& d = op.definition();
  if (op.takes_functions()) return "functions";
  if (d.view) return "view";
  if (d.composite) return "composite";
  if (d.all_backends) return "parts";
  return d.kernels.any() || d.real.any() || d.mutate.any() ? "kernel" : "";
}

const char* way_back(const Definition& d) {
  return d.not_differentiable ? "constant" : !d.gradients.empty() ? "formula" : d.composite ? "parts" : "";
}

const char* way_forward(const Definition& d) {
  if (d.not_differentiable) return "constant";
  if (d.composite || d.tangent_form) return "parts";
  if (d.tangent != TangentRule::None) return "rule";
  return d.gradients.empty() ? "" : "transposed";
}

const char* way_to_batch(const Operator& op) {
  switch (transform::batching_of(op)) {
    case transform::Batching::Rule: return "rule";
    case transform::Batching::Parts: return "parts";
    default: return "loop";
  }
}

/// The operator that a variant follows from, schema, kernel, gradient, forward mode, batching, decomposition.
void list_facts(const std::string& text) {
  for (const Operator* op : all_operators()) {
    if (op->name().find(text) == std::string::npos) continue;
    const Definition& d = op->definition();
    const char* decomposition = d.decomposition ? "own" : d.composite || d.all_backends ? "parts" : "";
    std::printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", op->functional() ? op->functional()->name().c_str() : "",
                to_string(op->schema()).c_str(), way_to_run(*op), way_back(d), way_forward(d), way_to_batch(*op),
                decomposition);
  }
}

}  // namespace
}  // namespace umbra

int main(int argc, char** argv) {
  CLI::App app{"Looks into exported programs (.pt2)."};
  app.require_subcommand(1);
  std::string path, text;
  std::vector<std::string> paths;
  bool as_graph = false, facts = false;
  auto* show = app.add_subcommand("show", "print a program: code, signature, ranges");
  show->add_option("file", path, "a .pt2 file")->required();
  show->add_flag("--graph", as_graph, "its nodes instead, as torch.fx lists them");
  auto* weights = app.add_subcommand("weights", "list the weights of a program");
  weights->add_option("file", path, "a .pt2 file")->required();
  auto* check = app.add_subcommand("check", "say of each file whether it is a sound program that this build can run");
  check->add_option("files", paths, ".pt2 files")->required();
  umbra::EstimateOptions costs;
  auto* estimate = app.add_subcommand("estimate", "say what a call of a program costs, from a run without data");
  estimate->add_option("file", path, "a .pt2 file")->required();
  estimate->add_option(
      "--size", costs.sizes,
      "a dynamic size, as NAME=NUMBER; the least possible, if it is not given and the file has no example");
  estimate->add_flag("--training", costs.training, "with a backward pass");
  estimate->add_option("--plot", costs.plot, "write a page with a plot of memory over time");
  auto* operators = app.add_subcommand("operators", "list the operators of this build");
  operators->add_option("text", text, "only those whose name contains this");
  operators->add_flag("--facts", facts, "in columns: base of a variant, schema, what its definition has");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*show) umbra::show(path, as_graph);
    else if (*weights) umbra::list_weights(path);
    else if (*estimate) umbra::estimate_program(path, costs);
    else if (*check) return umbra::check_files(paths);
    else if (facts) umbra::list_facts(text);
    else umbra::list_operators(text);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "umbra: %s\n", e.what());
    return 1;
  }
}
