// Vectorised work on rows of contiguous numbers: what normalisations, attention and losses are made of.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace umbra::kernels {

/// The functions for one element type and the machine's instruction set. A pointer that is called optional may be null.
template <class T> struct RowFunctions {
  T (*sum)(const T* x, int64_t n);
  T (*largest)(const T* x, int64_t n);
  /// The sum of (x - center)^2.
  T (*squares)(const T* x, T center, int64_t n);
  /// The sum of (a - b)^2.
  T (*squared_distance)(const T* a, const T* b, int64_t n);
  /// The sum, and the largest (NaN where there is one), of |a - b|.
  T (*absolute_distance)(const T* a, const T* b, int64_t n);
  T (*largest_distance)(const T* a, const T* b, int64_t n);
  /// The sum of c * (d - c / 2), where d is |a - b| and c no more than `limit`: a parabola that goes on as a line.
  T (*smooth_distance)(const T* a, const T* b, T limit, int64_t n);
  /// The sums of g * weight and of g * weight * (x - center); the weight is optional.
  void (*two_sums)(const T* g, const T* x, T center, const T* weight, int64_t n, T* sum_g, T* sum_gx);
  /// out = the sum of rows of a table, `n` wide and `stride` apart, by their numbers.
  void (*sum_of_rows)(T* out, const T* table, int64_t stride, const int64_t* numbers, int64_t count, int64_t n);
  /// out = x * a + b
  void (*affine)(T* out, const T* x, T a, T b, int64_t n);
  /// out = (x - center) * scale * weight + bias, both optional.
  void (*normalize)(T* out, const T* x, T center, T scale, const T* weight, const T* bias, int64_t n);
  /// out = (g * weight - shift - (x - center) * slope) * scale; the weight is optional.
  void (*normalize_gradient)(T* out, const T* g, const T* x, const T* weight, T shift, T center, T slope, T scale,
                             int64_t n);
  /// out = g * a + x * b + c
  void (*combine)(T* out, const T* g, const T* x, T a, T b, T c, int64_t n);
  /// weight_sum += g * (x - center) * scale, bias_sum += g: element by element.
  void (*add_gradients)(T* weight_sum, T* bias_sum, const T* g, const T* x, T center, T scale, int64_t n);

  // The same for rows whose elements each belong to another channel: parameters are rows, too.
  void (*add)(T* sums, const T* x, int64_t n);
  void (*add_squares)(T* sums, const T* x, const T* center, int64_t n);
  void (*add_two)(T* sums_g, T* sums_gx, const T* g, const T* x, const T* center, int64_t n);
  void (*affine_each)(T* out, const T* x, const T* a, const T* b, int64_t n);
  void (*combine_each)(T* out, const T* g, const T* x, const T* a, const T* b, const T* c, int64_t n);

  /// out = exp(x * scale - shift); returns the sum. out may be x.
  T (*exp_scaled)(T* out, const T* x, T scale, T shift, int64_t n);
  /// Turns blocks of sixteen numbers uniform in [0, 1) into normal ones: the first eight of a block pair with the
  /// others.
  void (*normal_blocks)(T* data, T mean, T deviation, int64_t blocks);
  /// One step of an LSTM cell for one sample of n features: the gates (in, forget, candidate, out) are the sums of two
  /// rows of 4 n, or one row (the other is null); `cell` may be the cell before.
  void (*lstm_cell)(T* hidden, T* cell, const T* gates, const T* more_gates, const T* cell_before, int64_t n);
  /// Its gradient, from those of its results (null: zero) and the cell that it gave; `grad_cell` may be
  /// `grad_cell_before`.
  void (*lstm_cell_gradient)(T* grad_gates, T* grad_cell_before, const T* grad_hidden, const T* grad_cell,
                             const T* gates, const T* more_gates, const T* cell_before, const T* cell, int64_t n);
  /// out = p * (g - center) * scale
  void (*softmax_gradient)(T* out, const T* p, const T* g, T center, T scale, int64_t n);
};

UMBRA_DECLARE_VECTOR(const RowFunctions<float>&, float_rows, ())
UMBRA_DECLARE_VECTOR(const RowFunctions<double>&, double_rows, ())

template <class T> const RowFunctions<T>& row_functions();
template <> inline const RowFunctions<float>& row_functions() { return UMBRA_VECTOR(float_rows)(); }
template <> inline const RowFunctions<double>& row_functions() { return UMBRA_VECTOR(double_rows)(); }

}  // namespace umbra::kernels
