// Elements with their places as numbers that are compared without a branch: what sorting and selecting work on.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace umbra::kernels {

/// The order of elements: NaN comes after all numbers.
template <class T> bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}
template <class T> bool before(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }

/// An unsigned number that orders as the element does: NaN is the last of all, and -0 equals 0.
template <class T> auto order_key(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    Bits bits = std::bit_cast<Bits>(x == 0 ? T(0) : x);
    Bits key = bits & sign ? ~bits : bits | sign;
    return x == x ? key : ~Bits{0};
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<uint64_t>(x) ^ (std::is_signed_v<T> ? uint64_t{1} << 63 : 0);
  } else {
    return static_cast<uint32_t>(x) ^ (std::is_signed_v<T> ? uint32_t{1} << 31 : 0);
  }
}

/// Whether a key is that of NaN.
template <class T> bool is_nan_key(uint64_t key) {
  return std::is_floating_point_v<T> && key == std::numeric_limits<decltype(order_key(T()))>::max();
}

/// The number that a key stands for.
template <class T> T from_order_key(decltype(order_key(T())) key) {
  constexpr auto sign = decltype(key){1} << (8 * sizeof(key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (is_nan_key<T>(key)) return std::numeric_limits<T>::quiet_NaN();
    return std::bit_cast<T>(key & sign ? key ^ sign : ~key);
  } else {
    return static_cast<T>(std::is_signed_v<T> ? key ^ sign : key);
  }
}

/// A key of 32 bits and a place that fits as many: one number.
struct NarrowKey {
  uint64_t bits;
  NarrowKey() = default;
  NarrowKey(uint32_t key, int64_t place) : bits(uint64_t{key} << 32 | static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(bits & 0xffffffff); }
  static constexpr int width = 32;
  uint64_t key() const { return bits >> 32; }
  friend bool operator<(NarrowKey a, NarrowKey b) { return a.bits < b.bits; }
};

struct WideKey {
  uint64_t bits, at;
  WideKey() = default;
  WideKey(uint64_t key, int64_t place) : bits(key), at(static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(at); }
  static constexpr int width = 64;
  uint64_t key() const { return bits; }
  friend bool operator<(const WideKey& a, const WideKey& b) {
    auto whole = [](const WideKey& k) { return static_cast<unsigned __int128>(k.bits) << 64 | k.at; };
    return whole(a) < whole(b);
  }
};

/// Calls `fn` with a null pointer to the kind of key that n elements of type T need.
template <class T, class Fn> void with_key_type(int64_t n, const Fn& fn) {
  if constexpr (sizeof(order_key(T())) == 4)
    if (n <= int64_t{0xffffffff}) return fn(static_cast<NarrowKey*>(nullptr));
  fn(static_cast<WideKey*>(nullptr));
}

namespace detail {
/// By digits of the key, the lowest first; a pass keeps the order of equal digits.
template <int bits, class Key> void sort_by_digits(Key* keys, Key* spare, int64_t n) {
  constexpr int passes = (Key::width + bits - 1) / bits;
  auto digit = [](Key key, int pass) { return key.key() >> (pass * bits) & ((1 << bits) - 1); };
  std::array<std::array<int64_t, 1 << bits>, passes> counts{};
  for (int64_t i = 0; i < n; ++i)
    for (int pass = 0; pass < passes; ++pass) ++counts[pass][digit(keys[i], pass)];
  Key *from = keys, *to = spare;
  for (int pass = 0; pass < passes; ++pass) {
    auto& starts = counts[pass];
    if (starts[digit(from[0], pass)] == n) continue;  // the same digit in all
    int64_t start = 0;
    for (int64_t& count : starts) start += std::exchange(count, start);
    for (int64_t i = 0; i < n; ++i) to[starts[digit(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
  if (from != keys) std::copy_n(from, n, keys);
}
}  // namespace detail

/// Sorts keys that come in the order of their places. `spare` has room for as many. Large digits take fewer passes, as
/// long as the places that they write to stay in the caches.
template <class Key> void sort_keys(Key* keys, Key* spare, int64_t n) {
  constexpr int64_t kFew = 3 * Key::width, kMany = 1 << 14, kBeyondCaches = 1 << 18;
  if (n < kFew) std::sort(keys, keys + n);
  else if (n < kMany || n > kBeyondCaches) detail::sort_by_digits<8>(keys, spare, n);
  else detail::sort_by_digits<11>(keys, spare, n);
}

}  // namespace umbra::kernels
