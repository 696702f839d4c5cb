// Products of matrices, normalisation, resampling.
#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

using MaybeNumber = std::optional<double>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor scaled_sum(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  Tensor out = alpha.equals(1) ? product : product * alpha;
  if (beta.equals(0)) return out;
  return (beta.equals(1) ? self : self * beta) + out;
}

Tensor outer_sum(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  SymInt n = a.sym_size(0), m = b.sym_size(0);
  Tensor scaled = beta.equals(0) ? Tensor() : self.expand({n, m}) * beta;
  Tensor product = a.view({n, SymInt(1)}).mul(b) * alpha;
  return scaled.defined() ? scaled + product : product;
}

/// The source of each position of one dimension: its own place times the scale, cut down.
Tensor nearest_places(SymInt out, SymInt in, MaybeNumber given, Device device) {
  double scale = given ? 1 / *given : 0;
  TensorOptions options{.dtype = DType::Float32, .layout = Layout::Strided, .device = device, .pin_memory = false};
  Tensor steps = arange(0, Scalar(out), 1, options) + 0.0;
  if (!given) scale = static_cast<double>(in.guard_int()) / static_cast<double>(out.guard_int());
  return (steps * scale)._to_copy({.dtype = DType::Int64});
}

Tensor nearest_2d(const Tensor& self, SymIntArrayRef size, MaybeNumber high, MaybeNumber wide) {
  Tensor rows = nearest_places(size[0], self.sym_size(2), high, self.device()).unsqueeze(-1);
  Tensor columns = nearest_places(size[1], self.sym_size(3), wide, self.device());
  return index(self, std::vector<Tensor>{{}, {}, rows, columns});
}
Tensor nearest_1d(const Tensor& self, SymIntArrayRef size, MaybeNumber scale) {
  return index(self, std::vector<Tensor>{{}, {}, nearest_places(size[0], self.sym_size(2), scale, self.device())});
}

/// The result lies in memory as the kernel's does: by positions, then by batches and heads.
std::tuple<Tensor, Tensor> attention_by_parts(const Tensor& query, const Tensor& key, const Tensor& value,
                                              double dropout, bool causal, const Tensor& mask, MaybeNumber scale) {
  auto [out, weights] =
      _scaled_dot_product_attention_math(query, key, value, mask, dropout, causal, Tensor(), scale, false);
  Tensor by_position = out.permute(IntArrayRef({2, 0, 1, 3})).clone(MemoryFormat::Contiguous);
  return {by_position.permute(IntArrayRef({1, 2, 0, 3})), weights};
}

/// Equal steps from one end to the other, counted from the nearer end.
Tensor steps_between(double from, double to, SymInt count, Device device) {
  TensorOptions options{.layout = Layout::Strided, .device = device, .pin_memory = false};
  Tensor place = arange(0, Scalar(count), 1, options);
  double n = static_cast<double>(count.guard_int()), step = n > 1 ? (to - from) / (n - 1) : 0;
  Tensor near = place.lt(n / 2);
  Tensor up = place._to_copy({.dtype = DType::Float32}) * step + from;
  Tensor down = Scalar(to) - (Scalar(count - 1) - place)._to_copy({.dtype = DType::Float32}) * step;
  return where(near, up, down);
}

}  // namespace

void add_layers(DecompositionTable& table) {
  table.add("aten::baddbmm", [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                                const Scalar& alpha) { return scaled_sum(self, a.bmm(b), beta, alpha); });
  table.add("aten::addr", outer_sum);
  table.add("aten::dot", [](const Tensor& a, const Tensor& b) { return a.mul(b).sum(); });
  table.add("aten::mv", [](const Tensor& a, const Tensor& b) { return a.mul(b).sum(IntArrayRef({1})); });
  table.add("aten::native_batch_norm",
            [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
               const Tensor& variance, bool training, double momentum, double eps) -> Three {
              if (!training)
                return _native_batch_norm_legit_no_training(input, weight, bias, mean, variance, momentum, eps);
              if (!mean.defined()) return _native_batch_norm_legit(input, weight, bias, true, momentum, eps);
              return _native_batch_norm_legit(input, weight, bias, mean, variance, true, momentum, eps);
            });
  table.add("aten::_scaled_dot_product_flash_attention_for_cpu", attention_by_parts);
  table.add("aten::upsample_nearest1d", nearest_1d);
  table.add("aten::upsample_nearest2d", nearest_2d);
  table.add("aten::linspace", [](const Scalar& from, const Scalar& to, int64_t count, std::optional<DType>,
                                 std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
    return steps_between(from.to_double(), to.to_double(), count, device.value_or(Device(DeviceType::CPU)));
  });
}

}  // namespace umbra::core_table
