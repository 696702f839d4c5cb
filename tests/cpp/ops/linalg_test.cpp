// Linear algebra from C++: named results, the class of errors, layouts.
#include <gtest/gtest.h>

#include "umbra/core/linalg_error.h"
#include "umbra/umbra.h"

namespace umbra {
namespace {

TEST(LinearAlgebra, SolutionsSolve) {
  manual_seed(0);
  Tensor a = randn({2, 4, 4}, {.dtype = DType::Float64}), b = randn({4, 3}, {.dtype = DType::Float64});
  Tensor x = linalg_solve(a, b);
  EXPECT_TRUE(allclose(matmul(a, x), b.expand({2, 4, 3})));
  auto [q, r] = linalg_qr(a);
  EXPECT_TRUE(allclose(matmul(q, r), a));
}

// Of more rows than go at once: halves, of which the smallest triangles are inverted where there are many columns.
TEST(LinearAlgebra, LargerSystemsAreSolvedByHalves) {
  manual_seed(0);
  for (int64_t n : {32, 33, 64, 100, 161})
    for (int64_t columns : {3, 17, 40}) {
      Tensor a = randn({n, n}, {.dtype = DType::Float64}).add(eye(n).mul(5)),
             b = randn({n, columns}, {.dtype = DType::Float64});
      EXPECT_TRUE(allclose(matmul(a, linalg_solve(a, b)), b)) << n;
      Tensor definite = matmul(a, a.t());
      for (bool upper : {false, true}) {
        Tensor solution = cholesky_solve(b, linalg_cholesky(definite, upper), upper);
        EXPECT_TRUE(allclose(matmul(definite, solution), b)) << n;
      }
      for (bool upper : {false, true})
        for (bool unit : {false, true}) {
          Tensor triangle = (upper ? triu(a, unit) : tril(a, unit ? -1 : 0)).div(static_cast<double>(n));
          triangle = triangle.add(eye(n, {.dtype = DType::Float64}));
          EXPECT_TRUE(allclose(matmul(triangle, linalg_solve_triangular(triangle, b, upper, true, unit)), b)) << n;
          Tensor turned = triangle.t();
          EXPECT_TRUE(allclose(matmul(turned, linalg_solve_triangular(turned, b, !upper, true, unit)), b)) << n;
        }
    }
}
TEST(LinearAlgebra, FactorsOfLargerMatricesAreTheMatrix) {
  manual_seed(0);
  for (auto [rows, columns] : {std::pair(65, 65), std::pair(150, 150), std::pair(200, 90), std::pair(90, 200)}) {
    Tensor a = randn({rows, columns}, {.dtype = DType::Float64});
    auto [p, l, u] = linalg_lu(a);
    EXPECT_TRUE(allclose(matmul(p, matmul(l, u)), a)) << rows;
    EXPECT_LE(l.abs().max().item().to_double(), 1);
  }
  Tensor singular = randn({100, 100}, {.dtype = DType::Float64});
  singular.select(1, 70).zero_();
  EXPECT_EQ(std::get<1>(linalg_inv_ex(singular)).item().to_int(), 71);
}
TEST(LinearAlgebra, WhatIsNoNumberStaysWhereItBelongs) {
  Tensor triangle = eye(64).add(ones({64, 64}).tril(-1)), b = ones({64, 20});
  b.select(0, 40).fill_(NAN);
  Tensor x = linalg_solve_triangular(triangle, b, false);
  EXPECT_FALSE(any(x.narrow(0, 0, 40).isnan()).item().to_bool());
  EXPECT_TRUE(all(x.narrow(0, 40, 24).isnan()).item().to_bool());
}

TEST(LinearAlgebra, ResultsLieByColumns) {
  Tensor inverse = linalg_inv(eye(3).add(1));
  EXPECT_EQ(inverse.stride(0), 1);
  EXPECT_EQ(inverse.stride(1), 3);
}

TEST(LinearAlgebra, ASingularMatrixIsAnErrorOfItsOwn) {
  EXPECT_THROW(linalg_inv(zeros({2, 2})), LinAlgError);
  EXPECT_THROW(linalg_cholesky(eye(2).neg()), LinAlgError);
  auto [inverse, info] = linalg_inv_ex(zeros({2, 2}));
  EXPECT_EQ(info.item().to_int(), 1);
}

TEST(FourierTransforms, ComeBack) {
  manual_seed(0);
  Tensor x = randn({3, 10});
  EXPECT_TRUE(allclose(fft_irfft(fft_rfft(x), 10), x, 1e-5, 1e-6));
  EXPECT_TRUE(allclose(real(fft_ifft2(fft_fft2(x))), x, 1e-5, 1e-6));
}

}  // namespace
}  // namespace umbra
