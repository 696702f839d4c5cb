// Memory for what graphs make and drop by the thousand: a trace of a model has as many small objects as it has nodes.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {
namespace jit {

/// Small pieces of memory of a thread: what is given back is kept for the next of its size.
class Recycled {
 public:
  static void* take(size_t bytes) {
    if (bytes > kLargest) return ::operator new(bytes);
    Slot*& free = lists.first[place(bytes)];
    if (!free) return fresh((place(bytes) + 1) * kStep);
    return std::exchange(free, free->next);
  }
  static void give(void* memory, size_t bytes) {
    if (bytes > kLargest || lists.closed) return ::operator delete(memory);
    Slot*& free = lists.first[place(bytes)];
    free = new (memory) Slot{free};
  }

 private:
  static constexpr size_t kStep = 16, kLargest = 320;
  static size_t place(size_t bytes) { return (bytes - 1) / kStep; }
  static void* fresh(size_t bytes);
  struct Slot {
    Slot* next;
  };
  struct Lists {
    std::array<Slot*, kLargest / kStep> first{};
    bool closed = false;  // the thread ends
  };
  struct Cleaner;
  // initial-exec: read for every small object, and the general model would cost a function call each time.
  static constinit thread_local Lists lists __attribute__((tls_model("initial-exec")));
};

/// The same for the standard's containers.
template <class T> struct RecyclingAllocator {
  using value_type = T;
  RecyclingAllocator() = default;
  template <class U> RecyclingAllocator(const RecyclingAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(Recycled::take(n * sizeof(T))); }
  void deallocate(T* p, size_t n) { Recycled::give(p, n * sizeof(T)); }
  bool operator==(const RecyclingAllocator&) const { return true; }
};

/// For classes whose objects are made one by one.
template <class T> struct RecycledObject {
  static void* operator new(size_t) { return Recycled::take(sizeof(T)); }
  static void operator delete(void* memory) { Recycled::give(memory, sizeof(T)); }
};

}  // namespace jit
}  // namespace umbra
