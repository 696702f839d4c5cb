#include "kernels/vector/fft.h"

#include <pthread.h>

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
/// A block that a thread keeps for the transforms of short sides, which take less time than an allocation. What is
/// taken while one runs is given back before it ends; what plans keep is taken at other times.
struct KeptBlock {
  static constexpr size_t kSize = 32768;
  void* block = nullptr;
  bool lendable = false, lent = false;
  ~KeptBlock() { std::free(block); }
};
/// This thread's. It lies behind a key of the system's: of thread-local memory there is little for all libraries.
KeptBlock& kept_block() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    if (pthread_key_create(&made, [](void* block) { delete static_cast<KeptBlock*>(block); }) != 0)
      throw std::runtime_error("there are no more keys for what threads keep");
    return made;
  }();
  auto* block = static_cast<KeptBlock*>(pthread_getspecific(key));
  if (!block) pthread_setspecific(key, block = new KeptBlock);
  return *block;
}
struct LendKeptBlock {
  LendKeptBlock() { kept_block().lendable = true; }
  ~LendKeptBlock() { kept_block().lendable = false; }
};

[[maybe_unused]] void* take_memory(size_t bytes) {
  size_t total = (bytes + sizeof(MemoryHeader) + 63) / 64 * 64;
  if (KeptBlock& kept = kept_block(); kept.lendable && total <= KeptBlock::kSize && !kept.lent) {
    if (!kept.block) kept.block = std::aligned_alloc(64, KeptBlock::kSize);
    if (!kept.block) return nullptr;
    kept.lent = true;
    static_cast<MemoryHeader*>(kept.block)->cached = false;
    return static_cast<MemoryHeader*>(kept.block) + 1;
  }
  bool cached = total >= BlockCache::kSmallest;
  void* block = cached ? BlockCache::get().take(total) : std::aligned_alloc(64, total);
  if (!block) return nullptr;
  static_cast<MemoryHeader*>(block)->cached = cached;
  return static_cast<MemoryHeader*>(block) + 1;
}
[[maybe_unused]] void give_memory_back(void* memory) {
  if (!memory) return;
  MemoryHeader* header = static_cast<MemoryHeader*>(memory) - 1;
  if (KeptBlock& kept = kept_block(); header == kept.block) {
    kept.lent = false;
    return;
  }
  header->cached ? BlockCache::get().put(header) : std::free(header);
}
}  // namespace
}  // namespace umbra::kernels::UMBRA_ISA
#define aligned_alloc(alignment, bytes) umbra::kernels::UMBRA_ISA::take_memory(bytes)
#define free(memory) umbra::kernels::UMBRA_ISA::give_memory_back(memory)
#include <pocketfft_hdronly.h>
#undef aligned_alloc
#undef free
#include "kernels/vector/fft_of_row.h"

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

/// Transforms of rows that lie side by side in registers, one row in each lane.
template <class T> class RowGroups {
 public:
  static constexpr int64_t lanes = pocketfft::detail::VLEN<T>::val, step = sizeof(Lanes<T>);

  explicit RowGroups(const FftPass& pass)
      : pass_(pass),
        n_(pass.sizes.back()),
        half_(2 * (n_ / 2 + 1)),
        buffer_(pass.kind == FftPass::Kind::ComplexToComplex ? 2 * n_ : half_ + 1) {}

  void run(const char* from, int64_t from_bytes, char* to, int64_t to_bytes, int64_t groups) {
    if (pass_.kind == FftPass::Kind::ComplexToComplex) {
      auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<T>>(n_);
      auto* numbers = reinterpret_cast<LanePairs<T>*>(buffer_.data());
      each(from, from_bytes, to, to_bytes, groups, {0, 2 * n_}, {0, 2 * n_},
           [&] { plan->exec(numbers, scale(), pass_.forward); });
      return;
    }
    // The plan takes and gives the first number, which is real, and then pairs. The complex side has the first one's
    // imaginary part too, and with an even length the last one's: what is real begins one place later.
    auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_r<T>>(n_);
    Lanes<T>* pairs = buffer_.data();
    if (pass_.kind == FftPass::Kind::RealToComplex) {
      each(from, from_bytes, to, to_bytes, groups, {1, n_}, {0, half_}, [&] {
        plan->exec(pairs + 1, scale(), true);
        pairs[0] = pairs[1];
        pairs[1] = Lanes<T>{};
        if (n_ % 2 == 0) pairs[n_ + 1] = Lanes<T>{};
      });
    } else {
      each(from, from_bytes, to, to_bytes, groups, {0, half_}, {1, n_}, [&] {
        pairs[1] = pairs[0];
        plan->exec(pairs + 1, scale(), false);
      });
    }
  }

 private:
  struct Part {
    size_t first, count;  // of the buffer
  };
  T scale() const { return static_cast<T>(pass_.scale); }

  template <class Fn>
  void each(const char* from, int64_t from_bytes, char* to, int64_t to_bytes, int64_t groups, Part in, Part out,
            const Fn& transform) {
    char* side_by_side = reinterpret_cast<char*>(buffer_.data());
    for (int64_t group = 0; group < groups; ++group, from += lanes * from_bytes, to += lanes * to_bytes) {
      copy_transposed(side_by_side + in.first * step, step, from, from_bytes, sizeof(T), lanes, in.count);
      transform();
      copy_transposed(to, to_bytes, side_by_side + out.first * step, step, sizeof(T), out.count, lanes);
    }
  }

  const FftPass& pass_;
  size_t n_, half_;  // numbers of a row, on the real side and on the side of half the complex ones
  pocketfft::detail::arr<Lanes<T>> buffer_;
};

}  // namespace

int64_t fft_lanes(bool wide) {
  return static_cast<int64_t>(wide ? pocketfft::detail::VLEN<double>::val : pocketfft::detail::VLEN<float>::val);
}
void fft_rows(const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes, int64_t groups) {
  pass.wide ? RowGroups<double>(pass).run(from, from_bytes, to, to_bytes, groups)
            : RowGroups<float>(pass).run(from, from_bytes, to, to_bytes, groups);
}
bool fft_takes_row(const FftPass& pass, int64_t rows) {
  bool complex = pass.kind == FftPass::Kind::ComplexToComplex;
  size_t n = pass.sizes.back();
  if (!complex && n % 2 != 0) return false;
  n = complex ? n : n / 2;
  // Side by side, rows of this length and a copy of them would be far from the core.
  constexpr size_t kNear = 300'000;
  double most = rows < fft_lanes(pass.wide) ? kMostWaste : 2 * n * 2 * kVectorBytes > kNear ? kLittleWaste : kNoWaste;
  return n >= kLongRow &&
         (pass.wide ? kept_plan<RowSides<double>>(n)->waste : kept_plan<RowSides<float>>(n)->waste) <= most;
}
void fft_long_rows(const FftPass& pass, const char* from, int64_t from_bytes, char* to, int64_t to_bytes,
                   int64_t rows) {
  pass.wide ? transform_long_rows<double>(pass, from, from_bytes, to, to_bytes, rows)
            : transform_long_rows<float>(pass, from, from_bytes, to, to_bytes, rows);
}
void fft_pass(const FftPass& pass) {
  if (pass.wide) ColumnPass<double>::takes(pass) ? ColumnPass<double>(pass).run() : run<double>(pass);
  else ColumnPass<float>::takes(pass) ? ColumnPass<float>(pass).run() : run<float>(pass);
}

}  // namespace umbra::kernels::UMBRA_ISA
