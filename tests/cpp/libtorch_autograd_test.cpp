// Gradients as programs of libtorch have them: each namespace is a program of its own, written for <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/torch.h>

namespace basic_program {
TEST(Autograd, Basic) {
  torch::Tensor a = torch::ones({2, 2}, torch::requires_grad());
  torch::Tensor b = torch::randn({2, 2});
  auto c = a + b;
  c.sum().backward();
  EXPECT_TRUE(torch::equal(a.grad(), torch::ones({2, 2})));
}
}  // namespace basic_program

namespace grad_fn_name_program {
TEST(Autograd, GradFnName) {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  EXPECT_EQ(y.grad_fn()->name(), "AddBackward0");
  auto z = y * y * 3;
  EXPECT_EQ(z.mean().grad_fn()->name(), "MeanBackward0");
  auto a = torch::randn({2, 2});
  EXPECT_FALSE(a.requires_grad());
  a.requires_grad_(true);
  EXPECT_TRUE((a * a).sum().requires_grad());
}
}  // namespace grad_fn_name_program

namespace vector_jacobian_program {
TEST(Autograd, VectorJacobian) {
  auto x = torch::randn(3, torch::requires_grad());
  auto y = x * 2;
  while (y.norm().item<double>() < 1000) y = y * 2;
  auto v = torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat);
  y.backward(v);
  EXPECT_TRUE(x.grad().defined());
}
}  // namespace vector_jacobian_program

namespace no_grad_program {
TEST(Autograd, NoGrad) {
  auto x = torch::ones({2}, torch::requires_grad());
  {
    torch::NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  {
    torch::AutoGradMode on(false);
    EXPECT_FALSE(torch::GradMode::is_enabled());
    torch::AutoGradMode again(true);
    EXPECT_TRUE((x * 2).requires_grad());
  }
  c10::InferenceMode guard;
  EXPECT_TRUE((x * 2).is_inference());
}
}  // namespace no_grad_program

namespace detach_program {
TEST(Autograd, Detach) {
  auto x = torch::ones({2}, torch::requires_grad());
  auto y = x.detach();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(x.eq(y).all().item<bool>());
}
}  // namespace detach_program

namespace grad_penalty_program {
TEST(Autograd, GradPenalty) {
  auto model = torch::nn::Linear(4, 3);
  auto input = torch::randn({3, 4}).requires_grad_(true);
  auto output = model(input);
  auto target = torch::randn({3, 3});
  auto loss = torch::nn::MSELoss()(output, target);
  auto grad_output = torch::ones_like(output);
  auto gradient = torch::autograd::grad({output}, {input}, /*grad_outputs=*/{grad_output}, /*retain_graph=*/true,
                                        /*create_graph=*/true)[0];
  auto gradient_penalty = torch::pow((gradient.norm(2, /*dim=*/1) - 1), 2).mean();
  auto combined_loss = loss + gradient_penalty;
  combined_loss.backward();
  EXPECT_TRUE(input.grad().defined());
}
}  // namespace grad_penalty_program

namespace custom_function_program {
using namespace torch::autograd;
class LinearFunction : public Function<LinearFunction> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0];
    auto weight = saved[1];
    auto bias = saved[2];
    auto grad_output = grad_outputs[0];
    auto grad_input = grad_output.mm(weight);
    auto grad_weight = grad_output.t().mm(input);
    auto grad_bias = torch::Tensor();
    if (bias.defined()) grad_bias = grad_output.sum(0);
    return {grad_input, grad_weight, grad_bias};
  }
};
TEST(Autograd, CustomFunction) {
  auto x = torch::randn({2, 3}).requires_grad_();
  auto weight = torch::randn({4, 3}).requires_grad_();
  auto y = LinearFunction::apply(x, weight);
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), weight.sum(0).expand({2, 3})));
  EXPECT_TRUE(weight.grad().defined());
}
}  // namespace custom_function_program

namespace custom_function_constant_program {
using namespace torch::autograd;
class MulConstant : public Function<MulConstant> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), torch::Tensor()};
  }
};
TEST(Autograd, CustomFunctionConstant) {
  auto x = torch::randn({2}).requires_grad_();
  auto y = MulConstant::apply(x, 5.5);
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), torch::full({2}, 5.5)));
}
}  // namespace custom_function_constant_program

