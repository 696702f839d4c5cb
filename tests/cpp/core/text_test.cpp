// Tensors that are not there, and tensors as text.
#include <gtest/gtest.h>

#include <sstream>

#include "umbra/umbra.h"

namespace umbra {
namespace {

std::string text(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(UndefinedTensor, MetadataIsAnError) {
  const Tensor undefined;
  EXPECT_THROW(undefined.dim(), Error);
  EXPECT_THROW(undefined.sizes(), Error);
  EXPECT_THROW(undefined.size(0), Error);
  EXPECT_THROW(undefined.strides(), Error);
  EXPECT_THROW(undefined.numel(), Error);
  EXPECT_THROW(undefined.dtype(), Error);
  EXPECT_THROW(undefined.device(), Error);
  EXPECT_THROW(undefined.storage(), Error);
  EXPECT_THROW(undefined.raw_data(), Error);
  EXPECT_THROW(undefined.is_contiguous(), Error);
  EXPECT_THROW(undefined.options(), Error);
}

TEST(UndefinedTensor, AutogradIsAnError) {
  Tensor undefined;
  EXPECT_THROW(undefined.requires_grad(), Error);
  EXPECT_THROW(undefined.requires_grad_(), Error);
  EXPECT_THROW(undefined.is_leaf(), Error);
  EXPECT_THROW(undefined.grad(), Error);
  EXPECT_THROW(undefined.set_grad(ones({2})), Error);
  EXPECT_THROW(undefined.backward(), Error);
  EXPECT_THROW(undefined.retain_grad(), Error);
}

TEST(UndefinedTensor, OperatorsRefuseIt) {
  const Tensor undefined;
  EXPECT_THROW(add(ones({2}), undefined), Error);
  EXPECT_THROW(undefined.relu(), Error);
  EXPECT_THROW(-undefined, Error);
}

TEST(PrintTensor, AsPythonDoes) {
  EXPECT_EQ(text(Tensor()), "tensor(undefined)");
  EXPECT_EQ(text(arange(4).reshape({2, 2})), "tensor([[0, 1],\n        [2, 3]])");
  EXPECT_EQ(text(ones({2}, {.dtype = DType::Float64})), "tensor([1., 1.], dtype=torch.float64)");
  EXPECT_EQ(text(ones({2}, {.requires_grad = true})), "tensor([1., 1.], requires_grad=True)");
  EXPECT_EQ(text(ones({2}, {.requires_grad = true}) * 2), "tensor([2., 2.], grad_fn=<MulBackward0>)");
}

TEST(PrintTensor, Fake) {
  FakeMode mode;
  auto scope = mode.enter();
  EXPECT_EQ(text(ones({2, 3}, {.device = "cuda"})), "FakeTensor(..., device='cuda:0', size=(2, 3))");
}

TEST(PrintOptionsOfTensors, ShowsWhatIsGiven) {
  EXPECT_EQ(text(TensorOptions()), "TensorOptions()");
  EXPECT_EQ(text(TensorOptions{.dtype = DType::Float64, .device = Device("cuda:1"), .requires_grad = true}),
            "TensorOptions(dtype=torch.float64, device=cuda:1, requires_grad=true)");
}

TEST(PrintProgram, AsPythonDoes) {
  auto module = make_fx([](const Tensor& x) { return x.sin(); }, {ones({2})});
  EXPECT_EQ(text(*module), fx::to_string(*module));
}

}  // namespace
}  // namespace umbra
