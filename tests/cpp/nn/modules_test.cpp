// Every layer prints and computes as PyTorch 2.15's of the same name, with the weights that the same seed gives.
#include "autograd/testing.h"

namespace umbra {
namespace {

using testing::DoubleNear;

const TensorOptions f64 = {.dtype = DType::Float64};

/// One number of all elements and their order.
double digest(const Tensor& t) {
  if (t.numel() == 1) return t.item<double>();
  return (t.flatten() * linspace(1, 2, t.numel(), f64)).sum().item<double>();
}

template <class Make>
void expect(Make make, const Tensor& x, const std::string& text, const std::vector<int64_t>& sizes, double value) {
  manual_seed(0);
  auto layer = make();
  EXPECT_EQ(to_string(layer), text);
  Tensor out = layer(x);
  EXPECT_EQ(out.sizes(), IntArrayRef(sizes)) << text;
  EXPECT_THAT(digest(out), DoubleNear(value, 1e-6 * std::max(1.0, std::abs(value)))) << text;
}

TEST(Modules, OneInput) {
  Tensor x1 = linspace(-2, 3, 24, f64).view({2, 3, 4});
  Tensor x2 = linspace(-2, 3, 240, f64).view({2, 4, 5, 6});
  Tensor x3 = linspace(-2, 3, 128, f64).view({1, 2, 4, 4, 4});
  expect([] { return nn::Conv1d(3, 4, 2, {.padding = 1, .tensor = f64}); }, x1,
         "Conv1d(3, 4, kernel_size=(2,), stride=(1,), padding=(1,))", {2, 4, 5}, -11.5129711);
  expect(
      [] {
        return nn::Conv2d(
            4, 4, {2, 3},
            {.stride = 2, .padding = 1, .groups = 2, .bias = false, .padding_mode = "circular", .tensor = f64});
      },
      x2,
      "Conv2d(4, 4, kernel_size=(2, 3), stride=(2, 2), padding=(1, 1), groups=2, bias=False, padding_mode=circular)",
      {2, 4, 3, 3}, -10.2527172);
  expect([] { return nn::Conv3d(2, 3, 2, {.dilation = 2, .tensor = f64}); }, x3,
         "Conv3d(2, 3, kernel_size=(2, 2, 2), stride=(1, 1, 1), dilation=(2, 2, 2))", {1, 3, 2, 2, 2}, 0.139982195);
  expect([] { return nn::ConvTranspose1d(3, 2, 3, {.stride = 2, .tensor = f64}); }, x1,
         "ConvTranspose1d(3, 2, kernel_size=(3,), stride=(2,))", {2, 2, 9}, -7.05411408);
  expect(
      [] {
        return nn::ConvTranspose2d(4, 4, 3,
                                   {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2, .tensor = f64});
      },
      x2, "ConvTranspose2d(4, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1), groups=2)",
      {2, 4, 10, 12}, -71.8827148);
  expect([] { return nn::ConvTranspose3d(2, 3, 2, {.bias = false, .tensor = f64}); }, x3,
         "ConvTranspose3d(2, 3, kernel_size=(2, 2, 2), stride=(1, 1, 1), bias=False)", {1, 3, 5, 5, 5}, -22.6056241);
  expect([] { return nn::MaxPool1d(2); }, x1,
         "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)", {2, 3, 2}, 16.6086957);
  expect(
      [] {
        return nn::MaxPool2d({2, 3}, {.stride = 1, .padding = 1});
      },
      x2, "MaxPool2d(kernel_size=(2, 3), stride=1, padding=1, dilation=1, ceil_mode=False)", {2, 4, 6, 6}, 362.581138);
  expect([] { return nn::MaxPool3d(2); }, x3,
         "MaxPool3d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)", {1, 2, 2, 2, 2}, 28.8293963);
  expect([] { return nn::AvgPool1d(2, {.ceil_mode = true}); }, x1,
         "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))", {2, 3, 2}, 14.6521739);
  expect([] { return nn::AvgPool2d(2, {.padding = 1, .count_include_pad = false}); }, x2,
         "AvgPool2d(kernel_size=2, stride=2, padding=1)", {2, 4, 3, 4}, 106.567716);
  expect([] { return nn::AvgPool3d(2, {.divisor_override = 3}); }, x3, "AvgPool3d(kernel_size=2, stride=2, padding=0)",
         {1, 2, 2, 2, 2}, 50.4216973);
  expect([] { return nn::LPPool1d(2, 2); }, x1, "LPPool1d(norm_type=2.0, kernel_size=2, stride=None, ceil_mode=False)",
         {2, 3, 2}, 36.8856576);
  expect([] { return nn::LPPool2d(2, 2, 1); }, x2, "LPPool2d(norm_type=2.0, kernel_size=2, stride=1, ceil_mode=False)",
         {2, 4, 4, 5}, 666.809941);
  expect([] { return nn::AdaptiveAvgPool1d(3); }, x1, "AdaptiveAvgPool1d(output_size=3)", {2, 3, 3}, 21.7097187);
  expect(
      [] {
        return nn::AdaptiveAvgPool3d({1, 2, 3});
      },
      x3, "AdaptiveAvgPool3d(output_size=(1, 2, 3))", {1, 2, 1, 2, 3}, 13.4094488);
  expect([] { return nn::AdaptiveMaxPool1d(2); }, x1, "AdaptiveMaxPool1d(output_size=2)", {2, 3, 2}, 16.6086957);
  expect(
      [] {
        return nn::AdaptiveMaxPool2d({2, 3});
      },
      x2, "AdaptiveMaxPool2d(output_size=(2, 3))", {2, 4, 2, 3}, 66.2020831);
  expect([] { return nn::AdaptiveMaxPool3d(2); }, x3, "AdaptiveMaxPool3d(output_size=2)", {1, 2, 2, 2, 2}, 28.8293963);
  expect([] { return nn::ReflectionPad1d(1); }, x1, "ReflectionPad1d((1, 1))", {2, 3, 6}, 42.931677);
  expect(
      [] {
        return nn::ReflectionPad2d({1, 2, 3, 4});
      },
      x2, "ReflectionPad2d((1, 2, 3, 4))", {2, 4, 12, 9}, 978.261955);
  expect([] { return nn::ReplicationPad3d(1); }, x3, "ReplicationPad3d((1, 1, 1, 1, 1, 1))", {1, 2, 6, 6, 6},
         509.787676);
  expect([] { return nn::CircularPad2d({1, 0, 2, 1}); }, x2, "CircularPad2d((1, 0, 2, 1))", {2, 4, 8, 7}, 535.920998);
  expect([] { return nn::ZeroPad1d(2); }, x1, "ZeroPad1d((2, 2))", {2, 3, 8}, 28.4995375);
  expect([] { return nn::ConstantPad2d(1, 2.5); }, x2, "ConstantPad2d(padding=(1, 1, 1, 1), value=2.5)", {2, 4, 7, 8},
         1060.18159);
  expect([] { return nn::BatchNorm1d(3, {.tensor = f64}); }, x1,
         "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)", {2, 3, 4},
         6.36861962);
  expect([] { return nn::BatchNorm3d(2, {.affine = false, .tensor = f64}); }, x3,
         "BatchNorm3d(2, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)", {1, 2, 4, 4, 4},
         18.6182335);
  expect([] { return nn::InstanceNorm1d(3); }, x1,
         "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)", {2, 3, 4},
         1.16654543);
  expect([] { return nn::InstanceNorm2d(4, {.affine = true, .track_running_stats = true, .tensor = f64}); }, x2,
         "InstanceNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)", {2, 4, 5, 6},
         8.69033158);
  expect([] { return nn::GroupNorm(2, 4, {.tensor = f64}); }, x2, "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)",
         {2, 4, 5, 6}, 17.3899006);
  expect([] { return nn::RMSNorm(4, {.tensor = f64}); }, x1, "RMSNorm((4,), eps=None, elementwise_affine=True)",
         {2, 3, 4}, 13.6993408);
  expect(
      [] {
        return nn::RMSNorm({3, 4}, {.eps = 1e-6, .elementwise_affine = false});
      },
      x1, "RMSNorm((3, 4), eps=1e-06, elementwise_affine=False)", {2, 3, 4}, 10.5582115);
  expect([] { return nn::ReLU6(); }, x1, "ReLU6()", {2, 3, 4}, 40.3062382);
  expect([] { return nn::SELU(); }, x1, "SELU()", {2, 3, 4}, 31.0111998);
  expect([] { return nn::Mish(); }, x1, "Mish()", {2, 3, 4}, 35.7831428);
  expect([] { return nn::Hardswish(); }, x1, "Hardswish()", {2, 3, 4}, 31.3333333);
  expect([] { return nn::Hardsigmoid(); }, x1, "Hardsigmoid()", {2, 3, 4}, 22.8115942);
  expect([] { return nn::Tanhshrink(); }, x1, "Tanhshrink()", {2, 3, 4}, 16.7382013);
  expect([] { return nn::LogSigmoid(); }, x1, "LogSigmoid()", {2, 3, 4}, -21.160643);
  expect([] { return nn::Softsign(); }, x1, "Softsign()", {2, 3, 4}, 8.67339768);
  expect([] { return nn::Softmax2d(); }, x2, "Softmax2d()", {2, 4, 5, 6}, 95.334901);
  expect([] { return nn::LogSoftmax(1); }, x1, "LogSoftmax(dim=1)", {2, 3, 4}, -45.6877825);
  expect([] { return nn::Softmin(1); }, x1, "Softmin(dim=1)", {2, 3, 4}, 11.2808599);
  expect([] { return nn::GLU(); }, x1, "GLU(dim=-1)", {2, 3, 2}, 13.9705482);
  expect([] { return nn::ELU(0.5); }, x1, "ELU(alpha=0.5)", {2, 3, 4}, 37.0815613);
  expect([] { return nn::CELU(2); }, x1, "CELU(alpha=2.0)", {2, 3, 4}, 31.9312442);
  expect([] { return nn::LeakyReLU(0.2); }, x1, "LeakyReLU(negative_slope=0.2)", {2, 3, 4}, 38.0189036);
  expect([] { return nn::Hardshrink(); }, x1, "Hardshrink(0.5)", {2, 3, 4}, 29.0775047);
  expect([] { return nn::Softshrink(0.25); }, x1, "Softshrink(0.25)", {2, 3, 4}, 25.6696597);
  expect([] { return nn::Hardtanh(-0.5, 1.5); }, x1, "Hardtanh(min_val=-0.5, max_val=1.5)", {2, 3, 4}, 23.9536862);
  expect([] { return nn::Softplus(2); }, x1, "Softplus(beta=2.0, threshold=20.0)", {2, 3, 4}, 42.9359299);
  expect([] { return nn::Threshold(0.5, 2); }, x1, "Threshold(threshold=0.5, value=2.0)", {2, 3, 4}, 69.2173913);
  expect([] { return nn::PReLU(3, 0.25, f64); }, x1, "PReLU(num_parameters=3)", {2, 3, 4}, 37.4470699);
  expect([] { return nn::PixelShuffle(2); }, x2, "PixelShuffle(upscale_factor=2)", {2, 1, 10, 12}, 265.740796);
  expect([] { return nn::ChannelShuffle(2); }, x2, "ChannelShuffle(groups=2)", {2, 4, 5, 6}, 276.110012);
  expect([] { return nn::Unfold(2, {.stride = 2}); }, x2, "Unfold(kernel_size=2, dilation=1, padding=0, stride=2)",
         {2, 16, 6}, 206.045609);
  expect(
      [] {
        return nn::Fold({2, 3}, {1, 2});
      },
      x1.reshape({2, 3, 4}).narrow(1, 0, 2),
      "Fold(output_size=(2, 3), kernel_size=(1, 2), dilation=1, padding=0, stride=1)", {2, 1, 2, 3}, 8.12648221);
  expect(
      [] {
        return nn::Unflatten(2, {2, 2});
      },
      x1, "Unflatten(dim=2, unflattened_size=(2, 2))", {2, 3, 2, 2}, 28.8695652);
}

template <class Run> void expect(Run run, double value) {
  manual_seed(0);
  EXPECT_THAT(digest(run()), DoubleNear(value, 1e-6 * std::max(1.0, std::abs(value))));
}

TEST(Modules, LossesAndDistances) {
  Tensor x = linspace(-2, 3, 24, f64).view({2, 3, 4}), a = x[0], b = x[1];
  Tensor p = sigmoid(a), q = sigmoid(b * 0.3 - 0.5);
  Tensor c = tensor({2, 0, 3}), s = tensor({1, -1, 1}, f64), w = tensor({0.5, 1.0, 1.5, 2.0}, f64);
  Tensor labels = tensor({{2, 0, -1, 1}, {3, -1, 0, 1}, {0, 1, 2, 3}});
  expect([&] { return nn::L1Loss()(a, b); }, 2.60869565);
  expect([&] { return nn::MSELoss(nn::Reduction::Sum)(a, b); }, 81.6635161);
  expect([&] { return nn::SoftMarginLoss()(a, b.sign()); }, 1.23284004);
  expect([&] { return nn::CrossEntropyLoss({.weight = w, .label_smoothing = 0.1})(a, c); }, 1.24985875);
  expect([&] { return nn::NLLLoss({.ignore_index = 0})(a, c); }, 0.586956522);
  expect([&] { return nn::BCELoss({.weight = w})(p, q); }, 0.979662637);
  expect([&] { return nn::BCEWithLogitsLoss({.pos_weight = w})(a, q); }, 0.914071674);
  expect([&] { return nn::HuberLoss({.delta = 0.5})(a, b); }, 1.17934783);
  expect([&] { return nn::SmoothL1Loss({.beta = 3})(a, b); }, 1.1342155);
  expect([&] { return nn::KLDivLoss({.batchmean = true})(a, p); }, -0.715576161);
  expect([&] { return nn::KLDivLoss({.log_target = true})(a, b); }, 20.7023079);
  expect([&] { return nn::PoissonNLLLoss()(a, q); }, 0.952792741);
  expect([&] { return nn::HingeEmbeddingLoss({.margin = 0.5})(a, b.sign()); }, -0.804347826);
  expect([&] { return nn::MultiMarginLoss({.p = 2})(a, c); }, 0.811436673);
  expect([&] { return nn::MultiLabelMarginLoss()(a, labels); }, 0.547101449);
  expect([&] { return nn::MarginRankingLoss({.margin = 0.1})(a.select(1, 0), b.select(1, 1), s); }, 1.95072464);
  expect([&] { return nn::CosineEmbeddingLoss()(a, b, s); }, 0.858696846);
  expect([&] { return nn::TripletMarginLoss({.swap = true})(a, b, p); }, 4.60340741);
  expect([&] { return nn::CosineSimilarity()(a, b); }, -1.59566725);
  expect([&] { return nn::PairwiseDistance()(a, b); }, 23.4782519);
  expect([&] { return nn::Bilinear(4, 4, 2, {.tensor = f64})(a, b); }, -6.94817649);
}

TEST(Modules, MaximaComeWithTheirPlaces) {
  nn::MaxPool2d pool(2);
  auto [maxima, places] = pool.forward_with_indices(tensor({{{{1, 5}, {3, 2}}}}, f64));
  EXPECT_EQ(maxima.item<double>(), 5);
  EXPECT_EQ(places.item<int64_t>(), 1);
}

TEST(Modules, TheWeightOfALossIsPartOfItsState) {
  nn::CrossEntropyLoss loss({.weight = ones({3})});
  ASSERT_EQ(loss.state_dict().size(), 1u);
  EXPECT_EQ(loss.state_dict()[0].first, "weight");
}

TEST(Modules, StepsOfRecurrentNetworks) {
  Tensor x = linspace(-1, 1, 6, f64).view({2, 3});
  manual_seed(0);
  nn::RNNCell rnn(3, 2, {.tensor = f64});
  EXPECT_EQ(to_string(rnn), "RNNCell(3, 2)");
  EXPECT_THAT(digest(rnn(x)), DoubleNear(-1.1869586864, 1e-9));
  EXPECT_THAT(digest(rnn(x, rnn(x))), DoubleNear(-1.1254538445, 1e-9));
  manual_seed(0);
  nn::GRUCell gru(3, 2, {.tensor = f64});
  EXPECT_THAT(digest(gru(x, gru(x))), DoubleNear(-0.3798393121, 1e-9));
  manual_seed(0);
  nn::LSTMCell lstm(3, 2, {.tensor = f64});
  auto [hidden, cell] = lstm(x);
  auto [next_hidden, next_cell] = lstm(x, hidden, cell);
  EXPECT_THAT(digest(next_hidden), DoubleNear(-0.3070551981, 1e-9));
  EXPECT_THAT(digest(next_cell), DoubleNear(-0.1142904655, 1e-9));
  EXPECT_THROW(rnn(ones({1, 2, 3})), ValueError);
}

TEST(Modules, WholeChannelsAreDropped) {
  manual_seed(0);
  nn::Dropout2d dropout(0.5);
  Tensor out = dropout(ones({4, 8, 3, 3})).flatten(2);
  EXPECT_TRUE(equal(out, out.narrow(2, 0, 1).expand_as(out)));
  EXPECT_GT((out == 0).sum().item<int64_t>(), 0);
  dropout.eval();
  EXPECT_TRUE(equal(dropout(ones({1, 2, 3, 3})), ones({1, 2, 3, 3})));
}

TEST(Modules, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(nn::GroupNorm(3, 4), ValueError);
  EXPECT_THROW(nn::AvgPool1d(2, {.divisor_override = 3}), ValueError);
  EXPECT_THROW(nn::Conv2d(2, 2, 1, {.padding_mode = "mirror"}), ValueError);
  EXPECT_THROW(nn::InstanceNorm2d(3)(ones({2, 3})), ValueError);
  EXPECT_THROW(nn::Dropout1d()(ones({2})), Error);
  EXPECT_THROW(nn::BCELoss()(rand({2}), rand({3})), ValueError);
}

}  // namespace
}  // namespace umbra
