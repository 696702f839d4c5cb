// Reference counting inside the object: one allocation an object, one word a pointer, and weak references.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

template <class T> class IntrusivePtr;
template <class T> class WeakPtr;

/// Base of everything that is shared by counting. Strong references keep the contents, weak ones only the memory.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const noexcept { strong_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (strong_.fetch_sub(1, std::memory_order_acq_rel) == 1) expire();
  }
  uint32_t use_count() const noexcept { return strong_.load(std::memory_order_relaxed); }

 protected:
  /// Drops what the object holds when the last strong reference goes while weak ones remain.
  virtual void release_resources() {}

 private:
  template <class T> friend class WeakPtr;
  void expire() const noexcept;
  void retain_weak() const noexcept { weak_.fetch_add(1, std::memory_order_relaxed); }
  void release_weak() const noexcept {
    if (weak_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool lock() const noexcept {
    uint32_t count = strong_.load(std::memory_order_relaxed);
    while (count != 0)
      if (strong_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  mutable std::atomic<uint32_t> strong_{0};
  mutable std::atomic<uint32_t> weak_{1};  // all strong references together hold one
};

inline void RefCounted::expire() const noexcept {
  if (weak_.load(std::memory_order_acquire) == 1) {
    delete this;
    return;
  }
  const_cast<RefCounted*>(this)->release_resources();
  release_weak();
}

/// A counted pointer. `IntrusivePtr<T>::adopt(p)` takes over a reference that `leak()` gave up.
template <class T> class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}
  explicit IntrusivePtr(T* pointer) : pointer_(pointer) {
    if (pointer_) pointer_->retain();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.pointer_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U>& other)
      : IntrusivePtr(static_cast<T*>(other.get())) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(IntrusivePtr<U>&& other)
  noexcept : pointer_(other.leak()) {}
  ~IntrusivePtr() {
    if (pointer_) pointer_->release();
  }
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }

  static IntrusivePtr adopt(T* pointer) {
    IntrusivePtr result;
    result.pointer_ = pointer;
    return result;
  }
  T* leak() { return std::exchange(pointer_, nullptr); }
  T* get() const { return pointer_; }
  T* operator->() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  bool operator==(const IntrusivePtr& other) const { return pointer_ == other.pointer_; }

 private:
  T* pointer_ = nullptr;
};

template <class T, class... Args> IntrusivePtr<T> make_counted(Args&&... args) {
  return IntrusivePtr<T>(new T(std::forward<Args>(args)...));
}

/// A pointer that does not keep its object; `lock()` gives a counted one, or null once the object has gone.
template <class T> class WeakPtr {
 public:
  WeakPtr() = default;
  explicit WeakPtr(const IntrusivePtr<T>& strong) : pointer_(strong.get()) {
    if (pointer_) pointer_->retain_weak();
  }
  WeakPtr(const WeakPtr& other) : pointer_(other.pointer_) {
    if (pointer_) pointer_->retain_weak();
  }
  WeakPtr(WeakPtr&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  WeakPtr& operator=(WeakPtr other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~WeakPtr() {
    if (pointer_) pointer_->release_weak();
  }
  IntrusivePtr<T> lock() const {
    return pointer_ && pointer_->lock() ? IntrusivePtr<T>::adopt(pointer_) : IntrusivePtr<T>();
  }
  bool expired() const { return !pointer_ || pointer_->use_count() == 0; }
  const void* identity() const { return pointer_; }

 private:
  T* pointer_ = nullptr;
};

}  // namespace umbra
