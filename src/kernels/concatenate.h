// Joining and rearranging: what moves elements without looking at them.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// The tensors one after another along `dim`. All have out's dtype; one-dimensional tensors without elements are
/// skipped.
void cat(const Tensor& out, TensorList tensors, int64_t dim);
/// A complex tensor of its real and imaginary parts, which broadcast to its sizes.
void join_parts(const Tensor& out, const Tensor& real, const Tensor& imaginary);
/// out = self with the order of elements reversed along the dimensions.
void flip(const Tensor& out, const Tensor& self, IntArrayRef dims);
/// Each dimension's elements shifted, those that leave at the end coming in at the start. Without dimensions, of the
/// flattened tensor.
void roll(const Tensor& out, const Tensor& self, IntArrayRef shifts, IntArrayRef dims);
/// The part of each matrix on and below, or on and above, the k-th diagonal; zero elsewhere. out may be self.
void tril(const Tensor& out, const Tensor& self, int64_t diagonal);
void triu(const Tensor& out, const Tensor& self, int64_t diagonal);
/// 0 repeats[0] times, then 1 repeats[1] times, and so on. out has as many elements as the repeats add up to.
void repeat_interleave(const Tensor& out, const Tensor& repeats);

}  // namespace umbra::kernels
