// QR: Householder reflectors, and the matrices that they multiply up to.
#include <vector>

#include "kernels/batched_matrices.h"
#include "kernels/lapack.h"
#include "kernels/linear_algebra.h"

namespace umbra::kernels {
namespace {

/// Reflectors that are taken together: a block is made column by column, and what lies beside it is changed by products
/// of matrices. LAPACK's own routines leave the last 128 columns without blocks, which is all of a middle-sized matrix.
template <class T> class ReflectorBlocks {
 public:
  ReflectorBlocks(int rows, int columns)
      : rows_(rows),
        columns_(columns),
        leading_(std::max(1, rows)),
        width_(rows <= 256   ? 16
               : rows <= 768 ? 32
                             : 48),
        triangle_(static_cast<size_t>(width_) * width_),
        work_(static_cast<size_t>(width_) * std::max(rows, columns)) {}

  /// R in the upper triangle, the reflectors below it.
  void factor(T* a, T* tau) {
    int count = std::min(rows_, columns_);
    for (int at = 0; at < count; at += width_) {
      int width = std::min(width_, count - at);
      lapack::geqr2_work<T>(rows_ - at, width, corner(a, at), leading_, tau + at, work_.data());
      apply_beside(a, tau, at, width, std::is_same_v<T, Real<T>> ? 'T' : 'C');
    }
  }

  /// The first columns of the product of the `count` reflectors that lie in them.
  void multiply(T* a, const T* tau, int count) {
    for (int64_t column = count; column < columns_; ++column) {
      std::fill_n(a + column * leading_, rows_, T(0));
      a[column * leading_ + column] = T(1);
    }
    for (int at = (count - 1) / width_ * width_; count > 0 && at >= 0; at -= width_) {
      int width = std::min(width_, count - at);
      apply_beside(a, tau, at, width, 'N');
      lapack::orgqr_work<T>(rows_ - at, width, width, corner(a, at), leading_, tau + at, work_.data(),
                            static_cast<int>(work_.size()));
      for (int64_t column = at; column < at + width; ++column) std::fill_n(a + column * leading_, at, T(0));
    }
  }

 private:
  T* corner(T* a, int64_t at) const { return a + at * leading_ + at; }

  /// Applies the block of reflectors from `at` on to the columns to its right.
  void apply_beside(T* a, const T* tau, int at, int width, char form) {
    int rows = rows_ - at, columns = columns_ - at - width;
    if (columns == 0) return;
    T* block = corner(a, at);
    lapack::larft_work<T>('F', 'C', rows, width, block, leading_, tau + at, triangle_.data(), width_);
    lapack::larfb_work<T>('L', form, 'F', 'C', rows, columns, width, block, leading_, triangle_.data(), width_,
                          block + static_cast<int64_t>(width) * leading_, leading_, work_.data(), columns);
  }

  int rows_, columns_, leading_, width_;
  std::vector<T> triangle_, work_;
};

Tensor first_columns(const Tensor& matrices, int64_t count) {
  SymShape sizes(matrices.sym_sizes());
  sizes.back() = count;
  return alias_tensor(matrices, sizes, matrices.sym_strides(), matrices.storage_offset());
}

}  // namespace

void geqrf(const Tensor& out, const Tensor& tau, const Tensor& a) {
  visit<LapackTypes>(a.dtype(), "geqrf_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy(out, a);
    MatrixStack<T> m(out);
    int k = std::min(m.rows, m.columns);
    each_matrix(m.count, static_cast<double>(m.rows) * m.columns * k,
                [&](int64_t i) { ReflectorBlocks<T>(m.rows, m.columns).factor(m[i], tau.data<T>() + i * k); });
  });
}

void householder_product(const Tensor& out, const Tensor& reflectors, const Tensor& tau) {
  visit<LapackTypes>(out.dtype(), "orgqr_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    MatrixStack<T> q(out);
    Tensor factors = contiguous(tau);
    int k = static_cast<int>(tau.size(-1));
    copy(first_columns(out, k), first_columns(reflectors, k));
    each_matrix(q.count, static_cast<double>(q.rows) * q.columns * k, [&](int64_t i) {
      ReflectorBlocks<T>(q.rows, q.columns).multiply(q[i], factors.template data<T>() + i * k, k);
    });
  });
}

void ormqr(const Tensor& out, const Tensor& reflectors, const Tensor& tau, const Tensor& other, bool left,
           bool adjoint) {
  visit<LapackTypes>(other.dtype(), "ormqr_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool complex = !std::is_same_v<T, Real<T>>;
    copy(out, other);
    MatrixStack<T> c(out);
    Tensor vectors = column_major_copy(reflectors, batch_of(out)), factors = contiguous(tau);
    MatrixStack<T> v(vectors);
    int k = static_cast<int>(tau.size(-1));
    char form = adjoint ? (complex ? 'C' : 'T') : 'N';
    each_matrix(c.count, static_cast<double>(c.rows) * c.columns * k, [&](int64_t i) {
      lapack::ormqr<T>(left ? 'L' : 'R', form, c.rows, c.columns, k, v[i], v.leading(),
                       factors.template data<T>() + i * k, c[i], c.leading());
    });
  });
}

}  // namespace umbra::kernels
