// Optimisers: four steps on a small problem end where PyTorch 2.15's do.
#include "autograd/testing.h"

namespace umbra {
namespace {

template <class Optimizer, class Options> std::vector<double> after_four_steps(const Options& options) {
  Tensor p = vector_of({1, -2, 3}).to(DType::Float32).requires_grad_();
  Tensor factors = vector_of({1, 0.5, -0.25}).to(DType::Float32);
  Optimizer optimizer({p}, options);
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    (p * p * p * factors).sum().backward();
    optimizer.step();
  }
  return values(p);
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5 * std::abs(expected[i]));
}

TEST(Optim, SgdWithNesterovMomentumAndDecay) {
  expect_near(
      after_four_steps<optim::SGD>(optim::SGDOptions{.lr = .1, .momentum = .9, .weight_decay = .01, .nesterov = true}),
      {-0.448469, -137.624, 62.0377});
}

TEST(Optim, SgdWithDampening) {
  expect_near(after_four_steps<optim::SGD>(optim::SGDOptions{.lr = .1, .momentum = .9, .dampening = .5}),
              {-0.267226, -9.67367, 9.98701});
}

TEST(Optim, Adam) {
  expect_near(after_four_steps<optim::Adam>(optim::AdamOptions{.lr = .05, .weight_decay = .1}),
              {0.80175, -2.20042, 3.20032});
}

TEST(Optim, PartsOfComplexNumbersAreParametersOfTheirOwn) {
  Tensor p = view_as_complex(vector_of({1, 2, 3, -1, 0, .5}).to(DType::Float32).view({3, 2})).clone().requires_grad_();
  Tensor aim = view_as_complex(vector_of({1, 1}).to(DType::Float32)), factors = vector_of({1, 2, 3}).to(DType::Float32);
  optim::Adam optimizer({p}, {});
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    ((p - aim).abs().pow(2) * factors).sum().backward();
    optimizer.step();
  }
  std::vector<double> parts = values(view_as_real(p.detach())), expected{1, 1.996, 2.996, -0.996, 0.004, 0.504};
  ASSERT_EQ(parts.size(), expected.size());
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_NEAR(parts[i], expected[i], 1e-4);
  EXPECT_EQ(optimizer.state(p)["exp_avg"].dtype(), DType::Complex64);
}

TEST(Optim, AdamW) {
  expect_near(after_four_steps<optim::AdamW>(optim::AdamWOptions{.lr = .05}), {0.799966, -2.19627, 3.19416});
  expect_near(after_four_steps<optim::AdamW>(optim::AdamWOptions{.lr = .05, .amsgrad = true}),
              {0.799966, -2.19627, 3.19416});
}

TEST(Optim, RMSprop) {
  expect_near(after_four_steps<optim::RMSprop>(optim::RMSpropOptions{.lr = .05, .weight_decay = .01}),
              {0.26175, -3.64866, 4.58294});
  expect_near(after_four_steps<optim::RMSprop>(optim::RMSpropOptions{.lr = .05, .momentum = .9, .centered = true}),
              {-1.22991, -6.11813, 6.98659});
}

TEST(Optim, Adagrad) {
  expect_near(after_four_steps<optim::Adagrad>(
                  optim::AdagradOptions{.lr = .1, .lr_decay = .1, .initial_accumulator_value = .5}),
              {0.775552, -2.25974, 3.25675});
}

TEST(Optim, GroupsHaveOptionsOfTheirOwn) {
  Tensor slow = parameter({1}), fast = parameter({1}), late = parameter({1});
  optim::SGD optimizer({{{slow}, {.lr = .1}}, {{fast}, {.lr = .5}}});
  optimizer.add_param_group({{late}, {.lr = 1}});
  (slow + fast + late).sum().backward();
  optimizer.step();
  EXPECT_THAT(values(slow), ElementsAre(.9));
  EXPECT_THAT(values(fast), ElementsAre(.5));
  EXPECT_THAT(values(late), ElementsAre(0));
  EXPECT_EQ(error_of<ValueError>([&] {
              optimizer.add_param_group({{fast}, {}});
            }),
            "some parameters appear in more than one parameter group");
}

