// Commands that look into files: info, show, weights, check, operators.
#include <cstdio>
#include <map>

#include "commands.h"
#include "estimate.h"
#include "files.h"
#include "umbra/graph/print.h"
#include "umbra/io/pt2_program.h"
#include "umbra/io/zip.h"

namespace umbra::cli {

namespace {

std::string describe(const Value& value) {
  if (value.is_tensor()) {
    const Tensor& t = value.tensor_ref();
    return concat(name(t.dtype()), to_string(t.sym_sizes()));
  }
  return to_string(value);
}

void print_inputs(const ExportedProgram& program) {
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  std::printf("inputs\n");
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    if (spec.kind == InputKind::UserInput)
      std::printf("  %-24s %s\n", spec.name.c_str(), describe(placeholders[i]->meta.val).c_str());
    else if (spec.kind == InputKind::ConstantInput)
      std::printf("  %-24s always %s\n", spec.name.c_str(), to_string(spec.value).c_str());
  }
}

void print_outputs(const ExportedProgram& program) {
  fx::Arguments results = program.graph().outputs();
  std::printf("outputs\n");
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = program.signature.outputs.at(i);
    if (spec.kind == OutputKind::Token) continue;
    std::string what = results[i].node() ? describe(results[i].node()->meta.val) : to_string(spec.value);
    std::string target = spec.target.empty() ? "" : concat("  (", to_string(spec.kind), " of ", spec.target, ")");
    std::printf("  %-24s %s%s\n", spec.name.c_str(), what.c_str(), target.c_str());
  }
}

void count_calls(const fx::GraphModule& module, std::map<std::string, int>& calls) {
  for (const fx::Node* node : module.graph().nodes())
    if (node->op() == fx::Op::CallFunction) ++calls[node->target().text()];
  for (const auto& [path, part] : module.submodules()) count_calls(*part, calls);
}

}  // namespace

int info(const std::string& path) {
  ExportedProgram program = load_program(path);
  std::printf("%s: a program of dialect %s\n\n", path.c_str(), program.dialect.c_str());
  print_inputs(program);
  if (!program.ranges.empty()) std::printf("sizes\n");
  for (const RangeConstraint& r : program.ranges)
    std::printf("  %-24s %s\n", r.expression.c_str(), to_string(r.range).c_str());
  print_outputs(program);
  std::map<std::string, int> calls;
  count_calls(*program.graph_module, calls);
  int total = 0;
  for (const auto& [name, count] : calls) total += count;
  int64_t parameters = 0;
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind == InputKind::Parameter) parameters += program.find(spec.target).numel();
  std::printf("contents\n  %-24s %lld\n", "parameters", static_cast<long long>(parameters));
  std::printf("  %-24s %d, of %zu operators\n", "calls", total, calls.size());
  std::vector<std::string> missing = missing_operators(program);
  for (const std::string& name : missing) std::printf("  %-24s %s\n", "missing here", name.c_str());
  if (!missing.empty()) return 0;
  std::printf("cost of a call\n");
  try {
    estimate_program(program, path, {});
  } catch (const std::exception& e) {
    std::printf("not known: %s\n", e.what());
  }
  return 0;
}

int show(const std::string& path, bool as_graph) {
  ExportedProgram program = load_program(path);
  std::puts((as_graph ? to_string(program.graph()) : to_string(program)).c_str());
  return 0;
}

int weights(const std::string& path) {
  int64_t elements = 0, bytes = 0;
  for (const auto& [name, tensor] : load_tensors(path)) {
    std::printf("%-60s %-10s %s\n", name.c_str(), umbra::name(tensor.dtype()), to_string(tensor.sizes()).c_str());
    elements += tensor.numel();
    bytes += tensor.numel() * tensor.item_size();
  }
  std::printf("%lld elements, %s\n", static_cast<long long>(elements), amount(bytes, "B").c_str());
  return 0;
}

namespace {

/// Says whether a program of a file can be run here.
bool check_program(const std::string& label, const io::Pt2Program& stored) {
  ExportedProgram program = io::from_pt2(stored);
  std::vector<std::string> missing = missing_operators(program);
  if (missing.empty()) {
    std::printf("%s: ok, %zu nodes\n", label.c_str(), program.graph().size());
    return true;
  }
  std::printf("%s: sound, but calls operators that this build does not have:\n", label.c_str());
  for (const std::string& name : missing) std::printf("  %s\n", name.c_str());
  return false;
}

}  // namespace

int check_files(const std::vector<std::string>& paths) {
  int refused = 0;
  for (const std::string& path : paths) {
    try {
      io::Pt2Archive archive = io::load_pt2(path);
      io::ZipReader zip = io::ZipReader::open(path);
      for (const io::ZipEntry& entry : zip.entries())
        zip.read(entry);  // checksums of large weights, which loading leaves
      bool several = archive.programs.size() > 1;
      for (const io::Pt2Program& stored : archive.programs)
        refused += !check_program(several ? path + "#" + stored.name : path, stored);
    } catch (const std::exception& e) {
      std::printf("%s: %s\n", path.c_str(), e.what());
      ++refused;
    }
  }
  return refused ? 1 : 0;
}

}  // namespace umbra::cli
