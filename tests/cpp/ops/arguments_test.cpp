// What operators refuse, with data and without: memory that is read and written at once, outputs of the wrong type,
// gradients and indices that do not fit.
#include "autograd/testing.h"

namespace umbra {
namespace {

TEST(Arguments, WhatIsWrittenIsNotReadElsewhere) {
  Tensor x = vector_of({1, 2, 3, 4});
  EXPECT_THAT(error_of([&] { x.narrow(0, 1, 3).add_(x.narrow(0, 0, 3)); }),
              HasSubstr("refer to a single memory location"));
  EXPECT_THAT(error_of([&] { add_out(x.narrow(0, 1, 3), x.narrow(0, 0, 3), x.narrow(0, 0, 3)); }),
              HasSubstr("refer to a single memory location"));
  EXPECT_THAT(values(x.add_(x)), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(values(x.narrow(0, 2, 2).add_(x.narrow(0, 0, 2))), ElementsAre(8, 12));
}

TEST(Arguments, OutputsOfAnotherTypeAreCastToOrRefused) {
  Tensor x = vector_of({1, 2, 3}), single = empty({0}, {.dtype = DType::Float32});
  EXPECT_THAT(values(add_out(single, x, x)), ElementsAre(2, 4, 6));
  EXPECT_THAT(error_of([&] { gather_out(single, x, 0, arange(2)); }),
              HasSubstr("Expected out tensor to have dtype double, but got float instead"));
}

TEST(Arguments, LayoutsOtherThanStridedAreMadeOrRefusedByName) {
  TensorOptions sparse{.layout = Layout::SparseCoo};
  for (const Tensor& made : {empty({2}, sparse), zeros_like(ones({2}), sparse)}) {
    EXPECT_EQ(made.layout(), Layout::SparseCoo);
    EXPECT_THAT(values(made.to_dense()), ElementsAre(0, 0));
  }
  EXPECT_THAT(error_of([&] { rand({2}, sparse); }),
              HasSubstr("tensors of layout torch.sparse_coo are not in Umbra yet"));
}

TEST(Arguments, GradientsMustFitWhatTheyAreOf) {
  Tensor image = ones({1, 1, 4, 4}), kernel = ones({1, 1, 2, 2});
  EXPECT_THAT(error_of([&] {
                convolution_backward(ones({1, 1, 4, 4}), image, kernel, std::nullopt, {1, 1}, {0, 0}, {1, 1}, false,
                                     {0, 0}, 1, {true, true, true});
              }),
              HasSubstr("Expected grad_output of size [1, 1, 3, 3]"));
  EXPECT_THAT(error_of([&] {
                avg_pool2d_backward(ones({1, 1, 4, 4}), image, {2, 2}, {2, 2}, {0, 0}, false, true, std::nullopt);
              }),
              HasSubstr("Expected grad_output of size [1, 1, 2, 2]"));
  EXPECT_THAT(error_of([&] {
                embedding_dense_backward(ones({3, 2}), arange(4), 5, -1, false);
              }),
              HasSubstr("is invalid for input of size 6"));
}

TEST(Arguments, SlicesOfIndexAddHaveTheShapeOfOnesOfSelf) {
  EXPECT_THAT(error_of([] {
                zeros({3, 2}).index_add(0, arange(2), ones({2}));
              }),
              HasSubstr("source tensor shape must match self tensor shape"));
  EXPECT_THAT(error_of([] { zeros({3}).index_add(0, arange(3), ones({2})); }),
              HasSubstr("Number of indices (3) should be equal to source.size(dim): (2)"));
}

}  // namespace
}  // namespace umbra
