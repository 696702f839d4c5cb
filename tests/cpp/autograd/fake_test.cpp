// Differentiation without data: shapes, types and nodes are those of a real run.
#include "autograd/testing.h"
#include "umbra/fake/fake_mode.h"

namespace umbra {
namespace {

TEST(FakeBackward, GivesGradientsOfTheRightShape) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = ones({8, 1024}, {.requires_grad = true}), w = ones({1024, 1}, {.requires_grad = true});
  Tensor y = x.mm(w).mul(w.select(0, 0)).expand({8, 16});
  y.sum().backward();
  EXPECT_TRUE(x.grad().is_fake());
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(w.grad().sizes(), w.sizes());
  EXPECT_EQ(autograd::grad_fn(y)->name(), "ExpandBackward0");
}

TEST(FakeBackward, KeepsTheVersionsOfInPlaceChanges) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = ones({4}, {.requires_grad = true});
  Tensor y = x.mul(2), z = y.mul(y);
  y.add_(1);
  EXPECT_THAT(error_of([&] { z.sum().backward(); }), HasSubstr("has been modified by an inplace operation"));
}

}  // namespace
}  // namespace umbra
