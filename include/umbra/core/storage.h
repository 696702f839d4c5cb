// The memory that tensors are views of: shared, resizable, weakly referenceable, or absent for fake tensors.
#pragma once

#include <functional>

#include "umbra/core/allocator.h"
#include "umbra/core/intrusive.h"
#include "umbra/core/sym_int.h"

namespace UMBRA_API umbra {

/// A block of bytes on a device. Without data (fake, meta) it still has an identity and a size.
class StorageImpl final : public RefCounted {
 public:
  /// Memory of our own, 64-byte aligned, not initialised, from the device's allocator.
  static IntrusivePtr<StorageImpl> allocate(int64_t bytes, Device device = {});
  /// A storage that holds nothing: for fake and meta tensors.
  static IntrusivePtr<StorageImpl> without_data(SymInt bytes, Device device);
  /// Foreign memory; `release` is called when the last reference goes.
  static IntrusivePtr<StorageImpl> wrap(void* data, int64_t bytes, std::function<void()> release);
  /// A block that `from` has given already, and takes back in the end.
  static IntrusivePtr<StorageImpl> adopt(Allocator& from, Allocator::Block block, int64_t bytes, Device device = {});
  ~StorageImpl() override;

  void* data() const { return data_; }
  SymInt bytes() const { return bytes_; }
  void set_bytes(SymInt bytes) { bytes_ = bytes; }
  Device device() const { return device_; }
  bool has_data() const { return has_data_; }
  bool resizable() const { return !release_ && (!allocator_ || allocator_->resizable()); }
  /// Grows or shrinks; contents up to the smaller size stay. Foreign memory cannot be resized.
  void resize(int64_t bytes);
  /// To memory of another allocator of the same device; tensors and their contents go along.
  void move_to(Allocator& other);
  /// Whose block this is, and what it needs to know it by; null for small contents and foreign memory.
  const Allocator* allocator() const { return allocator_; }
  void* handle() const { return handle_; }

  /// How often the contents were changed through tensors that share the default counter.
  uint32_t version() const { return version_; }
  void bump_version() { ++version_; }

  // Small contents stand behind the object itself: one allocation instead of two.
  struct Behind {
    size_t bytes;
  };
  static void* operator new (size_t size, Behind contents = {0});
  static void operator delete(void* object) noexcept;
  static void operator delete(void* object, Behind contents) noexcept;

 protected:
  void release_resources() override;

 private:
  void free_block() noexcept;
  void replace_block(Allocator& by, int64_t bytes);

  void* data_ = nullptr;
  Allocator* allocator_ = nullptr;  // which takes the memory back; null for small contents and foreign memory
  void* handle_ = nullptr;          // its own
  SymInt bytes_ = 0;
  Device device_;
  bool has_data_ = true;
  uint32_t version_ = 0;
  std::function<void()> release_;
};
using Storage = IntrusivePtr<StorageImpl>;

}  // namespace umbra
