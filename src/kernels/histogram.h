// Counting: how many elements fall where.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// How the bin of an element is found: computed where bins are even, computed and then compared with the edges
/// nearby, or searched among the edges.
enum class BinSearch : uint8_t { Even, EvenWithEdges, Edges };

/// Counts the points, rows of `self`, in a grid given by the edges of each dimension; with `weight` (undefined: 1)
/// as much as each point has. With `density` what remains is divided by the total and by the size of each cell.
void histogram(const Tensor& out, const Tensor& self, TensorList edges, const Tensor& weight, bool density,
               BinSearch search);
/// `edges` from `low` to `high` in equal steps.
void bin_edges(const Tensor& edges, double low, double high);
/// Smallest and largest number of each column of `self`, a matrix with rows.
std::vector<std::pair<double, double>> column_ranges(const Tensor& self);

/// The least and the largest of integers that are not empty.
std::pair<int64_t, int64_t> range_of(const Tensor& self);
/// out[self[i]] += weights[i], or 1 where there are none; `out` is of zeros, of int64, float32 or float64.
void bin_count(const Tensor& out, const Tensor& self, const Tensor& weights);

}  // namespace umbra::kernels
