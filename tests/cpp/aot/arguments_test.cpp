// The tensors behind a call's arguments, and what calls see of writes to them.
#include "autograd/testing.h"

namespace umbra {
namespace {

using aot::ArgumentLayout;
using aot::lay_out_arguments;

TEST(AotArguments, TheSameTensorIsOnePrimal) {
  Tensor x = vector_of({1, 2}), y = vector_of({3, 4});
  ArgumentLayout layout = lay_out_arguments({x, y, x}, {false, false, false});
  EXPECT_EQ(layout.primals(), 2u);
  std::vector<Tensor> primals = aot::primals_of(layout, {x, y, x});
  EXPECT_TRUE(primals[0].is_same(x) && primals[1].is_same(y));
  std::vector<Tensor> arguments = aot::arguments_of(layout, primals);
  EXPECT_TRUE(arguments[0].is_same(x) && arguments[1].is_same(y) && arguments[2].is_same(x));
}

TEST(AotArguments, MergedOnesAreViewsOfTheirBase) {
  Tensor base = vector_of({1, 2, 3, 4}), other = vector_of({5});
  std::vector<Tensor> inputs{base.narrow(0, 1, 2), other, base.view({2, 2})};
  ArgumentLayout layout = lay_out_arguments(inputs, {true, false, true});
  std::vector<Tensor> primals = aot::primals_of(layout, inputs);
  ASSERT_EQ(primals.size(), 2u);
  EXPECT_TRUE(primals[0].is_same(base));
  std::vector<Tensor> arguments = aot::arguments_of(layout, {vector_of({6, 7, 8, 9}), other});
  EXPECT_THAT(values(arguments[0]), ElementsAre(7, 8));
  EXPECT_THAT(values(arguments[2]), ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(arguments[2].dim(), 2);
}

TEST(AotArguments, MemoryWithoutACommonBaseIsOneVector) {
  Tensor base = vector_of({1, 2, 3, 4});
  std::vector<Tensor> inputs{autograd::data_of(base.narrow(0, 1, 2)), autograd::data_of(base)};
  std::vector<Tensor> primals = aot::primals_of(lay_out_arguments(inputs, {true, true}), inputs);
  ASSERT_EQ(primals.size(), 1u);
  EXPECT_THAT(values(primals[0]), ElementsAre(1, 2, 3, 4));
}

TEST(AotAnalysis, TellsWritesThatAutogradSeesFromOthers) {
  auto f = ValueFunction([](const std::vector<Value>& in) -> std::vector<Value> {
    in[0].tensor().add_(in[2].tensor());
    NoGrad no_grad;
    in[1].tensor().mul_(2);
    return {};
  });
  aot::CallInfo info = aot::analyse(f, {vector_of({1, 2}), parameter({3, 4}), parameter({5, 6})});
  EXPECT_EQ(to_string(info),
            "primal 0 (input), written with history\nprimal 1 (input), requires grad, written\nprimal 2 (input), "
            "requires grad\n");
}

TEST(AotAnalysis, OutputsThatAreViewsOfOneThing) {
  auto f = ValueFunction([](const std::vector<Value>& in) -> std::vector<Value> {
    Tensor a = in[0].tensor() * 2, b = in[0].tensor() * 3;
    return {Value(a.view({4})),      Value(a), Value(a), Value(b.view({4})), Value(b.select(0, 0)),
            Value((b * 2).view({4}))};
  });
  aot::CallInfo info = aot::analyse(f, {parameter({1, 2, 3, 4}).view({2, 2})});
  EXPECT_EQ(to_string(info),
            "primal 0 (input), requires grad\n"
            "output 0: view of output 1, requires grad\n"
            "output 1: fresh, requires grad\n"
            "output 2: output 1, requires grad\n"
            "output 3: view of intermediate 0, requires grad\n"
            "output 4: view of intermediate 0, requires grad\n"
            "output 5: fresh, requires grad\n");
  aot::JointGraph joint = aot::trace_joint(f, info);
  EXPECT_EQ(joint.tangents, 3u);  // outputs 1 and 5, and the intermediate
  EXPECT_EQ(joint.forward_outputs(), 7u);
}

TEST(AotCompile, AWriteToAnInputIsPartOfItsHistory) {
  auto f = aot::compile([](const Tensor& a) {
    a.mul_(2);
    return a.sin();
  });
  Tensor x = parameter({1, 2}), y = x * 1, z = f(y);
  EXPECT_THAT(values(y), ElementsAre(2, 4));
  EXPECT_TRUE(y.requires_grad());
  (y * 10 + z).sum().backward();
  EXPECT_NEAR(values(x.grad())[0], 20 + 2 * std::cos(2), 1e-12);
  EXPECT_THAT(error_of([&] { f(x); }), HasSubstr("a leaf Variable that requires grad"));
  EXPECT_THAT(f.graphs({y}).partition.forward->code(), HasSubstr("clone = torch.ops.aten.clone.default(primals_1)"));
}

TEST(AotCompile, TheSameTensorTwiceAndApart) {
  int captures = 0;
  auto f = aot::compile([&](const Tensor& a, const Tensor& b) {
    ++captures;
    a.add_(1);
    return a * b;
  });
  Tensor x = vector_of({1, 2});
  EXPECT_THAT(values(f(x, x)), ElementsAre(4, 9));
  int once = captures;
  EXPECT_THAT(values(f(vector_of({1, 2}), vector_of({1, 2}))), ElementsAre(2, 6));
  EXPECT_GT(captures, once);
  EXPECT_THAT(values(f(x, x)), ElementsAre(9, 16));
}

TEST(AotCompile, AFunctionWithAGradientOfItsOwnMayBeGivenWhatIsClosedOver) {
  struct Scaled : autograd::Function<Scaled> {
    static Tensor forward(autograd::FunctionContext& context, const Tensor& x, const Tensor& weight) {
      context.save_for_backward({x, weight});
      return x * weight;
    }
    static autograd::Gradients backward(autograd::FunctionContext& context, autograd::Gradients grads) {
      std::vector<Tensor> saved = context.saved_tensors();
      return {grads[0] * saved[1], grads[0] * saved[0] * 10};
    }
  };
  Tensor x = vector_of({1, 2}).requires_grad_(true), weight = vector_of({3, 4}).requires_grad_(true);
  aot::compile([&](const Tensor& a) { return Scaled::apply(a, weight).sum(); })(x).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 4));
  EXPECT_THAT(values(weight.grad()), ElementsAre(10, 20));
}

TEST(AotCompile, TensorsClosedOverMayChangeTheirKind) {
  Tensor weight = vector_of({2, 3});
  auto f = aot::compile([&](const Tensor& a) { return a * weight; });
  EXPECT_FALSE(f(vector_of({1, 1})).requires_grad());
  weight.requires_grad_();
  f(vector_of({1, 4})).sum().backward();
  EXPECT_THAT(values(weight.grad()), ElementsAre(1, 4));
}

TEST(AotCompile, AWriteToWhatIsClosedOverAndGivenAsAViewIsRefused) {
  Tensor base = vector_of({1, 2});
  auto f = aot::compile([&](const Tensor& a) {
    base.add_(1);
    return a * 2;
  });
  EXPECT_THAT(error_of<NotImplementedError>([&] { f(base.view({2, 1})); }), HasSubstr("closes over one of them"));
}

TEST(AotCompile, AFunctionOfAListTakesAllInputs) {
  auto f = aot::compile([](const std::vector<Tensor>& inputs) { return inputs[0] * inputs[1]; });
  Tensor x = parameter({1, 2}), y = vector_of({3, 4});
  EXPECT_THAT(values(f({x, y})), ElementsAre(3, 8));
  EXPECT_THAT(values(f(x, y)), ElementsAre(3, 8));
  EXPECT_EQ(f.cache_info().misses, 1u);
  f({x, y}).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 4));
}

TEST(AotCompile, InputsAreLetGoAfterCapture) {
  auto f = aot::compile([](const Tensor& a) { return a * 2; });
  Tensor x = parameter({1, 2});
  f(x);
  EXPECT_EQ(f.graphs({x}).info.primals[0].tensor.defined(), false);
}

}  // namespace
}  // namespace umbra
