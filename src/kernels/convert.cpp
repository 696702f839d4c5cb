#include "kernels/convert.h"

#include <algorithm>
#include <cstring>

#include "kernels/vector/convert.h"

namespace umbra::kernels {

namespace {
constexpr int64_t kBufferBytes = 4096;
}

void copy_bytes(char* out, const char* in, int64_t bytes) {
  constexpr int64_t kPage = 4096, kNear = 64, kLong = 1024;
  int64_t distance = (reinterpret_cast<intptr_t>(out) - reinterpret_cast<intptr_t>(in)) & (kPage - 1);
  // Downwards: what is read next has not just been written at the same place of another page.
  if (bytes > kLong && distance > 0 && distance < kNear)
    for (; bytes >= kNear; bytes -= kNear) std::memcpy(out + bytes - kNear, in + bytes - kNear, kNear);
  std::memcpy(out, in, static_cast<size_t>(bytes));
}

void copy_strided(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t n) {
  if (out_stride == item && in_stride == item) return copy_bytes(out, in, n * item);
  UMBRA_VECTOR(copy_strided)(out, out_stride, in, in_stride, item, n);
}

void copy_transposed(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t item, int64_t rows,
                     int64_t columns) {
  UMBRA_VECTOR(copy_transposed)(out, out_stride, in, in_stride, item, rows, columns);
}

void convert(char* out, DType to, const char* in, DType from, int64_t stride, int64_t n) {
  int64_t item = item_size(from);
  if (to == from) return copy_strided(out, item, in, stride, item, n);
  if (stride == item) return UMBRA_VECTOR(convert_contiguous)(out, to, in, from, n);
  if (stride == 0) {
    alignas(16) char value[16];
    UMBRA_VECTOR(convert_contiguous)(value, to, in, from, 1);
    return copy_strided(out, item_size(to), value, 0, item_size(to), n);
  }
  alignas(16) char buffer[kBufferBytes];
  int64_t chunk = kBufferBytes / item;
  for (int64_t at = 0; at < n; at += chunk) {
    int64_t count = std::min(chunk, n - at);
    copy_strided(buffer, item, in + at * stride, stride, item, count);
    UMBRA_VECTOR(convert_contiguous)(out + at * item_size(to), to, buffer, from, count);
  }
}

void convert_out(char* out, DType to, int64_t stride, const char* in, DType from, int64_t n) {
  int64_t item = item_size(to);
  if (to == from) return copy_strided(out, stride, in, item, item, n);
  if (stride == item) return UMBRA_VECTOR(convert_contiguous)(out, to, in, from, n);
  alignas(16) char buffer[kBufferBytes];
  int64_t chunk = kBufferBytes / item;
  for (int64_t at = 0; at < n; at += chunk) {
    int64_t count = std::min(chunk, n - at);
    UMBRA_VECTOR(convert_contiguous)(buffer, to, in + at * item_size(from), from, count);
    copy_strided(out + at * stride, stride, buffer, item, item, count);
  }
}

}  // namespace umbra::kernels