namespace custom_function_two_outputs_program {
struct Sorted : torch::autograd::Function<Sorted> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const torch::autograd::Variable& x) {
    auto [values, indices] = x.sort();
    ctx->mark_non_differentiable({indices});
    ctx->save_for_backward({indices});
    return {values, indices};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list g) {
    return {torch::zeros_like(g[0]).scatter(0, ctx->get_saved_variables()[0], g[0])};
  }
};
TEST(Autograd, CustomFunctionTwoOutputs) {
  auto x = torch::tensor({3.0, 1.0, 2.0}, torch::requires_grad());
  auto out = Sorted::apply(x);
  (out[0] * torch::tensor({1.0, 2.0, 3.0})).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({3.0, 1.0, 2.0})));
  EXPECT_FALSE(out[1].requires_grad());
}
}  // namespace custom_function_two_outputs_program

namespace hooks_program {
TEST(Autograd, Hooks) {
  auto v = torch::tensor({0.0, 0.0, 0.0}, torch::requires_grad());
  auto h = v.register_hook([](torch::Tensor grad) { return grad * 2; });
  v.backward(torch::tensor({1.0, 2.0, 3.0}));
  EXPECT_TRUE(torch::equal(v.grad(), torch::tensor({2.0, 4.0, 6.0})));
  v.remove_hook(h);
  v.grad().zero_();
  v.backward(torch::tensor({1.0, 2.0, 3.0}));
  EXPECT_TRUE(torch::equal(v.grad(), torch::tensor({1.0, 2.0, 3.0})));
}
}  // namespace hooks_program

namespace mutable_grad_program {
TEST(Autograd, MutableGrad) {
  auto w = torch::ones({2}, torch::requires_grad());
  (w * w).sum().backward();
  w.mutable_grad() = torch::zeros({2});
  EXPECT_EQ(w.grad().sum().item<float>(), 0);
  w.mutable_grad().reset();
  EXPECT_FALSE(w.grad().defined());
  w.set_data(torch::full({2}, 3.0));
  EXPECT_EQ(w.sum().item<float>(), 6);
}
}  // namespace mutable_grad_program

namespace backward_many_program {
TEST(Autograd, BackwardMany) {
  auto x = torch::ones({2}, torch::requires_grad());
  auto y = x * 2, z = x * 3;
  torch::autograd::backward({y.sum(), z.sum()}, {});
  EXPECT_TRUE(torch::equal(x.grad(), torch::full({2}, 5.0)));
  auto loss = (x * x).sum();
  loss.backward({}, /*keep_graph=*/true);
  loss.backward({}, c10::nullopt, false);
  y.retain_grad();
  EXPECT_TRUE(y.retains_grad());
  EXPECT_FALSE(y.is_leaf());
}
}  // namespace backward_many_program

namespace manual_sgd_program {
TEST(Autograd, ManualSgd) {
  torch::manual_seed(0);
  auto w = torch::randn({3, 1}, torch::requires_grad());
  auto x = torch::randn({64, 3});
  auto y = x.mm(torch::tensor({{1.0f}, {-2.0f}, {0.5f}}));
  for (int i = 0; i < 200; ++i) {
    auto loss = (x.mm(w) - y).pow(2).mean();
    loss.backward();
    torch::NoGradGuard guard;
    w -= 0.1 * w.grad();
    w.grad().zero_();
  }
  EXPECT_NEAR(w[1][0].item<float>(), -2, 1e-2);
}
}  // namespace manual_sgd_program

namespace second_derivative_program {
TEST(Autograd, SecondDerivativeInLibtorchsForm) {
  auto x = torch::ones({2}, torch::requires_grad());
  auto once = torch::autograd::grad({(x * x * x).sum()}, {x}, /*grad_outputs=*/{}, /*retain_graph=*/c10::nullopt,
                                    /*create_graph=*/true)[0];
  auto twice = torch::autograd::grad({once.sum()}, {x})[0];
  EXPECT_EQ(twice.sum().item<float>(), 12);
}
}  // namespace second_derivative_program
