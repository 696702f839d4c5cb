#include "kernels/reduction_walk.h"

#include <utility>

namespace umbra::kernels {

void LoopNest::add(int64_t new_size, int64_t new_step, int64_t new_out_step, int64_t second_out_step) {
  size[dims] = new_size;
  step[dims] = new_step;
  out_step[0][dims] = new_out_step;
  out_step[1][dims] = second_out_step;
  numel *= new_size;
  ++dims;
}

void LoopNest::simplify() {
  auto move = [&](int to, int from) {
    size[to] = size[from];
    step[to] = step[from];
    for (auto& steps : out_step) steps[to] = steps[from];
  };
  auto swap = [&](int a, int b) {
    std::swap(size[a], size[b]);
    std::swap(step[a], step[b]);
    for (auto& steps : out_step) std::swap(steps[a], steps[b]);
  };
  int count = 0;
  for (int d = 0; d < dims; ++d)
    if (size[d] != 1) move(count++, d);
  dims = count;
  // An expanded dimension (step 0) stays where it is.
  for (int d = 1; d < dims; ++d)
    for (int at = d; at > 0 && step[at] < step[at - 1] && step[at] != 0; --at) swap(at, at - 1);
  int last = 0;
  for (int d = 1; d < dims; ++d) {
    bool one_run = step[d] == size[last] * step[last] && out_step[0][d] == size[last] * out_step[0][last] &&
                   out_step[1][d] == size[last] * out_step[1][last];
    if (one_run) size[last] *= size[d];
    else move(++last, d);
  }
  if (dims > 0) dims = last + 1;
}

ReduceGeometry::ReduceGeometry(const Tensor& self, IntArrayRef reduced_dims, const Tensor& first,
                               const Tensor& second) {
  IntArrayRef sizes = self.sizes(), strides = self.strides();
  int rank = static_cast<int>(sizes.size());
  check(rank <= LoopNest::kMaxDims, "only tensors with up to ", LoopNest::kMaxDims, " dims are supported");
  uint64_t gone = 0;
  if (rank > 0)
    for (int64_t d : reduced_dims) gone |= uint64_t{1} << d;
  const Tensor* outs[2] = {&first, &second};
  for (int d = rank - 1; d >= 0; --d) {
    int64_t step = strides[d] * self.item_size();
    if (gone >> d & 1) {
      reduced.add(sizes[d], step, 0, 0);
      continue;
    }
    int64_t out_steps[2] = {};
    for (int k = 0; k < 2; ++k) {
      if (!outs[k]->defined()) continue;
      bool kept_rank = outs[k]->dim() == rank;  // reduced dimensions are there, with size 1
      int position = kept_rank ? d : d - std::popcount(gone & ((uint64_t{1} << d) - 1));
      out_steps[k] = outs[k]->strides()[position] * outs[k]->item_size();
    }
    kept.add(sizes[d], step, out_steps[0], out_steps[1]);
  }
  kept.simplify();
  reduced.simplify();
  if (self.numel() != 0) in = static_cast<const char*>(self.raw_data());
  for (int k = 0; k < 2; ++k)
    if (outs[k]->defined() && kept.numel != 0) out[k] = static_cast<char*>(outs[k]->raw_data());
}

void LoopPosition::reach(int64_t place) {
  offset = out_offset[0] = out_offset[1] = 0;
  for (int d = first_; d < nest_.dims; ++d) {
    index_[d] = place % nest_.size[d];
    place /= nest_.size[d];
    offset += index_[d] * nest_.step[d];
    for (int k = 0; k < 2; ++k) out_offset[k] += index_[d] * nest_.out_step[k][d];
  }
}

void LoopPosition::next() {
  for (int d = first_; d < nest_.dims; ++d) {
    offset += nest_.step[d];
    for (int k = 0; k < 2; ++k) out_offset[k] += nest_.out_step[k][d];
    if (++index_[d] < nest_.size[d]) return;
    offset -= nest_.size[d] * nest_.step[d];
    for (int k = 0; k < 2; ++k) out_offset[k] -= nest_.size[d] * nest_.out_step[k][d];
    index_[d] = 0;
  }
}

}  // namespace umbra::kernels
