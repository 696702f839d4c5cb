// Metadata of tensors: geometry, layouts, aliases, versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "umbra/umbra.h"

namespace umbra {
namespace {

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TensorGeometry, ContiguityFollowsTheStrides) {
  Tensor x = empty({2, 3, 4});
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(x.transpose(0, 1).is_contiguous());
  EXPECT_TRUE(x.transpose(0, 1).transpose(0, 1).is_contiguous());
  EXPECT_TRUE(empty({0, 3}).transpose(0, 1).is_contiguous());   // nothing lies anywhere
  EXPECT_TRUE(empty_strided({1, 4}, {99, 1}).is_contiguous());  // one step is never taken
  EXPECT_FALSE(empty({4}).expand({2, 4}).is_contiguous());
  EXPECT_TRUE(empty({}).is_contiguous());
}

TEST(TensorGeometry, ContiguityIsUpdatedWithTheGeometry) {
  Tensor x = empty({2, 3});
  x.impl()->set_geometry({3, 2}, {1, 3});
  EXPECT_FALSE(x.is_contiguous());
  x.impl()->set_geometry({2, 3}, {3, 1});
  EXPECT_TRUE(x.is_contiguous());
  Tensor many = empty({1, 2, 1, 2, 1, 2, 1, 2});  // more dimensions than stand inside the object
  EXPECT_TRUE(many.is_contiguous());
  EXPECT_FALSE(many.transpose(1, 3).is_contiguous());
}

TEST(TensorGeometry, ChannelsLast) {
  Tensor x = empty({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_THAT(x.strides().vec(), testing::ElementsAre(60, 1, 15, 3));
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_TRUE(x.is_non_overlapping_and_dense());
  EXPECT_EQ(x.suggested_format(), MemoryFormat::ChannelsLast);
  EXPECT_EQ((x + x).strides().vec(), x.strides().vec());
}

TEST(TensorGeometry, SizesThatNoMemoryHoldsAreRefused) {
  int64_t huge = int64_t{1} << 61;
  EXPECT_THAT(message_of([&] { empty({huge, 8}); }), testing::HasSubstr("Storage size calculation overflowed"));
  EXPECT_THAT(message_of([&] {
                empty({huge, 4}, {.device = "meta"});
              }),
              testing::HasSubstr("Storage size calculation overflowed"));
  EXPECT_THAT(message_of([] { empty({-1}); }), testing::HasSubstr("negative dimension"));
  EXPECT_EQ(empty({huge, 0, 8}).numel(), 0);
}

TEST(TensorGeometry, NothingIsReadBeyondTheStorage) {
  Tensor x = ones({8});
  Tensor view = x.slice(0, 4, 8);
  x.storage()->resize(16);
  EXPECT_THAT(message_of([&] { view.sum(); }), testing::HasSubstr("out of bounds for a storage of 16 bytes"));
  EXPECT_THAT(message_of([] { ones({4}).data<double>(); }),
              testing::HasSubstr("expected scalar type Double but found Float"));
}

TEST(TensorGeometry, NumbersAtTheEndsOfTheRange) {
  EXPECT_EQ(ones({4}).slice(0, 0, 4, INT64_MAX).numel(), 1);
  EXPECT_THROW(ones({10}).split_with_sizes({INT64_MAX, INT64_MAX, 12}), Error);
  EXPECT_THROW(ones({1, 1}).expand({int64_t{1} << 32, int64_t{1} << 32}), Error);
  EXPECT_THROW(ones({10}).narrow(0, 5, INT64_MAX), Error);
  EXPECT_EQ(ones({3, 3}).tril(INT64_MAX).sum().item().to_double(), 9);
  EXPECT_EQ(ones({3, 3}).triu(INT64_MAX).sum().item().to_double(), 0);
  EXPECT_EQ(ones({4}).chunk(INT64_MAX).size(), 4u);
}

TEST(TensorGeometry, AnOutputThatCannotGrowStaysAsItWas) {
  float memory[4] = {};
  Tensor out = from_memory(memory, {4}, {1}, DType::Float32, {});
  EXPECT_THROW(add_out(out, ones({1000}), ones({1000})), Error);
  EXPECT_EQ(out.numel(), 4);
  EXPECT_EQ(out.sum().item().to_double(), 0);
}

TEST(TensorGeometry, ListsOfDimensionsMayBeBraced) {
  Tensor x = ones({2, 3, 4});
  EXPECT_THAT(x.sum({1}).sizes().vec(), testing::ElementsAre(2, 4));
  EXPECT_THAT(x.sum({0, 1}, true).sizes().vec(), testing::ElementsAre(1, 1, 4));
  EXPECT_THAT(mean(x, {0, 2}).sizes().vec(), testing::ElementsAre(3));
  EXPECT_EQ(x.sum(std::nullopt, true).dim(), 3);
  std::vector<int64_t> dims = {2};
  EXPECT_THAT(x.sum(dims).sizes().vec(), testing::ElementsAre(2, 3));
}

TEST(TensorGeometry, ViewsShareStorageAndVersion) {
  Tensor x = zeros({4, 4});
  Tensor row = x.select(0, 2);
  EXPECT_EQ(row.storage().get(), x.storage().get());
  EXPECT_EQ(row.storage_offset(), 8);
  uint32_t before = x.version();
  row.fill_(1);
  EXPECT_EQ(x.version(), before + 1);
  EXPECT_EQ(x.sum().item().to_double(), 4);
}

TEST(TensorGeometry, EveryTypeHasItsSize) {
  struct {
    DType dtype;
    int64_t bytes;
  } types[] = {{DType::Bool, 1},    {DType::UInt8, 1},     {DType::Int8, 1},       {DType::Int16, 2},
               {DType::UInt16, 2},  {DType::Int32, 4},     {DType::UInt32, 4},     {DType::Int64, 8},
               {DType::UInt64, 8},  {DType::Float16, 2},   {DType::BFloat16, 2},   {DType::Float32, 4},
               {DType::Float64, 8}, {DType::Complex64, 8}, {DType::Complex128, 16}};
  for (auto [dtype, bytes] : types)
    EXPECT_EQ(empty({3}, {.dtype = dtype}).storage()->bytes().value(), 3 * bytes) << name(dtype);
}

TEST(TensorGeometry, WrapDim) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_THROW(wrap_dim(3, 3), IndexError);
  EXPECT_EQ(message_of([] { wrap_dim(2, 2); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
}

}  // namespace
}  // namespace umbra
