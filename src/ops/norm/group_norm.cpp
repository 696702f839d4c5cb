// Group normalisation: channels in groups, each group of each sample by itself. Instance normalisation has one channel a group.
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

UMBRA_OPERATOR(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)")
    .composite([](const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt n, SymInt, SymInt, int64_t group, double eps) {
      Tensor grouped = input.reshape({n, SymInt(group), SymInt(-1)});
      auto [mean, rstd] = statistics(grouped, {2}, eps);
      Tensor out = grouped.sub(mean).mul(rstd).reshape(input.sym_sizes());
      if (weight.defined()) out = out.mul(per_channel(weight, input.dim()));
      if (bias.defined()) out = out.add(per_channel(bias, input.dim()));
      return std::tuple(out, mean.squeeze(2), rstd.squeeze(2));
    })
    .tags({"core"});

UMBRA_OPERATOR(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor")
    .composite([](const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias, double eps, bool) {
      check(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
      SymInt n = input.sym_size(0), channels = input.sym_size(1);
      check(groups > 0, "Expected num groups to be greater than 0, got ", groups);
      check(channels % groups == 0, "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
            to_string(input.sym_sizes()), " and num_groups=", groups);
      for (const Tensor* t : {&weight, &bias})
        check(!t->defined() || (t->dim() == 1 && t->sym_size(0) == channels), "Expected ", t == &weight ? "weight" : "bias",
              " to be a vector of size equal to the number of channels in input, but got ", t == &weight ? "weight" : "bias", " of shape ",
              t->defined() ? to_string(t->sym_sizes()) : std::string(), " and input of shape ", to_string(input.sym_sizes()));
      SymInt inner = 1;
      for (int64_t d = 2; d < input.dim(); ++d) inner *= input.sym_size(d);
      return std::get<0>(native_group_norm(input.contiguous(), weight, bias, n, channels, inner, groups, eps));
    });

}  // namespace
}  // namespace umbra::ops
