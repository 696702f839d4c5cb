// A model from its definition to a trained, exported program.
#include <umbra/umbra.h>

#include <cstdio>
#include <iostream>

using namespace umbra;

struct Mlp : nn::Module {
  nn::Linear up = add("up", nn::Linear(64, 256)), down = add("down", nn::Linear(256, 64));
  Tensor forward(Tensor x) override { return down(gelu(up(x))); }
};

int main() {
  manual_seed(0);
  Mlp model;
  Tensor x = randn({8, 64});

  // Captured once, with a batch that may vary, and written to a file that torch.export.load reads.
  Dim batch("batch", {.max = 4096});
  ExportedProgram program = export_program(model, {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
  std::cout << to_string(program);
  save(program, "mlp.pt2");

  // Loaded again, it runs at other batch sizes and gives what the model gives.
  ExportedModule loaded = load("mlp.pt2").module();
  Tensor other = randn({100, 64});
  std::printf("difference between model and file at batch 100: %g\n",
              (loaded(other) - model(other)).abs().max().item().to_double());

  // Trained ahead of time: forward and backward are graphs, the gradients reach the model's parameters.
  auto loss_of = aot::compile([&](const Tensor& input) { return (model(input) - input).square().mean(); });
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  for (int step = 0; step <= 60; ++step) {
    Tensor loss = loss_of(x);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    if (step % 20 == 0) std::printf("step %2d: loss %.4f\n", step, loss.item().to_double());
  }

  // Which calls found graphs, and why others were captured.
  auto doubled = aot::compile([](const Tensor& input) { return input * 2; });
  doubled(randn({2}));
  doubled(randn({2}));
  doubled(randn({3}));
  aot::CacheInfo info = doubled.cache_info();
  std::printf("%zu found, %zu captured\n", info.hits, info.misses);
  for (const auto& [reason, count] : info.reasons) std::printf("  %zu x %s\n", count, reason.c_str());
}
