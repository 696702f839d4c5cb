// Fake tensors and symbolic sizes: the examples of docs/fake_tensors.md and docs/symbolic_shapes.md.
#include <umbra/fake/cost.h>
#include <umbra/umbra.h>

#include <cstdio>
#include <cstdlib>

using namespace umbra;

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

void fake_tensors() {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor w = empty({1'000'000, 1'000'000}, {.device = "cuda"});
  Tensor y = w.mm(w);
  expect(y.is_fake() && y.size(0) == 1'000'000, "a product of fakes is fake");

  auto cost = make_counted<CostTrace>(CostTrace::Counts::All);
  cost->start();
  {
    EnterMode counting(cost);
    cost->begin("forward");
    relu(w.mm(w)).sum();
  }
  cost->stop();
  CostReport report = cost->report();
  std::printf("peak %.1f TB at %s, %.3g operations\n", static_cast<double>(report.peak) / 1e12,
              std::string(report.peak_operation()->name).c_str(), static_cast<double>(report.flops()));
  expect(report.flops() == 2'000'000'000'000'000'000, "a product costs two operations for each pair");
}

void symbolic_sizes() {
  auto env = make_counted<sym::ShapeEnv>();
  SymInt batch = env->create_symbol(8, "x.size()[0]");
  SymInt twice = batch * 2;
  bool large = twice > 10;  // answered by the example; the guard is kept
  expect(large && env->guards().size() == 1, "a branch leaves a guard");
}

}  // namespace

int main() {
  fake_tensors();
  symbolic_sizes();
}
