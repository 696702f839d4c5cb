#include "kernels/vector/convert.h"

#include <algorithm>
#include <limits>

#include "kernels/math.h"
#include "kernels/types.h"
#include "kernels/vector/square.h"
#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {

namespace {

using Loop = void (*)(char* out, const char* in, int64_t n);
struct LoopTable {
  Loop loops[kDTypeCount][kDTypeCount] = {};  // [from][to]
};

/// As x86 converts: what does not fit, or is no number, is the least integer. Without a branch, so that loops stay
/// vectors.
template <class To, class From> To truncate(From value) {
  constexpr From least = static_cast<From>(std::numeric_limits<To>::min());
  return static_cast<To>(value >= least && value < -least ? value : least);
}

/// Narrow types take the low bits of a wider integer; so negative numbers wrap around.
template <class To, class From> To to_integer(From value) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    constexpr From half = static_cast<From>(0x1p63);
    uint64_t low = static_cast<uint64_t>(truncate<int64_t>(value));
    return value >= half ? static_cast<uint64_t>(truncate<int64_t>(value - half)) ^ uint64_t { 1 } << 63 : low;
  } else {
    using Wide = std::conditional_t<sizeof(To) == 8 || std::is_same_v<To, uint32_t>, int64_t, int32_t>;
    return static_cast<To>(truncate<Wide>(value));
  }
}

template <class To, class From> To cast(From value) {
  if constexpr (math::is_complex<From> && math::is_complex<To>) {
    return To(value);
  } else if constexpr (math::is_complex<From>) {
    if constexpr (math::is_bool<To>) return value != From(0);
    else return cast<To>(value.real());
  } else if constexpr (math::is_complex<To>) {
    return To(static_cast<typename To::value_type>(value));
  } else if constexpr (math::is_bool<To>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From> void convert_loop(char* out_bytes, const char* in_bytes, int64_t n) {
  To* __restrict out = reinterpret_cast<To*>(out_bytes);
  if constexpr (math::is_bool<From>) {
    const uint8_t* __restrict in = reinterpret_cast<const uint8_t*>(in_bytes);  // foreign memory may hold other bytes
    for (int64_t i = 0; i < n; ++i) out[i] = cast<To>(in[i] != 0);
  } else {
    const From* __restrict in = reinterpret_cast<const From*>(in_bytes);
    for (int64_t i = 0; i < n; ++i) out[i] = cast<To>(in[i]);
  }
}

// The narrow floating types convert to and from float only; everything else goes through it.
template <class Narrow> void widen_loop(char* out_bytes, const char* in_bytes, int64_t n) {
  float* __restrict out = reinterpret_cast<float*>(out_bytes);
  const Narrow* __restrict in = reinterpret_cast<const Narrow*>(in_bytes);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
template <class Narrow> void narrow_loop(char* out_bytes, const char* in_bytes, int64_t n) {
  Narrow* __restrict out = reinterpret_cast<Narrow*>(out_bytes);
  const float* __restrict in = reinterpret_cast<const float*>(in_bytes);
  for (int64_t i = 0; i < n; ++i) out[i] = Narrow(in[i]);
}

// The compiler does not vectorise conversions of half precision by itself.
template <> void widen_loop<Half>(char* out_bytes, const char* in_bytes, int64_t n) {
  float* out = reinterpret_cast<float*>(out_bytes);
  const Half* in = reinterpret_cast<const Half*>(in_bytes);
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16)
    Vec<float>(_mm512_maskz_cvtph_ps(-1, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)))).store(out + i);
#endif
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; ++i) out[i] = _cvtsh_ss(in[i].bits);
}
template <> void narrow_loop<Half>(char* out_bytes, const char* in_bytes, int64_t n) {
  Half* out = reinterpret_cast<Half*>(out_bytes);
  const float* in = reinterpret_cast<const float*>(in_bytes);
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm512_maskz_cvtps_ph(-1, Vec<float>::load(in + i).raw, nearest));
#endif
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), nearest));
  for (; i < n; ++i) out[i].bits = _cvtss_sh(in[i], nearest);
}

// A complex32 number has ways to and from float and the wider complex types; everything else goes through float.
template <class To> void widen_complex_loop(char* out_bytes, const char* in_bytes, int64_t n) {
  To* __restrict out = reinterpret_cast<To*>(out_bytes);
  const ComplexHalf* __restrict in = reinterpret_cast<const ComplexHalf*>(in_bytes);
  for (int64_t i = 0; i < n; ++i) out[i] = cast<To>(static_cast<std::complex<float>>(in[i]));
}
template <class From> void narrow_complex_loop(char* out_bytes, const char* in_bytes, int64_t n) {
  ComplexHalf* __restrict out = reinterpret_cast<ComplexHalf*>(out_bytes);
  const From* __restrict in = reinterpret_cast<const From*>(in_bytes);
  for (int64_t i = 0; i < n; ++i) out[i] = ComplexHalf(cast<std::complex<float>>(in[i]));
}
constexpr void add_complex_half(LoopTable& table) {
  auto& from = table.loops[static_cast<int>(DType::Complex32)];
  auto to = [&](DType type) -> Loop& {
    return table.loops[static_cast<int>(type)][static_cast<int>(DType::Complex32)];
  };
  from[static_cast<int>(DType::Float32)] = &widen_complex_loop<float>;
  from[static_cast<int>(DType::Complex64)] = &widen_complex_loop<std::complex<float>>;
  from[static_cast<int>(DType::Complex128)] = &widen_complex_loop<std::complex<double>>;
  from[static_cast<int>(DType::Bool)] = &widen_complex_loop<bool>;  // by both parts
  to(DType::Float32) = &narrow_complex_loop<float>;
  to(DType::Complex64) = &narrow_complex_loop<std::complex<float>>;
  to(DType::Complex128) = &narrow_complex_loop<std::complex<double>>;
}

