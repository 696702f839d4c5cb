// Elements repeated one by one.
#include "dispatch/data_dependent.h"
#include "kernels/visit.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using OptionalSize = std::optional<SymInt>;

void check_repeats(const Tensor& repeats) {
  check<NotImplementedError>(is_integral(repeats.dtype(), false) && repeats.dtype() <= DType::Int64,
                             "\"repeat_interleave_cpu\" not implemented for '", kernel_name(repeats.dtype()), "'");
  check(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
}

/// Which element stands at each place: 0 as often as repeats[0] says, and so on.
template <class T> Tensor repeated_positions(const Tensor& repeats, const OptionalSize& given) {
  int64_t total = 0;
  const T* times = repeats.data<T>();
  int64_t step = repeats.stride(0), count = repeats.numel();
  for (int64_t i = 0; i < count; ++i) {
    check(times[i * step] >= 0, "repeats can not be negative");
    total += times[i * step];
  }
  check(!given || *given == total, "allocated size does not match required size");
  Tensor out = empty({total}, repeats.options());
  T* to = out.data<T>();
  for (int64_t i = 0; i < count; ++i) to = std::fill_n(to, times[i * step], static_cast<T>(i));
  return out;
}

UMBRA_OPERATOR("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
    .generated_out("repeat_interleave.Tensor_out")
    .real([](const Tensor& repeats, OptionalSize size) {
      check_repeats(repeats);
      if (repeats.numel() == 0) return empty_like(repeats);  // whatever size is said
      Tensor out;
      kernels::visit<kernels::Integral>(repeats.dtype(), "repeat_interleave_cpu", [&](auto tag) {
        out = repeated_positions<typename decltype(tag)::type>(repeats, size);
      });
      return out;
    })
    .fake([](const Tensor& repeats, OptionalSize size) {
      if (repeats.is_meta() && !repeats.is_fake()) {  // nobody asks what the repeats are
        check(size.has_value(), "cannot repeat_interleave a meta tensor without output_size");
        return empty({*size}, repeats.options());
      }
      check_repeats(repeats);
      SymInt length = size ? *size : unknown_size("aten::repeat_interleave.Tensor", INT64_MAX);
      return empty({length}, repeats.options());
    })
    .not_differentiable()
    .tags({Tag::DynamicOutputShape});

UMBRA_OPERATOR(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
    .composite([](const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim, OptionalSize size) {
      Tensor input = dim ? self : self.flatten(), times = repeats;
      check(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
      int64_t at = wrap_dim(dim.value_or(0), input.dim(), false);
      SymInt length = input.sym_size(at);
      if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.sym_size(0) == 1)) {
        times = repeats.reshape({1}).expand({length});
      } else {
        check(repeats.sym_size(0) == length,
              "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.sym_size(0),
              " and input.size(", at, ") = ", length);
      }
      Tensor places = repeat_interleave(times, size);
      bool is_index = places.dtype() == DType::Int32 || places.dtype() == DType::Int64;
      return input.index_select(at, is_index ? places : places.to(DType::Int64));
    });

UMBRA_OPERATOR(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
    .composite([](const Tensor& self, SymInt repeats, std::optional<int64_t> dim, OptionalSize size) {
      Tensor input = dim ? self : self.flatten();
      int64_t at = wrap_dim(dim.value_or(0), self.dim());
      check(sym_le(0, repeats).expect_true(), "Repeats must be non-negative");
      SymInt wanted = input.sym_size(at) * repeats;
      check(!size || *size == wanted, "repeat_interleave: Invalid output_size, expected ", wanted, " but got ",
            size.value_or(0));
      SymShape wide(input.sym_sizes());
      wide.insert(at + 1, repeats);
      return input.unsqueeze(at + 1).expand(wide).clone(MemoryFormat::Contiguous).flatten(at, at + 1);
    });

}  // namespace
}  // namespace umbra::ops
