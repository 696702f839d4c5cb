// A square of numbers, as many as a register has lanes, transposed in registers.
#pragma once

#include <utility>

#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {

/// fn(0), fn(1), ..., written out, so that the compiler sees numbers of arrays as registers.
template <int count, class Fn> [[gnu::always_inline]] inline void each(const Fn& fn) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (fn(std::integral_constant<int, i>()), ...);
  }
  (std::make_integer_sequence<int, count>());
}

/// In step s, rows that are s apart swap what they have on the other side of the diagonal.
template <int s, int size, class T> [[gnu::always_inline]] inline void swap_blocks(T (&rows)[size]) {
  each<size / 2>([&](auto pair) __attribute__((always_inline)) {
    constexpr int i = pair / s * 2 * s + pair % s;
    auto a = rows[i], b = rows[i + s];  // side by side: the lanes that stay or come
    [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
      rows[i] = __builtin_shufflevector(a, b, (lane & s ? size + lane - s : lane)...);
      rows[i + s] = __builtin_shufflevector(a, b, (lane & s ? size + lane : lane + s)...);
    }
    (std::make_integer_sequence<int, size>());
  });
}

/// Of registers of any elements of 4 or 8 bytes.
template <int size, class T> [[gnu::always_inline]] inline void transpose_square(T (&rows)[size]) {
  static_assert(size * sizeof(rows[0][0]) == kVectorBytes);
  if constexpr (size == 16) swap_blocks<8>(rows);
  if constexpr (size >= 8) swap_blocks<4>(rows);
  swap_blocks<2>(rows);
  swap_blocks<1>(rows);
}

}  // namespace umbra::kernels::UMBRA_ISA
