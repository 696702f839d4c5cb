// The costs that the design promises: operators without data, a small eager operator, export, and ahead-of-time
// autograd.
#include <benchmark/benchmark.h>

#include "../examples/cpp/models.h"
#include "umbra/fake/cost.h"

namespace umbra {
namespace {

/// A fake tensor whose sizes are symbols.
Tensor symbolic(FakeMode& fake, const Tensor& real) {
  SymbolicContext context{"L['x']", std::vector<sym::SymbolOptions>(real.dim())};
  return fake.from_tensor(real, context);
}

template <class F> void repeat(benchmark::State& state, F call) {
  for (auto _ : state) benchmark::DoNotOptimize(call());
}

template <class F> void fake_operator(benchmark::State& state, bool symbols, F call) {
  FakeMode fake(FakeOptions{.shape_env = make_counted<sym::ShapeEnv>()});
  Tensor real = randn({8, 16});
  Tensor x = symbols ? symbolic(fake, real) : fake.from_tensor(real);
  Tensor turned = x.transpose(0, 1);
  repeat(state, [&] { return call(x, turned); });
}

#define UMBRA_FAKE_BENCHMARK(name, call)                                                        \
  void BM_Fake_##name(benchmark::State& state) {                                                \
    fake_operator(state, state.range(0) != 0,                                                   \
                  [](const Tensor& x, [[maybe_unused]] const Tensor& turned) { return call; }); \
  }                                                                                             \
  BENCHMARK(BM_Fake_##name)->ArgName("symbolic")->Arg(0)->Arg(1)
UMBRA_FAKE_BENCHMARK(add, x.add(x));
UMBRA_FAKE_BENCHMARK(view, x.view({-1}));
UMBRA_FAKE_BENCHMARK(mm, x.mm(turned));
UMBRA_FAKE_BENCHMARK(sum, x.sum());
UMBRA_FAKE_BENCHMARK(softmax, x.softmax(-1));
UMBRA_FAKE_BENCHMARK(transpose, x.transpose(0, 1));
#undef UMBRA_FAKE_BENCHMARK

void BM_EagerAdd(benchmark::State& state) {
  Tensor x = randn({8, 16}), y = randn({8, 16});
  repeat(state, [&] { return add(x, y); });
}
BENCHMARK(BM_EagerAdd);

/// GPT-2's size with a small vocabulary, which changes no graph.
examples::Gpt gpt2() { return examples::Gpt({.vocabulary = 512, .context = 128}); }

void BM_ExportGpt2(benchmark::State& state) {
  examples::Gpt model = gpt2();
  Tensor tokens = randint(512, {2, 128});
  ExportOptions options{.dynamic_shapes = {{"x", {{0, Dim("batch", {.max = 4096})}}}}};
  repeat(state, [&] { return export_program(model, {tokens}, options).graph().size(); });
}
BENCHMARK(BM_ExportGpt2)->Unit(benchmark::kMillisecond);

void BM_AotJointAndMinCutGpt2(benchmark::State& state) {
  examples::Gpt model = gpt2();
  Tensor tokens = randint(512, {2, 128});
  repeat(state, [&] {
    auto loss = aot::compile(
        [&](const Tensor& x) { return nn::functional::cross_entropy(model(x).flatten(0, 1), x.flatten()); });
    return loss.graphs({tokens}).partition.saved_bytes;
  });
}
BENCHMARK(BM_AotJointAndMinCutGpt2)->Unit(benchmark::kMillisecond);

void BM_FakeLlama70B(benchmark::State& state) {
  repeat(state, [&] {
    FakeMode fake;
    auto scope = fake.enter();
    NoGrad no_grad;
    return examples::Llama()(empty({4, 8192}, {.dtype = DType::Int64}));
  });
}
BENCHMARK(BM_FakeLlama70B)->Unit(benchmark::kMillisecond);

/// What a step of training it costs: forward, backward and AdamW, with memory over time and operations.
void BM_EstimateLlama70BStep(benchmark::State& state) {
  FakeMode fake;
  auto scope = fake.enter();
  examples::Llama model;
  optim::AdamW optimizer(model.parameters());
  Tensor tokens = zeros({4, 8192}, {.dtype = DType::Int64});
  auto step = [&](auto begin) {
    begin("forward");
    Tensor loss = nn::functional::cross_entropy(model(tokens).flatten(0, 1), tokens.flatten());
    begin("backward");
    loss.backward();
    begin("optimizer");
    optimizer.step();
    optimizer.zero_grad();
  };
  step([](const char*) {});  // the first one makes the optimizer's state
  repeat(state, [&] {
    auto cost = make_counted<CostTrace>(CostTrace::Counts::All);
    for (const Tensor& p : model.parameters()) cost->hold(p);
    cost->start();
    {
      EnterMode counting(cost);
      step([&](const char* phase) { cost->begin(phase); });
    }
    cost->stop();
    return cost->report().peak;
  });
}
BENCHMARK(BM_EstimateLlama70BStep)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace umbra
