// Products of matrices by plain loops: of integers, and of small or irregular matrices. For kernels/matmul.cpp.
#pragma once

#include <type_traits>
#include <vector>

#include "kernels/math.h"
#include "kernels/matrix_product.h"
#include "kernels/parallel.h"
#include "kernels/types.h"
#include "kernels/vector/integer_products.h"

namespace umbra::kernels {

/// Integers wrap around: computed without sign, where that is defined.
template <class T> struct LoopType { using type = Compute<T>; };
template <class T>
requires std::is_integral_v<T>
struct LoopType<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

template <class T> class LoopProduct {
  using C = typename LoopType<T>::type;

 public:
  explicit LoopProduct(const Product& p) : p_(p), alpha_(number(p.alpha)), beta_(number(p.beta)) {
    accumulate_ = !p.beta.equals(0);
  }

  void run() const {
    constexpr int64_t together = 4;  // rows that are multiplied at once, where they can be
    int64_t work_of_row = std::max<int64_t>(1, p_.out.columns * p_.a.columns), rows = p_.out.rows;
    parallel_for(0, p_.batch * rows, 1 + 32768 / work_of_row, [&](int64_t begin, int64_t end) {
      std::vector<C> sums(p_.out.columns * together);
      for (int64_t i = begin; i < end;) {
        int64_t count = std::min({together, end - i, rows - i % rows});
        sum_up(i / rows, i % rows, count, sums.data());
        for (int64_t r = 0; r < count; ++r, ++i) write(i / rows, i % rows, sums.data() + r * p_.out.columns);
      }
    });
  }

 private:
  static C number(const Scalar& s) {
    if constexpr (std::is_integral_v<T>) return static_cast<C>(s.to<T>());
    else return s.to<C>();
  }
  static const T* at(const Matrices& m, int64_t batch, int64_t row) {
    return reinterpret_cast<T*>(m.data) + batch * m.batch_stride + row * m.row_stride;
  }

  void sum_up(int64_t batch, int64_t first, int64_t count, C* sums) const {
    const T* b = at(p_.b, batch, 0);
    if constexpr (std::is_integral_v<T>) {
      if (p_.b.column_stride == 1)
        return UMBRA_VECTOR(multiply_integers)(dtype_of<T>, sums,
                                               {at(p_.a, batch, first), p_.a.row_stride, p_.a.column_stride},
                                               {b, p_.b.row_stride, 1}, count, p_.out.columns, p_.a.columns);
    }
    for (int64_t r = 0; r < count; ++r) {
      const T* a = at(p_.a, batch, first + r);
      C* row_sums = sums + r * p_.out.columns;
      if (p_.b.column_stride == 1) sum_rows(a, b, row_sums);
      else sum_columns(a, b, row_sums);
    }
  }
  void write(int64_t batch, int64_t i, const C* sums) const {
    T* out = const_cast<T*>(at(p_.out, batch, i));
    for (int64_t j = 0; j < p_.out.columns; ++j) {
      T& target = out[j * p_.out.column_stride];
      C value = alpha_ * sums[j];
      target = static_cast<T>(accumulate_ ? value + beta_ * static_cast<C>(target) : value);
    }
  }
  // Adds whole rows of b, each times an element of a: the inner loop runs along memory.
  void sum_rows(const T* a, const T* b, C* sums) const {
    std::fill_n(sums, p_.out.columns, C(0));
    for (int64_t k = 0; k < p_.a.columns; ++k) {
      C factor = static_cast<C>(a[k * p_.a.column_stride]);
      const T* row = b + k * p_.b.row_stride;
      for (int64_t j = 0; j < p_.out.columns; ++j) sums[j] += factor * static_cast<C>(row[j]);
    }
  }
  void sum_columns(const T* a, const T* b, C* sums) const {
    for (int64_t j = 0; j < p_.out.columns; ++j) {
      const T* column = b + j * p_.b.column_stride;
      C sum(0);
      for (int64_t k = 0; k < p_.a.columns; ++k)
        sum += static_cast<C>(a[k * p_.a.column_stride]) * static_cast<C>(column[k * p_.b.row_stride]);
      sums[j] = sum;
    }
  }

  const Product& p_;
  C alpha_, beta_;
  bool accumulate_;
};

}  // namespace umbra::kernels
