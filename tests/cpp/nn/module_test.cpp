// Modules: names, state, copies that share, loading.
#include "../../../examples/cpp/models.h"
#include "autograd/testing.h"

namespace umbra {
namespace {

using examples::Cnn;
using examples::Gpt;
using examples::Mlp;

std::vector<std::string> names_of(const nn::StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  return names;
}

TEST(Module, StateDictHasTheNamesAndTheOrderOfPyTorch) {
  EXPECT_THAT(names_of(Mlp().state_dict()), ElementsAre("up.weight", "up.bias", "down.weight", "down.bias"));
  EXPECT_EQ(Mlp().state_dict()["down.bias"].dim(), 1);
  EXPECT_THROW(Mlp().state_dict()["down.scale"], KeyError);
  EXPECT_THAT(names_of(nn::Sequential(nn::Conv2d(3, 4, 3), nn::BatchNorm2d(4), nn::ReLU()).state_dict()),
              ElementsAre("0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                          "1.num_batches_tracked"));
  EXPECT_THAT(names_of(nn::MultiheadAttention(8, 2).state_dict()),
              ElementsAre("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"));
}

TEST(Module, ListsAreNamedByPosition) {
  Gpt model({.vocabulary = 8, .context = 4, .width = 8, .heads = 2, .layers = 2});
  std::vector<std::string> names = names_of(model.named_parameters());
  EXPECT_EQ(names[2], "layers.0.ln1.weight");
  EXPECT_THAT(names, testing::Contains("layers.1.attention.qkv.bias"));
}

TEST(Module, CopiesShareWeightsAndTheTrainingFlag) {
  Mlp model;
  Mlp copy = model;
  copy.eval();
  EXPECT_FALSE(model.is_training());
  EXPECT_FALSE(model.up.is_training());
  nn::init::zeros_(copy.up.weight);
  EXPECT_EQ(model.up.weight.abs().sum().item().to_double(), 0);
}

TEST(Module, AParameterWithTwoNamesIsListedOnceAndStoredTwice) {
  struct Tied : nn::Module {
    Tensor a = parameter("a", randn({2})), b = parameter("b", a);
  };
  Tied model;
  EXPECT_THAT(names_of(model.named_parameters()), ElementsAre("a"));
  EXPECT_THAT(names_of(model.state_dict()), ElementsAre("a", "b"));
}

TEST(Module, LoadStateDictCopiesByName) {
  Mlp from, to;
  nn::LoadResult result = to.load_state_dict(from.state_dict());
  EXPECT_TRUE(result.missing_keys.empty());
  Tensor x = randn({2, 64});
  EXPECT_EQ(values(from(x)), values(to(x)));
}

TEST(Module, LoadStateDictSaysEverythingThatIsAmissAndChangesNothing) {
  nn::Linear layer(3, 4);
  std::vector<double> before = values(layer.bias);
  std::string message = error_of([&] {
    layer.load_state_dict({{"weight", zeros({2, 2})}, {"bias", zeros({4})}, {"extra", zeros({1})}});
  });
  EXPECT_EQ(message,
            "Error(s) in loading state_dict for Linear:\n\tUnexpected key(s) in state_dict: \"extra\". \n\tsize "
            "mismatch for weight: copying a "
            "param with shape torch.Size([2, 2]) from checkpoint, the shape in current model is torch.Size([4, 3]).");
  EXPECT_EQ(values(layer.bias), before);
  EXPECT_EQ(error_of([&] {
              layer.load_state_dict({{"weight", zeros({4, 3})}});
            }),
            "Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: \"bias\". ");
  EXPECT_THAT(layer.load_state_dict({{"weight", zeros({4, 3})}}, false).missing_keys, ElementsAre("bias"));
}

TEST(Module, ToCastsFloatingPointTensorsInPlace) {
  Cnn model;
  Tensor weight = model.conv1.weight;
  model.to(DType::Float64);
  EXPECT_EQ(weight.dtype(), DType::Float64);
  EXPECT_EQ(model.bn1.running_var.dtype(), DType::Float64);
  EXPECT_EQ(model.bn1.num_batches_tracked.dtype(), DType::Int64);
  EXPECT_EQ(model(randn({2, 3, 8, 8}, {.dtype = DType::Float64})).dtype(), DType::Float64);
}

TEST(Module, GradientsAreZeroedAndFrozen) {
  nn::Linear layer(3, 2);
  layer(randn({2, 3})).sum().backward();
  layer.zero_grad(false);
  EXPECT_THAT(values(layer.bias.grad()), ElementsAre(0, 0));
  layer.zero_grad();
  EXPECT_FALSE(layer.bias.grad().defined());
  layer.requires_grad_(false);
  EXPECT_FALSE(layer(randn({2, 3})).requires_grad());
}

TEST(Module, ApplyReachesChildrenFirst) {
  std::vector<std::string> seen;
  Mlp().apply([&](nn::Module& m) { seen.push_back(m.type_name()); });
  EXPECT_THAT(seen,
              ElementsAre("torch.nn.modules.linear.Linear", "torch.nn.modules.linear.Linear", "umbra.examples.Mlp"));
}

TEST(Module, NamesAreCheckedWhenTheyAreRegistered) {
  struct Twice : nn::Module {
    nn::ReLU a = add("a", nn::ReLU()), b = add("a", nn::ReLU());
  };
  EXPECT_EQ(error_of<KeyError>([] { Twice(); }), "attribute 'a' already exists");
  struct NoForward : nn::Module {};
  EXPECT_THAT(error_of<NotImplementedError>([] { NoForward()(zeros({1})); }),
              HasSubstr("is missing the required \"forward\" function"));
}

}  // namespace
}  // namespace umbra
