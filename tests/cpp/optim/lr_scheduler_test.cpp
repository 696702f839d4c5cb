// Schedulers: the rates of each epoch are PyTorch 2.15's.
#include "autograd/testing.h"

namespace umbra {
namespace {

template <class Make> std::vector<double> rates(int epochs, const Make& make) {
  Tensor p = parameter({1});
  optim::SGD optimizer({p}, {.lr = .1});
  auto scheduler = make(optimizer);
  std::vector<double> out = {optimizer.lr(0)};
  for (int i = 0; i < epochs; ++i) {
    scheduler.step();
    out.push_back(optimizer.lr(0));
  }
  return out;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]) << "epoch " << i;
}

TEST(Scheduler, Steps) {
  expect_near(rates(6, [](optim::Optimizer& o) { return optim::StepLR(o, {.step_size = 3}); }),
              {.1, .1, .1, .01, .01, .01, .001});
  expect_near(rates(6,
                    [](optim::Optimizer& o) {
                      return optim::MultiStepLR(o, {2, 5}, .5);
                    }),
              {.1, .1, .05, .05, .05, .025, .025});
}

TEST(Scheduler, Curves) {
  expect_near(rates(3, [](optim::Optimizer& o) { return optim::ExponentialLR(o, .9); }), {.1, .09, .081, .0729});
  expect_near(rates(6, [](optim::Optimizer& o) { return optim::LinearLR(o, {.total_iters = 4}); }),
              {.0333333, .05, .0666667, .0833333, .1, .1, .1});
  expect_near(rates(10, [](optim::Optimizer& o) { return optim::CosineAnnealingLR(o, {.T_max = 4, .eta_min = .01}); }),
              {.1, .0868198, .055, .0231802, .01, .0231802, .055, .0868198, .1, .0868198, .055});
  expect_near(rates(3,
                    [](optim::Optimizer& o) {
                      return optim::LambdaLR(o, [](int64_t epoch) { return 1 / static_cast<double>(epoch + 1); });
                    }),
              {.1, .05, .0333333, .025});
}

TEST(Scheduler, RatesFallWhenNothingBecomesBetter) {
  Tensor p = parameter({1});
  optim::SGD optimizer({p}, {.lr = .1});
  optim::ReduceLROnPlateau scheduler(optimizer, {.factor = .5, .patience = 1, .cooldown = 1});
  std::vector<double> seen;
  for (double loss : {1., .9, .9, .95, .9, .9, .9, .9}) {
    scheduler.step(loss);
    seen.push_back(optimizer.lr(0));
  }
  EXPECT_THAT(seen, ElementsAre(.1, .1, .1, .05, .05, .05, .025, .025));
}

TEST(Scheduler, AnotherOneGoesOnFromTheState) {
  Tensor p = parameter({1});
  optim::SGD optimizer({p}, {.lr = .1});
  optim::StepLR first(optimizer, {.step_size = 2});
  first.step();
  optim::StepLR second(optimizer, {.step_size = 2});
  second.load_state_dict(first.state_dict());
  second.step();
  EXPECT_EQ(second.last_epoch(), 2);
  EXPECT_NEAR(second.get_last_lr()[0], .01, 1e-12);
}

}  // namespace
}  // namespace umbra
