#include "kernels/random.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;

// The expected numbers are PyTorch's, from torch.manual_seed(5).
TEST(Random, UniformStream) {
  Generator g(5);
  Tensor t = empty_tensor({3});
  uniform(t, 0, 1, g);
  EXPECT_THAT(values(t), near({0.8303, 0.1261, 0.9075}));
  g.manual_seed(5);
  Tensor d = empty_tensor({3}, DType::Float64);
  uniform(d, 0, 1, g);
  EXPECT_NEAR(values<double>(d)[0], 0.6420, 1e-4);
}

TEST(Random, NormalStreamOfFewNumbers) {
  Generator g(5);
  Tensor t = empty_tensor({3});
  normal(t, 0, 1, g);
  EXPECT_THAT(values(t), near({-0.4868, -0.6038, -0.5581}));
}

TEST(Random, NormalStreamInBlocks) {
  Generator g(5);
  Tensor t = empty_tensor({17});
  normal(t, 0, 1, g);
  EXPECT_THAT(values(t), near({1.8423, 1.2220, -0.3364, -0.9651, -0.1297, -0.6018, 0.1450, -0.1498, 2.6146, 0.7792,
                               -0.0583, -2.0305, 1.4829, 0.4940, 0.2492, 1.7470, 0.7448}));
}

TEST(Random, BernoulliStream) {
  Generator g(5);
  Tensor t = empty_tensor({5});
  bernoulli(t, 0.5, g);
  EXPECT_THAT(values(t), ElementsAre(0, 1, 1, 1, 1));
  g.manual_seed(5);
  bernoulli(t, floats({1}, {0.5}), g);
  EXPECT_THAT(values(t), ElementsAre(0, 1, 0, 0, 0));
}

TEST(Random, IntegersAndPermutations) {
  Generator g(5);
  Tensor t = empty_tensor({3}, DType::Int64), p = empty_tensor({7}, DType::Int64);
  random_between(t, 0, 10, g);
  EXPECT_THAT(values<int64_t>(t), ElementsAre(1, 4, 7));
  g.manual_seed(5);
  randperm(p, g);
  EXPECT_THAT(values<int64_t>(p), ElementsAre(1, 0, 4, 2, 6, 5, 3));
}

TEST(Random, StridedTensorsAreFilledInMemoryOrder) {
  Generator g(5);
  Tensor t = empty_tensor({2, 3});
  uniform(transposed(t), 0, 1, g);
  EXPECT_THAT(values(t), near({0.8303, 0.1261, 0.9075, 0.8199, 0.9201, 0.1166}));
}

TEST(Random, MultinomialPutsBackWhatItDraws) {
  Generator g(5);
  Tensor drawn = empty_tensor({1, 5}, DType::Int64);
  multinomial(drawn, floats({1, 4}, {.1, .2, .3, .4}), g);
  EXPECT_THAT(values<int64_t>(drawn), ElementsAre(3, 1, 2, 2, 1));
  EXPECT_THROW(multinomial(drawn, floats({1, 2}, {-1, 1}), g), Error);
}

}  // namespace
}  // namespace umbra::kernels