TEST(Optim, AnotherOptimiserGoesOnFromTheState) {
  auto step = [](optim::Optimizer& optimizer, const Tensor& p) {
    optimizer.zero_grad();
    (p * p).sum().backward();
    optimizer.step();
  };
  Tensor p = parameter({1, -2}), q = parameter({1, -2});
  optim::Adam first({p}, {.lr = .1, .amsgrad = true}), whole({q}, {.lr = .1, .amsgrad = true});
  for (int i = 0; i < 3; ++i) step(whole, q);
  step(first, p);
  Tensor r = p.detach().clone().requires_grad_();
  optim::Adam second({r}, {.lr = .7});
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.options().lr, .1);
  EXPECT_TRUE(second.options().amsgrad);
  step(second, r);
  step(second, r);
  EXPECT_EQ(values(r), values(q));
  optim::Adam other({{{parameter({1})}, {}}, {{parameter({1})}, {}}});
  EXPECT_EQ(error_of<ValueError>([&] { other.load_state_dict(first.state_dict()); }),
            "loaded state dict has a different number of parameter groups");
}

TEST(Optim, AStateOfAnotherKindIsRefused) {
  Tensor p = parameter({1, -2});
  optim::AdamW source({p}, {.lr = .1});
  p.sum().backward();
  source.step();
  auto refused = [](optim::Optimizer&& optimizer, const optim::OptimizerState& state) {
    return error_of<ValueError>([&] { optimizer.load_state_dict(state); });
  };
  EXPECT_EQ(refused(optim::Adam({parameter({1, -2})}), source.state_dict()),
            "loaded state dict is one of AdamW, the optimizer is Adam");
  EXPECT_EQ(refused(optim::SparseAdam({parameter({1, -2})}), source.state_dict()),
            "loaded state dict has an option 'amsgrad', which this optimizer does not have");
  EXPECT_EQ(refused(optim::SGD({parameter({1, -2})}), source.state_dict()),
            "loaded state dict has no option 'momentum'");
  EXPECT_EQ(refused(optim::AdamW({parameter({1, -2, 3})}), source.state_dict()),
            "loaded state dict has a 'exp_avg' of the size [2] for a parameter of the size [3]");

  // What says how PyTorch computes a step, and what older files do not have, is no reason.
  optim::OptimizerState state = source.state_dict();
  state.param_groups[0].options["capturable"] = 0;
  state.param_groups[0].options.erase("decoupled_weight_decay");
  optim::AdamW({parameter({1, -2})}).load_state_dict(state);
  state.param_groups[0].options["speed"] = 2;
  optim::AdamW last({parameter({1, -2})}, {.lr = .5});
  EXPECT_THROW(last.load_state_dict(state), ValueError);
  EXPECT_EQ(last.options().lr, .5);  // nothing was changed before the error
}

TEST(Optim, AStepMayComputeItsGradients) {
  Tensor p = parameter({2});
  optim::SGD optimizer({p}, {.lr = .25});
  Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    Tensor loss = (p * p).sum();
    loss.backward();
    return loss;
  });
  EXPECT_EQ(loss.item().to_double(), 4);
  EXPECT_THAT(values(p), ElementsAre(1));
}

TEST(Optim, StateHasTheNamesOfPyTorch) {
  Tensor p = parameter({1, 2});
  optim::AdamW optimizer({p});
  p.sum().backward();
  optimizer.step();
  EXPECT_EQ(optimizer.state(p).at("step").item().to_double(), 1);
  EXPECT_TRUE(optimizer.state(p).contains("exp_avg"));
  EXPECT_TRUE(optimizer.state(p).contains("exp_avg_sq"));
}

TEST(Optim, ParametersWithoutAGradientStay) {
  Tensor p = parameter({1, 2});
  optim::SGD optimizer({p}, {.lr = 1});
  optimizer.step();
  EXPECT_THAT(values(p), ElementsAre(1, 2));
}

TEST(Optim, BadArgumentsAreRefused) {
  Tensor p = parameter({1});
  EXPECT_EQ(error_of<ValueError>([&] { optim::SGD({}, {}); }), "optimizer got an empty parameter list");
  EXPECT_EQ(error_of<ValueError>([&] { optim::SGD({p}, {.lr = .1, .nesterov = true}); }),
            "Nesterov momentum requires a momentum and zero dampening");
  EXPECT_EQ(error_of<ValueError>([&] {
              optim::AdamW({p}, {.betas = {1.5, .9}});
            }),
            "Invalid beta parameter at index 0: 1.5");
  EXPECT_EQ(error_of<ValueError>([&] { optim::SGD({p * 2}, {}); }), "can't optimize a non-leaf Tensor");
}

}  // namespace
}  // namespace umbra
