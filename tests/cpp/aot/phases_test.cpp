// Each phase of ahead-of-time autograd by itself.
#include "autograd/testing.h"

namespace umbra {
namespace {

using aot::OutputInfo;

ValueFunction of(std::function<std::vector<Value>(const std::vector<Value>&)> f) { return f; }

TEST(AotAnalysis, FindsInputsThatAreWrittenAndTensorsClosedOver) {
  Tensor weight = parameter({1, 2});
  Tensor x = vector_of({3, 4});
  aot::CallInfo info = aot::analyse(of([&](const std::vector<Value>& in) -> std::vector<Value> {
                                      in[0].tensor().mul_(2);
                                      return {Value(in[0].tensor() * weight)};
                                    }),
                                    {x});
  EXPECT_EQ(info.input_count(), 1u);
  ASSERT_EQ(info.primals.size(), 2u);
  EXPECT_TRUE(info.primals[0].written);
  EXPECT_TRUE(info.primals[1].requires_grad);
  EXPECT_THAT(values(x), ElementsAre(3, 4));  // it ran on fake tensors
  EXPECT_EQ(to_string(info),
            "primal 0 (input), written\nprimal 1 (closed over), requires grad\noutput 0: fresh, requires grad\n");
}

TEST(AotAnalysis, TellsWhatOutputsAreToInputs) {
  Tensor x = vector_of({1, 2, 3, 4});
  aot::CallInfo info = aot::analyse(of([](const std::vector<Value>& in) -> std::vector<Value> {
                                      Tensor t = in[0].tensor();
                                      return {Value(t), Value(t.view({2, 2})), Value(t + 1), Value(int64_t{7})};
                                    }),
                                    {x});
  EXPECT_EQ(info.outputs[0].kind, OutputInfo::Kind::Input);
  EXPECT_EQ(info.outputs[1].kind, OutputInfo::Kind::InputView);
  EXPECT_EQ(info.outputs[2].kind, OutputInfo::Kind::Fresh);
  EXPECT_EQ(info.outputs[3].kind, OutputInfo::Kind::Plain);
}

TEST(AotJoint, HoldsForwardAndGradientWithoutMutation) {
  Tensor x = parameter({1, 2});
  ValueFunction f =
      of([](const std::vector<Value>& in) -> std::vector<Value> { return {Value(in[0].tensor().sin().mul_(3))}; });
  aot::JointGraph joint = aot::trace_joint(f, aot::analyse(f, {x}));
  EXPECT_EQ(joint.primals, 1u);
  EXPECT_EQ(joint.tangents, 1u);
  for (fx::Node* node : joint.module->graph().nodes())
    EXPECT_FALSE(node->target().op() && node->target().op()->is_mutable()) << node->name();
  std::vector<Value> results = joint.module->run({Value(x.detach()), Value(vector_of({1, 1}))});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_NEAR(values(results[0].tensor())[0], 3 * std::sin(1), 1e-12);
  EXPECT_NEAR(values(results[1].tensor())[0], 3 * std::cos(1), 1e-12);
}

TEST(AotPartition, BothCutsComputeTheSameGradient) {
  Tensor x = parameter({1, 2});
  ValueFunction f =
      of([](const std::vector<Value>& in) -> std::vector<Value> { return {Value(in[0].tensor().sin().cos().exp())}; });
  aot::JointGraph joint = aot::trace_joint(f, aot::analyse(f, {x}));
  std::vector<std::vector<double>> gradients;
  int64_t bytes[2];
  for (bool min_cut : {false, true}) {
    aot::Partition p = min_cut ? aot::min_cut_partition(joint) : aot::default_partition(joint);
    bytes[min_cut] = p.saved_bytes;
    std::vector<Value> forward = p.forward->run({Value(x.detach())});
    std::vector<Value> inputs(forward.begin() + static_cast<ptrdiff_t>(p.forward_outputs), forward.end());
    inputs.push_back(Value(vector_of({1, 1})));
    gradients.push_back(values(p.backward->run(inputs).at(0).tensor()));
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(bytes[1], 16);  // x alone: everything else can be computed again
  EXPECT_GT(bytes[0], bytes[1]);
}

TEST(AotCompile, WritesToInputsReachTheCaller) {
  auto f = aot::compile([](const Tensor& a) {
    a.add_(1);
    return a * 2;
  });
  Tensor x = vector_of({1, 2});
  EXPECT_THAT(values(f(x)), ElementsAre(4, 6));
  EXPECT_THAT(values(x), ElementsAre(2, 3));
}

TEST(AotCompile, OutputsThatAliasInputsStillDo) {
  auto f = aot::compile([](const Tensor& a) { return a.view({2, 2}); });
  Tensor x = vector_of({1, 2, 3, 4});
  Tensor y = f(x);
  y.fill_(0);
  EXPECT_THAT(values(x), ElementsAre(0, 0, 0, 0));
}

TEST(AotCompile, OtherShapesAreCapturedAnew) {
  int captures = 0;
  auto f = aot::compile([&](const Tensor& a) {
    ++captures;
    return a.sum();
  });
  f(vector_of({1, 2}));
  int once = captures;
  f(vector_of({3, 4}));
  EXPECT_EQ(captures, once);
  EXPECT_THAT(values(f(vector_of({1, 2, 3}))), ElementsAre(6));
  EXPECT_GT(captures, once);
}

TEST(AotCompile, AnExceptionLeavesTheThreadAsItWas) {
  auto f = aot::compile([](const Tensor& a) -> Tensor { throw ValueError("stop"); });
  EXPECT_EQ(error_of<ValueError>([&] { f(vector_of({1})); }), "stop");
  EXPECT_TRUE(mode_stack().empty());
  EXPECT_TRUE(is_grad_enabled());
}

}  // namespace
}  // namespace umbra
