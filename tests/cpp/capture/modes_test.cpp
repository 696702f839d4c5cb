// Modes that users write, and where they stand among the layers that capture.
#include <gtest/gtest.h>

#include "umbra/umbra.h"

namespace umbra {
namespace {

/// Multiplies where the program adds.
struct Swap : DispatchMode {
  bool handle(const Operator& op, Value* frame) override {
    static const Operator& add = get_operator("aten::add.Tensor");
    if (&op == &add) frame[0] = Value(mul(frame[0].tensor(), frame[1].tensor()));
    else op.call(frame);
    return true;
  }
};

/// Notes what it sees.
struct Log : DispatchMode {
  std::vector<std::string> seen;
  bool handle(const Operator& op, Value* frame) override {
    seen.push_back(op.name());
    op.call(frame);
    return true;
  }
};

Tensor add_under_swap(const Tensor& x, const Tensor& y) {
  EnterMode scope(make_counted<Swap>());
  return x.add(y);
}

TEST(Modes, TheInnermostSeesACallFirstAndWhatItCallsIsSeenByTheOthers) {
  auto log = make_counted<Log>();
  Tensor x = tensor({3.}), y = tensor({5.}), result;
  {
    EnterMode outer(log);
    result = add_under_swap(x, y);
  }
  EXPECT_EQ(result.item().to_double(), 15);
  EXPECT_EQ(log->seen, std::vector<std::string>{"aten::mul.Tensor"});
}

TEST(Modes, WhatAModeDoesInsteadIsWhatIsRecorded) {
  for (TracingMode mode : {TracingMode::Real, TracingMode::Fake, TracingMode::Symbolic}) {
    auto graph = make_fx(add_under_swap, {tensor({3.}), tensor({5.})}, {.mode = mode});
    EXPECT_EQ(graph->run({tensor({2.}), tensor({10.})})[0].tensor().item().to_double(), 20);
  }
}

TEST(Modes, AModeAroundACaptureIsPartOfIt) {
  EnterMode scope(make_counted<Swap>());
  auto graph = make_fx([](const Tensor& x, const Tensor& y) { return x.add(y); }, {tensor({3.}), tensor({5.})});
  EXPECT_NE(graph->code().find("aten.mul"), std::string::npos);
  EXPECT_EQ(graph->code().find("aten.add"), std::string::npos);
}

TEST(Modes, WhatAModeDoesInsteadIsCompiledAheadOfTime) {
  auto compiled = aot::compile([](const Tensor& x, const Tensor& y) { return add_under_swap(x, y); });
  EXPECT_EQ(compiled(tensor({3.}), tensor({5.})).item().to_double(), 15);
}

}  // namespace
}  // namespace umbra
