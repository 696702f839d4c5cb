// Hooks on tensors, nodes and what is saved; retained gradients.
#include "autograd/testing.h"

namespace umbra {
namespace {

using autograd::grad_fn;
using autograd::Gradients;
using autograd::register_hook;

TEST(Hooks, OnATensorSeeAndReplaceItsGradient) {
  Tensor x = parameter({1, 2});
  Tensor y = x.mul(3);
  std::vector<double> seen;
  register_hook(y, [&](const Tensor& g) {
    seen = values(g);
    return g.mul(10);
  });
  y.sum().backward();
  EXPECT_THAT(seen, ElementsAre(1, 1));
  EXPECT_THAT(values(x.grad()), ElementsAre(30, 30));
}

TEST(Hooks, OnALeafRunBeforeItsGradientIsAdded) {
  Tensor x = parameter({1});
  auto handle = register_hook(x, [](const Tensor& g) { return g.mul(2); });
  x.mul(3).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(6));
  EXPECT_THAT(values(autograd::grad({x.mul(3)}, {x})[0]), ElementsAre(6));
  handle.remove();
  EXPECT_THAT(values(autograd::grad({x.mul(3)}, {x})[0]), ElementsAre(3));
}

TEST(Hooks, NeedATensorThatRequiresGradients) {
  EXPECT_EQ(error_of([] { register_hook(vector_of({1}), [](const Tensor& g) { return g; }); }),
            "cannot register a hook on a tensor that doesn't require gradient");
}

TEST(Hooks, StayWithTheHistoryTheyWerePutOn) {
  Tensor x = parameter({1});
  Tensor y = x.mul(2);
  std::vector<double> seen;
  auto handle = register_hook(y, [&](const Tensor& g) {
    seen = values(g);
    return Tensor();
  });
  y.mul_(5);
  y.sum().backward();
  EXPECT_THAT(seen, ElementsAre(5));  // of y before the change
  handle.remove();
}

TEST(Hooks, AfterAccumulationSeeTheSum) {
  Tensor x = parameter({1});
  std::vector<double> seen;
  autograd::register_post_accumulate_grad_hook(x, [&](const Tensor& leaf) {
    seen = values(leaf.grad());
    leaf.set_grad({});
  });
  x.mul(x).add(x).sum().backward();
  EXPECT_THAT(seen, ElementsAre(3));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(error_of([&] { autograd::register_post_accumulate_grad_hook(x.mul(2), [](const Tensor&) {}); }),
            "post accumulate grad hooks cannot be registered on non-leaf tensors");
}

TEST(Hooks, OnNodesRunBeforeAndAfter) {
  Tensor x = parameter({1, 2});
  Tensor y = x.mul(3);
  std::vector<std::string> order;
  grad_fn(y)->add_pre_hook([&](const Gradients& in) {
    order.push_back("pre");
    return Gradients{in[0].mul(2)};
  });
  grad_fn(y)->add_post_hook([&](const Gradients& given, const Gradients& in) {
    order.push_back("post");
    EXPECT_THAT(values(in[0]), ElementsAre(2, 2));
    EXPECT_THAT(values(given[0]), ElementsAre(6, 6));
    return Gradients{given[0].mul(10)};
  });
  y.sum().backward();
  EXPECT_THAT(order, ElementsAre("pre", "post"));
  EXPECT_THAT(values(x.grad()), ElementsAre(60, 60));
}

TEST(RetainGrad, KeepsTheGradientOfAnIntermediateTensor) {
  Tensor x = parameter({1});
  Tensor y = x.mul(2);
  y.retain_grad();
  EXPECT_TRUE(autograd::retains_grad(y));
  y.mul(y).sum().backward();
  EXPECT_THAT(values(y.grad()), ElementsAre(4));
  EXPECT_EQ(error_of([] { vector_of({1}).retain_grad(); }), "can't retain_grad on Tensor that has requires_grad=False");
}

TEST(RetainGrad, FollowsAnInPlaceChange) {
  Tensor x = parameter({1});
  Tensor y = x.mul(2);
  y.retain_grad();
  y.mul_(3);
  y.mul(5).sum().backward();
  EXPECT_THAT(values(y.grad()), ElementsAre(5));
}

TEST(SavedTensorHooks, KeepWhatIsSavedElsewhere) {
  Tensor x = parameter({1, 2});
  std::vector<Tensor> elsewhere;
  Tensor y;
  {
    autograd::WithSavedTensorHooks scope({[&](const Tensor& t) {
                                            EXPECT_TRUE(t.is_same(x));
                                            elsewhere.push_back(t.clone());
                                            return Value(static_cast<int64_t>(elsewhere.size() - 1));
                                          },
                                          [&](const Value& v) { return elsewhere.at(v.to_int()); }});
    y = x.mul(x);
  }
  EXPECT_EQ(elsewhere.size(), 2u);
  elsewhere[0].mul_(10);
  y.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(11, 22));
}

TEST(SavedTensorHooks, LeaveDoubleBackwardIntact) {
  Tensor x = parameter({3});
  autograd::WithSavedTensorHooks scope(
      {[](const Tensor& t) { return Value(t); }, [](const Value& v) { return v.tensor(); }});
  Tensor first = autograd::grad({x.mul(x).mul(x)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(values(autograd::grad({first}, {x})[0]), ElementsAre(18));
}

TEST(SavedTensorHooks, CanBeForbidden) {
  autograd::disable_saved_tensor_hooks("not here");
  EXPECT_EQ(error_of([] { autograd::push_saved_tensor_hooks({}); }), "not here");
  autograd::disable_saved_tensor_hooks(std::nullopt);
}

}  // namespace
}  // namespace umbra
