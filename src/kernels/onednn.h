// oneDNN as the kernels use it: an engine that is held to instructions which really run, one stream a thread, scratch
// memory, and a cache of primitives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "umbra/core/array_ref.h"
#include "umbra/core/dtype.h"

namespace umbra::kernels::onednn {

/// The CPU engine. The first call settles the instruction set.
dnnl::engine& engine();
/// The calling thread's stream.
dnnl::stream& stream();
/// oneDNN's name of a dtype; undef where it has none.
dnnl::memory::data_type data_type(DType dtype);
/// Memory of at least that many bytes that belongs to the calling thread, for a primitive's scratchpad.
void* scratch(size_t bytes);

/// What distinguishes one primitive from another: shapes, strides, types and options, as numbers.
using Key = std::vector<int64_t>;
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (int64_t value : key) hash = (hash ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdull, hash ^= hash >> 32;
    return hash;
  }
};
/// Appends a length and the numbers, so that two lists in a row cannot be mistaken for other two.
void append(Key& key, IntArrayRef values);

/// A bounded cache of plans. A plan is whatever a kernel needs to run again without asking oneDNN: primitive,
/// descriptors.
template <class Plan> class PlanCache {
 public:
  /// The plan of the key, made by `make` where there is none.
  std::shared_ptr<const Plan> get(Key key, const std::function<std::shared_ptr<const Plan>()>& make) {
    {
      std::lock_guard lock(mutex_);
      auto found = plans_.find(key);
      if (found != plans_.end()) return found->second;
    }
    auto plan = make();
    std::lock_guard lock(mutex_);
    if (plans_.size() >= kCapacity) plans_.clear();
    plans_.emplace(std::move(key), plan);
    return plan;
  }

 private:
  static constexpr size_t kCapacity = 1024;
  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
};

/// While it lives, OpenMP code called from this thread, oneDNN's included, keeps to this thread: it is the kernels that
/// share work out (kernels/parallel.h), and a second pool of threads would stand in the way of the first.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// c = alpha * op(a) op(b) + beta * c in float, row-major, op being transposition where asked for; for blocks inside
/// kernels.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t a_leading, const float* b, int64_t b_leading, float beta, float* c, int64_t c_leading);

/// Attributes of primitives whose result is alpha * what they compute + beta * what was there. Scratch memory is the
/// caller's, so that a primitive may run in several threads at once.
dnnl::primitive_attr attributes(float alpha = 1, float beta = 0);

/// The implementation that oneDNN chooses for a primitive of these parts (memory descriptions, strides, ...); empty
/// where it has none. The third version of oneDNN has no descriptions of operations apart from those of primitives.
template <class Primitive, class... Parts>
typename Primitive::primitive_desc choose(const dnnl::primitive_attr& attributes, const Parts&... parts) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), parts..., attributes, /*allow_empty=*/true);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(parts...), attributes, engine(),
                                            /*allow_empty=*/true);
#endif
}
/// The same for a backward pass, which asks what the forward one has chosen.
template <class Primitive, class Forward, class... Parts>
typename Primitive::primitive_desc choose_backward(const Forward& forward, const Parts&... parts) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), parts..., forward, attributes(), /*allow_empty=*/true);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(parts...), attributes(), engine(), forward,
                                            /*allow_empty=*/true);
#endif
}

}  // namespace umbra::kernels::onednn
