#include "kernels/search.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

/// One search after the other, halving what is left.
int64_t place_of(const float* row, int64_t n, float x, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (right ? !(row[middle] > x) : !(row[middle] >= x)) low = middle + 1;
    else high = middle;
  }
  return low;
}

void expect_places(const Tensor& sorted, const Tensor& values, DType type) {
  int64_t n = sorted.size(-1), width = values.size(-1);
  for (bool right : {false, true}) {
    Tensor out = empty_tensor(values.sizes(), DType::Int64), narrow = empty_tensor(values.sizes(), DType::Int32);
    search_sorted(out, cast(sorted, type), cast(values, type), {}, right);
    search_sorted(narrow, cast(sorted, type), cast(values, type), {}, right);
    EXPECT_EQ(values_of<int64_t>(out), values_of<int64_t>(narrow));
    for (int64_t i = 0; i < values.numel(); ++i) {
      const float* row = sorted.data<float>() + (sorted.dim() == 1 ? 0 : i / width * n);
      EXPECT_EQ(out.data<int64_t>()[i], place_of(row, n, values.data<float>()[i], right)) << n << " " << i;
    }
  }
}

TEST(SearchSorted, ManyAtATimeGoWhereEachGoes) {
  for (int64_t n : {0, 1, 2, 3, 16, 100, 257})
    for (int64_t count : {1, 7, 16, 33, 300}) {
      Tensor row = counting({n}, 0.5), x = empty_tensor({count});
      for (int64_t i = 0; i < count; ++i) x.data<float>()[i] = static_cast<float>((i * 37) % 280) * 0.5f - 3;
      x.data<float>()[count / 2] = std::numeric_limits<float>::quiet_NaN();
      for (DType type : {DType::Float32, DType::Float64}) expect_places(row, x, type);
    }
}

TEST(SearchSorted, RowsHaveValuesOfTheirOwn) {
  Tensor rows = counting({4, 33}), x = counting({4, 21}, 1.7);
  for (DType type : {DType::Float32, DType::Float64}) expect_places(rows, x, type);
}

// What is looked at in a row without an order is part of the result.
TEST(SearchSorted, RowsWithoutAnOrderAreHalvedAlike) {
  Tensor row = empty_tensor({200}), x = counting({50}, 4);
  for (int64_t i = 0; i < 200; ++i) row.data<float>()[i] = static_cast<float>((i * 71) % 199);
  row.data<float>()[100] = std::numeric_limits<float>::quiet_NaN();
  for (DType type : {DType::Float32, DType::Float64}) expect_places(row, x, type);
}

}  // namespace
}  // namespace umbra::kernels
