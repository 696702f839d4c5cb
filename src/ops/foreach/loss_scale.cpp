// Loss scaling for narrow types: gradients without their scale, and the scale's own growth and retreat.
#include <algorithm>

#include "core/cpp_name.h"
#include "kernels/vector/rows.h"
#include "ops/common/may_read.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_single(const Tensor& t, const char* name) {
  check(t.sym_numel() == 1, name, " must be a 1-element tensor.");
  check(t.dtype() == DType::Float32, name, " must be a float tensor.");
}

/// Whether all elements are finite, in one pass.
bool all_finite(const Tensor& t) {
  if (!t.is_contiguous() || (t.dtype() != DType::Float32 && t.dtype() != DType::Float64))
    return t.isfinite().all().item().to_bool();
  // x - x is 0 for every number, and NaN for the rest.
  auto sum = [&](auto tag) {
    using T = decltype(tag);
    return static_cast<double>(kernels::row_functions<T>().squared_distance(t.data<T>(), t.data<T>(), t.numel()));
  };
  return (t.dtype() == DType::Float32 ? sum(float()) : sum(double())) == 0;
}

/// The same as by operators, on plain values: each gradient is read twice and written once.
std::tuple<std::vector<Tensor>, Tensor> unscaled_values(TensorList grads, const Tensor& found_inf,
                                                        const Tensor& inv_scale) {
  bool met = false, scaled = !inv_scale.item().equals(1);
  std::vector<Tensor> unscaled;
  for (const Tensor& grad : grads) {
    check(is_floating(grad.dtype()), "one of scaled_grads was not a floating point tensor.");
    met = met || !all_finite(grad);
    unscaled.push_back(scaled ? grad.mul(inv_scale).to(grad.dtype()) : grad.clone());
  }
  bool known = !found_inf.item().equals(0);
  return {std::move(unscaled), met && !known ? ones_like(found_inf) : found_inf.clone()};
}

UMBRA_OPERATOR(
    "_amp_foreach_non_finite_check_and_unscale(Tensor[] self, Tensor found_inf, Tensor inv_scale) -> (Tensor[] "
    "self_out, Tensor found_inf_out)")
    .all_backends([](TensorList self, const Tensor& found_inf, const Tensor& inv_scale) {
      bool meta = found_inf.is_meta() || inv_scale.is_meta();
      if (self.empty() && !meta) return std::tuple(std::vector<Tensor>(), found_inf.clone());
      check_single(inv_scale, "inv_scale");
      check_single(found_inf, "found_inf");
      if (may_read(inv_scale) && may_read(found_inf) && std::all_of(self.begin(), self.end(), may_read))
        return unscaled_values(self, found_inf, inv_scale);
      Tensor found = found_inf;
      std::vector<Tensor> unscaled;
      for (const Tensor& grad : self) {
        check(is_floating(grad.dtype()), "one of scaled_grads was not a floating point tensor.");
        found = found.logical_or(grad.isfinite().all().logical_not()).to(DType::Float32);
        unscaled.push_back(where(inv_scale.eq(1), grad, grad.mul(inv_scale)).to(grad.dtype()));
      }
      return std::tuple(std::move(unscaled),
                        where(found.ne(0).logical_and(found_inf.eq(0)), ones_like(found), found_inf));
    })
    .tags({Tag::Generated});

UMBRA_OPERATOR(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()")
    .all_backends([](TensorList self, const Tensor& found_inf, const Tensor& inv_scale) {
      auto [unscaled, found] = _amp_foreach_non_finite_check_and_unscale(self, found_inf, inv_scale);
      for (size_t i = 0; i < self.size(); ++i) self[i].copy_(unscaled[i]);
      found_inf.copy_(found);
    })
    .functional_form("aten::_amp_foreach_non_finite_check_and_unscale");

// A step that met an infinity makes the scale smaller; `growth_interval` steps without one make it larger.
UMBRA_OPERATOR(
    "_amp_update_scale(Tensor self, Tensor growth_tracker, Tensor found_inf, float scale_growth_factor, float "
    "scale_backoff_factor, int growth_interval) -> (Tensor, Tensor growth_tracker_out)")
    .all_backends([](const Tensor& self, const Tensor& tracker, const Tensor& found_inf, double growth, double backoff,
                     int64_t interval) {
      if (self.is_meta() || tracker.is_meta() || found_inf.is_meta()) {
        check<NotImplementedError>(self.is_meta(), "Cannot inplace into non-meta tensor with meta tensor argument");
        return std::tuple(self.clone(), tracker.clone());
      }
      check(tracker.sym_numel() == 1, "growth_tracker must be a 1-element tensor.");
      check(tracker.dtype() == DType::Int32, "growth_tracker must be an int tensor.");
      check(self.sym_numel() == 1, "current_scale must be a 1-element tensor.");
      check(self.dtype() == DType::Float32, "current_scale must be a float tensor.");
      check_single(found_inf, "found_inf");
      Tensor met = found_inf.ne(0), counted = tracker.add(1), full = counted.eq(interval);
      Tensor grown = self.mul(growth), larger = where(full.logical_and(grown.isfinite()), grown, self);
      Tensor scale = where(met, self.mul(backoff), larger), restarts = met.logical_or(full);
      return std::tuple(scale.reshape(self.sym_sizes()), counted.masked_fill(restarts.reshape(counted.sym_sizes()), 0));
    })
    .tags({Tag::Generated});

UMBRA_OPERATOR(
    "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, float "
    "scale_backoff_factor, int growth_interval) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& tracker, const Tensor& found_inf, double growth, double backoff,
                     int64_t interval) {
      auto [scale, counted] = _amp_update_scale(self, tracker, found_inf, growth, backoff, interval);
      if (!self.is_meta()) tracker.copy_(counted);
      return self.copy_(scale);
    })
    .functional_form("aten::_amp_update_scale");

UMBRA_OPERATOR(
    "_amp_update_scale.out(Tensor self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, float "
    "scale_backoff_factor, int growth_interval, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& tracker, const Tensor& found_inf, double growth, double backoff,
                     int64_t interval, const Tensor& out) {
      // As in PyTorch the tracker stays as it was, whatever the schema says.
      Tensor scale = std::get<0>(_amp_update_scale(self, tracker, found_inf, growth, backoff, interval));
      check_out_dtype(scale.dtype(), out.dtype());
      if (!(out.sym_sizes() == scale.sym_sizes())) out.resize_(scale.sym_sizes());
      return out.copy_(scale);
    })
    .tags({Tag::Generated});

}  // namespace
}  // namespace umbra::ops
