// A user's operator, defined outside the library, goes through every layer: autograd, fake tensors, capture,
// ahead-of-time autograd, export.
#include <gtest/gtest.h>

#include <cstdio>

#include "umbra/umbra.h"

namespace umbra {
namespace {

// y = x * factor + 1, with a kernel of its own.
const Operator& scale_and_shift() {
  static const Operator& op = []() -> const Operator& {
    static Library library("customtest");
    library.define("scale_shift(Tensor x, float factor) -> Tensor");
    library.implement("scale_shift", [](const Tensor& x, double factor) {
      Tensor in = x.contiguous(), out = empty_like(in);
      for (int64_t i = 0; i < in.numel(); ++i)
        out.data<float>()[i] = in.data<float>()[i] * static_cast<float>(factor) + 1;
      return out;
    });
    library.fake("scale_shift", [](const Tensor& x, double) { return empty_like(x, {}, MemoryFormat::Contiguous); });
    library.gradient("scale_shift", "x", {"grad", "factor"},
                     [](const Tensor& grad, double factor) { return grad.mul(factor); });
    return get_operator("customtest::scale_shift");
  }();
  return op;
}

Tensor call(const Tensor& x, double factor) { return scale_and_shift()({Value(x), Value(factor)})[0].tensor(); }

double distance(const Tensor& a, const Tensor& b) { return a.sub(b).abs().sum().item().to_double(); }

TEST(CustomOperator, RunsItsKernel) {
  Tensor y = call(ones({2, 3}), 3.0);
  EXPECT_EQ(distance(y, full({2, 3}, 4.0)), 0);
}

TEST(CustomOperator, IsDifferentiatedByItsFormula) {
  Tensor x = randn({4}).requires_grad_();
  call(x, 3.0).sum().backward();
  EXPECT_EQ(distance(x.grad(), full({4}, 3.0)), 0);
}

TEST(CustomOperator, RunsFakeOnAnyDevice) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor y = call(empty({1000000, 1000000}, {.device = "cuda"}), 2.0);
  EXPECT_EQ(to_string(y.sym_sizes()), "[1000000, 1000000]");
  EXPECT_EQ(to_string(y.device()), "cuda:0");
}

TEST(CustomOperator, IsCapturedAsOneNode) {
  auto module = make_fx([](const Tensor& x) { return call(x, 2.0).relu(); }, std::vector<Tensor>{randn({3})},
                        {.mode = TracingMode::Symbolic});
  EXPECT_NE(module->code().find("torch.ops.customtest.scale_shift.default(arg0_1, 2.0)"), std::string::npos)
      << module->code();
}

TEST(CustomOperator, IsDifferentiatedAheadOfTime) {
  Tensor x = randn({4}).requires_grad_();
  auto compiled = aot::compile([](const Tensor& t) { return call(t, 3.0).square().sum(); });
  compiled(x).backward();
  Tensor ahead = x.grad().clone();
  x.set_grad({});
  call(x, 3.0).square().sum().backward();
  EXPECT_LT(distance(ahead, x.grad()), 1e-5);
}

TEST(CustomOperator, IsExportedAndReadBack) {
  ExportSource source;
  source.forward = [](const Tree& arguments, const Tree&) {
    return Tree(call(arguments.children[0].value.tensor(), 2.0).relu());
  };
  Tensor x = randn({4, 3});
  ExportedProgram program = export_program(source, Tree::tuple({Tree(x)}), Tree::dict({}),
                                           {.dynamic_shapes = {{"x", {{0, Dim("batch")}}}}, .argument_names = {"x"}});
  std::string path = testing::TempDir() + "custom_operator.pt2";
  save(program, path);
  ExportedProgram again = load(path);
  Tensor other = randn({7, 3});
  EXPECT_EQ(distance(again.module()(other), call(other, 2.0).relu()), 0);
  std::remove(path.c_str());
}

TEST(CustomOperator, ASecondDefinitionOfTheNameIsRefused) {
  scale_and_shift();
  EXPECT_THROW(Library("customtest").define("scale_shift(Tensor x, float factor) -> Tensor"), Error);
}

TEST(CustomOperator, AFormulaCannotNameWhatTheSchemaLacks) {
  Library library("customtest");
  library.define("other(Tensor x) -> Tensor");
  EXPECT_THROW(
      library.gradient("other", "x", {"grad", "missing"}, [](const Tensor& grad, const Tensor&) { return grad; }),
      Error);
  EXPECT_THROW(library.gradient("other", "y", {"grad"}, [](const Tensor& grad) { return grad; }), Error);
}

TEST(CustomOperator, ThatWritesAndGivesNothingNeedsNoFakeFunction) {
  Library library("customwrites");
  library.define("shift_(Tensor(a!) x, float by) -> ()");
  library.implement("shift_", [](const Tensor& x, double by) { x.add_(by); });
  library.define("look(Tensor x) -> ()");
  library.implement("look", [](const Tensor&) {});
  auto shift = typed<void(const Tensor&, double)>("customwrites::shift_");
  auto compiled = aot::compile([&](const Tensor& x) {
    Tensor copy = x.clone();
    shift(copy, 2);
    return copy * 2;
  });
  EXPECT_EQ(distance(compiled(ones({2})), full({2}, 6.0)), 0);
  FakeMode fake;
  auto scope = fake.enter();
  try {
    typed<void(const Tensor&)>("customwrites::look")(empty({2}));
    FAIL() << "it has no function for fake tensors";
  } catch (const UnsupportedOperatorException& error) {
    EXPECT_NE(std::string(error.what()).find("library.fake(\"look\", ...)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace umbra
