// Channels traded for pixels, and channels in another order.
#include "core/stored_types.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;

void check_pixels(const char* name, const char* argument, const Tensor& self, int64_t factor) {
  check(self.dim() >= 3, name, " expects input to have at least 3 dimensions, but got input with ", self.dim(),
        " dimension(s)");
  check(factor > 0, name, " expects a positive ", argument, ", but got ", factor);
}

/// Types that are only stored are not shuffled.
void check_shuffled(const char* kernel, const Tensor& self) {
  bool stored = is_float8(self.dtype()) || is_wide_unsigned(self.dtype()) || self.dtype() == DType::Complex32;
  check_kernel_type(!stored, kernel, self);
}

/// Leading sizes, then the given ones.
SymShape with_tail(const Tensor& self, std::initializer_list<SymInt> tail) {
  SymShape sizes(self.sym_sizes().drop_back(3));
  for (SymInt s : tail) sizes.push_back(s);
  return sizes;
}

/// The dimensions ahead of the last `order.size()` stay, these are put in that order.
Ints tail_order(int64_t leading, std::initializer_list<int64_t> order) {
  Ints dims;
  for (int64_t d = 0; d < leading; ++d) dims.push_back(d);
  for (int64_t d : order) dims.push_back(leading + d);
  return dims;
}

UMBRA_OPERATOR("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
    .generated_out("pixel_shuffle.out")
    .all_backends([](const Tensor& self, int64_t factor) {
      check_pixels("pixel_shuffle", "upscale_factor", self, factor);
      int64_t square = 0;
      check<ValueError>(!__builtin_mul_overflow(factor, factor, &square),
                        "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=", factor);
      SymInt channels = self.sym_size(-3), height = self.sym_size(-2), width = self.sym_size(-1), r = factor;
      check(
          channels % square == 0,
          "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
          "input.size(-3)=",
          channels, " is not divisible by ", square);
      if (!self.sym_numel().same(0)) check_shuffled("pixel_shuffle", self);
      SymInt c = channels / square;
      Tensor out = empty(with_tail(self, {c, height * r, width * r}), self.options(), self.suggested_format());
      Tensor apart = self.view(with_tail(self, {c, r, r, height, width}));
      out.view(with_tail(self, {c, height, r, width, r}))
          .copy_(apart.permute(tail_order(self.dim() - 3, {0, 3, 1, 4, 2})));
      return out;
    })
    .gradient("self", {"grad", "upscale_factor"},
              [](const Tensor& grad, int64_t factor) { return pixel_unshuffle(grad, factor); })
    .linear()
    .use(BatchInFront{});

UMBRA_OPERATOR("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
    .generated_out("pixel_unshuffle.out")
    .all_backends([](const Tensor& self, int64_t factor) {
      check_pixels("pixel_unshuffle", "downscale_factor", self, factor);
      SymInt c = self.sym_size(-3), height = self.sym_size(-2), width = self.sym_size(-1), r = factor;
      check(height % r == 0,
            "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", height,
            " is not divisible by ", factor);
      check(width % r == 0,
            "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", width,
            " is not divisible by ", factor);
      if (!self.sym_numel().same(0)) check_shuffled("pixel_unshuffle", self);
      Tensor out = empty(with_tail(self, {c * r * r, height / r, width / r}), self.options(), self.suggested_format());
      Tensor apart = self.view(with_tail(self, {c, height / r, r, width / r, r}));
      out.view(with_tail(self, {c, r, r, height / r, width / r}))
          .copy_(apart.permute(tail_order(self.dim() - 3, {0, 2, 4, 1, 3})));
      return out;
    })
    .gradient("self", {"grad", "downscale_factor"},
              [](const Tensor& grad, int64_t factor) { return pixel_shuffle(grad, factor); })
    .linear()
    .use(BatchInFront{});

Tensor shuffle_channels(const Tensor& self, SymInt groups) {
  check(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sym_sizes());
  SymInt channels = self.sym_size(1);
  check(groups > 0, "Number of groups to divide channels in must be positive.", " Value of groups:", groups);
  check(channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels, " channels and ",
        groups, " groups.");
  if (self.sym_numel().same(0)) return self.new_empty_strided(self.sym_sizes(), self.sym_strides());
  check_shuffled("channel_shuffle", self);
  Tensor out = empty(self.sym_sizes(), self.options(), self.suggested_format());
  auto split = [&](SymInt outer) {
    SymShape sizes(self.sym_sizes());
    sizes[1] = outer;
    sizes.insert(2, channels / outer);
    return sizes;
  };
  out.view(split(channels / groups)).copy_(self.view(split(groups)).transpose(1, 2));
  return out;
}

UMBRA_OPERATOR("channel_shuffle(Tensor self, SymInt groups) -> Tensor")
    .generated_out("channel_shuffle.out")
    .all_backends(shuffle_channels)
    .gradient("self", {"grad", "groups"},
              [](const Tensor& grad, SymInt groups) { return channel_shuffle(grad, grad.sym_size(1) / groups); })
    .linear()
    .batch([](const Batched& self, SymInt groups) {
      return unfold_batch(channel_shuffle(fold_batch(self, 0), groups), 0);
    });
UMBRA_OPERATOR("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")
    .all_backends(shuffle_channels)
    .batch([](const Batched& self, SymInt groups) {
      return unfold_batch(native_channel_shuffle(fold_batch(self, 0), groups), 0);
    });

}  // namespace
}  // namespace umbra::ops
