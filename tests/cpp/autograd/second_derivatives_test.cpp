// Derivatives of derivatives, held against differences: what fused backward operators must not get in the way of.
#include <cmath>

#include "autograd/testing.h"

namespace umbra {
namespace {

using Loss = std::function<Tensor(const std::vector<Tensor>&)>;

/// Numbers without pattern, the same in every run.
Tensor sample(std::initializer_list<int64_t> sizes, double phase) {
  std::vector<int64_t> shape(sizes);
  Tensor t = empty(as_sym(shape), {.dtype = DType::Float64});
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = std::sin(12.9898 * (static_cast<double>(i) + phase));
  return t;
}

/// The gradients of the loss, squared and summed: something whose gradient is made of second derivatives.
Tensor gradient_norm(const Loss& loss, const std::vector<Tensor>& inputs) {
  Tensor sum;
  for (const Tensor& g : autograd::grad({loss(inputs)}, inputs, {}, {.create_graph = true}))
    sum = sum.defined() ? sum.add(g.mul(g).sum()) : g.mul(g).sum();
  return sum;
}

void expect_second_derivatives(const Loss& loss, std::vector<Tensor> inputs) {
  for (Tensor& t : inputs) t.requires_grad_();
  std::vector<Tensor> found = autograd::grad({gradient_norm(loss, inputs)}, inputs);
  constexpr double kStep = 1e-5;
  for (size_t k = 0; k < inputs.size(); ++k) {
    double* element = inputs[k].data<double>();
    std::vector<double> analytic = values(found[k]);
    for (size_t i = 0; i < analytic.size(); i += 3) {
      double before = element[i];
      element[i] = before + kStep;
      double above = values(gradient_norm(loss, inputs))[0];
      element[i] = before - kStep;
      double below = values(gradient_norm(loss, inputs))[0];
      element[i] = before;
      double difference = (above - below) / (2 * kStep);
      EXPECT_NEAR(analytic[i], difference, 1e-5 * (1 + std::fabs(difference))) << "input " << k << ", element " << i;
    }
  }
}

TEST(SecondDerivatives, OfProducts) {
  expect_second_derivatives([](const std::vector<Tensor>& x) { return x[0].mm(x[1]).mul(x[2]).pow(2).sum(); },
                            {sample({2, 3}, 0.1), sample({3, 2}, 0.2), sample({2, 2}, 0.3)});
}

TEST(SecondDerivatives, OfConvolutions) {
  for (bool transposed : {false, true})
    expect_second_derivatives(
        [&](const std::vector<Tensor>& x) {
          return convolution(x[0], x[1], x[2], {2, 1}, {1, 0}, {1, 2}, transposed, {0, 0}, 2).pow(3).sum();
        },
        {sample({2, 4, 5, 6}, 0.1), sample({4, 2, 3, 2}, 0.2), sample({4}, 0.3)});
}

TEST(SecondDerivatives, OfLayerNorm) {
  expect_second_derivatives(
      [](const std::vector<Tensor>& x) { return layer_norm(x[0], {4}, x[1], x[2], 1e-3).pow(3).sum(); },
      {sample({3, 4}, 0.1), sample({4}, 0.2), sample({4}, 0.3)});
}

TEST(SecondDerivatives, OfBatchNorm) {
  for (bool training : {true, false}) {
    Tensor mean = sample({3}, 0.4), var = sample({3}, 0.5).abs().add(0.5);
    expect_second_derivatives(
        [&](const std::vector<Tensor>& x) {
          return batch_norm(x[0], x[1], x[2], mean.clone(), var.clone(), training, 0.1, 1e-3, false).pow(3).sum();
        },
        {sample({4, 3, 2}, 0.1), sample({3}, 0.2), sample({3}, 0.3)});
  }
}

TEST(SecondDerivatives, OfSoftmaxAndActivations) {
  expect_second_derivatives([](const std::vector<Tensor>& x) { return x[0].softmax(1).mul(gelu(x[0])).pow(2).sum(); },
                            {sample({3, 4}, 0.1)});
}

}  // namespace
}  // namespace umbra
