// What Umbra is for, in one or two screens: a transformer written in C++ is run, run fake, captured, saved, loaded,
// differentiated ahead of time and trained.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "models.h"

using namespace umbra;

namespace {

const bool kColour = isatty(STDOUT_FILENO) != 0;
const char* bold() { return kColour ? "\033[1;36m" : ""; }
const char* dim() { return kColour ? "\033[2m" : ""; }
const char* plain() { return kColour ? "\033[0m" : ""; }

/// Runs a phase and prints its milliseconds beside what it has to say.
template <class F> auto phase(const char* title, F body) {
  auto start = std::chrono::steady_clock::now();
  auto result = body();
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s%9.2f ms%s  %s\n", bold(), ms, plain(), title);
  return result;
}

template <class... Args> void note(const char* format, Args... arguments) {
  std::printf("              %s", dim());
  std::printf(format, arguments...);
  std::printf("%s\n", plain());
}

/// Memory of the process in MB, from the kernel's books.
double memory_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  NoGrad no_grad;
  return (a - b).abs().max().item().to_double();
}

/// The first lines of a program's text, cut at the screen's edge.
void print_head(const std::string& text, int lines) {
  std::istringstream in(text);
  for (std::string line; lines > 0 && std::getline(in, line);) {
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    std::printf("              %s%s%s%s\n", dim(), line.substr(0, 118).c_str(), line.size() > 118 ? " ..." : "",
                plain());
    --lines;
  }
}

}  // namespace

int main() {
  manual_seed(0);
  const examples::GptConfig config{.vocabulary = 64, .context = 32, .width = 64, .heads = 4, .layers = 2};

  examples::Gpt model = phase("a transformer is built in C++", [&] { return examples::Gpt(config); });
  note("%ld layers, %ld parameters", config.layers, examples::parameter_count(model));
  Tensor tokens = randint(config.vocabulary, {2, 32});
  Tensor logits = phase("run", [&] { return model(tokens); });

  phase("run fake: shapes, strides and types without data", [&] {
    FakeMode fake(FakeOptions{.allow_non_fake_inputs = true});
    auto scope = fake.enter();
    return model(fake.from_tensor(tokens));
  });
  {
    double before = memory_mb();
    FakeMode fake;
    auto scope = fake.enter();
    examples::Llama llama =
        phase("a Llama-70B-shaped transformer is built under FakeMode", [] { return examples::Llama(); });
    Tensor out = phase("and run forward on 4 x 8192 tokens", [&] {
      NoGrad no_grad;
      return llama(empty({4, 8192}, {.dtype = DType::Int64}));
    });
    note("%.1f billion parameters, output %s, %.1f MB of memory",
         static_cast<double>(examples::parameter_count(llama)) / 1e9, to_string(out.sizes()).c_str(),
         memory_mb() - before);
  }

  ExportedProgram program = phase("captured with a dynamic batch", [&] {
    return export_program(model, {tokens},
                          {.dynamic_shapes = {{"x", {{0, Dim("batch", {.max = 4096})}}}}, .argument_names = {"x"}});
  });
  print_head(fx::readable_code(*program.graph_module), 14);
  note("... %zu nodes in all", program.graph().size());

  const std::string path = std::filesystem::temp_directory_path() / ("umbra_demo_" + std::to_string(getpid()) + ".pt2");
  phase("saved: torch.export.load reads the file", [&] { return save(program, path), 0; });
  ExportedModule loaded = phase("loaded", [&] { return load(path).module(); });
  std::filesystem::remove(path);
  Tensor more = randint(config.vocabulary, {5, 32});
  Tensor again = phase("run at another batch size", [&] { return loaded(more); });
  note("largest difference to the model itself: %g", largest_difference(again, model(more)));

  // Each token follows from the one before it; the model has to find out how.
  auto loss_of = [&](const Tensor& input, const Tensor& target) {
    return nn::functional::cross_entropy(model(input).flatten(0, 1), target.flatten());
  };
  Tensor start = randint(config.vocabulary, {8, 1}), steps = arange(32);
  Tensor inputs = (start + steps * 7).remainder(config.vocabulary), targets = (inputs + 7).remainder(config.vocabulary);
  auto compiled = aot::compile(loss_of);
  auto by_default = aot::compile(loss_of, {.partitioner = aot::default_partition});
  aot::CompiledGraphs graphs = phase("differentiated ahead of time: joint graph, min-cut", [&] {
    return compiled.graphs({inputs, targets});
  });
  note("kept for the backward: %.2f MB with min-cut, %.2f MB by default",
       static_cast<double>(graphs.partition.saved_bytes) / 1e6,
       static_cast<double>(by_default.graphs({inputs, targets}).partition.saved_bytes) / 1e6);

  optim::AdamW optimizer(model.parameters(), {.lr = 3e-3});
  std::vector<double> losses = phase("trained for 40 steps on its graphs", [&] {
    std::vector<double> seen;
    for (int step = 0; step < 40; ++step) {
      Tensor loss = compiled(inputs, targets);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      seen.push_back(loss.item().to_double());
    }
    return seen;
  });
  note("loss %.3f, %.3f, %.3f, %.3f", losses[0], losses[13], losses[26], losses[39]);
  return losses.back() < losses.front() ? 0 : 1;
}
