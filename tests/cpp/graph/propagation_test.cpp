// Graphs run on fake tensors: the same interpreter, and every node learns its shape.
#include <gmock/gmock.h>

#include "graph/testing.h"
#include "umbra/fake/fake_mode.h"
#include "umbra/graph/interpreter.h"
#include "umbra/graph/print.h"

namespace umbra::fx {
namespace {

TEST(Propagation, FakeRunsGiveSymbolicShapes) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* rows = graph->call(op("sym_size.int"), {x, 0});
  Node* size = graph->call(function("operator.mul"), {rows, 4});
  Node* view = graph->call(op("view"), {x, Argument::list({size})});
  Node* total = graph->call(op("sum"), {view});
  graph->output(Argument::tuple({view, total}));
  auto module = make_counted<GraphModule>(graph);

  auto env = make_counted<sym::ShapeEnv>();
  FakeMode fake(FakeOptions{.shape_env = env});
  SymInt batch = env->create_symbol(8, "L['x'].size()[0]");
  SymInt sizes[] = {batch, 4};
  Tensor input = fake->make(TensorSpec(SymIntArrayRef(sizes, 2), DType::Float32, Device()));
  graph->keep_alive(env);
  propagate_values(module, {input});

  std::string s = to_string(batch);
  EXPECT_EQ(type_annotation(size->meta.val), "Sym(4*" + s + ")");
  EXPECT_EQ(type_annotation(view->meta.val), "f32[4*" + s + "]");
  EXPECT_EQ(type_annotation(total->meta.val), "f32[]");
  EXPECT_THAT(readable_code(*module), ::testing::HasSubstr("def forward(self, x: \"f32[" + s + ", 4]\"):"));
  EXPECT_THAT(readable_code(*module),
              ::testing::HasSubstr("mul: \"Sym(4*" + s + ")\" = sym_size * 4;  sym_size = None"));

  // The same graph runs on data of another size.
  EXPECT_THAT(values_of(module->run({tensor_of({1, 2, 3, 4}, {1, 4})})[0]), ::testing::ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace umbra::fx
