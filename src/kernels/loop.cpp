#include "kernels/loop.h"

namespace umbra::kernels {

LoopGeometry::LoopGeometry(const Tensor& out, ArrayRef<const Tensor*> inputs)
    : operands_(static_cast<int>(inputs.size()) + 1) {
  check(operands_ <= kMaxOperands, "too many operands for one loop: ", operands_);
  if (one_run(out, inputs)) return;
  IntArrayRef sizes = out.sizes();
  int rank = static_cast<int>(sizes.size());
  check(rank <= kMaxDims, "only tensors with up to ", kMaxDims, " dims are supported");
  // Our first dimension is the tensors' last: it is the one that usually varies fastest.
  dims_ = rank;
  for (int d = 0; d < rank; ++d) sizes_[d] = sizes[rank - 1 - d];
  for (int k = 0; k < operands_; ++k) {
    const Tensor& tensor = k == 0 ? out : *inputs[k - 1];
    IntArrayRef own_sizes = tensor.sizes(), own_strides = tensor.strides();
    int own_rank = static_cast<int>(own_sizes.size());
    int64_t item = tensor.item_size();
    check(own_rank <= rank, "a tensor of sizes ", own_sizes, " does not broadcast to ", sizes);
    for (int d = 0; d < own_rank; ++d) {
      int from = own_rank - 1 - d;
      bool single = own_sizes[from] == 1;  // its stride is never taken, and may be any number
      check(single || own_sizes[from] == sizes_[d], "a tensor of sizes ", own_sizes, " does not broadcast to ", sizes);
      strides_[d][k] = single ? 0 : own_strides[from] * item;
    }
    for (int d = own_rank; d < rank; ++d) strides_[d][k] = 0;
  }
  for (int d = 0; d < rank; ++d) numel_ *= sizes_[d];
  if (numel_ == 0) return;
  data_[0] = static_cast<char*>(out.raw_data());
  for (int k = 1; k < operands_; ++k) data_[k] = static_cast<char*>(inputs[k - 1]->raw_data());
  simplify();
}

LoopGeometry::LoopGeometry(IntArrayRef sizes, int operands, char* const* data, const int64_t* const* byte_strides)
    : operands_(operands), dims_(static_cast<int>(sizes.size())) {
  check(operands_ <= kMaxOperands && dims_ <= kMaxDims, "too many operands or dimensions for one loop");
  for (int d = 0; d < dims_; ++d) {
    sizes_[d] = sizes[dims_ - 1 - d];
    numel_ *= sizes_[d];
    for (int k = 0; k < operands; ++k) strides_[d][k] = byte_strides[k][dims_ - 1 - d];
  }
  for (int k = 0; k < operands; ++k) data_[k] = data[k];
  if (numel_ != 0) simplify();
}

/// The usual case: all of one shape and contiguous. Nothing is left to simplify.
bool LoopGeometry::one_run(const Tensor& out, ArrayRef<const Tensor*> inputs) {
  if (!out.impl()->known_contiguous()) return false;
  const IntArrayRef sizes = out.sizes();
  for (const Tensor* input : inputs) {
    const IntArrayRef own = input->sizes();
    if (!input->impl()->known_contiguous() || own.size() != sizes.size()) return false;
    for (size_t d = 0; d < sizes.size(); ++d)  // no call for a few numbers
      if (own[d] != sizes[d]) return false;
  }
  dims_ = 1;
  numel_ = sizes_[0] = out.sym_numel().value();
  for (int k = 0; k < operands_; ++k) {
    const Tensor& tensor = k == 0 ? out : *inputs[k - 1];
    strides_[0][k] = tensor.item_size();
    data_[k] = numel_ == 0 ? nullptr : static_cast<char*>(tensor.raw_data());
  }
  return true;
}

void LoopGeometry::simplify() {
  int kept = 0;
  for (int d = 0; d < dims_; ++d) {
    if (sizes_[d] == 1) continue;
    if (kept != d) swap_dims(kept, d);
    ++kept;
  }
  dims_ = kept;
  // Insertion sort: few dimensions, nearly always in order already.
  for (int d = 1; d < dims_; ++d)
    for (int at = d; at > 0 && inner_first(at, at - 1); --at) swap_dims(at, at - 1);
  coalesce();
}

/// Whether dimension a should be walked inside dimension b: the first operand that tells them apart decides.
bool LoopGeometry::inner_first(int a, int b) const {
  for (int k = 0; k < operands_; ++k) {
    int64_t at_a = strides_[a][k], at_b = strides_[b][k];
    if (at_a == at_b || at_a == 0 || at_b == 0) continue;
    return at_a < at_b;
  }
  return false;
}

void LoopGeometry::swap_dims(int a, int b) {
  std::swap(sizes_[a], sizes_[b]);
  for (int k = 0; k < operands_; ++k) std::swap(strides_[a][k], strides_[b][k]);
}

void LoopGeometry::coalesce() {
  if (dims_ == 0) {  // one element
    dims_ = 1;
    sizes_[0] = 1;
    for (int k = 0; k < operands_; ++k) strides_[0][k] = 0;
    return;
  }
  int last = 0;
  for (int d = 1; d < dims_; ++d) {
    bool one_run = true;
    for (int k = 0; k < operands_; ++k) one_run &= strides_[d][k] == sizes_[last] * strides_[last][k];
    if (one_run) {
      sizes_[last] *= sizes_[d];
      continue;
    }
    if (++last == d) continue;
    sizes_[last] = sizes_[d];
    for (int k = 0; k < operands_; ++k) strides_[last][k] = strides_[d][k];
  }
  dims_ = last + 1;
}

void LoopGeometry::seek(int64_t at, int64_t* index, char** row) const {
  for (int k = 0; k < operands_; ++k) row[k] = data_[k];
  for (int d = 0; d < dims_; ++d) {
    index[d] = at % sizes_[d];
    at /= sizes_[d];
    for (int k = 0; k < operands_; ++k) row[k] += index[d] * strides_[d][k];
  }
}

void LoopGeometry::next_plane(int64_t* index, char** row) const {
  for (int d = 2; d < dims_; ++d) {
    for (int k = 0; k < operands_; ++k) row[k] += strides_[d][k] - sizes_[d - 1] * strides_[d - 1][k];
    index[d - 1] = 0;
    if (++index[d] < sizes_[d]) return;
  }
}

}  // namespace umbra::kernels
