// Optimisers as programs of libtorch have them: each namespace is a program of its own, written for <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/torch.h>

#include <filesystem>

// Programs write files beside themselves; these do so where files may go.
static const bool g_in_temporary_folder = (std::filesystem::current_path(std::filesystem::temp_directory_path()), true);

namespace lbfgs_closure_program {
TEST(Optim, LbfgsClosure) {
  torch::manual_seed(0);
  auto model = torch::nn::Linear(2, 1);
  auto x = torch::randn({32, 2}), y = x.mm(torch::tensor({{2.0f}, {-1.0f}})) + 0.5;
  torch::optim::LBFGS optimizer(
      model->parameters(), torch::optim::LBFGSOptions(1).max_iter(20).history_size(10).line_search_fn("strong_wolfe"));
  auto closure = [&]() {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(model(x), y);
    loss.backward();
    return loss;
  };
  torch::Tensor loss;
  for (int i = 0; i < 5; ++i) loss = optimizer.step(closure);
  EXPECT_LT(torch::mse_loss(model(x), y).item<float>(), 1e-6);
}
}  // namespace lbfgs_closure_program

namespace options_program {
TEST(Optim, Options) {
  auto p = std::vector<torch::Tensor>{torch::ones({2}, torch::requires_grad())};
  torch::optim::SGD sgd(p, torch::optim::SGDOptions(0.1).momentum(0.9).dampening(0).weight_decay(1e-4).nesterov(true));
  torch::optim::Adam adam(p, torch::optim::AdamOptions(1e-3).weight_decay(1e-6).eps(1e-7).amsgrad(true));
  torch::optim::AdamW adamw(p, torch::optim::AdamWOptions(1e-3).betas({0.9, 0.99}));
  torch::optim::RMSprop rms(p, torch::optim::RMSpropOptions(0.01).alpha(0.9).centered(true).momentum(0.5));
  torch::optim::Adagrad ada(p, torch::optim::AdagradOptions(0.1).lr_decay(0.01));
  for (torch::optim::Optimizer* o : std::initializer_list<torch::optim::Optimizer*>{&sgd, &adam, &adamw, &rms, &ada}) {
    o->zero_grad();
    (p[0] * p[0]).sum().backward();
    o->step();
  }
  EXPECT_LT(p[0].sum().item<float>(), 2);
}
}  // namespace options_program

namespace change_rate_program {
TEST(Optim, ChangeRate) {
  auto p = torch::ones({2}, torch::requires_grad());
  torch::optim::Adam optimizer({p}, torch::optim::AdamOptions(1e-3));
  for (auto& group : optimizer.param_groups()) {
    if (group.has_options()) {
      auto& options = static_cast<torch::optim::AdamOptions&>(group.options());
      options.lr(options.lr() * 0.1);
    }
  }
  EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 1e-4, 1e-12);
  optimizer.param_groups()[0].options().set_lr(0.5);
  EXPECT_EQ(static_cast<torch::optim::AdamOptions&>(optimizer.defaults()).lr(), 1e-3);
}
}  // namespace change_rate_program

namespace groups_program {
TEST(Optim, Groups) {
  torch::nn::Linear a(2, 2), b(2, 2);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.push_back(torch::optim::OptimizerParamGroup(a->parameters()));
  groups.push_back(
      torch::optim::OptimizerParamGroup(b->parameters(), std::make_unique<torch::optim::SGDOptions>(0.01)));
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(0.1));
  EXPECT_EQ(optimizer.param_groups().size(), 2u);
  EXPECT_EQ(optimizer.param_groups()[0].params().size(), 2u);
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0.01);
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.1);
}
}  // namespace groups_program

namespace step_l_r_program {
TEST(Optim, StepLR) {
  auto p = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD optimizer({p}, torch::optim::SGDOptions(1.0));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/2, /*gamma=*/0.1);
  for (int i = 0; i < 4; ++i) {
    optimizer.step();
    scheduler.step();
  }
  EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 0.01, 1e-9);
}
}  // namespace step_l_r_program

namespace reduce_on_plateau_program {
TEST(Optim, ReduceOnPlateau) {
  auto p = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD optimizer({p}, 1.0);
  torch::optim::ReduceLROnPlateauScheduler scheduler(optimizer, torch::optim::ReduceLROnPlateauScheduler::min, 0.5, 1);
  for (int i = 0; i < 4; ++i) scheduler.step(1.0);
  EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 0.5, 1e-9);
}
}  // namespace reduce_on_plateau_program

namespace save_load_program {
TEST(Optim, SaveLoad) {
  auto p = torch::ones({2}, torch::requires_grad());
  torch::optim::Adam optimizer({p}, torch::optim::AdamOptions(0.1));
  (p * p).sum().backward();
  optimizer.step();
  torch::save(optimizer, "adam.pt");
  auto q = p.detach().clone().requires_grad_();
  torch::optim::Adam other({q}, torch::optim::AdamOptions(0.3));
  torch::load(other, "adam.pt");
  q.mutable_grad() = p.grad().clone();
  optimizer.step();
  other.step();
  EXPECT_TRUE(torch::equal(p, q));
  torch::optim::AdamW wrong({q}, torch::optim::AdamWOptions(0.3));
  EXPECT_THROW(torch::load(wrong, "adam.pt"), c10::Error);
}
}  // namespace save_load_program

namespace size_and_add_program {
TEST(Optim, SizeAndAdd) {
  auto p = torch::ones({2}, torch::requires_grad()), q = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD optimizer({p}, torch::optim::SGDOptions(0.1));
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({q}));
  EXPECT_EQ(optimizer.size(), 2u);
  (p + q).sum().backward();
  optimizer.step();
  EXPECT_NEAR(q.sum().item<float>(), 1.8, 1e-6);
}
}  // namespace size_and_add_program
