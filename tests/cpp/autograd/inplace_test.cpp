// In-place operators, views and versions.
#include <atomic>
#include <thread>

#include "autograd/testing.h"

namespace umbra {
namespace {

using autograd::grad_fn;

TEST(InPlace, ChangesTheHistoryOfATensor) {
  Tensor x = parameter({1, 2});
  Tensor y = x.mul(2);
  y.mul_(x);
  EXPECT_EQ(grad_fn(y)->name(), "MulBackward0");
  y.sum().backward();  // 2x^2
  EXPECT_THAT(values(x.grad()), ElementsAre(4, 8));
}

TEST(InPlace, GivesAPlainTensorAHistory) {
  Tensor x = parameter({1, 2}), buffer = vector_of({5, 5});
  buffer.add_(x);
  EXPECT_FALSE(buffer.is_leaf());
  buffer.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 1));
}

TEST(InPlace, CopyOverwritesWhatWasThere) {
  Tensor x = parameter({1, 2}), y = parameter({3, 4});
  Tensor z = x.mul(2);
  z.copy_(y);
  EXPECT_EQ(grad_fn(z)->name(), "CopyBackwards");
  z.sum().backward();
  EXPECT_THAT(values(y.grad()), ElementsAre(1, 1));
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 0));
}

TEST(InPlace, IsRefusedForLeavesAndTheirViews) {
  Tensor x = parameter({1, 2});
  EXPECT_EQ(error_of([&] { x.add_(1); }), "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(error_of([&] {
              x.view({2, 1}).add_(1);
            }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_THAT(values(x), ElementsAre(1, 2));
  NoGrad guard;
  x.add_(1);
  EXPECT_THAT(values(x), ElementsAre(2, 3));
}

TEST(InPlace, OutArgumentsDoNotSupportGradients) {
  Tensor x = parameter({1, 2}), out = vector_of({0, 0});
  EXPECT_EQ(error_of([&] { add_out(out, x, x); }),
            "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad.");
}

// ---- versions ----

TEST(Versions, AChangeOfASavedTensorIsFoundOut) {
  Tensor x = parameter({1, 2, 3}), q = vector_of({1, 2, 3});
  Tensor y = x.mul(q);
  q.add_(1);
  EXPECT_EQ(error_of([&] { y.sum().backward(); }),
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            "[torch.DoubleTensor [3]] is at "
            "version 1; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed "
            "to compute its "
            "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).");
  Tensor a = x.mul(2), z = a.mul(a);
  a.add_(1);
  EXPECT_THAT(error_of([&] { z.sum().backward(); }),
              HasSubstr("[torch.DoubleTensor [3]], which is output 0 of Add1, is at version 1; expected"));
}

TEST(Versions, AViewSharesTheCountOfItsBase) {
  Tensor x = vector_of({1, 2});
  Tensor v = x.view({2, 1});
  v.add_(1);
  x.add_(1);
  EXPECT_EQ(v.version(), 2u);
  EXPECT_EQ(x.version(), 2u);
  Tensor apart = autograd::data_of(x);
  apart.add_(1);
  EXPECT_EQ(x.version(), 2u);
  EXPECT_THAT(values(x), ElementsAre(4, 5));
}

TEST(Versions, WhatANodeSavedItselfIsCheckedToo) {
  Tensor x = parameter({1, 2});
  Tensor y = x.mul(3), z = y.mul(y);
  z.add_(1);  // z was saved by nobody
  z.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(18, 36));
}

// ---- views ----

TEST(Views, AChangeOfAViewChangesTheHistoryOfItsBase) {
  Tensor w = parameter({10, 20});
  Tensor base = zeros({2, 2}, {.dtype = DType::Float64});
  Tensor row = base.select(0, 1);
  row.add_(w);
  EXPECT_EQ(grad_fn(base)->name(), "CopySlices");
  EXPECT_EQ(grad_fn(row)->name(), "AsStridedBackward0");
  base.mul(vector_of({1, 2})).sum().backward();
  EXPECT_THAT(values(w.grad()), ElementsAre(1, 2));
}

TEST(Views, WhatAViewReplacesNoLongerCounts) {
  Tensor x = parameter({1, 2, 3}), w = parameter({5});
  Tensor base = x.mul(2);
  base.narrow(0, 1, 1).mul_(w);
  base.mul(base).sum().backward();  // (2)^2 + (4*5)^2 + (6)^2
  EXPECT_THAT(values(x.grad()), ElementsAre(8, 2 * 20 * 2 * 5, 24));
  EXPECT_THAT(values(w.grad()), ElementsAre(2 * 20 * 4));
}

