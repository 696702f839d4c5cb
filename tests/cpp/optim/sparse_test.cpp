// Optimisers with sparse gradients: only the elements that a gradient has are changed. Numbers are PyTorch's.
#include <gtest/gtest.h>
#include <umbra/umbra.h>

namespace umbra {
namespace {

Tensor table() { return tensor({{0.0, 1.0, 0.0}, {2.0, 0.0, 3.0}}).requires_grad_(); }

/// Two elements, one of them in two parts.
Tensor gradient() { return sparse_coo_tensor(tensor({{1, 0, 1}, {2, 1, 2}}), tensor({1.0, 2.0, 5.0}), {2, 3}); }

void expect_close(const Tensor& a, const Tensor& b) {
  EXPECT_TRUE(allclose(a.detach().to(DType::Float64), b.to(DType::Float64), 1e-5, 1e-6)) << to_string(a);
}

TEST(SparseGradients, AnEmbeddingHasOne) {
  Tensor weight = zeros({4, 2}).requires_grad_();
  embedding(weight, tensor({1, 2, 1}), -1, false, true).sum().backward();
  EXPECT_EQ(weight.grad().layout(), Layout::SparseCoo);
  expect_close(weight.grad().to_dense(), tensor({{0.0, 0.0}, {2.0, 2.0}, {1.0, 1.0}, {0.0, 0.0}}));
}

TEST(SparseGradients, SgdTakesThem) {
  Tensor p = table();
  p.set_grad(gradient().to(p.dtype()));
  optim::SGD({p}, {.lr = 0.1}).step();
  expect_close(p, tensor({{0.0, 0.8, 0.0}, {2.0, 0.0, 2.4}}));
}

TEST(SparseGradients, AdagradTakesThem) {
  Tensor p = table();
  p.set_grad(gradient().to(p.dtype()));
  optim::Adagrad optimizer({p}, {.lr = 0.1});
  optimizer.step();
  optimizer.step();
  expect_close(p, tensor({{0.0, 0.8292893171310425, 0.0}, {2.0, 0.0, 2.829289436340332}}));
  expect_close(optimizer.state(p)["sum"], tensor({{0.0, 8.0, 0.0}, {0.0, 0.0, 72.0}}));
}

TEST(SparseGradients, SparseAdamMovesWhatIsThere) {
  Tensor p = table();
  p.set_grad(gradient().to(p.dtype()));
  optim::SparseAdam optimizer({p}, {.lr = 0.1});
  optimizer.step();
  optimizer.step();
  expect_close(p, tensor({{0.0, 0.8000000715255737, 0.0}, {2.0, 0.0, 2.8000001907348633}}));
  expect_close(optimizer.state(p)["exp_avg"], tensor({{0.0, 0.3799999952316284, 0.0}, {0.0, 0.0, 1.1400001049041748}}));
  p.set_grad(zeros_like(p));
  EXPECT_THROW(optimizer.step(), Error);
}

TEST(SparseGradients, OthersRefuseThem) {
  Tensor p = table();
  p.set_grad(gradient().to(p.dtype()));
  optim::Adam adam({p});
  EXPECT_THROW(adam.step(), Error);
  optim::RMSprop rmsprop({p});
  EXPECT_THROW(rmsprop.step(), Error);
}

}  // namespace
}  // namespace umbra
