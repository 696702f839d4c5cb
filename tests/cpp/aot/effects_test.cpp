// Operators with effects: compiled functions make their calls, all of them and in their order.
#include "umbra/capture/effects.h"

#include "autograd/testing.h"
#include "umbra/dispatch/effects.h"
#include "umbra/dispatch/library.h"

namespace umbra {
namespace {

std::vector<double>& noted() {
  static std::vector<double> values;
  return values;
}

/// Notes a number, and gives its tensor back.
Tensor note(const Tensor& x, double number) {
  static const Operator& op = []() -> const Operator& {
    static Library library("effectstest");
    library.define("note(Tensor x, float number) -> Tensor");
    library.implement("note", [](const Tensor& x, double value) {
      noted().push_back(value);
      return x.clone();
    });
    library.fake("note", [](const Tensor& x, double) { return empty_like(x); });
    library.gradient("note", "x", {"grad", "number"},
                     [](const Tensor& grad, double value) { return note(grad, -value); });
    set_effect("effectstest::note", true);
    return get_operator("effectstest::note");
  }();
  return op({Value(x), Value(number)})[0].tensor();
}

Tensor two_notes(const Tensor& x) {
  Tensor first = note(x, 1);
  note(first, 2);  // nobody uses it
  return note(first * 3, 4);
}

TEST(Effects, HappenInTheirOrderForwardAndBackward) {
  noted().clear();
  auto compiled = aot::compile([](const Tensor& x) { return two_notes(x); });
  Tensor x = parameter({1, 2});
  Tensor y = compiled(x);
  EXPECT_THAT(noted(), ElementsAre(1, 2, 4));
  y.sum().backward();
  EXPECT_THAT(noted(), ElementsAre(1, 2, 4, -4, -1));
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 3));
}

TEST(Effects, GraphsTakeAndGiveATokenOrMakeItThemselves) {
  Tensor x = parameter({1, 2});
  for (bool unlift : {false, true}) {
    aot::CompileOptions options;
    options.unlift_tokens = unlift;
    auto compiled = aot::compile([](const Tensor& t) { return two_notes(t); }, options);
    aot::CompiledGraphs graphs = compiled.graphs({x});
    EXPECT_EQ(graphs.joint.tokens, 1u);
    EXPECT_EQ(graphs.joint.backward_tokens, 1u);
    EXPECT_EQ(graphs.partition.forward->graph().placeholders().size(), unlift ? 1u : 2u);
    EXPECT_EQ(graphs.partition.backward->code().find("_make_token") != std::string::npos, unlift);
    noted().clear();
    compiled(x).sum().backward();
    EXPECT_THAT(noted(), ElementsAre(1, 2, 4, -4, -1));
  }
}

TEST(Effects, CallsWithoutTokensStandWhereCallsWithTokensStood) {
  CaptureOptions capture{.mode = TracingMode::Fake};
  auto module = make_fx(ValueFunction([](const std::vector<Value>& in) -> std::vector<Value> {
                          EnterMode functional(make_counted<FunctionalMode>());
                          Tensor token = in[0].tensor(), x = to_functional(in[1].tensor()), y;
                          EffectScope effects([&] { return token; });
                          y = from_functional(two_notes(x));
                          return {Value(effects.token()), Value(y)};
                        }),
                        {Value(make_token()), Value(vector_of({1, 2}))}, capture);
  EXPECT_NE(module->code().find("with_effects"), std::string::npos);
  fx::Graph& graph = module->graph();
  graph.output_node()->set_args({fx::Argument::tuple({graph.outputs()[1]})});
  drop_tokens(graph);
  EXPECT_EQ(module->code().find("with_effects"), std::string::npos);
  noted().clear();
  module->run({Value(make_token()), Value(vector_of({1, 2}))});
  EXPECT_THAT(noted(), ElementsAre(1, 2, 4));
}

}  // namespace
}  // namespace umbra
