#include "kernels/matmul.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"
#include "kernels/repeated_matrix.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// The product by definition, in double.
std::vector<double> expected_product(const std::vector<float>& a, const std::vector<float>& b, int64_t m, int64_t k,
                                     int64_t n) {
  std::vector<double> out(m * n, 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) out[i * n + j] += static_cast<double>(a[i * k + l]) * b[l * n + j];
  return out;
}

Tensor waves(IntArrayRef sizes, double step) {
  Tensor t = counting(sizes, step);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = std::sin(t.data<float>()[i]);
  return t;
}

TEST(Matmul, SmallProduct) {
  Tensor out = empty_tensor({2, 2});
  mm(out, floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3, 2}, {1, 0, 0, 1, 1, 1}));
  EXPECT_THAT(values(out), ElementsAre(4, 5, 10, 11));
}

TEST(Matmul, OperandsOfEveryOrientationAgree) {
  int64_t m = 37, k = 41, n = 29;
  Tensor a = waves({m, k}, 0.7), b = waves({k, n}, 1.3);
  Tensor a_columns = transposed(waves({k, m}, 0.7)), b_columns = transposed(waves({n, k}, 1.3));
  for (const Tensor& left : {a, a_columns}) {
    for (const Tensor& right : {b, b_columns}) {
      for (Tensor out : {empty_tensor({m, n}), transposed(empty_tensor({n, m}))}) {
        mm(out, left, right);
        EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), expected_product(values(left), values(right), m, k, n)));
      }
    }
  }
}

TEST(Matmul, AddedRowIsBroadcast) {
  int64_t m = 64, k = 32, n = 48;
  Tensor a = waves({m, k}, 0.7), b = waves({k, n}, 1.3), row = waves({n}, 0.1), out = empty_tensor({m, n});
  std::vector<double> expected = expected_product(values(a), values(b), m, k, n);
  for (int64_t i = 0; i < m * n; ++i) expected[i] += row.data<float>()[i % n];
  addmm(out, row, a, b, 1, 1);
  EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), expected));
}

TEST(Matmul, ZeroBetaDoesNotReadSelf) {
  Tensor out = empty_tensor({1, 1});
  addmm(out, floats({1, 1}, {NAN}), floats({1, 1}, {2}), floats({1, 1}, {3}), 0, 1);
  EXPECT_THAT(values(out), ElementsAre(6));
}

TEST(Matmul, AnEmptySumIsBetaTimesSelf) {
  Tensor out = empty_tensor({2, 2});
  addmm(out, floats({2}, {1, 2}), empty_tensor({2, 0}), empty_tensor({0, 2}), 3, 1);
  EXPECT_THAT(values(out), ElementsAre(3, 6, 3, 6));
}

TEST(Matmul, IntegersWrapAround) {
  Tensor out = empty_tensor({1, 1}, DType::UInt8);
  mm(out, tensor_of<uint8_t>({1, 2}, {200, 1}), tensor_of<uint8_t>({2, 1}, {2, 7}));
  EXPECT_THAT(values<uint8_t>(out), ElementsAre((200 * 2 + 7) % 256));
}

TEST(Matmul, BatchesWithAnExpandedOperand) {
  int64_t batch = 3, m = 16, k = 20, n = 24;
  Tensor a = waves({batch, m, k}, 0.7), b = waves({k, n}, 1.3), out = empty_tensor({batch, m, n});
  Tensor expanded = alias_tensor(b, {batch, k, n}, {0, n, 1}, 0);
  bmm(out, a, expanded);
  EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), expected_product(values(a), values(b), batch * m, k, n)));
}

TEST(Matmul, BFloat16RoundsOnce) {
  int64_t size = 64;
  Tensor a = empty_tensor({size, size}, DType::BFloat16), out = empty_tensor({size, size}, DType::BFloat16);
  for (int64_t i = 0; i < size * size; ++i) a.data<BFloat16>()[i] = BFloat16(1.0f);
  mm(out, a, a);
  for (BFloat16 value : values<BFloat16>(out)) ASSERT_EQ(static_cast<float>(value), 64.0f);
}

