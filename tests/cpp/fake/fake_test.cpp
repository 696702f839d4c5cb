// Fake tensors: metadata without data, on any device, with clear errors where data would be needed.
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "../../../examples/cpp/models.h"
#include "autograd/testing.h"

namespace umbra {
namespace {

TEST(Fake, NothingIsAllocated) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor w = empty({1'000'000, 1'000'000}, {.device = "cuda"});
  Tensor y = w.mm(w).relu().sum({{1}});
  EXPECT_EQ(y.sizes(), IntArrayRef({1'000'000}));
  EXPECT_EQ(to_string(y.device()), "cuda:0");
  EXPECT_FALSE(w.storage()->has_data());
}

TEST(Fake, DevicesMustAgreeUnlessOneIsANumber) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor a = empty({2}, {.device = "cuda"}), b = empty({2}), scalar = empty({});
  EXPECT_NE(error_of([&] { a + b; }), "no error");
  EXPECT_EQ(to_string((a + scalar).device()), "cuda:0");
  EXPECT_EQ(to_string((a + 1).device()), "cuda:0");
}

TEST(Fake, ViewsShareTheirStorage) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = empty({4, 6}), y = x.transpose(0, 1).slice(0, 1, 3);
  EXPECT_TRUE(y.storage() == x.storage());
  EXPECT_EQ(y.storage_offset(), 1);
  EXPECT_EQ(y.strides(), IntArrayRef({1, 6}));
}

TEST(Fake, ConversionKeepsIdentityAliasingAndLeaves) {
  Tensor real = randn({4, 4}).requires_grad_();
  Tensor data = real.detach();
  FakeMode fake;
  Tensor one = fake.from_tensor(real), two = fake.from_tensor(real), alias = fake.from_tensor(data);
  EXPECT_TRUE(one.is_same(two));
  EXPECT_TRUE(alias.storage() == one.storage());
  EXPECT_TRUE(one.requires_grad() && one.is_leaf());
}

TEST(Fake, ReadingDataIsRefused) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = empty({2});
  EXPECT_THAT(error_of<DataDependentOutputException>([&] { x.sum().item(); }),
              ::testing::StartsWith("aten._local_scalar_dense.default\n"));
}

TEST(Fake, ANumberThatWasConvertedCanBeRead) {
  FakeMode fake;
  Tensor five = fake.from_tensor(full({}, Scalar(5))),
         single = fake.from_tensor(full({}, Scalar(5), {.dtype = DType::Float32}));
  EXPECT_EQ(five.item().to_int(), 5);
  // What is computed from it is not known, nor what has been written to it; types that would round are not read.
  EXPECT_THAT(error_of<DataDependentOutputException>([&] { five.add(1).item(); }),
              HasSubstr("aten._local_scalar_dense.default"));
  EXPECT_THAT(error_of<DataDependentOutputException>([&] { single.item(); }),
              HasSubstr("aten._local_scalar_dense.default"));
  five.add_(1);
  EXPECT_THAT(error_of<DataDependentOutputException>([&] { five.item(); }),
              HasSubstr("aten._local_scalar_dense.default"));
}

TEST(Fake, ShapesThatDependOnDataAreSymbolsOrErrors) {
  FakeMode fixed, dynamic({.shape_env = make_counted<sym::ShapeEnv>(), .allow_dynamic_output_shapes = true});
  Tensor mask = vector_of({0, 1, 1}).to(DType::Bool), x = vector_of({1, 2, 3});
  EXPECT_THAT(error_of<DynamicOutputShapeException>([&] { fixed.from_tensor(mask).nonzero(); }),
              HasSubstr("aten.nonzero.default"));
  Tensor rows = dynamic.from_tensor(mask).nonzero(),
         picked = masked_select(dynamic.from_tensor(x), dynamic.from_tensor(mask));
  EXPECT_TRUE(rows.sym_sizes()[0].is_symbolic());
  EXPECT_EQ(rows.sym_sizes()[1], 1);
  EXPECT_TRUE(picked.sym_sizes()[0].is_symbolic());
  EXPECT_EQ(picked.dtype(), DType::Float64);
}

TEST(Fake, RealTensorsAndOtherModesAreRefused) {
  Tensor real = randn({2});
  FakeMode one, two;
  Tensor a = one.from_tensor(real), b = two.from_tensor(real);
  EXPECT_THAT(error_of<AssertionError>([&] { a + real; }),
              HasSubstr("Please convert all Tensors to FakeTensors first"));
  EXPECT_EQ(error_of<AssertionError>([&] { a + b; }), "Mixing fake modes NYI");
}

TEST(Fake, ShapeErrorsAreThoseOfRealRuns) {
  FakeMode fake;
  auto scope = fake.enter();
  EXPECT_EQ(error_of([] {
              empty({2, 3}).mm(empty({2, 3}));
            }),
            "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
}

TEST(Fake, TheModeEndsWithItsScope) {
  {
    FakeMode fake;
    auto scope = fake.enter();
    EXPECT_TRUE(zeros({2}).is_fake());
  }
  EXPECT_FALSE(zeros({2}).is_fake());
  EXPECT_TRUE(mode_stack().empty());
}

TEST(Fake, GradientsAreFakeToo) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = empty({3, 4}, {.device = "cuda"}).requires_grad_();
  x.sin().sum().backward();
  EXPECT_TRUE(x.grad().is_fake());
  EXPECT_EQ(x.grad().sizes(), IntArrayRef({3, 4}));
}

TEST(Fake, ALlamaOf70BillionParametersFits) {
  FakeMode fake;
  auto scope = fake.enter();
  examples::Llama model;
  EXPECT_EQ(examples::parameter_count(model), 70553706496);
  NoGrad no_grad;
  EXPECT_EQ(model(empty({4, 8192}, {.dtype = DType::Int64})).sizes(), IntArrayRef({4, 8192, 128256}));
}

TEST(Fake, OptimizersStep) {
  FakeMode fake;
  auto scope = fake.enter();
  nn::Linear model(4, 2);
  optim::AdamW optimizer(model.parameters());
  for (int i = 0; i < 2; ++i) {
    model(ones({3, 4})).sum().backward();
    optimizer.step();
  }
  EXPECT_TRUE(model.parameters()[0].is_fake());
}

#ifdef __GLIBC__
size_t heap_in_use() { return mallinfo2().uordblks; }

TEST(Fake, ATensorTakesUnder400BytesAndAMillionOfThemLeaveNothing) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = empty({8, 16}), y = empty({8, 16});
  x + y;
  constexpr size_t kCount = 10'000;
  std::vector<Tensor> kept;
  kept.reserve(kCount);
  size_t before = heap_in_use();
  for (size_t i = 0; i < kCount; ++i) kept.push_back(x + y);
  EXPECT_LT((heap_in_use() - before) / kCount, 400u);
  kept.clear();
  for (int i = 0; i < 1'000'000; ++i) x + y;
  size_t after = heap_in_use();
  EXPECT_LT(after > before ? after - before : 0, 64u * 1024);
}
#endif

}  // namespace
}  // namespace umbra
