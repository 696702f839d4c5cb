// Ahead-of-time autograd with sizes that are symbols.
#include "autograd/testing.h"

namespace umbra {
namespace {

TEST(AotDynamic, OneCaptureServesAllSizes) {
  int captures = 0;
  auto f = aot::compile(
      [&](const Tensor& a) {
        ++captures;
        return a.mean() * a.sym_sizes()[0];
      },
      {.dynamic = true});
  f(vector_of({1, 2}));
  int once = captures;
  for (std::vector<double> data : {std::vector<double>{1, 2, 3}, {4, 5, 6, 7}}) {
    Tensor x = vector_of(data).requires_grad_();
    double sum = 0;
    for (double d : data) sum += d;
    Tensor y = f(x);
    EXPECT_DOUBLE_EQ(y.item().to_double(), sum);
  }
  EXPECT_GT(captures, once);  // inputs that require gradients are captured once more
  once = captures;
  Tensor x = parameter({1, 2, 3, 4, 5});
  f(x).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_EQ(captures, once);
}

TEST(AotDynamic, AGuardThatDoesNotHoldIsCapturedAnew) {
  auto f = aot::compile([](const Tensor& a) { return a.sym_sizes()[0] > 2 ? a * 10 : a; }, {.dynamic = true});
  EXPECT_THAT(values(f(vector_of({1, 2, 3}))), ElementsAre(10, 20, 30));
  EXPECT_THAT(values(f(vector_of({1, 2}))), ElementsAre(1, 2));
  EXPECT_THAT(values(f(vector_of({1, 2, 3, 4}))), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(values(f(vector_of({1}))), ElementsAre(1));
}

TEST(AotDynamic, IntegersAreInputs) {
  int captures = 0;
  auto f = aot::compile(ValueFunction([&](const std::vector<Value>& in) -> std::vector<Value> {
                          ++captures;
                          return {Value(in[0].tensor() * in[1].to_sym_int()), Value(in[1].to_sym_int() + 1)};
                        }),
                        {.dynamic = true});
  std::vector<Value> results = f.run({Value(vector_of({1, 2})), Value(5)});
  EXPECT_THAT(values(results[0].tensor()), ElementsAre(5, 10));
  EXPECT_EQ(results[1].to_int(), 6);
  int once = captures;
  results = f.run({Value(vector_of({1, 2, 3})), Value(7)});
  EXPECT_THAT(values(results[0].tensor()), ElementsAre(7, 14, 21));
  EXPECT_EQ(results[1].to_int(), 8);
  EXPECT_EQ(captures, once);
}

TEST(AotDynamic, StateAndFixedInputsKeepTheirSizes) {
  Tensor weight = parameter({1, 2});
  aot::CompileOptions options{.dynamic = true, .fixed_inputs = 1};
  options.state = [&] { return std::vector<Tensor>{weight}; };
  auto f =
      aot::compile([&](const Tensor& fixed, const Tensor& x) { return (x + weight.sum()) * fixed.sum(); }, options);
  aot::CompiledGraphs graphs = f.graphs({Value(vector_of({1, 1})), Value(vector_of({1, 2, 3}))});
  std::vector<bool> symbolic;
  for (const aot::PrimalInfo& p : graphs.info.primals) symbolic.push_back(p.stand_in.sizes[0].is_symbolic());
  EXPECT_THAT(symbolic, ElementsAre(false, false, true));
}

}  // namespace
}  // namespace umbra
