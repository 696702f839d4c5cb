#include "kernels/isa.h"

#include <cstdlib>
#include <string_view>

#include "umbra/core/error.h"

namespace umbra::kernels {

namespace {
Isa choose() {
  // These ask both the processor and the operating system (whether it saves the wide registers).
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  check(avx2, "Umbra needs a processor with AVX2");
  const char* wish = std::getenv("UMBRA_ISA");
  if (!wish) return avx512 ? Isa::Avx512 : Isa::Avx2;
  std::string_view name = wish;
  check<ValueError>(name == "avx2" || name == "avx512", "UMBRA_ISA must be avx2 or avx512, but is ", name);
  check(name == "avx2" || avx512, "UMBRA_ISA=avx512 was asked for, but this processor has no AVX-512");
  return name == "avx512" ? Isa::Avx512 : Isa::Avx2;
}
}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace umbra::kernels