TEST(Matmul, VectorsAndDots) {
  Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), v = floats({3}, {1, 0, -1}), out = empty_tensor({2}),
         sum = empty_tensor({});
  mv(out, a, v);
  EXPECT_THAT(values(out), ElementsAre(-2, -2));
  addmv(out, floats({2}, {1, 1}), a, v, 2, 3);
  EXPECT_THAT(values(out), ElementsAre(-4, -4));
  dot(sum, v, v);
  EXPECT_THAT(values(sum), ElementsAre(2));
}

template <class T> void check_dots() {
  for (int64_t n : {0, 1, 7, 64, 1000}) {
    Tensor a = empty_tensor({2 * n}, dtype_of<T>), out = empty_tensor({}, dtype_of<T>);
    double dense_sum = 0, spread_sum = 0;
    for (int64_t i = 0; i < 2 * n; ++i) {
      a.data<T>()[i] = T(i % 5 - 1);
      dense_sum += double(i % 5 - 1) * double(i % 5 - 1);
      if (i % 2 == 0) spread_sum += double(i % 5 - 1) * double(i / 2 % 5 - 1);
    }
    dot(out, a, a);
    EXPECT_EQ(double(*out.data<T>()), dense_sum) << n;
    dot(out, strided(a, {n}, {2}), strided(a, {n}, {1}));
    EXPECT_EQ(double(*out.data<T>()), spread_sum) << n;
  }
}
TEST(Matmul, DotsOfDenseAndOfSpreadVectors) {
  check_dots<float>();
  check_dots<double>();
  check_dots<int64_t>();
}

// A matrix large enough to be packed, one that is not, either way round; more rows than it was packed for.
TEST(Matmul, ARepeatedMatrixGivesThePlainProducts) {
  for (int64_t k : {136, 24}) {
    int64_t n = 520;
    Tensor by_rows = waves({k, n}, 1.3), by_columns = transposed(waves({n, k}, 0.9));
    for (const Tensor& matrix : {by_rows, by_columns}) {
      RepeatedMatrix repeated(matrix, 8, 10);
      for (int64_t rows : {1, 8, 21}) {
        Tensor left = waves({rows, k}, 0.7), start = waves({rows, n}, 0.3);
        Tensor expected = empty_tensor({rows, n}), out = empty_tensor({rows, n});
        mm(expected, left, matrix);
        repeated.product(out, left);
        EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), values(expected)));
        addmm(expected, start, left, matrix, 1, 1);
        repeated.add_product(out, start, left);
        EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), values(expected)));
      }
    }
  }
}

TEST(Matmul, BoolIsRefused) {
  Tensor t = bools({1, 1}, {1});
  EXPECT_THROW(mm(t, t, t), NotImplementedError);
}

TEST(Matmul, IntegersOfEverySizeAndLayoutAgreeWithTheSums) {
  for (auto [m, k, n] : {std::array<int64_t, 3>{1, 3, 1}, {5, 7, 40}, {4, 16, 19}, {9, 33, 70}}) {
    Tensor a = longs({m, k}, std::vector<int64_t>(m * k)), b = longs({k, n}, std::vector<int64_t>(k * n));
    for (int64_t i = 0; i < m * k; ++i) a.data<int64_t>()[i] = (i * i % 97 - 48) * (int64_t{1} << 40);
    for (int64_t i = 0; i < k * n; ++i) b.data<int64_t>()[i] = (i * 31 % 89 - 44) * (int64_t{1} << 21);
    std::vector<int64_t> wanted;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum +=
              static_cast<uint64_t>(a.data<int64_t>()[i * k + l]) * static_cast<uint64_t>(b.data<int64_t>()[l * n + j]);
        wanted.push_back(static_cast<int64_t>(sum));
      }
    Tensor out = empty_tensor({m, n}, DType::Int64), columns = contiguous(transposed(b));
    mm(out, a, b);
    EXPECT_EQ(values<int64_t>(out), wanted);
    mm(out, a, transposed(columns));
    EXPECT_EQ(values<int64_t>(out), wanted);
  }
}

}  // namespace
}  // namespace umbra::kernels
