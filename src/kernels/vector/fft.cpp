#include "kernels/vector/fft.h"

// What pocketfft includes, too: it must not see the names that are changed for it below.
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "core/block_cache.h"
#include "kernels/vector/convert.h"

// pocketfft's templates take the width of vectors from the compiler's flags: each instruction set has its own
// namespace.
#define UMBRA_JOIN_(a, b) a##b
#define UMBRA_JOIN(a, b) UMBRA_JOIN_(a, b)
#define pocketfft UMBRA_JOIN(pocketfft_, UMBRA_ISA)
#define POCKETFFT_NO_MULTITHREADING
// Its work memory would be fresh pages at every call: large blocks come from the cache of blocks. A header says which.
namespace umbra::kernels::UMBRA_ISA {
namespace {
struct alignas(64) MemoryHeader {
  bool cached;
};
[[maybe_unused]] void* take_memory(size_t bytes) {
  size_t total = (bytes + sizeof(MemoryHeader) + 63) / 64 * 64;
  bool cached = total >= BlockCache::kSmallest;
  void* block = cached ? BlockCache::get().take(total) : std::aligned_alloc(64, total);
  if (!block) return nullptr;
  static_cast<MemoryHeader*>(block)->cached = cached;
  return static_cast<MemoryHeader*>(block) + 1;
}
[[maybe_unused]] void give_memory_back(void* memory) {
  if (!memory) return;
  MemoryHeader* header = static_cast<MemoryHeader*>(memory) - 1;
  header->cached ? BlockCache::get().put(header) : std::free(header);
}
}  // namespace
}  // namespace umbra::kernels::UMBRA_ISA
#define aligned_alloc(alignment, bytes) umbra::kernels::UMBRA_ISA::take_memory(bytes)
#define free(memory) umbra::kernels::UMBRA_ISA::give_memory_back(memory)
#include <pocketfft_hdronly.h>
#undef aligned_alloc
#undef free

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

template <class T>
void run_rows(const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes, int64_t groups) {
  using Lanes = pocketfft::detail::vtype_t<T>;
  constexpr int64_t lanes = pocketfft::detail::VLEN<T>::val, item = sizeof(T), step = sizeof(Lanes);
  const bool is_complex = pass.kind == FftPass::Kind::ComplexToComplex;
  const size_t n = pass.sizes.back();
  const T scale = static_cast<T>(pass.scale);
  pocketfft::detail::arr<Lanes> buffer(is_complex ? 2 * n : n);
  char* side_by_side = reinterpret_cast<char*>(buffer.data());
  auto bring = [&](size_t first, const char* rows, size_t count) {
    copy_transposed(side_by_side + first * step, step, rows, from_bytes, item, lanes, count);
  };
  auto take_back = [&](char* rows, size_t first, size_t count) {
    copy_transposed(rows, to_bytes, side_by_side + first * step, step, item, count, lanes);
  };
  for (int64_t group = 0; group < groups; ++group, from += lanes * from_bytes, to += lanes * to_bytes) {
    if (is_complex) {
      bring(0, from, 2 * n);
      auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(n);
      plan->exec(reinterpret_cast<pocketfft::detail::cmplx<Lanes>*>(buffer.data()), scale, pass.forward);
      take_back(to, 0, 2 * n);
      continue;
    }
    // The real side's plan has the first number, which is real, and then pairs; the complex side has the first one's
    // imaginary part too, and with an even length the last one's.
    auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_r<T>>(n);
    if (pass.kind == FftPass::Kind::RealToComplex) {
      bring(0, from, n);
      plan->exec(buffer.data(), scale, true);
      take_back(to + 2 * item, 1, n - 1);
      for (int64_t i = 0; i < lanes; ++i) {
        T* row = reinterpret_cast<T*>(to + i * to_bytes);
        row[0] = buffer[0][i];
        row[1] = 0;
        if (n % 2 == 0) row[n + 1] = 0;
      }
    } else {
      bring(1, from + 2 * item, n - 1);
      for (int64_t i = 0; i < lanes; ++i) buffer[0][i] = *reinterpret_cast<const T*>(from + i * from_bytes);
      plan->exec(buffer.data(), scale, false);
      take_back(to, 0, n);
    }
  }
}

}  // namespace

int64_t fft_lanes(bool wide) {
  return static_cast<int64_t>(wide ? pocketfft::detail::VLEN<double>::val : pocketfft::detail::VLEN<float>::val);
}
void fft_rows(const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes, int64_t groups) {
  pass.wide ? run_rows<double>(pass, from, from_bytes, to, to_bytes, groups)
            : run_rows<float>(pass, from, from_bytes, to, to_bytes, groups);
}
void fft_pass(const FftPass& pass) { pass.wide ? run<double>(pass) : run<float>(pass); }

}  // namespace umbra::kernels::UMBRA_ISA
