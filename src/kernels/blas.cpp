#include "kernels/blas.h"

#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>

#include "umbra/core/error.h"

namespace umbra::kernels::blas {
namespace {

// OpenBLAS falls back to kernels of 2004 on processors newer than itself, at a fifth of the speed. Where it did, it is
// told which of its kernels this processor can run, and asked to choose again.
//
// The environment is the only way to tell it: its choice reads OPENBLAS_CORETYPE and nothing else. (The tables of its
// kernels are exported, but a table is ready only once its own first function has run, which stands at another place in
// each version.) getenv in another thread must not meet setenv, so nothing is set where the choice was right; where it
// was wrong, once, before the first product. A program whose other threads read the environment at that time sets
// OPENBLAS_CORETYPE itself, and is left alone.
void choose_kernels() {
  auto corename = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  auto quit = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit"));
  auto init = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init"));
  if (!corename || !quit || !init || std::getenv("OPENBLAS_CORETYPE")) return;
  if (std::string(corename()) != "Prescott") return;
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!avx512 && !avx2) return;
  setenv("OPENBLAS_CORETYPE", avx512 ? "SkylakeX" : "Haswell", 1);
  quit();
  init();
  unsetenv("OPENBLAS_CORETYPE");
}

// When it is loaded, OpenBLAS starts a thread for each core, and they spin for a while. It is the kernels that share
// work out (kernels/parallel.h): those threads end before anything runs.
[[gnu::constructor]] void end_threads() {
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
  if (auto shutdown = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "blas_thread_shutdown_"))) shutdown();
}

/// A size as BLAS takes it.
int blas_int(int64_t size) {
  check(size >= std::numeric_limits<int>::min() && size <= std::numeric_limits<int>::max(),
        "matrix product: a size or stride of ", size, " is beyond what BLAS takes (", std::numeric_limits<int>::max(),
        ")");
  return static_cast<int>(size);
}

CBLAS_TRANSPOSE order(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void prepare() {
  static std::once_flag once;
  std::call_once(once, choose_kernels);
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta, T* c,
          int64_t c_leading) {
  prepare();
  auto call = [&](auto function, auto alpha_argument, auto beta_argument) {
    function(CblasRowMajor, order(a.transposed), order(b.transposed), blas_int(m), blas_int(n), blas_int(k),
             alpha_argument, a.data, blas_int(a.leading), b.data, blas_int(b.leading), beta_argument, c,
             blas_int(c_leading));
  };
  if constexpr (std::is_same_v<T, float>) call(cblas_sgemm, alpha, beta);
  else if constexpr (std::is_same_v<T, double>) call(cblas_dgemm, alpha, beta);
  else if constexpr (std::is_same_v<T, std::complex<float>>) call(cblas_cgemm, &alpha, &beta);
  else call(cblas_zgemm, &alpha, &beta);
}

template <class T>
void gemv(int64_t m, int64_t k, T alpha, Matrix<const T> a, const T* x, int64_t x_stride, T beta, T* y,
          int64_t y_stride) {
  prepare();
  // A transposed matrix is described to BLAS by the matrix that lies in memory.
  int rows = blas_int(a.transposed ? k : m), columns = blas_int(a.transposed ? m : k);
  auto call = [&](auto function, auto alpha_argument, auto beta_argument) {
    function(CblasRowMajor, order(a.transposed), rows, columns, alpha_argument, a.data, blas_int(a.leading), x,
             blas_int(x_stride), beta_argument, y, blas_int(y_stride));
  };
  if constexpr (std::is_same_v<T, float>) call(cblas_sgemv, alpha, beta);
  else if constexpr (std::is_same_v<T, double>) call(cblas_dgemv, alpha, beta);
  else if constexpr (std::is_same_v<T, std::complex<float>>) call(cblas_cgemv, &alpha, &beta);
  else call(cblas_zgemv, &alpha, &beta);
}

template <> float dot(int64_t n, const float* x, const float* y) {
  prepare();
  return cblas_sdot(blas_int(n), x, 1, y, 1);
}
template <> double dot(int64_t n, const double* x, const double* y) {
  prepare();
  return cblas_ddot(blas_int(n), x, 1, y, 1);
}

#define UMBRA_INSTANTIATE(T)                                                                             \
  template void gemm<T>(int64_t, int64_t, int64_t, T, Matrix<const T>, Matrix<const T>, T, T*, int64_t); \
  template void gemv<T>(int64_t, int64_t, T, Matrix<const T>, const T*, int64_t, T, T*, int64_t);
UMBRA_INSTANTIATE(float)
UMBRA_INSTANTIATE(double)
UMBRA_INSTANTIATE(std::complex<float>)
UMBRA_INSTANTIATE(std::complex<double>)
#undef UMBRA_INSTANTIATE

}  // namespace umbra::kernels::blas
