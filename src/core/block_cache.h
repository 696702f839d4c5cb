// Large blocks of memory, kept after they were freed.
#pragma once

#include <cstddef>
#include <mutex>

namespace umbra {

/// Gives blocks of at least kSmallest bytes and keeps those that come back, by classes of sizes that lie an eighth of a
/// power of two apart. Past the limit the blocks that were kept longest go.
class BlockCache {
 public:
  static constexpr size_t kSmallest = size_t{1} << 14;

  /// 64-byte aligned; null where the system has no more.
  void* take(size_t bytes);
  void put(void* data) noexcept;
  /// How many bytes are kept.
  size_t bytes() const;
  void set_limit(size_t bytes);
  /// Frees kept blocks, the oldest first, until at most `bytes` are left.
  void shrink(size_t bytes) noexcept;

  static BlockCache& get();

 private:
  // Stands before the data. While a block is kept it is in two lists: of its class, and of all by age.
  struct alignas(64) Header {
    size_t capacity;
    size_t size_class;
    Header *newer, *older;    // by age
    Header *before, *behind;  // in its class; the first was kept last
  };
  static constexpr size_t kSteps = 8, kClasses = 64 * kSteps;

  BlockCache();
  static size_t class_of(size_t bytes);
  static size_t capacity_of(size_t size_class);
  Header* pop(size_t size_class) noexcept;
  void remove(Header* header) noexcept;
  void insert(Header* header) noexcept;
  void shrink_locked(size_t bytes) noexcept;

  mutable std::mutex mutex_;
  Header* classes_[kClasses] = {};
  Header *oldest_ = nullptr, *newest_ = nullptr;
  size_t bytes_ = 0, limit_;
};

}  // namespace umbra
