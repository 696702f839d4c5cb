#include "kernels/fft.h"

#include <gmock/gmock.h>

#include <complex>
#include <numbers>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

template <class T> Tensor waves(IntArrayRef sizes, DType dtype) {
  Tensor t = empty_tensor(sizes, dtype);
  T* data = static_cast<T*>(t.raw_data());
  int64_t count = t.numel() * (is_complex(dtype) ? 2 : 1);
  for (int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(std::sin(0.7 * static_cast<double>(i * i % 101)));
  return t;
}

template <class T> std::complex<double> term(const std::complex<T>* row, int64_t n, int64_t k) {
  std::complex<double> sum;
  for (int64_t j = 0; j < n; ++j)
    sum += std::complex<double>(row[j]) *
           std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
  return sum;
}

template <class T> void check_rows(int64_t rows, int64_t n, double error) {
  using Complex = std::complex<T>;
  DType complex = dtype_of<Complex>, real = dtype_of<T>;
  Tensor in = waves<T>({rows, n}, complex), out = empty_tensor({rows, n}, complex);
  fft_c2c(out, in, {1}, true, 1.0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < n; k += 1 + n / 200) {  // the sums take long
      std::complex<double> wanted = term(in.data<Complex>() + r * n, n, k);
      ASSERT_LT(std::abs(std::complex<double>(out.data<Complex>()[r * n + k]) - wanted), error) << rows << " x " << n;
    }

  Tensor plain = waves<T>({rows, n}, real), half = empty_tensor({rows, n / 2 + 1}, complex);
  Tensor back = empty_tensor({rows, n}, real), wide = cast(plain, complex), whole = empty_tensor({rows, n}, complex);
  fft_r2c(half, plain, {1}, true, 1.0);
  fft_c2c(whole, wide, {1}, true, 1.0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k <= n / 2; ++k)
      ASSERT_LT(std::abs(half.data<Complex>()[r * (n / 2 + 1) + k] - whole.data<Complex>()[r * n + k]), error);
  fft_c2r(back, half, {1}, 1.0 / static_cast<double>(n));
  for (int64_t i = 0; i < rows * n; ++i) ASSERT_NEAR(back.data<T>()[i], plain.data<T>()[i], error);
}

// As many as fill registers go side by side; the others, and lengths that fill no tile, go another way.
TEST(Fft, RowsOfEveryNumberAndLengthAreTheSums) {
  for (int64_t rows : {1, 4, 8, 16, 19, 33})
    for (int64_t n : {2, 3, 8, 15, 16, 30, 64}) {
      check_rows<float>(rows, n, 2e-4);
      check_rows<double>(rows, n, 1e-11);
    }
}

// Those go one by one, as matrices: with sides that fill registers, that leave some of them empty, and that are none.
TEST(Fft, LongRowsAreTheSums) {
  for (int64_t n : {256, 300, 514, 1024, 1320}) {
    check_rows<float>(3, n, 2e-3);
    check_rows<double>(2, n, 1e-10);
  }
  check_rows<float>(17, 512, 1e-3);
}

// With sides that fill no whole number of registers the last ones are done twice; factors of 7 have steps of our own,
// those of 11 and 13 pocketfft's; where more would not stay near, rows go one by one though they would fill registers
// side by side.
TEST(Fft, LongRowsOfAnyFactorsAreTheSums) {
  for (int64_t n : {715, 1001, 1470, 2600}) {
    check_rows<float>(2, n, 5e-3);
    check_rows<double>(2, n, 1e-10);
  }
  for (int64_t n : {1500, 3000, 4095}) check_rows<float>(17, n, 1e-2);
  check_rows<double>(9, 3000, 1e-10);
}

template <class T> void check_columns(int64_t n, int64_t columns, double error) {
  using Complex = std::complex<T>;
  DType complex = dtype_of<Complex>;
  Tensor in = waves<T>({n, columns}, complex), by_rows = empty_tensor({columns, n}, complex);
  fft_c2c(by_rows, contiguous(transposed(in)), {1}, true, 0.5);
  std::vector<Complex> wanted = values<Complex>(transposed(by_rows));
  Tensor out = empty_tensor({n, columns}, complex), turned = transposed(empty_tensor({columns, n}, complex));
  fft_c2c(out, in, {0}, true, 0.5);
  fft_c2c(turned, in, {0}, true, 0.5);
  fft_c2c(in, in, {0}, true, 0.5);  // in its place
  for (const Tensor& t : {out, turned, in}) {
    std::vector<Complex> found = values<Complex>(t);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_LT(std::abs(found[i] - wanted[i]), error) << n << " " << i;
  }
}
TEST(Fft, ColumnsAreTransformedAsRowsAre) {
  for (int64_t columns : {16, 21, 40})
    for (int64_t n : {2, 15, 64, 77, 91}) {
      check_columns<float>(n, columns, 1e-4);
      check_columns<double>(n, columns, 1e-12);
    }
}

}  // namespace
}  // namespace umbra::kernels
