// Dictionaries of modules, lists of parameters, and layers that hold several others, as PyTorch 2.15 has them.
#include "autograd/testing.h"

namespace umbra {
namespace {

using testing::DoubleNear;

const TensorOptions f64 = {.dtype = DType::Float64};

/// One number of all elements and their order.
double digest(const Tensor& t) {
  return (t.to(DType::Float64).flatten() * linspace(1, 2, t.numel(), f64)).sum().item<double>();
}

struct Heads : nn::Module {
  nn::ModuleDict<nn::Linear> heads = add("heads", nn::ModuleDict<nn::Linear>());
  nn::ParameterList scales = add("scales", nn::ParameterList({ones({2}), ones({2, 3})}));
  nn::ParameterDict shifts = add("shifts", nn::ParameterDict());
  Heads() {
    heads.insert("left", nn::Linear(3, 2));
    heads.insert("right", nn::Linear(3, 2));
    shifts.insert("left", zeros({2}));
  }
  Tensor forward(Tensor x) override { return heads["left"](x) * scales[0] + shifts["left"]; }
};

TEST(Containers, ModulesAndParametersByName) {
  Heads model;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.state_dict()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"heads.left.weight", "heads.left.bias", "heads.right.weight",
                                             "heads.right.bias", "scales.0", "scales.1", "shifts.left"}));
  EXPECT_EQ(model.heads.keys(), (std::vector<std::string>{"left", "right"}));
  EXPECT_TRUE(model.heads.contains("left") && !model.heads.contains("middle"));
  EXPECT_TRUE(model.shifts.contains("left") && !model.shifts.contains("right"));
  EXPECT_THROW(model.heads["middle"], KeyError);
  EXPECT_THROW(model.shifts["right"], KeyError);
  EXPECT_THROW(model.heads.insert("left", nn::Linear(3, 2)), KeyError);
  model(ones({4, 3})).sum().backward();
  EXPECT_TRUE(model.scales[0].grad().defined() && model.shifts["left"].grad().defined());
  EXPECT_FALSE(model.heads["right"].weight.grad().defined());
  EXPECT_EQ(to_string(model.scales),
            "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2]\n"
            "    (1): Parameter containing: [torch.float32 of size 2x3]\n)");
}

TEST(Containers, MaximaOfWindowsAtRandom) {
  Tensor x2 = linspace(-2, 3, 240, f64).view({2, 4, 5, 6}).sin(),
         x3 = linspace(-2, 3, 128, f64).view({1, 2, 4, 4, 4}).sin();
  manual_seed(0);
  Tensor y = nn::FractionalMaxPool2d(2, {.output_ratio = {{0.5, 0.7}}})(x2);
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 4, 2, 4}));
  EXPECT_THAT(digest(y), DoubleNear(26.841977573, 1e-6));
  manual_seed(0);
  auto [maxima, indices] = nn::FractionalMaxPool3d(2, {.output_size = nn::Sizes<3>(2)}).forward_with_indices(x3);
  EXPECT_THAT(digest(maxima), DoubleNear(11.344380826, 1e-6));
  EXPECT_THAT(digest(indices), DoubleNear(857.733333333, 1e-6));
  Tensor samples = full({2, 4, 2}, 0.5, f64);
  nn::FractionalMaxPool2d given(2, {.output_size = nn::Pair(2, 3), .random_samples = samples});
  EXPECT_TRUE(equal(given(x2), given(x2)));
  EXPECT_THROW(nn::FractionalMaxPool2d(2, {}), ValueError);
  EXPECT_THROW(nn::FractionalMaxPool2d(2, {.output_ratio = {{0.5, 1.5}}}), ValueError);
}

TEST(Containers, SoftmaxByFrequency) {
  manual_seed(0);
  nn::AdaptiveLogSoftmaxWithLoss softmax(8, 20, {4, 10}, {.div_value = 2.0, .head_bias = true, .tensor = f64});
  Tensor x = linspace(-2, 3, 48, f64).view({6, 8}), targets = tensor({0, 3, 4, 9, 10, 19});
  auto [output, loss] = softmax.forward_with_loss(x, targets);
  EXPECT_THAT(digest(output), DoubleNear(-37.283870213, 1e-6));
  EXPECT_THAT(loss.item<double>(), DoubleNear(3.947790581, 1e-6));
  EXPECT_THAT(digest(softmax.log_prob(x)), DoubleNear(-698.865878543, 1e-5));
  EXPECT_TRUE(equal(softmax.predict(x), tensor({1, 1, 1, 0, 0, 0})));
  loss.backward();
  auto& projection = static_cast<nn::Linear&>(softmax.tail[1][0]);
  EXPECT_THAT(digest(projection.weight.grad()), DoubleNear(-0.048630224490, 1e-6));
  EXPECT_THAT(softmax(x[0], targets[0]).item<double>(), DoubleNear(output[0].item<double>(), 1e-12));
  EXPECT_THROW(softmax(x, targets + 1), Error);
  EXPECT_THROW(nn::AdaptiveLogSoftmaxWithLoss(8, 20, {10, 4}), ValueError);
}

TEST(Containers, ListsOfOneTypeAndOfAny) {
  nn::ModuleList same{nn::Linear(3, 3), nn::Linear(3, 2)};
  EXPECT_EQ(same[1].weight.size(0), 2);
  nn::ModuleList<> mixed;
  mixed.push_back(nn::Linear(3, 3)).weight.requires_grad_(false);
  mixed.push_back(nn::ReLU());
  Tensor x = ones({2, 3});
  for (nn::Module& layer : mixed) x = layer(x);
  EXPECT_GE(x.min().item<float>(), 0);
  EXPECT_TRUE(mixed[0].as<nn::Linear>() && !mixed[1].as<nn::Linear>());
  EXPECT_FALSE(mixed.named_parameters()["0.weight"].requires_grad());
}

}  // namespace
}  // namespace umbra
