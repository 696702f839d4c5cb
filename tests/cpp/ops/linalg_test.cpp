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
