// interop_models FOLDER: exports models written in C++ with a dynamic batch, and their outputs at two batch sizes, for
// real PyTorch to load and compare (tools/interop).
#include <chrono>
#include <cstdio>
#include <string>

#include "models.h"
#include "umbra/io/safetensors.h"
#include "umbra/umbra.h"

namespace umbra {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Half of the batch, which is twice a Dim, is a size in the graph.
struct Halves : nn::Module {
  Tensor forward(Tensor x) override {
    SymInt half = x.sym_size(0) / 2;
    Tensor parts = x.reshape({2, half, 8});
    return parts.select(0, 0) - parts.select(0, 1) + full({half, 1}, 0.5);
  }
};

/// The branches close over a size, a parameter and an intermediate result.
struct Branches : nn::Module {
  nn::Linear layer = add("layer", nn::Linear(8, 8));
  Tensor forward(Tensor x) override {
    SymInt rows = x.sym_size(0);
    Tensor twice = x * 2;
    auto yes = [&](const std::vector<Value>& v) {
      return std::vector<Value>{layer(v[0].tensor()) + full({rows, 1}, 3.0)};
    };
    auto no = [&](const std::vector<Value>& v) {
      return std::vector<Value>{v[0].tensor().sin() * Scalar(rows) - twice};
    };
    return cond(Value(x.sum() > 0), yes, no, {Value(x.select(0, 0))})[0].tensor();
  }
};

struct Sequences : nn::Module {
  nn::LSTM lstm = add("lstm", nn::LSTM(8, 16));
  nn::Linear out = add("out", nn::Linear(16, 4));
  Tensor forward(Tensor x) override { return out(lstm.run_sequence(x.transpose(0, 1)).output); }
};

template <class Model, class Input>
void write(const std::string& folder, const std::string& name, Model& model, Input input,
           Dim batch = Dim("batch", {.max = 4096})) {
  auto start = std::chrono::steady_clock::now();
  ExportedProgram program =
      export_program(model, {input(4)}, {.dynamic_shapes = {{"x", {{0, batch}}}}, .argument_names = {"x"}});
  double exported = milliseconds_since(start);
  save(program, folder + "/" + name + ".pt2");
  NamedTensors tensors;
  NoGrad no_grad;
  for (int64_t size : {2, 7}) {
    Tensor x = input(size);
    tensors.emplace_back("x" + std::to_string(size), x);
    tensors.emplace_back("y" + std::to_string(size), model(x).contiguous());
  }
  io::save_safetensors(folder + "/" + name + ".safetensors", tensors);
  std::printf("%-12s exported in %.2f ms, %zu nodes\n", name.c_str(), exported, program.graph().size());
}

int run(const std::string& folder) {
  manual_seed(0);
  examples::Mlp mlp;
  write(folder, "mlp", mlp, [](int64_t batch) { return randn({batch, 64}); });
  examples::Cnn cnn;
  cnn.eval();
  write(folder, "cnn", cnn, [](int64_t batch) { return randn({batch, 3, 32, 32}); });
  examples::Gpt gpt({.vocabulary = 1000, .context = 64, .width = 768, .heads = 12, .layers = 12});
  write(folder, "gpt", gpt, [](int64_t batch) { return randint(1000, {batch, 64}); });
  Sequences sequences;
  write(folder, "lstm", sequences, [](int64_t batch) { return randn({batch, 5, 8}); });
  Halves halves;
  write(
      folder, "halves", halves,
      [](int64_t half) {
        return randn({2 * half, 8});
      },
      2 * Dim("half"));
  Branches branches;
  write(folder, "branches", branches, [](int64_t batch) { return batch == 7 ? -rand({batch, 8}) : rand({batch, 8}); });
  return 0;
}

}  // namespace
}  // namespace umbra

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: interop_models FOLDER\n");
    return 2;
  }
  try {
    return umbra::run(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "interop_models: %s\n", e.what());
    return 1;
  }
}
