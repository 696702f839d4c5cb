// Group normalisation: channels in groups, each group of each sample by itself. Instance normalisation has one channel
// a group.
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// A parameter of the channels, shaped so that it broadcasts over [N, C, ...].
Tensor per_channel(const Tensor& parameter, int64_t rank) {
  SymShape sizes(static_cast<size_t>(rank), SymInt(1));
  sizes[1] = parameter.sym_numel();
  return parameter.reshape(sizes);
}

void check_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt channels, int64_t groups) {
  check(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  check(channels % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        to_string(input.sym_sizes()), " and num_groups=", groups);
  for (const Tensor* t : {&weight, &bias}) {
    if (!t->defined()) continue;
    const char* name = t == &weight ? "weight" : "bias";
    check(t->dim() == 1 && t->sym_size(0) == channels, "Expected ", name,
          " to be a vector of size equal to the number of channels in input, but got ", name, " of shape ",
          to_string(t->sym_sizes()), " and input of shape ", to_string(input.sym_sizes()));
    bool mixed = is_reduced_floating(input.dtype()) && t->dtype() == DType::Float32;
    check(t->dtype() == input.dtype() || mixed, "mixed dtype (CPU): expect parameter to have scalar type of Float");
  }
}

// Narrow types are computed in float, as the sums of a fused kernel are.
UMBRA_OPERATOR(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
    "eps) -> (Tensor, Tensor, Tensor)")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt n, SymInt channels,
                  SymInt inner, int64_t group, double eps) {
      check_group_norm(input, weight, bias, channels, group);
      DType dtype = input.dtype(), wide = is_reduced_floating(dtype) ? DType::Float32 : dtype;
      Tensor grouped = input.to(wide).reshape({n, SymInt(group), (channels / group) * inner});
      auto [mean, rstd] = statistics(grouped, {2}, eps);
      Tensor out = grouped.sub(mean).mul(rstd).reshape(input.sym_sizes());
      if (weight.defined()) out = out.mul(per_channel(weight.to(wide), input.dim()));
      if (bias.defined()) out = out.add(per_channel(bias.to(wide), input.dim()));
      DType kept = weight.defined() ? weight.dtype() : dtype;
      return std::tuple(out.to(dtype), mean.squeeze(2).to(kept), rstd.squeeze(2).to(kept));
    })
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor")
    .composite([](const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias, double eps, bool) {
      SymInt n = input.sym_size(0), channels = input.sym_size(1), inner = 1;
      check_group_norm(input, weight, bias, channels, groups);
      for (int64_t d = 2; d < input.dim(); ++d) inner *= input.sym_size(d);
      check(channels > 0, "Expected number of channels to be greater than 0, got ", channels);
      check(inner > 0, "Expected HxW to be greater than 0, got ", inner);
      return std::get<0>(native_group_norm(input.contiguous(), weight, bias, n, channels, inner, groups, eps));
    });

}  // namespace
}  // namespace umbra::ops
