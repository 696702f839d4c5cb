// umbra run: a program on inputs from files, its outputs compared and kept.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "commands.h"
#include "files.h"
#include "progress.h"
#include "umbra/core/print.h"
#include "umbra/export/unlift.h"
#include "umbra/graph/interpreter.h"

namespace umbra::cli {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

/// A tensor of the program's or the caller's that a run may write, and what it held before.
struct Watched {
  std::string name;  // buffer:NAME, parameter:NAME, input:iK
  Tensor tensor;
  Tensor before;  // a copy; of parameters none: only a counted write changes them
  uint32_t version;

  // By bytes: not every type can be compared.
  bool written() const {
    if (tensor.version() != version) return true;
    if (!before.defined()) return false;
    Tensor now = tensor.detach().contiguous();
    return std::memcmp(before.raw_data(), now.raw_data(), static_cast<size_t>(now.numel() * now.item_size())) != 0;
  }
};

std::vector<Watched> watch(const ExportedProgram& program, const std::vector<Value>& inputs) {
  std::vector<Watched> watched;
  size_t position = 0;
  auto add = [&](std::string name, const Tensor& tensor, bool copied) {
    watched.push_back({std::move(name), tensor, copied ? tensor.detach().clone(MemoryFormat::Contiguous) : Tensor(),
                       tensor.version()});
  };
  for (const InputSpec& spec : program.signature.inputs) {
    if (spec.kind == InputKind::UserInput || spec.kind == InputKind::ConstantInput) {
      const Value& value = inputs.at(position++);
      if (value.is_tensor()) add("input:i" + std::to_string(position - 1), value.tensor_ref(), false);
    } else if (spec.kind != InputKind::Token) {
      bool buffer = spec.kind == InputKind::Buffer;
      add((buffer ? "buffer:" : "parameter:") + spec.target, program.find(spec.target), buffer);
    }
  }
  return watched;
}

/// What a run gives: outputs as o0, o1, ..., gradients as gradient:NAME, and what it wrote.
NamedTensors results_of(const ExportedProgram& program, const std::vector<Value>& outputs,
                        const std::vector<Watched>& watched) {
  NamedTensors results;
  size_t given = 0, tensors = 0;
  for (const OutputSpec& spec : program.signature.outputs) {
    bool gradient = spec.kind == OutputKind::GradientToParameter;
    if (!gradient && spec.kind != OutputKind::UserOutput && spec.kind != OutputKind::LossOutput) continue;
    const Value& value = outputs.at(given++);
    if (value.is_tensor())
      results.emplace_back(gradient ? "gradient:" + spec.target : "o" + std::to_string(tensors++), value.tensor());
  }
  for (const Watched& w : watched)
    if (w.written()) results.emplace_back(w.name, w.tensor);
  return results;
}

/// The largest |got - expected| / (1 + |expected|); infinity where they cannot be compared.
double distance(const Tensor& got, const Tensor& expected) {
  if (got.dtype() != expected.dtype() || !std::ranges::equal(got.sizes(), expected.sizes())) return INFINITY;
  if (got.numel() == 0) return 0;
  if (!is_floating(got.dtype()) && !is_complex(got.dtype())) return got.equal(expected) ? 0 : INFINITY;
  Tensor a = got.detach().to(DType::Complex128), b = expected.to(DType::Complex128);
  Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  Tensor difference = a.sub(b).abs().div(b.abs().add(1)).masked_fill(same, 0);
  double largest = difference.max().item<double>();
  return std::isnan(largest) ? INFINITY : largest;
}

bool compare(const NamedTensors& results, const std::string& path, double tolerance) {
  bool fits = true;
  double largest = 0;
  NamedTensors all = load_tensors(path);
  if (has_extension(path, ".npy")) all[0].first = "o0";  // such a file has one tensor, and no name for it
  for (const auto& [name, expected] : all) {
    auto found = std::ranges::find(results, name, [](const auto& r) { return r.first; });
    if (found == results.end()) {
      std::printf("%s: the program gives no %s\n", path.c_str(), name.c_str());
      fits = false;
      continue;
    }
    double d = distance(found->second, expected);
    largest = std::max(largest, d);
    if (d <= tolerance) continue;
    std::string got = look_of(found->second), wanted = look_of(expected);
    if (got != wanted)
      std::printf("%s: %s is %s, expected %s\n", path.c_str(), name.c_str(), got.c_str(), wanted.c_str());
    else
      std::printf("%s: %s, %s, differs by %g, more than %g\n", path.c_str(), name.c_str(), got.c_str(), d, tolerance);
    fits = false;
  }
  if (fits) std::printf("as expected: differs by at most %g\n", largest);
  return fits;
}

void print_outputs(const std::vector<Value>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& value = outputs[i];
    std::printf("o%zu: %s\n", i, (value.is_tensor() ? to_string(value.tensor_ref()) : to_string(value)).c_str());
  }
}

