// Fake tensors and symbolic sizes: the examples of docs/fake_tensors.md, symbolic_shapes.md and shape_errors.md.
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
  for (const sym::Guard& guard : env->guards()) std::printf("%s\n", guard.condition->to_string().c_str());
  expect(large && env->guards().size() == 1, "a branch leaves a guard");
}

void errors_about_shapes() {
  FakeMode fake(FakeOptions{.shape_env = make_counted<sym::ShapeEnv>(), .allow_dynamic_output_shapes = true});
  auto scope = fake.enter();
  SymInt count = ones({8}).nonzero().sym_size(0);  // only the run will tell
  try {
    if (count > 2) std::puts("many");
  } catch (const GuardOnDataDependentSymNode& error) {
    std::puts(error.what());  // the expression, the line that asks, and what to do
  }
  if (!sym_gt(count, 2).expect_true()) return;  // say what you know: the program asserts it when it runs
  if (count > 2) std::puts("many");
}

}  // namespace

int main() {
  fake_tensors();
  symbolic_sizes();
  errors_about_shapes();
}