template <class Narrow> constexpr void add_narrow(LoopTable& table) {
  int narrow = static_cast<int>(dtype_of<Narrow>), wide = static_cast<int>(DType::Float32);
  table.loops[narrow][wide] = &widen_loop<Narrow>;
  table.loops[wide][narrow] = &narrow_loop<Narrow>;
}
template <class From, class... To> constexpr void add_row(LoopTable& table, Types<To...>) {
  ((table.loops[static_cast<int>(dtype_of<From>)][static_cast<int>(dtype_of<To>)] = &convert_loop<To, From>), ...);
}
template <class... From> constexpr LoopTable make_table(Types<From...> types) {
  LoopTable table;
  (add_row<From>(table, types), ...);
  add_narrow<Half>(table);
  add_narrow<BFloat16>(table);
  add_narrow<Float8E4M3>(table);
  add_narrow<Float8E5M2>(table);
  add_narrow<Float8E4M3FNUZ>(table);
  add_narrow<Float8E5M2FNUZ>(table);
  add_narrow<Float8E8M0FNU>(table);
  add_complex_half(table);
  return table;
}
constexpr LoopTable kTable = make_table(AllAndUnsigned());

struct Bytes16 {
  uint64_t low, high;
};

template <class Fn> void visit_item(int64_t item, const Fn& fn) {
  switch (item) {
    case 1: return fn(uint8_t());
    case 2: return fn(uint16_t());
    case 4: return fn(uint32_t());
    case 8: return fn(uint64_t());
    default: return fn(Bytes16());
  }
}

/// A square of elements of 4 or 8 bytes in registers: whole lines are read and written, once each.
template <class T> constexpr int kTile = Vec<T>::size;
template <class T> void transpose_tile(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
  typename Mask<T>::Raw rows[kTile<T>];
  each<kTile<T>>([&](auto i) { std::memcpy(&rows[i], in + i * in_stride, sizeof(rows[i])); });
  transpose_square(rows);
  each<kTile<T>>([&](auto i) { std::memcpy(out + i * out_stride, &rows[i], sizeof(rows[i])); });
}

}  // namespace

void convert_contiguous(char* out, DType to, const char* in, DType from, int64_t n) {
  if (Loop loop = kTable.loops[static_cast<int>(from)][static_cast<int>(to)]) return loop(out, in, n);
  constexpr int wide = static_cast<int>(DType::Float32);
  Loop first = kTable.loops[static_cast<int>(from)][wide], second = kTable.loops[wide][static_cast<int>(to)];
  if (!first || !second) unsupported_dtype("copy_", first ? to : from);
  constexpr int64_t chunk = 1024;
  float buffer[chunk];
  for (int64_t at = 0; at < n; at += chunk) {
    int64_t count = std::min(chunk, n - at);
    first(reinterpret_cast<char*>(buffer), in + at * item_size(from), count);
    second(out + at * item_size(to), reinterpret_cast<const char*>(buffer), count);
  }
}

void copy_strided(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t n) {
  visit_item(item, [&]<class T>(T) {
    constexpr int64_t size = sizeof(T);
    if (in_stride == 0) {
      T value = *reinterpret_cast<const T*>(in);
      if (out_stride == size) std::fill_n(reinterpret_cast<T*>(out), n, value);
      else
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(out + i * out_stride) = value;
    } else if (in_stride == size) {
      for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(out + i * out_stride) = reinterpret_cast<const T*>(in)[i];
    } else if (out_stride == size) {
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out)[i] = *reinterpret_cast<const T*>(in + i * in_stride);
    } else {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<T*>(out + i * out_stride) = *reinterpret_cast<const T*>(in + i * in_stride);
    }
  });
}

void copy_transposed(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t rows,
                     int64_t columns) {
  visit_item(item, [&]<class T>(T) {
    using Number = std::conditional_t<sizeof(T) == 4, float, double>;
    constexpr bool whole = sizeof(T) == sizeof(Number);
    constexpr int64_t tile = whole ? kTile<Number> : 16;
    for (int64_t column = 0; column < columns; column += tile) {
      for (int64_t row = 0; row < rows; row += tile) {
        int64_t last_column = std::min(columns, column + tile), last_row = std::min(rows, row + tile);
        if constexpr (whole) {
          if (last_column - column == tile && last_row - row == tile) {
            constexpr int64_t size = sizeof(T);
            transpose_tile<Number>(out + column * out_stride + row * size, out_stride,
                                   in + row * in_stride + column * size, in_stride);
            continue;
          }
        }
        for (int64_t c = column; c < last_column; ++c) {
          T* to = reinterpret_cast<T*>(out + c * out_stride);
          for (int64_t r = row; r < last_row; ++r) to[r] = reinterpret_cast<const T*>(in + r * in_stride)[c];
        }
      }
    }
  });
}

}  // namespace umbra::kernels::UMBRA_ISA