void profile(const ExportedProgram& program, const std::vector<Value>& inputs, int repeat) {
  struct Share {
    int calls = 0;
    double time = 0;
  };
  std::map<std::string, Share> shares;
  fx::Interpreter interpreter(unlift(program));
  interpreter.on_call([&](fx::NodeCall& call) {
    Clock::time_point start = Clock::now();
    Value result = call.run();
    Share& share = shares[call.node().target().text()];
    ++share.calls;
    share.time += milliseconds(Clock::now() - start);
    return result;
  });
  for (int i = 0; i < repeat; ++i) interpreter.run(inputs);
  std::vector<std::pair<std::string, Share>> sorted(shares.begin(), shares.end());
  std::ranges::sort(sorted, std::greater(), [](const auto& s) { return s.second.time; });
  double total = 0;
  for (const auto& [name, share] : sorted) total += share.time;
  std::printf("%-52s %8s %12s %7s\n", "operator", "calls", "ms", "share");
  for (const auto& [name, share] : sorted)
    std::printf("%-52s %8d %12.3f %6.1f%%\n", name.c_str(), share.calls, share.time,
                total > 0 ? 100 * share.time / total : 0);
}

void time_runs(const ExportedModule& module, const std::vector<Value>& inputs, int repeat) {
  double best = INFINITY, sum = 0;
  {
    Progress progress("run", static_cast<size_t>(repeat));
    for (int i = 0; i < repeat; ++i) {
      Clock::time_point start = Clock::now();
      module.run(inputs);
      double time = milliseconds(Clock::now() - start);
      best = std::min(best, time), sum += time;
      progress.step();
    }
  }
  std::printf("%d runs: %.3f ms on average, %.3f ms at best\n", repeat, sum / repeat, best);
}

/// Where results cannot go, or would take the place of what they are made of or compared with.
void check_output(const RunOptions& options) {
  check_tensor_place(options.output);
  std::vector<std::string> read = options.inputs;
  read.push_back(options.expected);
  for (const std::string& path : read) check_other_file(path, options.output);
}

}  // namespace

int run(const RunOptions& options) {
  if (!options.output.empty()) check_output(options);
  ExportedProgram program = load_program(options.path);
  std::vector<Value> inputs = options.example ? example_inputs(program) : read_inputs(program, options.inputs);
  ExportedModule module = program.module();
  NoGrad no_gradients;
  std::vector<Watched> watched = watch(program, inputs);
  std::vector<Value> outputs = module.run(inputs);
  NamedTensors results = results_of(program, outputs, watched);
  if (!options.output.empty()) {
    bool outputs_alone =
        has_extension(options.output, ".npy");  // it holds one tensor: what was written besides is left out
    save_tensors(options.output, outputs_alone ? results_of(program, outputs, {}) : results);
  }
  bool fits = options.expected.empty() || compare(results, options.expected, options.tolerance);
  if (options.output.empty() && options.expected.empty()) print_outputs(outputs);
  if (options.repeat > 1) time_runs(module, inputs, options.repeat);
  if (options.profile) profile(program, inputs, options.repeat);
  return fits ? 0 : 1;
}

}  // namespace umbra::cli
