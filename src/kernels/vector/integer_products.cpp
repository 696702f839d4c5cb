#include "kernels/vector/integer_products.h"

#include "kernels/types.h"
#include "kernels/vector/vec.h"

namespace umbra::kernels::UMBRA_ISA {

namespace {

template <class T> using Sum = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T> struct Tile {
  using S = Sum<T>;
  static constexpr int width = kVectorBytes / sizeof(S);
  typedef S Vector __attribute__((vector_size(kVectorBytes)));
  typedef T Narrow __attribute__((vector_size(width * sizeof(T))));

  static Vector load(const T* from) {
    Narrow elements;
    std::memcpy(&elements, from, sizeof(elements));
    return __builtin_convertvector(elements, Vector);
  }

  /// Some rows times some registers of columns: all their sums stay in registers.
  template <int rows, int registers>
  static void multiply(S* sums, const T* a, IntegerMatrix steps_a, const T* b, int64_t b_stride, int64_t columns,
                       int64_t inner) {
    Vector total[rows][registers] = {};
    for (int64_t k = 0; k < inner; ++k) {
      Vector values[registers];
      for (int r = 0; r < registers; ++r) values[r] = load(b + k * b_stride + r * width);
      for (int i = 0; i < rows; ++i) {
        S factor = static_cast<S>(a[i * steps_a.row_stride + k * steps_a.column_stride]);
        for (int r = 0; r < registers; ++r) total[i][r] += factor * values[r];
      }
    }
    for (int i = 0; i < rows; ++i)
      for (int r = 0; r < registers; ++r) std::memcpy(sums + i * columns + r * width, &total[i][r], sizeof(Vector));
  }

  template <int rows>
  static void multiply_rows(S* sums, const T* a, IntegerMatrix steps_a, const T* b, int64_t b_stride, int64_t columns,
                            int64_t inner) {
    int64_t j = 0;
    for (; j + 2 * width <= columns; j += 2 * width)
      multiply<rows, 2>(sums + j, a, steps_a, b + j, b_stride, columns, inner);
    for (; j + width <= columns; j += width) multiply<rows, 1>(sums + j, a, steps_a, b + j, b_stride, columns, inner);
    for (; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) {
        S sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += static_cast<S>(a[i * steps_a.row_stride + k * steps_a.column_stride]) *
                 static_cast<S>(b[k * b_stride + j]);
        sums[i * columns + j] = sum;
      }
    }
  }
};

template <class T>
void multiply_all(void* sums, IntegerMatrix a, IntegerMatrix b, int64_t rows, int64_t columns, int64_t inner) {
  auto* out = static_cast<Sum<T>*>(sums);
  auto* left = static_cast<const T*>(a.data);
  auto* right = static_cast<const T*>(b.data);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4)
    Tile<T>::template multiply_rows<4>(out + i * columns, left + i * a.row_stride, a, right, b.row_stride, columns,
                                       inner);
  for (; i < rows; ++i)
    Tile<T>::template multiply_rows<1>(out + i * columns, left + i * a.row_stride, a, right, b.row_stride, columns,
                                       inner);
}

}  // namespace

void multiply_integers(DType dtype, void* sums, IntegerMatrix a, IntegerMatrix b, int64_t rows, int64_t columns,
                       int64_t inner) {
  visit_dtype("matmul", dtype, Integral(),
              [&](auto tag) { multiply_all<typename decltype(tag)::type>(sums, a, b, rows, columns, inner); });
}

}  // namespace umbra::kernels::UMBRA_ISA
