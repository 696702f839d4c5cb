#include "kernels/vector/fft.h"

#include <complex>
#include <cstdlib>

// pocketfft's templates take the width of vectors from the compiler's flags: each instruction set has its own
// namespace.
#define UMBRA_JOIN_(a, b) a##b
#define UMBRA_JOIN(a, b) UMBRA_JOIN_(a, b)
#define pocketfft UMBRA_JOIN(pocketfft_, UMBRA_ISA)
#define POCKETFFT_NO_MULTITHREADING
// It asks for aligned memory of any size, where C wants a multiple of the alignment.
#define aligned_alloc(alignment, bytes) \
  std::aligned_alloc(alignment, ((bytes) + (alignment)-1) / (alignment) * (alignment))
#include <pocketfft_hdronly.h>
#undef aligned_alloc

namespace umbra::kernels::UMBRA_ISA {
namespace {

template <class T> void run(const FftPass& pass) {
  using Complex = std::complex<T>;
  T scale = static_cast<T>(pass.scale);
  switch (pass.kind) {
    case FftPass::Kind::ComplexToComplex:
      return pocketfft::c2c(pass.sizes, pass.from_strides, pass.to_strides, {pass.axis}, pass.forward,
                            reinterpret_cast<const Complex*>(pass.from), reinterpret_cast<Complex*>(pass.to), scale);
    case FftPass::Kind::RealToComplex:
      return pocketfft::r2c(pass.sizes, pass.from_strides, pass.to_strides, pass.axis, pass.forward,
                            reinterpret_cast<const T*>(pass.from), reinterpret_cast<Complex*>(pass.to), scale);
    case FftPass::Kind::ComplexToReal:
      return pocketfft::c2r(pass.sizes, pass.from_strides, pass.to_strides, pass.axis, pass.forward,
                            reinterpret_cast<const Complex*>(pass.from), reinterpret_cast<T*>(pass.to), scale);
  }
}

}  // namespace

void fft_pass(const FftPass& pass) { pass.wide ? run<double>(pass) : run<float>(pass); }

}  // namespace umbra::kernels::UMBRA_ISA
