// Where memory comes from: one allocator for each type of device that can hold data.
#pragma once

#include "umbra/core/device.h"

namespace UMBRA_API umbra {

/// Gives and takes memory of one type of device. Used from any thread.
class Allocator {
 public:
  /// A piece of memory: where its contents start, and what the allocator needs to take it back.
  struct Block {
    void* data = nullptr;
    void* handle = nullptr;
  };
  /// At least 64-byte aligned, not initialised; an OutOfMemoryError where there is none.
  virtual Block allocate(int64_t bytes, Device device) = 0;
  virtual void free(Block block) noexcept = 0;
  /// Within one device: for storages that grow, or move to another allocator.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  /// False: a block stays as large as it is, since others know it too.
  virtual bool resizable() const { return true; }

 protected:
  ~Allocator() = default;  // not by this class: an allocator stays as long as its blocks
};

/// Null: no tensor on such a device can hold data in this process.
Allocator* allocator(DeviceType type);
/// Installs an allocator (null: none), which must outlive what it gave, and returns the one that was there.
Allocator* set_allocator(DeviceType type, Allocator* allocator);

}  // namespace umbra
