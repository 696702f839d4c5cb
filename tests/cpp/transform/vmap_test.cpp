// vmap: which dimension goes where, rules against loops, randomness, writes and refusals.
#include "autograd/testing.h"
#include "umbra/core/warning.h"
#include "umbra/transform/transform.h"

namespace umbra {
namespace {

Tensor matrix(std::vector<double> values, int64_t rows) {
  int64_t columns = static_cast<int64_t>(values.size()) / rows;
  return vector_of(values).view({rows, columns});
}

TEST(Vmap, MapsAlongTheDimensionsGiven) {
  auto f = vmap([](const Tensor& x, const Tensor& y) { return x.mul(y); }, {1, kNone}, {.out_dims = {1}});
  Tensor out = f(matrix({0, 1, 2, 3, 4, 5}, 2), vector_of({10, 100}));
  EXPECT_THAT(out.sizes(), ElementsAre(2, 3));
  EXPECT_THAT(values(out), ElementsAre(0, 10, 20, 300, 400, 500));
}

TEST(Vmap, HidesTheMappedDimension) {
  std::vector<int64_t> seen;
  vmap(
      [&](const Tensor& x) {
        seen = x.sizes().vec();
        return x;
      },
      {1})(zeros({4, 3, 5}));
  EXPECT_THAT(seen, ElementsAre(4, 5));
}

TEST(Vmap, RepeatsWhatIgnoresItsInput) {
  Tensor c = vector_of({5, 6});
  Tensor out = vmap([&](const Tensor&) { return c.add(1); })(zeros({3}));
  EXPECT_THAT(values(out), ElementsAre(6, 7, 6, 7, 6, 7));
}

TEST(Vmap, OfVmapIsAnOuterProduct) {
  auto product = [](const Tensor& a, const Tensor& b) { return a.mul(b); };
  Tensor out = vmap(vmap(product, {kNone, 0}), {0, kNone})(vector_of({1, 2}), vector_of({3, 4, 5}));
  EXPECT_THAT(values(out), ElementsAre(3, 4, 5, 6, 8, 10));
}

TEST(Vmap, RowsWithoutDimensionsPromoteAsNumbersDo) {
  Tensor x = ones({2}, {.dtype = DType::Float32});
  Tensor out = vmap([&](const Tensor& s) { return s.mul(x); })(ones({3}, {.dtype = DType::Float64}));
  EXPECT_EQ(out.dtype(), DType::Float32);
}

TEST(Vmap, WritesReachTheArgument) {
  Tensor x = matrix({0, 1, 2, 3}, 2);
  vmap([](const Tensor& row) { return row.mul_(2); })(x);
  EXPECT_THAT(values(x), ElementsAre(0, 2, 4, 6));
}

TEST(Vmap, AWriteOfMappedIntoFixedIsRefused) {
  Tensor c = vector_of({0, 0});
  EXPECT_THROW(vmap([&](const Tensor& row) { return c.add_(row); })(matrix({1, 2, 3, 4}, 2)), Error);
  EXPECT_THAT(values(c), ElementsAre(0, 0));
}

TEST(Vmap, RandomNumbersAreRefusedUnlessAskedFor) {
  auto noise = [](const Tensor& x) { return x.add(rand({4})); };
  EXPECT_THROW(vmap(noise)(zeros({3, 4})), Error);
  Tensor same = vmap(noise, {}, {.randomness = Randomness::Same})(zeros({3, 4}));
  EXPECT_TRUE(equal(same.select(0, 0), same.select(0, 1)));
  Tensor different = vmap(noise, {}, {.randomness = Randomness::Different})(zeros({3, 4}));
  EXPECT_FALSE(equal(different.select(0, 0), different.select(0, 1)));
}

TEST(Vmap, ElementsCannotBeRead) {
  EXPECT_THROW(vmap([](const Tensor& x) { return x.mul(x.item()); })(ones({3})), Error);
  EXPECT_THROW(vmap([](const Tensor& x) { return x.nonzero(); })(ones({3, 2})), Error);
}

TEST(Vmap, ATensorThatEscapedIsRefused) {
  Tensor escaped;
  vmap([&](const Tensor& x) { return escaped = x.mul(2); })(ones({3}));
  EXPECT_THAT(error_of([&] { escaped.add(1); }), HasSubstr("escaped from inside a function being vmapped"));
}

TEST(Vmap, OfGradGivesGradientsOfEachSample) {
  auto loss = [](const Tensor& w, const Tensor& x) { return w.mul(x).sin().sum(); };
  Tensor w = vector_of({0.3, -0.2}), rows = matrix({0, 1, 2, 3, 4, 5}, 3);
  Tensor whole = vmap(grad(loss), {kNone, 0})(w, rows);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(allclose(whole.select(0, i), rows.select(0, i).mul(w.mul(rows.select(0, i)).cos())));
}

TEST(Vmap, UnderGradWithASharedClosure) {
  Tensor rows = matrix({0, 1, 2, 3, 4, 5}, 3);
  auto f = [&](const Tensor& w) { return vmap([&](const Tensor& r) { return r.mul(w).sum().sin(); })(rows).sum(); };
  Tensor w = vector_of({0.1, 0.2});
  Tensor want = rows.mul(w).sum({1}).cos().unsqueeze(1).mul(rows).sum({0});
  EXPECT_TRUE(allclose(grad(f)(w), want));
}

TEST(Vmap, WithoutARuleCallsOneByOneAndSaysSo) {
  static std::string said;
  set_warning_handler([](const std::string& text) { said = text; });
  Tensor mask = matrix({1, 0, 1, 1}, 2).to(DType::Bool), source = matrix({7, 8, 9, 10}, 2);
  Tensor out = vmap([](const Tensor& m, const Tensor& s) {
    return zeros({2}, {.dtype = DType::Float64}).masked_scatter(m, s);
  })(mask, source);
  set_warning_handler(nullptr);
  EXPECT_THAT(values(out), ElementsAre(7, 0, 9, 10));
  EXPECT_THAT(said, HasSubstr("There is a performance drop because we have not yet implemented the batching rule"));
}

TEST(Functionalize, InAnyOrderWithOtherTransforms) {
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.view({-1}).select(0, 0).mul_(x.sum());
    return y.prod();
  };
  auto pure = [&](const Tensor& x) {
    ValueFunction inner =
        functionalize([&](const std::vector<Value>& v) { return std::vector<Value>{f(v[0].tensor())}; });
    return inner({Value(x)})[0].tensor();
  };
  Tensor x = matrix({1, 2, 3, 4}, 2);
  EXPECT_THAT(values(vmap(pure)(x)), ElementsAre(6, 84));
  EXPECT_THAT(values(grad(pure)(x.select(0, 0))), ElementsAre(8, 5));
  ValueFunction outer = functionalize([&](const std::vector<Value>& v) {
    return std::vector<Value>{grad(f)(v[0].tensor()), vmap(f)(v[0].tensor().unsqueeze(0))};
  });
  std::vector<Value> both = outer({Value(x.select(0, 0))});
  EXPECT_THAT(values(both[0].tensor()), ElementsAre(8, 5));
  EXPECT_THAT(values(both[1].tensor()), ElementsAre(6));
}

}  // namespace
}  // namespace umbra
