// Compiled modules: parameters and flags are looked up at each call.
#include "../../../examples/cpp/models.h"
#include "autograd/testing.h"

namespace umbra {
namespace {

struct Net : nn::Module {
  nn::Linear linear = add("linear", nn::Linear(3, 4));
  nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(4));
  nn::Dropout dropout = add("dropout", nn::Dropout(0.5));
  Tensor forward(Tensor x) override { return dropout(norm(linear(x).unsqueeze(-1).unsqueeze(-1))); }
};

void expect_same(const Tensor& a, const Tensor& b) {
  std::vector<double> x = values(a), y = values(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-6);
}

TEST(CompiledModule, TheTrainingFlagDecides) {
  manual_seed(0);
  Net model;
  auto fast = nn::compile(model);
  Tensor x = randn({5, 3});
  Tensor trained = fast(x);
  EXPECT_EQ(model.norm.named_buffers()[2].second.item().to_int(), 1);  // one batch was seen
  model.eval();
  expect_same(fast(x), model(x));
  EXPECT_EQ(model.norm.named_buffers()[2].second.item().to_int(), 1);
  model.train();
  fast(x);
  EXPECT_EQ(model.norm.named_buffers()[2].second.item().to_int(), 2);
  model.dropout.eval();  // the flag of one submodule
  Tensor y = fast(x), z = fast(x);
  expect_same(y, z);
}

TEST(CompiledModule, ParametersAreInputsOfTheGraph) {
  manual_seed(0);
  Net model;
  auto fast = nn::compile(model);
  Tensor x = randn({5, 3});
  EXPECT_EQ(fast.graphs({x}).info.primals.size(), 8u);  // four parameters, three buffers, x
  EXPECT_EQ(fast.graphs({x}).info.input_count(), 8u);
  fast(x).sum().backward();
  EXPECT_TRUE(model.linear.named_parameters()[0].second.grad().defined());
  model.eval();
  model.to(DType::Float64);
  expect_same(fast(x.to(DType::Float64)), model(x.to(DType::Float64)));
  model.requires_grad_(false);
  EXPECT_FALSE(fast(x.to(DType::Float64)).requires_grad());
}

}  // namespace
}  // namespace umbra
