// The operators of this build: their schemas, and what their definitions have.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "umbra/transform/vmap.h"

namespace umbra::cli {

namespace {

/// By their names; the registry has them in the order in which they were defined.
std::vector<const Operator*> operators_named(const std::string& text) {
  std::vector<const Operator*> found;
  for (const Operator* op : all_operators())
    if (op->name().find(text) != std::string::npos) found.push_back(op);
  check<ValueError>(!found.empty(), "no operator of this build has '", text, "' in its name");
  std::ranges::sort(found, {}, [](const Operator* op) { return op->name(); });
  return found;
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

}  // namespace

int list_operators(const std::string& text) {
  for (const Operator* op : operators_named(text)) std::puts(to_string(op->schema()).c_str());
  return 0;
}

// The operator that a variant follows from, schema, kernel, gradient, forward mode, batching, decomposition.
int list_facts(const std::string& text) {
  for (const Operator* op : operators_named(text)) {
    const Definition& d = op->definition();
    const char* decomposition = d.decomposition ? "own" : d.composite || d.all_backends ? "parts" : "";
    std::printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", op->functional() ? op->functional()->name().c_str() : "",
                to_string(op->schema()).c_str(), way_to_run(*op), way_back(d), way_forward(d), way_to_batch(*op),
                decomposition);
  }
  return 0;
}

}  // namespace umbra::cli
