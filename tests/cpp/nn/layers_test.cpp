// Layers: initial values and results as PyTorch 2.15 gives them for the same seed.
#include "autograd/testing.h"

namespace umbra {
namespace {

using testing::DoubleNear;

/// The first elements, to six digits.
void expect_head(const Tensor& t, const std::vector<double>& expected) {
  std::vector<double> all = values(t);
  ASSERT_GE(all.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_THAT(all[i], DoubleNear(expected[i], 1e-5)) << "element " << i;
}

TEST(Layers, TheSameSeedGivesTheWeightsOfPyTorch) {
  manual_seed(0);
  nn::Linear layer(3, 4);
  expect_head(layer.weight, {-0.00432252, 0.309716, -0.475185, -0.424895, -0.222369, 0.154821});
  manual_seed(0);
  nn::MultiheadAttention attention(8, 2);
  expect_head(attention.in_proj_weight, {0.170178, 0.358772, 0.376811});
  expect_head(attention.out_proj.weight, {-0.00264699, 0.189661, -0.290990});
  expect_head(attention.out_proj.bias, {0, 0, 0});
}

TEST(Layers, BatchNormNormalisesByTheBatchInTrainingAndByItsMemoryAfterwards) {
  nn::BatchNorm2d norm(3);
  manual_seed(2);
  Tensor x = randn({2, 3, 4, 4});
  expect_head(norm(x), {-0.846638, 1.20125, -1.1222, -0.918699});
  expect_head(norm.running_mean, {-0.0231569, 0.030253, -0.0091808});
  EXPECT_EQ(norm.num_batches_tracked.item().to_int(), 1);
  norm.eval();
  expect_head(norm(x), {-1.02055, 0.942444, -1.28469});
  EXPECT_EQ(norm.num_batches_tracked.item().to_int(), 1);
}

TEST(Layers, AttentionGivesTheSameWithAndWithoutWeights) {
  nn::MultiheadAttention attention(8, 2, {.batch_first = true});
  Tensor x = randn({2, 3, 8}), k = randn({2, 5, 8});
  auto [with, weights] = attention(x, k, k);
  auto [without, none] = attention(x, k, k, {.need_weights = false});
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(weights.sizes(), IntArrayRef({2, 3, 5}));
  EXPECT_LT((with - without).abs().max().item().to_double(), 1e-5);
  expect_head(weights.sum({{-1}}).flatten(), {1, 1, 1});
}

TEST(Layers, PaddedKeysGetNoAttention) {
  nn::MultiheadAttention attention(8, 2, {.batch_first = true});
  Tensor x = randn({1, 3, 8}), padding = zeros({1, 3}, {.dtype = DType::Bool});
  padding.data<bool>()[2] = true;
  auto [out, weights] = attention(x, x, x, {.key_padding_mask = padding});
  EXPECT_EQ(values(weights)[2], 0);
}

TEST(Layers, PaddingRowOfAnEmbeddingIsZeroAndStaysSo) {
  nn::Embedding table(4, 3, {.padding_idx = -1});
  expect_head(table.weight.select(0, 3), {0, 0, 0});
  table(arange(4)).sum().backward();
  expect_head(table.weight.grad().select(0, 3), {0, 0, 0});
}

TEST(Layers, ShapesFollow) {
  Tensor image = randn({2, 4, 9, 9});
  EXPECT_EQ(nn::Conv2d(4, 8, 3, {.stride = 2, .padding = 1, .groups = 2})(image).sizes(), IntArrayRef({2, 8, 5, 5}));
  EXPECT_EQ(nn::MaxPool2d(2)(image).sizes(), IntArrayRef({2, 4, 4, 4}));
  EXPECT_EQ(nn::AvgPool2d(2, {.ceil_mode = true})(image).sizes(), IntArrayRef({2, 4, 5, 5}));
  EXPECT_EQ(nn::AdaptiveAvgPool2d({1, 3})(image).sizes(), IntArrayRef({2, 4, 1, 3}));
  EXPECT_EQ(nn::Flatten()(image).sizes(), IntArrayRef({2, 324}));
  EXPECT_TRUE(nn::Sequential().is_empty());
  EXPECT_EQ(nn::Sequential(nn::Identity(), nn::LayerNorm(9), nn::Tanh(), nn::Sigmoid(), nn::SiLU(), nn::GELU(),
                           nn::Softmax(-1))(image)
                .sizes(),
            image.sizes());
}

TEST(Layers, DropoutOnlyWorksInTraining) {
  nn::Dropout dropout(0.5);
  Tensor x = ones({1000});
  double kept = dropout(x).sum().item().to_double() / 2;
  EXPECT_NEAR(kept, 500, 100);
  dropout.eval();
  EXPECT_EQ(dropout(x).sum().item().to_double(), 1000);
}

TEST(Layers, BadArgumentsAreRefused) {
  EXPECT_EQ(error_of<ValueError>([] { nn::Dropout(1.5); }),
            "dropout probability has to be between 0 and 1, but got 1.5");
  EXPECT_EQ(error_of<ValueError>([] { nn::Conv2d(3, 4, 3, {.groups = 2}); }),
            "in_channels must be divisible by groups");
  EXPECT_EQ(error_of<AssertionError>([] { nn::MultiheadAttention(7, 2); }), "embed_dim must be divisible by num_heads");
  EXPECT_EQ(error_of<AssertionError>([] { nn::Embedding(3, 4, {.padding_idx = 7}); }),
            "Padding_idx must be within num_embeddings");
  EXPECT_EQ(error_of<ValueError>([] { nn::BatchNorm2d(3)(zeros({2, 3})); }), "expected 4D input (got 2D input)");
  EXPECT_EQ(error_of<ValueError>([] {
              nn::BatchNorm2d(3)(zeros({1, 3, 1, 1}));
            }),
            "Expected more than 1 value per channel when training, got input size torch.Size([1, 3, 1, 1])");
}

}  // namespace
}  // namespace umbra
