// Tensors as planes over their spatial dimensions: how kernels over images read and write them, whatever the strides.
#pragma once

#include <vector>

#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

/// A tensor as planes over its last `dims` dimensions, in groups of `Lanes` neighbouring channels. A group is read
/// into, or written from, numbers of type C in which the lanes lie side by side: position by position, lane by lane.
/// With channels last in memory, groups of several lanes keep to whole cache lines; else one lane, that is one plane,
/// is best.
template <class T, class C, int Lanes> class Planes {
 public:
  Planes(const Tensor& t, int64_t dims)
      : data_(t.data<T>()), inner_(t.sizes().drop_front(t.dim() - dims), {t.strides().drop_front(t.dim() - dims)}) {
    int64_t outer_dims = t.dim() - dims;
    if (Lanes > 1) {
      channels_ = t.size(--outer_dims);
      channel_stride_ = t.stride(outer_dims);
    }
    outer_ = Strided<1>(t.sizes().slice(0, outer_dims), {t.strides().slice(0, outer_dims)});
    outer_.simplify();
    inner_.simplify();
    positions_ = inner_.numel();
  }
  int64_t count() const { return outer_.numel() * blocks(); }
  int64_t buffer_size() const { return positions_ * Lanes; }
  /// What `read` and `target` are given; empty where they work on the tensor's own memory.
  std::vector<C> buffer() const { return std::vector<C>(static_cast<size_t>(as_it_lies() ? 0 : buffer_size())); }

  const C* read(int64_t group, std::vector<C>& buffer) const {
    const T* from = data_ + offset(group);
    if constexpr (std::is_same_v<T, C>) {
      if (as_it_lies()) return from;
    }
    each(group, [&](int64_t at, int64_t i) { buffer[i] = static_cast<C>(from[at]); });
    return buffer.data();
  }
  /// Where a group can be written in place, or the buffer, which `write` then carries over.
  C* target(int64_t group, std::vector<C>& buffer) const {
    if constexpr (std::is_same_v<T, C>) {
      if (as_it_lies()) return data_ + offset(group);
    }
    return buffer.data();
  }
  void write(int64_t group, const C* values) const {
    T* to = data_ + offset(group);
    if (static_cast<const void*>(to) == values) return;
    each(group, [&](int64_t at, int64_t i) { to[at] = static_cast<T>(values[i]); });
  }

 private:
  bool as_it_lies() const {
    bool in_rows = inner_.sizes.empty() || (inner_.sizes.size() == 1 && inner_.strides[0][0] == 1);
    return std::is_same_v<T, C> && Lanes == 1 && in_rows;
  }
  int64_t blocks() const { return (channels_ + Lanes - 1) / Lanes; }
  int64_t offset(int64_t group) const {
    if (Lanes == 1 && outer_.sizes.size() <= 1) return outer_.sizes.empty() ? 0 : group * outer_.strides[0][0];
    Odometer<1> at(outer_);
    at.seek(group / blocks());
    return at[0] + group % blocks() * Lanes * channel_stride_;
  }
  template <class Fn> void each(int64_t group, const Fn& fn) const {
    int64_t width = std::min<int64_t>(Lanes, channels_ - group % blocks() * Lanes);
    Odometer<1> at(inner_);
    for (int64_t i = 0; i < positions_; ++i, at.next())
      for (int64_t lane = 0; lane < width; ++lane) fn(at[0] + lane * channel_stride_, i * Lanes + lane);
  }

  T* data_;
  Strided<1> outer_, inner_;
  int64_t channels_ = 1, channel_stride_ = 0, positions_ = 0;
};

template <int Lanes> using LaneCount = std::integral_constant<int, Lanes>;

/// Calls fn with the number of lanes that suits a tensor's strides.
template <class Fn> void with_lanes(const Tensor& t, int64_t dims, const Fn& fn) {
  int64_t channel = t.dim() - dims - 1;
  bool channels_last = channel >= 0 && t.size(channel) > 1 && t.stride(channel) == 1 && !t.is_contiguous();
  if (channels_last) fn(LaneCount<16>());
  else fn(LaneCount<1>());
}

/// Runs fn(group, input planes, output planes) for each group of planes and stores the output.
template <class T, int Lanes, class Fn>
void forward_planes(const Tensor& out, const Tensor& self, int64_t dims, const Fn& fn) {
  using C = Compute<T>;
  Planes<T, C, Lanes> from(self, dims), to(out, dims);
  parallel_for(0, to.count(), 1 + kGrain / (4 * from.buffer_size() + 1), [&](int64_t begin, int64_t end) {
    std::vector<C> input = from.buffer(), output = to.buffer();
    for (int64_t group = begin; group < end; ++group) {
      C* target = to.target(group, output);
      fn(group, from.read(group, input), target);
      to.write(group, target);
    }
  });
}

/// The other way round: fn(group, output gradients, input gradients) adds to planes of zeros.
template <class T, int Lanes, class Fn>
void backward_planes(const Tensor& grad_input, const Tensor& grad_output, int64_t dims, const Fn& fn) {
  using C = Compute<T>;
  Planes<T, C, Lanes> from(grad_output, dims), to(grad_input, dims);
  parallel_for(0, to.count(), 1 + kGrain / (4 * to.buffer_size() + 1), [&](int64_t begin, int64_t end) {
    std::vector<C> input = to.buffer(), output = from.buffer();
    for (int64_t group = begin; group < end; ++group) {
      C* target = to.target(group, input);
      std::fill_n(target, to.buffer_size(), C(0));
      fn(group, from.read(group, output), target);
      to.write(group, target);
    }
  });
}

}  // namespace umbra::kernels
