#include "kernels/normalization.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"
#include "kernels/loss.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;

TEST(BatchNorm, TrainingNormalisesAndUpdatesTheRunningStatistics) {
  Tensor x = floats({2, 1, 2}, {1, 2, 3, 4}), out = empty_tensor({2, 1, 2});
  Tensor mean = empty_tensor({1}), invstd = empty_tensor({1});
  BatchNormState state{floats({1}, {2}), floats({1}, {1}), floats({1}, {0}), floats({1}, {1})};
  batch_norm(out, mean, invstd, x, state, true, 0.5, 0);
  float s = 1 / std::sqrt(1.25f);
  EXPECT_THAT(values(out), near({1 - 3 * s, 1 - s, 1 + s, 1 + 3 * s}));
  EXPECT_THAT(values(mean), near({2.5}));
  EXPECT_THAT(values(invstd), near({s}));
  EXPECT_THAT(values(state.running_mean), near({1.25}));
  EXPECT_THAT(values(state.running_var), near({0.5f + 0.5f * 5 / 3}));
}

TEST(BatchNorm, EvaluationUsesTheRunningStatistics) {
  Tensor x = floats({1, 2}, {3, 5}), out = empty_tensor({1, 2});
  batch_norm(out, {}, {}, x, {Tensor(), Tensor(), floats({2}, {1, 1}), floats({2}, {4, 16})}, false, 0.1, 0);
  EXPECT_THAT(values(out), near({1, 1}));
}

TEST(BatchNorm, ChannelsLastAgreesWithPlanes) {
  Tensor x = counting({2, 3, 2, 2}), out = empty_tensor({2, 3, 2, 2});
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = std::sin(static_cast<float>(i * i));
  Tensor last =
      allocate_tensor(x.sym_sizes(), strides_for(x.sym_sizes(), MemoryFormat::ChannelsLast), x.dtype(), Device());
  Tensor last_out = allocate_tensor(x.sym_sizes(), last.sym_strides(), x.dtype(), Device());
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t s = 0; s < 4; ++s) last.data<float>()[(n * 4 + s) * 3 + c] = x.data<float>()[(n * 3 + c) * 4 + s];
  Tensor mean = empty_tensor({3}), invstd = empty_tensor({3});
  batch_norm(out, mean, invstd, x, {}, true, 0.1, 1e-5);
  batch_norm(last_out, mean, invstd, last, {}, true, 0.1, 1e-5);
  EXPECT_THAT(values(last_out), near(values(out)));
}

TEST(BatchNorm, GradientsSumToNothing) {
  Tensor x = floats({4, 1}, {1, 2, 4, 8}), g = floats({4, 1}, {1, 0, 2, 0}), grad = empty_tensor({4, 1});
  Tensor grad_weight = empty_tensor({1}), grad_bias = empty_tensor({1});
  Tensor mean = empty_tensor({1}), invstd = empty_tensor({1}), out = empty_tensor({4, 1});
  batch_norm(out, mean, invstd, x, {}, true, 0.1, 0);
  batch_norm_backward(grad, grad_weight, grad_bias, g, x, {}, mean, invstd, true, 0);
  float sum = 0, moment = 0;
  for (int64_t i = 0; i < 4; ++i) sum += values(grad)[i], moment += values(grad)[i] * values(out)[i];
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(moment, 0, 1e-5);
  EXPECT_THAT(values(grad_bias), near({3}));
}

TEST(LayerNorm, NormalisesRows) {
  Tensor out = empty_tensor({2, 2}), mean = empty_tensor({2, 1}), rstd = empty_tensor({2, 1});
  layer_norm(out, mean, rstd, floats({2, 2}, {1, 3, 10, 20}), floats({2}, {1, 2}), floats({2}, {0, 1}), 1, 0);
  EXPECT_THAT(values(out), near({-1, 3, -1, 3}));
  EXPECT_THAT(values(mean), near({2, 15}));
  EXPECT_THAT(values(rstd), near({1, 0.2}));
}

TEST(LayerNorm, BFloat16KeepsFloatStatistics) {
  Tensor x = empty_tensor({1, 2}, DType::BFloat16), out = empty_tensor({1, 2}, DType::BFloat16);
  x.data<BFloat16>()[0] = 1.0f;
  x.data<BFloat16>()[1] = 1.0078125f;
  Tensor mean = empty_tensor({1, 1}), rstd = empty_tensor({1, 1});
  layer_norm(out, mean, rstd, x, {}, {}, 1, 0);
  EXPECT_FLOAT_EQ(values(mean)[0], 1.00390625f);
  EXPECT_FLOAT_EQ(values<BFloat16>(out)[1], 1.0f);
}

TEST(LayerNorm, LargeMeansDoNotSpoilTheVariance) {
  Tensor x = empty_tensor({1, 19}), out = empty_tensor({1, 19}), mean = empty_tensor({1}), rstd = empty_tensor({1});
  for (int64_t i = 0; i < 19; ++i) x.data<float>()[i] = 4096.0f + static_cast<float>(i % 2);
  layer_norm(out, mean, rstd, x, {}, {}, 1, 0);
  EXPECT_NEAR(values(rstd)[0], 1 / std::sqrt(90.0 / 361), 1e-3);
}

TEST(GroupNorm, GroupsAreNormalisedApart) {
  Tensor out = empty_tensor({1, 4}), mean = empty_tensor({1, 2}), rstd = empty_tensor({1, 2});
  group_norm(out, mean, rstd, floats({1, 4}, {1, 3, 10, 30}), {}, {}, 2, 0);
  EXPECT_THAT(values(out), near({-1, 1, -1, 1}));
  EXPECT_THAT(values(mean), near({2, 20}));
}

TEST(NllLoss, MeanIsWeighted) {
  Tensor scores = floats({3, 2}, {-1, -2, -3, -4, -5, -6}), target = longs({3}, {0, 1, -100}),
         weight = floats({2}, {1, 3});
  Tensor loss = empty_tensor({}), total = empty_tensor({}), grad = empty_tensor({3, 2});
  nll_loss(loss, total, scores, target, weight, Reduction::Mean, -100);
  EXPECT_THAT(values(loss), near({(1 + 3 * 4) / 4.0f}));
  EXPECT_THAT(values(total), near({4}));
  nll_loss_backward(grad, floats({}, {2}), target, weight, Reduction::Mean, -100, total);
  EXPECT_THAT(values(grad), near({-0.5, 0, 0, -1.5, 0, 0}));
}

TEST(NllLoss, SpatialTargets) {
  Tensor scores = floats({1, 2, 2}, {-1, -2, -3, -4}), loss = empty_tensor({1, 2}), total = empty_tensor({});
  nll_loss(loss, total, scores, longs({1, 2}, {1, 0}), {}, Reduction::None, -100);
  EXPECT_THAT(values(loss), ElementsAre(3, 2));
}

TEST(NllLoss, TargetsAreChecked) {
  Tensor loss = empty_tensor({}), total = empty_tensor({});
  EXPECT_THROW(nll_loss(loss, total, floats({1, 2}, {0, 0}), longs({1}, {2}), {}, Reduction::Sum, -100), IndexError);
}

}  // namespace
}  // namespace umbra::kernels
