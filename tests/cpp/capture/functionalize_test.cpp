// Functionalisation: writes and views taken out, what the caller sees unchanged.
#include "autograd/testing.h"

namespace umbra {
namespace {

template <class F> ValueFunction functional(F f) { return functionalize(detail::value_function(std::move(f))); }

/// The graph of the function without writes, except for those to inputs at its end.
template <class F> IntrusivePtr<fx::GraphModule> graph_of(F f, const Tensor& x) {
  return make_fx(functional(std::move(f)), {Value(x)});
}

size_t writes_in(const fx::GraphModule& module) {
  size_t count = 0;
  for (fx::Node* node : module.graph().nodes())
    if (const Operator* op = node->target().op()) count += op->is_mutable();
  return count;
}

TEST(Functionalize, AWriteToAFreshTensorIsAValue) {
  auto f = [](const Tensor& x) { return x.mul(2).add_(1).sin_(); };
  auto module = graph_of(f, vector_of({1}));
  EXPECT_EQ(writes_in(*module), 0u);
  EXPECT_EQ(values(module->run({Value(vector_of({3}))}).at(0).tensor()), values(f(vector_of({3}))));
}

TEST(Functionalize, AWriteToAViewReachesTheBaseAndItsOtherViews) {
  auto f = [](const Tensor& x) {
    Tensor base = x.clone().view({2, 2});
    Tensor row = base.select(0, 0), column = base.select(1, 0);
    row.add_(10);
    column.mul_(2);
    return cat({base.flatten(), row, column});
  };
  Tensor x = vector_of({1, 2, 3, 4});
  auto module = graph_of(f, x);
  EXPECT_EQ(writes_in(*module), 0u);
  EXPECT_THAT(values(f(x)), ElementsAre(22, 12, 6, 4, 22, 12, 22, 6));
  EXPECT_EQ(values(module->run({Value(x)}).at(0).tensor()), values(f(x)));
}

TEST(Functionalize, AWrittenInputIsWrittenOnceAtTheEnd) {
  auto f = [](const Tensor& x) {
    x.add_(1);
    x.transpose(0, 1).mul_(3);
    return x.sum();
  };
  Tensor x = ones({2, 2});
  auto module = graph_of(f, ones({2, 2}));
  EXPECT_EQ(writes_in(*module), 1u);
  EXPECT_THAT(values(module->run({Value(x)}).at(0).tensor()), ElementsAre(24));
  EXPECT_THAT(values(x), ElementsAre(6, 6, 6, 6));
}

TEST(Functionalize, ChainsOfViewsAreWrittenThrough) {
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.view({2, 3}).transpose(0, 1).slice(0, 1, 3).unsqueeze(0).fill_(0);
    return y;
  };
  Tensor x = vector_of({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(graph_of(f, x)->run({Value(x)}).at(0).tensor()), values(f(x)));
  EXPECT_THAT(values(f(x)), ElementsAre(1, 0, 0, 4, 0, 0));
}

}  // namespace
}  // namespace umbra
