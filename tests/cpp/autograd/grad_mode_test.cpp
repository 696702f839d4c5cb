// What is recorded and what is not: modes, leaves, flags.
#include "autograd/testing.h"

namespace umbra {
namespace {

TEST(GradMode, NothingIsRecordedWithoutIt) {
  Tensor x = parameter({1});
  {
    NoGrad guard;
    EXPECT_FALSE(x.mul(2).requires_grad());
    EnableGrad inner;
    EXPECT_TRUE(x.mul(2).requires_grad());
  }
  EXPECT_TRUE(x.mul(2).requires_grad());
}

TEST(GradMode, ComesBackAfterAnError) {
  EXPECT_THROW(
      {
        NoGrad guard;
        fail("inside");
      },
      Error);
  EXPECT_TRUE(is_grad_enabled());
}

TEST(Leaves, AreTensorsWithoutAHistory) {
  Tensor x = parameter({1});
  EXPECT_TRUE(x.is_leaf());
  Tensor y = x.mul(2);
  EXPECT_FALSE(y.is_leaf());
  EXPECT_TRUE(y.detach().is_leaf());
  EXPECT_EQ(error_of([&] { y.requires_grad_(false); }),
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't "
            "require differentiation use var_no_grad = var.detach().");
  x.requires_grad_(false);
  EXPECT_FALSE(x.mul(2).requires_grad());
}

TEST(Leaves, OfIntegersRequireNoGradients) {
  Tensor x = ones({2}, {.dtype = DType::Int64});
  EXPECT_EQ(error_of([&] { x.requires_grad_(); }), "only Tensors of floating point dtype can require gradients");
}

TEST(Leaves, TakeAGradientOfTheirShapeOnly) {
  Tensor x = parameter({1, 2, 3});
  EXPECT_EQ(error_of([&] {
              x.set_grad(vector_of({1, 2, 3, 4}));
            }),
            "attempting to assign a gradient of size '[4]' to a tensor of size '[3]'. Please ensure that the gradient "
            "and the tensor are the "
            "same size");
  x.set_grad(vector_of({1, 1, 1}));
  x.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(2, 2, 2));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Leaves, MayTakeOtherData) {
  Tensor x = parameter({1, 2});
  autograd::set_data(x, vector_of({3, 4, 5}));
  EXPECT_TRUE(x.requires_grad());
  x.mul(x).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(6, 8, 10));
}

// ---- inference mode ----

constexpr const char* kInplaceError =
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing "
    "inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.";

TEST(Inference, TensorsMadeInsideAreNeverTracked) {
  Tensor x = parameter({1, 2}), made;
  {
    InferenceMode guard;
    EXPECT_FALSE(x.mul(2).requires_grad());
    made = vector_of({1, 2}).mul(2);
    made.add_(1);
    EXPECT_TRUE(made.impl()->is_inference());
    EXPECT_FALSE(x.view({2, 1}).impl()->is_inference());
  }
  EXPECT_FALSE(is_inference_mode_enabled());
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_THAT(error_of([&] { x.mul(made); }), HasSubstr("Inference tensors cannot be saved for backward."));
  EXPECT_TRUE(x.add(made).requires_grad());  // add saves nothing
  EXPECT_EQ(error_of([&] { made.add_(1); }), kInplaceError);
  EXPECT_EQ(error_of([&] { made.view({2, 1}).add_(1); }), kInplaceError);
  EXPECT_THAT(values(made), ElementsAre(3, 5));
  EXPECT_EQ(error_of([&] { made.requires_grad_(); }),
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  EXPECT_TRUE(made.clone().mul_(x).requires_grad());
}

TEST(Inference, ViewsOfOrdinaryTensorsMadeInsideAreNotChangedOutside) {
  Tensor x = vector_of({1, 2}), w = parameter({1, 2}), view;
  {
    InferenceMode guard;
    view = x.view({2});
  }
  EXPECT_THAT(error_of([&] { view.add_(w); }),
              HasSubstr("A view was created in inference mode and is being modified inplace in normal mode."));
}

}  // namespace
}  // namespace umbra
