#include <gtest/gtest.h>

#include "umbra/umbra.h"

namespace umbra {
namespace {

TEST(TensorOf, TypesAreThoseOfTorchTensor) {
  EXPECT_EQ(tensor({1, 2, 3}).dtype(), DType::Int64);
  EXPECT_EQ(tensor({1.0, 2.0}).dtype(), DType::Float32);
  EXPECT_EQ(tensor({true, false}).dtype(), DType::Bool);
  EXPECT_EQ(tensor({1, 2}, {}, DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(tensor(std::vector<float>{1, 2, 3}).sum().item().to_double(), 6);
}

TEST(TensorOf, SizesLayTheValuesOutRowByRow) {
  Tensor m = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(m.select(0, 1).select(0, 0).item().to_int(), 4);
  EXPECT_THROW(tensor({1, 2, 3}, {2, 2}), ValueError);
}

TEST(TensorOf, IsAConstantToWhoeverCaptures) {
  auto module = make_fx([](const Tensor& x) { return x + tensor({1.0, 2.0}); }, {zeros({2})});
  EXPECT_EQ(module->run({Value(ones({2}))})[0].tensor().sum().item().to_double(), 5);
  FakeMode mode;
  auto scope = mode.enter();
  EXPECT_TRUE(tensor({1.0}).is_fake());
}

}  // namespace
}  // namespace umbra
