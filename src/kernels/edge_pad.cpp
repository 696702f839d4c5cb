#include "kernels/edge_pad.h"

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

/// Which element of a dimension each place of the padded one shows.
std::vector<int64_t> places_along(int64_t padded, int64_t size, int64_t before, Edge edge) {
  std::vector<int64_t> places;
  for (int64_t o = 0; o < padded; ++o) {
    int64_t at = o - before;
    if (edge == Edge::Replicate) at = std::clamp<int64_t>(at, 0, size - 1);
    else if (at < 0) at = -at;
    else if (at >= size) at = 2 * (size - 1) - at;
    places.push_back(at);
  }
  return places;
}

/// Calls fn(offset in the padded tensor, offset in the inner one, places along the last dimension) for each line of
/// the padded tensor's last dimension, in parallel over what is ahead of the padded ones.
template <class Fn>
void each_line(const Tensor& padded, const Tensor& inner, Edge edge, IntArrayRef before, const Fn& fn) {
  auto dims = static_cast<int64_t>(before.size());
  int64_t lead = inner.dim() - dims;
  std::vector<std::vector<int64_t>> places;
  for (int64_t d = 0; d < dims; ++d)
    places.push_back(places_along(padded.size(lead + d), inner.size(lead + d), before[d], edge));
  Strided<2> outer(inner.sizes().slice(0, lead), {padded.strides().slice(0, lead), inner.strides().slice(0, lead)});
  outer.simplify();
  struct Line {
    int64_t padded, inner;
  };
  std::vector<Line> lines = {{0, 0}};
  for (int64_t d = 0; d + 1 < dims; ++d) {
    std::vector<Line> finer;
    for (const Line& line : lines)
      for (int64_t o = 0; o < padded.size(lead + d); ++o)
        finer.push_back(
            {line.padded + o * padded.stride(lead + d), line.inner + places[d][o] * inner.stride(lead + d)});
    lines = std::move(finer);
  }
  auto work = static_cast<int64_t>(lines.size() * places.back().size() + 1);
  parallel_for(0, outer.numel(), 1 + kGrain / work, [&](int64_t begin, int64_t end) {
    Odometer<2> at(outer);
    at.seek(begin);
    for (int64_t i = begin; i < end; ++i, at.next())
      for (const Line& line : lines) fn(at[0] + line.padded, at[1] + line.inner, places.back());
  });
}

}  // namespace

void edge_pad(const Tensor& out, const Tensor& self, Edge edge, IntArrayRef before) {
  if (out.numel() == 0) return;
  int64_t to_step = out.stride(-1), from_step = self.stride(-1);
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.raw_data());
    const T* from = static_cast<const T*>(self.raw_data());
    // Between the edges a line is the line of the inner tensor.
    int64_t ahead = before.back(), padded = out.size(-1), first = std::clamp<int64_t>(ahead, 0, padded);
    int64_t last = std::clamp<int64_t>(ahead + self.size(-1), first, padded);
    each_line(out, self, edge, before, [=](int64_t o, int64_t i, const std::vector<int64_t>& places) {
      const int64_t* place = places.data();
      auto pick = [=](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) to[o + k * to_step] = from[i + place[k] * from_step];
      };
      pick(0, first);
      move_run(to + o + first * to_step, to_step, from + i + (first - ahead) * from_step, from_step, last - first);
      pick(last, padded);
    });
  });
}

void edge_pad_backward(const Tensor& grad_input, const Tensor& grad_output, Edge edge, IntArrayRef before) {
  fill(grad_input, 0);
  if (grad_output.numel() == 0) return;
  visit<DifferentiableTypes>(grad_input.dtype(), "padding_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    // Narrow types are added up in float.
    Tensor sums = grad_input;
    if constexpr (!std::is_same_v<T, C>) {
      sums = scratch(grad_input.sizes(), dtype_of<C>);
      fill(sums, 0);
    }
    C* to = sums.data<C>();
    const T* from = grad_output.data<T>();
    int64_t to_step = sums.stride(-1), from_step = grad_output.stride(-1);
    each_line(grad_output, sums, edge, before, [&](int64_t o, int64_t i, const std::vector<int64_t>& places) {
      for (size_t k = 0; k < places.size(); ++k)
        to[i + places[k] * to_step] += static_cast<C>(from[o + static_cast<int64_t>(k) * from_step]);
    });
    if constexpr (!std::is_same_v<T, C>) copy(grad_input, sums);
  });
}

}  // namespace umbra::kernels
