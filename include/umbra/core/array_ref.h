// Views of arrays and a small vector without allocation: what sizes, strides and argument lists are made of.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// A borrowed array: pointer and length. Like std::span, and a braced list converts to it (`view(x, {2, 3})`).
template <class T> class ArrayRef {
 public:
  using value_type = T;
  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N> ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  /// Good until the end of the full expression: for arguments, never for variables.
  ArrayRef(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  template <class C>
  requires(!std::is_same_v<C, std::vector<T>> &&
           requires(const C& c) {
             { c.data() } -> std::convertible_to<const T*>;
             c.size();
           }) ArrayRef(const C& container)
      : data_(container.data()), size_(container.size()) {}

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  ArrayRef drop_front(size_t n = 1) const { return {data_ + n, size_ - n}; }
  ArrayRef drop_back(size_t n = 1) const { return {data_, size_ - n}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool operator==(const ArrayRef& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

/// A vector of trivially copyable elements whose first N stand inside the object.
template <class T, size_t N = 6> class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  SmallVector() = default;
  explicit SmallVector(size_t count, T value = T()) { assign(count, value); }
  SmallVector(std::initializer_list<T> list) { append(list.begin(), list.end()); }
  explicit SmallVector(ArrayRef<T> other) { append(other.begin(), other.end()); }
  template <class It>
  requires(!std::is_integral_v<It>) SmallVector(It first, It last) { append(first, last); }
  SmallVector(const SmallVector& other) { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      if (data_ != inline_()) delete[] reinterpret_cast<Slot*>(data_);
      steal(other);
    }
    return *this;
  }
  ~SmallVector() {
    if (data_ != inline_()) delete[] reinterpret_cast<Slot*>(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  void clear() { size_ = 0; }
  void push_back(T value) {
    reserve(size_ + 1);
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void resize(size_t count, T value = T()) {
    reserve(count);
    for (size_t i = size_; i < count; ++i) data_[i] = value;
    size_ = static_cast<uint32_t>(count);
  }
  void assign(size_t count, T value) {
    clear();
    resize(count, value);
  }
  template <class It> void append(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::move(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    size_t capacity = std::max(count, size_t{2} * capacity_);
    T* grown = reinterpret_cast<T*>(new Slot[capacity]);
    std::memcpy(static_cast<void*>(grown), data_, size_ * sizeof(T));
    if (data_ != inline_()) delete[] reinterpret_cast<Slot*>(data_);
    data_ = grown;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool operator==(const SmallVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  struct alignas(T) Slot {
    std::byte bytes[sizeof(T)];
  };
  T* inline_() { return reinterpret_cast<T*>(storage_); }
  void steal(SmallVector& other) {
    size_ = other.size_;
    if (other.data_ == other.inline_()) {
      data_ = inline_();
      capacity_ = N;
      std::memcpy(storage_, other.storage_, sizeof(storage_));
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_();
      other.capacity_ = N;
    }
    other.size_ = 0;
  }
  T* data_ = inline_();
  uint32_t size_ = 0, capacity_ = N;
  Slot storage_[N];
};

template <class T> std::string to_string(ArrayRef<T> values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    using std::to_string;
    out += to_string(values[i]);
  }
  return out + "]";
}
template <class T, size_t N> std::string to_string(const SmallVector<T, N>& values) {
  return to_string(ArrayRef<T>(values.data(), values.size()));
}

}  // namespace umbra
