// Bags of rows, images at other sizes, and losses of three tensors, as PyTorch 2.15 computes and prints them.
#include "autograd/testing.h"

namespace umbra {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
namespace F = nn::functional;

void expect_values(const Tensor& t, const std::vector<double>& expected) {
  std::vector<double> all = values(t);
  ASSERT_EQ(all.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_THAT(all[i], DoubleNear(expected[i], 1e-5)) << "element " << i;
}

TEST(EmbeddingBag, BagsAreRowsOrBeginAtOffsets) {
  manual_seed(3);
  nn::EmbeddingBag bag(5, 3);
  expect_values(bag(tensor({{0, 1}, {4, 4}})), {0.094779, 0.110508, -0.639641, -0.864636, 0.298961, 0.419219});
  Tensor numbers = tensor({0, 1, 2}), offsets = tensor({0, 2});
  expect_values(bag(numbers, offsets), {0.094779, 0.110508, -0.639641, 0.337495, 1.011116, -1.435179});
  nn::EmbeddingBag sums(5, 3, {.mode = "sum"});
  Tensor shares = tensor({2.0f, 0.0f, 1.0f});
  Tensor first = sums(numbers, offsets, shares).select(0, 0);
  EXPECT_LT((first - sums.weight.select(0, 0) * 2).abs().max().item<double>(), 1e-6);
}

TEST(EmbeddingBag, PrintsAndRefusesAsPyTorchDoes) {
  EXPECT_EQ(to_string(nn::EmbeddingBag(10, 3)), "EmbeddingBag(10, 3, mode='mean')");
  EXPECT_EQ(to_string(nn::EmbeddingBag(10, 3,
                                       {.norm_type = 1, .scale_grad_by_freq = true, .mode = "sum", .padding_idx = -1})),
            "EmbeddingBag(10, 3, norm_type=1.0, scale_grad_by_freq=True, mode='sum', padding_idx=9)");
  nn::EmbeddingBag bag(5, 3);
  EXPECT_EQ(error_of<ValueError>([&] { bag(tensor({0, 1})); }), "offsets has to be a 1D Tensor but got None");
  EXPECT_EQ(error_of<ValueError>([&] { nn::EmbeddingBag(5, 3, {.mode = "min"})(tensor({{0}})); }),
            "mode has to be one of sum, mean or max");
  EXPECT_THAT(error_of<ValueError>([&] { bag(tensor({{0}}), tensor({0})); }),
              HasSubstr("if input is 2D, then offsets has to be None"));
}

TEST(MaxUnpool, MaximaGoBackToTheirPlaces) {
  Tensor image = arange(16).to(DType::Float32).reshape({1, 1, 4, 4});
  auto [maxima, places] = nn::MaxPool2d(2).forward_with_indices(image);
  EXPECT_THAT(values(nn::MaxUnpool2d(2)(maxima, places)),
              ElementsAreArray({0, 0, 0, 0, 0, 5, 0, 7, 0, 0, 0, 0, 0, 13, 0, 15}));
  auto [line, at] = nn::MaxPool1d(2).forward_with_indices(arange(5).to(DType::Float32).reshape({1, 1, 5}));
  nn::MaxUnpool1d unpool(2);
  EXPECT_THAT(values(unpool(line, at)), ElementsAre(0, 1, 0, 3));
  EXPECT_THAT(values(unpool.forward_to_size(line, at, 5)), ElementsAre(0, 1, 0, 3, 0));
  EXPECT_THAT(error_of<ValueError>([&] { unpool.forward_to_size(line, at, 7); }),
              HasSubstr("(dim 0 must be between 2 and 6)"));
  EXPECT_EQ(to_string(nn::MaxUnpool2d(2, nn::Pair(1, 2), 1)),
            "MaxUnpool2d(kernel_size=(2, 2), stride=(1, 2), padding=(1, 1))");
}

TEST(Upsample, ToASizeOrByAFactor) {
  Tensor image = arange(4).to(DType::Float32).reshape({1, 1, 2, 2});
  EXPECT_THAT(values(nn::Upsample({.scale_factor = {2}})(image)),
              ElementsAreArray({0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}));
  expect_values(nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})(image).select(2, 1).flatten(),
                {0.5, 0.75, 1.25, 1.5});
  expect_values(nn::UpsamplingBilinear2d({.size = {3}})(image), {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
  Tensor larger = arange(16).to(DType::Float32).reshape({1, 1, 4, 4});
  expect_values(F::interpolate(larger, {.size = {2}, .mode = "area"}), {2.5, 4.5, 10.5, 12.5});
  EXPECT_EQ(to_string(nn::Upsample({.scale_factor = {2, 1.5}})), "Upsample(scale_factor=(2.0, 1.5), mode='nearest')");
  EXPECT_EQ(to_string(nn::UpsamplingNearest2d({.size = {4}})), "UpsamplingNearest2d(size=4, mode='nearest')");
  EXPECT_EQ(error_of<ValueError>([&] { F::interpolate(image, {}); }), "either size or scale_factor should be defined");
  EXPECT_EQ(error_of<NotImplementedError>([&] { F::interpolate(image, {.size = {3}, .mode = "linear"}); }),
            "Got 4D input, but linear mode needs 3D input");
}

TEST(LocalResponseNorm, DividesByNeighbouringChannels) {
  Tensor x = arange(12).to(DType::Float32);
  expect_values(nn::LocalResponseNorm(2)(x.reshape({1, 3, 4})).flatten().narrow(0, 0, 6),
                {0, 0.999963, 1.9997, 2.998988, 3.997602, 4.995131});
  expect_values(nn::LocalResponseNorm(3, 0.1)(x.reshape({1, 3, 2, 2})).flatten().narrow(0, 0, 4),
                {0, 0.626181, 1.059369, 1.338444});
  EXPECT_EQ(to_string(nn::LocalResponseNorm(2)), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)");
}

TEST(Losses, OfThreeTensors) {
  Tensor a = tensor({{1.0f, 2.0f}, {3.0f, -1.0f}}), c = tensor({{0.0f, 1.0f}, {1.0f, 0.0f}});
  expect_values(nn::GaussianNLLLoss({.full = true, .reduction = nn::Reduction::Sum})(a, c, tensor({0.5f, 2.0f})),
                {6.925754});
  EXPECT_EQ(error_of<ValueError>([&] { nn::GaussianNLLLoss()(a, c, -c); }), "var has negative entry/entries");
  expect_values(nn::MultiLabelSoftMarginLoss()(a, c), {0.45051});
  expect_values(nn::MultiLabelSoftMarginLoss({.weight = tensor({1.0f, 2.0f}), .reduction = nn::Reduction::None})(a, c),
                {0.783559, 0.337555});
  expect_values(nn::TripletMarginWithDistanceLoss()(a, c, a + 0.5), {2.118036});
  auto farthest = [](const Tensor& p, const Tensor& q) { return (p - q).abs().amax(-1); };
  nn::TripletMarginWithDistanceLoss own(
      {.distance_function = farthest, .margin = 2, .swap = true, .reduction = nn::Reduction::Sum});
  expect_values(own(a, c, a + 0.5), {6});
  EXPECT_THAT(own.argument_names(), ElementsAre("anchor", "positive", "negative"));
}

}  // namespace
}  // namespace umbra
