#include "kernels/onednn.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "kernels/openmp.h"
#include "kernels/parallel.h"
#include "umbra/core/storage.h"

namespace umbra::kernels::onednn {
namespace {

bool processor_lists_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTiles);
}

// Some virtual machines list AMX but hide the leaf that says how large the tiles are. oneDNN then configures no tiles,
// and the first instruction that uses one faults. The operating system, too, has to allow tiles to a process that asks.
bool amx_runs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTileLeaf = 0x1d;
  bool has_palette = __get_cpuid_count(kTileLeaf, 0, &a, &b, &c, &d) && a >= 1;
  bool has_rows = has_palette && __get_cpuid_count(kTileLeaf, 1, &a, &b, &c, &d) && a != 0 && b != 0 && c != 0;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return has_rows && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Whether the environment already holds oneDNN to a set without AMX. Names that this oneDNN does not know it ignores.
bool environment_excludes_amx() {
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(variable);
    for (const char* name :
         {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16"})
      if (value && std::string_view(value) == name) return true;
  }
  return false;
}

void settle_instruction_set() {
  if (environment_excludes_amx() || !processor_lists_amx() || amx_runs()) return;
  dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
}

}  // namespace

dnnl::engine& engine() {
  // Never destroyed: cached primitives of other translation units may outlive any static object here.
  static dnnl::engine& engine = *[] {
    settle_instruction_set();
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::stream& stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

dnnl::memory::data_type data_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::Float32: return Type::f32;
    case DType::BFloat16: return Type::bf16;
    case DType::Int32: return Type::s32;
    case DType::Int8: return Type::s8;
    case DType::UInt8: return Type::u8;
    default: return Type::undef;
  }
}

void* scratch(size_t bytes) {
  thread_local Storage storage;
  if (bytes == 0) return nullptr;
  if (!storage || storage->bytes().value() < static_cast<int64_t>(bytes)) {
    storage = StorageImpl::allocate(static_cast<int64_t>(bytes));
  }
  return storage->data();
}

void append(Key& key, IntArrayRef values) {
  key.push_back(static_cast<int64_t>(values.size()));
  key.insert(key.end(), values.begin(), values.end());
}

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t a_leading, const float* b, int64_t b_leading, float beta, float* c, int64_t c_leading) {
  engine();  // the instruction set has to be settled before the first use of oneDNN, whatever it is
  OneThread here;
  dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, a_leading, b, b_leading, beta, c,
             c_leading);
}

dnnl::primitive_attr attributes(float alpha, float beta) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
#if DNNL_VERSION_MAJOR >= 3
  if (alpha != 1) after.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0);
#else
  if (alpha != 1) attributes.set_output_scales(0, {alpha});
#endif
  if (beta != 0) after.append_sum(beta);
  if (after.len() > 0) attributes.set_post_ops(after);
  return attributes;
}

}  // namespace umbra::kernels::onednn
