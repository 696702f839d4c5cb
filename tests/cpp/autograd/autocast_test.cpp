// Autocast: the types that operators compute in, and gradients through the casts.
#include "autograd/testing.h"

namespace umbra {
namespace {

TEST(Autocast, OperatorsChooseTheirTypes) {
  Tensor x = ones({2, 2});
  AutocastScope scope;
  EXPECT_EQ(matmul(x, x).dtype(), DType::BFloat16);
  EXPECT_EQ(mse_loss(x.to(DType::BFloat16), x).dtype(), DType::Float32);
  EXPECT_EQ(cat({x, x.to(DType::BFloat16)}).dtype(), DType::Float32);
  EXPECT_EQ(x.to(DType::BFloat16).sum().dtype(), DType::BFloat16);
  EXPECT_EQ(matmul(x.to(DType::Float64), x.to(DType::Float64)).dtype(), DType::Float64);
}

TEST(Autocast, ScopesNestAndLeaveNothingBehind) {
  Tensor x = ones({2, 2});
  {
    AutocastScope outer(DType::Float16);
    EXPECT_EQ(matmul(x, x).dtype(), DType::Float16);
    {
      AutocastScope off(DType::BFloat16, /*enabled=*/false);
      EXPECT_EQ(matmul(x, x).dtype(), DType::Float32);
    }
    EXPECT_EQ(matmul(x, x).dtype(), DType::Float16);
  }
  EXPECT_FALSE(autocast_state().enabled);
  EXPECT_EQ(matmul(x, x).dtype(), DType::Float32);
}

TEST(Autocast, LeavesGetGradientsOfTheirOwnType) {
  Tensor w = ones({2, 2}).requires_grad_();
  {
    AutocastScope scope;
    (matmul(ones({2, 2}), w) + matmul(ones({2, 2}), w)).sum().backward();
  }
  EXPECT_EQ(w.grad().dtype(), DType::Float32);
  EXPECT_THAT(values(w.grad()), ElementsAre(4, 4, 4, 4));
}

TEST(Autocast, OtherDevicesAreRefused) {
  EXPECT_THAT(error_of<NotImplementedError>([] { set_autocast_enabled(DeviceType::CUDA, true); }),
              HasSubstr("autocast on"));
}

}  // namespace
}  // namespace umbra