TEST(Views, OtherViewsFindTheirHistoryAnew) {
  Tensor x = parameter({1, 2, 3, 4});
  Tensor base = x.mul(1);
  Tensor before = base.view({2, 2}), part = base.narrow(0, 0, 2);
  part.mul_(10);
  EXPECT_EQ(grad_fn(before)->name(), "AsStridedBackward0");
  before.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(10, 10, 1, 1));
}

TEST(Views, AChangeOfTheBaseReachesItsViews) {
  Tensor w = parameter({3, 4});
  Tensor base = vector_of({1, 2});
  Tensor view = base.view({2, 1});
  EXPECT_FALSE(view.requires_grad());
  base.mul_(w);
  EXPECT_TRUE(view.requires_grad());
  view.sum().backward();
  EXPECT_THAT(values(w.grad()), ElementsAre(1, 2));
}

TEST(Views, InPlaceOfInPlaceOfViews) {
  Tensor x = parameter({1, 2, 3, 4});
  Tensor base = x.mul(1);
  for (int i = 0; i < 4; ++i) base.narrow(0, i, 1).mul_(i + 1);
  base.narrow(0, 0, 2).add_(base.narrow(0, 2, 2));
  base.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 2, 6, 8));
}

TEST(Views, GradientsOfGradientsThroughAChangedView) {
  Tensor x = parameter({2, 3});
  Tensor base = x.mul(1);
  base.narrow(0, 0, 1).mul_(x.narrow(0, 0, 1));
  Tensor first = autograd::grad({base.mul(base).sum()}, {x}, {}, {.create_graph = true})[0];  // x0^4 + x1^2
  EXPECT_THAT(values(first), ElementsAre(32, 6));
  EXPECT_THAT(values(autograd::grad({first.sum()}, {x})[0]), ElementsAre(48, 2));
}

TEST(Views, OfComplexNumbersAsPairs) {
  Tensor w = parameter({3});
  Tensor z = full({2}, Scalar(std::complex<double>(1, 2)), {.dtype = DType::Complex128});
  view_as_real(z).select(1, 1).mul_(w);
  view_as_real(z).sum().backward();
  EXPECT_THAT(values(w.grad()), ElementsAre(4));
}

TEST(Views, ThatExpandAddUpTheirGradients) {
  Tensor x = parameter({1, 2});
  as_strided(x.mul(1), {3, 2}, {0, 1}).mul(vector_of({1, 10})).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 30));
}

TEST(Views, OfMultiOutputFunctionsAreNotChangedInPlace) {
  Tensor x = parameter({1, 2});
  std::vector<Tensor> parts = x.mul(1).unbind();
  EXPECT_EQ(error_of([&] { parts[0].add_(1); }),
            "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function that "
            "returns multiple views. "
            "Such functions do not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an "
            "out-of-place one.");
}

TEST(Views, MadeWithoutGradModeAreNotChangedWithIt) {
  Tensor x = parameter({1, 2});
  Tensor base = x.mul(1), view;
  {
    NoGrad guard;
    view = base.view({2, 1});
  }
  EXPECT_TRUE(view.is_leaf());
  EXPECT_THAT(error_of([&] { view.mul_(2); }),
              HasSubstr("A view was created in no_grad mode and is being modified inplace with grad mode enabled."));
  base.mul_(2);
  EXPECT_THAT(error_of([&] { grad_fn(view); }),
              HasSubstr("its base or another view of its base has been modified inplace"));
}

TEST(Views, DetachedOnesShareMemoryButNoHistory) {
  Tensor x = vector_of({1, 2}), w = parameter({3, 4});
  Tensor d = x.detach();
  EXPECT_FALSE(d.is_view());
  d.mul_(w);
  EXPECT_FALSE(x.requires_grad());
  EXPECT_THAT(values(x), ElementsAre(3, 8));
  EXPECT_EQ(x.version(), 1u);
}

TEST(Views, HaveOneHistoryForAllThreadsThatRead) {
  for (int round = 0; round < 500; ++round) {
    Tensor x = parameter({1, 2, 3, 4}), base = x.mul(2);
    Tensor view = base.view({2, 2});
    base.mul_(3);  // the view's history is stale from here on
    std::atomic<int> ready = 0;
    IntrusivePtr<autograd::Node> found[2];
    auto read = [&](int i) {
      ++ready;
      while (ready < 2) {
      }
      EXPECT_TRUE(view.requires_grad());
      found[i] = grad_fn(view);
    };
    std::thread other(read, 0);
    read(1);
    other.join();
    ASSERT_TRUE(found[0] && found[0] == found[1]) << "round " << round;
  }
}

}  // namespace
}  // namespace umbra
