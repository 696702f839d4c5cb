// What symbolic sizes cost: operations and questions that have been met before, and new ones.
#include <benchmark/benchmark.h>

#include "umbra/umbra.h"

namespace {

using namespace umbra;

struct Env {
  IntrusivePtr<sym::ShapeEnv> env = make_counted<sym::ShapeEnv>();
  SymInt batch = env->create_symbol(8, "L['x'].size()[0]", {.policy = sym::Policy::Dynamic});
  SymInt length = env->create_symbol(128, "L['x'].size()[1]", {.policy = sym::Policy::Dynamic});
};

void add_seen(benchmark::State& state) {
  Env e;
  for (auto _ : state) benchmark::DoNotOptimize(e.batch + e.length);
}
BENCHMARK(add_seen);

void multiply_seen(benchmark::State& state) {
  Env e;
  for (auto _ : state) benchmark::DoNotOptimize(e.batch * 768);
}
BENCHMARK(multiply_seen);

void equal_to_constant_seen(benchmark::State& state) {
  Env e;
  for (auto _ : state) benchmark::DoNotOptimize(e.batch == 1);
}
BENCHMARK(equal_to_constant_seen);

void equal_symbols_guarded(benchmark::State& state) {
  Env e;
  for (auto _ : state) benchmark::DoNotOptimize(e.batch == e.length);
}
BENCHMARK(equal_symbols_guarded);

void unknown_static_question(benchmark::State& state) {
  Env e;
  for (auto _ : state) benchmark::DoNotOptimize(known_equal(e.batch, e.length));
}
BENCHMARK(unknown_static_question);

/// Strides of a contiguous tensor of four dimensions, and whether they are those of another: what a fake operator asks.
void contiguous_strides(benchmark::State& state) {
  Env e;
  SymInt sizes[] = {e.batch, 12, e.length, 64};
  for (auto _ : state) {
    SymInt strides[4], running = 1;
    for (int i = 3; i >= 0; --i) {
      strides[i] = running;
      running = running * sym_max(sizes[i], 1);
    }
    bool same = true;
    for (int i = 0; i < 4; ++i) same &= sizes[i] != 0 && strides[i] == strides[i];
    benchmark::DoNotOptimize(same);
    benchmark::DoNotOptimize(running);
  }
}
BENCHMARK(contiguous_strides);

void new_expressions(benchmark::State& state) {
  Env e;
  int64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(e.batch * e.length + ++i);
}
BENCHMARK(new_expressions);

void new_questions(benchmark::State& state) {
  Env e;
  int64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(e.batch * e.length > -++i);
}
BENCHMARK(new_questions);

// ---- what has to grow in proportion: items per second stay the same ----

void layers(benchmark::State& state) {
  for (auto _ : state) {
    FakeMode fake(FakeOptions{.shape_env = make_counted<sym::ShapeEnv>()});
    SymbolicContext context{"L['x']", std::vector<sym::SymbolOptions>(2)};
    Tensor x = fake.from_tensor(ones({8, 16}), context), start = x;
    for (int64_t i = 0; i < state.range(0); ++i) x = relu(x + start).reshape({-1}).view({start.sym_size(0), -1});
    benchmark::DoNotOptimize(x.sym_size(1) == start.sym_size(1));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(layers)->Arg(2000)->Arg(20000)->Unit(benchmark::kMillisecond);

void symbols_in_one_sum(benchmark::State& state) {
  for (auto _ : state) {
    auto env = make_counted<sym::ShapeEnv>();
    std::vector<const sym::Expression*> symbols;
    for (int64_t i = 0; i < state.range(0); ++i) symbols.push_back(env->expression(env->create_unbacked({0, 9})));
    const sym::Expression* sum = env->table().add(symbols);
    benchmark::DoNotOptimize(env->range(sum).upper);
    benchmark::DoNotOptimize(env->known(env->table().relation(sym::Kind::Lt, sum, env->table().integer(5))));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(symbols_in_one_sum)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

void nested_mods(benchmark::State& state) {
  for (auto _ : state) {
    Env e;
    SymInt value = e.batch;
    for (int64_t i = 0; i < state.range(0); ++i) value = (value + e.length) % (e.batch + i % 7);
    benchmark::DoNotOptimize(value > 3);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(nested_mods)->Arg(2000)->Arg(20000)->Unit(benchmark::kMillisecond);

}  // namespace
