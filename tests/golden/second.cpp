// The derivative of a gradient, by going back twice, against differences of the gradient at neighbouring points. The
// gradients themselves are compared with PyTorch's; this holds their own formulas' gradients to them.
#include <cmath>

#include "levels.h"
#include "umbra/autograd/autograd.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::golden {
namespace {

constexpr int64_t kMostElements = 400;

/// Numbers between -1 and 1, the same in every run.
Tensor pattern_like(const Tensor& t, double start) {
  Tensor places = arange(Scalar(t.numel()), {.dtype = DType::Float64});
  return (places * 0.7 + start).sin().view(t.sizes());
}

/// The gradient of a call's results at a point, in one direction: a number for each point.
class Slope {
 public:
  Slope(const Operator& op, const Json& record, std::vector<Tensor> tensors)
      : op_(op), record_(record), tensors_(std::move(tensors)) {
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (is_floating(tensors_[i].dtype())) places_.push_back(i);
  }

  bool is_small() const {
    int64_t elements = 0;
    for (const Tensor& t : tensors_) elements += t.numel();
    return !places_.empty() && elements <= kMostElements;
  }

  /// The point itself, moved by `step` along the pattern.
  std::vector<Tensor> point(double step) const {
    std::vector<Tensor> out;
    for (size_t i : places_) out.push_back((tensors_[i] + pattern_like(tensors_[i], 0.3) * step).detach());
    return out;
  }

  /// Undefined where nothing that was given can be differentiated.
  Tensor at(const std::vector<Tensor>& point, bool differentiable) const {
    std::vector<Tensor> tensors = tensors_, used, weights;
    for (size_t k = 0; k < places_.size(); ++k) tensors[places_[k]] = point[k];
    for (const Tensor& out : flat_tensors(op_(build_arguments(op_, record_, tensors))))
      if (out.defined() && out.requires_grad() && is_floating(out.dtype())) {
        used.push_back(out);
        weights.push_back(pattern_like(out, 1.1).to(out.dtype()));
      }
    if (used.empty()) return {};
    std::vector<Tensor> gradients = autograd::grad(used, point, weights, {.create_graph = differentiable}, true);
    Tensor sum;
    for (const Tensor& g : gradients) {
      if (!g.defined()) continue;
      Tensor part = (g * pattern_like(g, 2.3)).sum();
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }

 private:
  const Operator& op_;
  const Json& record_;
  std::vector<Tensor> tensors_;
  std::vector<size_t> places_;
};

double value_at(const Slope& slope, double step) {
  std::vector<Tensor> point = slope.point(step);
  for (Tensor& t : point) t.requires_grad_();
  return slope.at(point, false).item().to_double();
}

/// The slope's change along the pattern, by its values at both sides.
double difference(const Slope& slope, double step) {
  return (value_at(slope, step) - value_at(slope, -step)) / (2 * step);
}
/// Whether the slope at the point is what it is beside it.
bool is_continuous(const Slope& slope) {
  double here = value_at(slope, 0), beside = (value_at(slope, 1e-5) + value_at(slope, -1e-5)) / 2;
  return std::abs(here - beside) <= 1e-6 * (1 + std::abs(here));
}

}  // namespace

bool check_second(const Operator& op, const Group& group, const Json& record) {
  if (!record.contains("grad") || record["grad"].contains("error")) return false;
  if (op.definition().random || op.is_mutable()) return false;
  std::vector<Tensor> tensors = build_tensors(group, record, false);
  for (Tensor& t : tensors) {
    if (t.is_complex()) return false;
    if (is_floating(t.dtype())) t = t.detach().to(DType::Float64);
  }
  Slope slope(op, record, std::move(tensors));
  if (!slope.is_small()) return false;
  std::vector<Tensor> point = slope.point(0);
  for (Tensor& t : point) t.requires_grad_();
  double got = 0;
  try {
    slope.at(point, false);
  } catch (const std::exception&) {
    return false;  // the call is not one of doubles
  }
  try {
    Tensor value = slope.at(point, true);
    if (!value.defined() || !std::isfinite(value.item().to_double())) return false;
    if (value.requires_grad())
      for (const Tensor& second : autograd::grad({&value, 1}, point, {}, {}, true))
        if (second.defined()) got += (second * pattern_like(second, 0.3)).sum().item().to_double();
  } catch (const Error& e) {
    if (std::string_view(e.what()).find("is not implemented") == std::string_view::npos) throw;
    return false;  // refused by name
  }
  // Where two steps disagree there is a corner, and no second derivative to speak of.
  double wide = difference(slope, 2e-5), near = difference(slope, 1e-5), size = 1 + std::abs(near);
  if (!(std::abs(wide - near) <= 1e-4 * size) || !is_continuous(slope)) return false;
  if (!(std::abs(got - near) <= 1e-3 * size)) throw Mismatch(concat("second derivative ", got, ", expected ", near));
  return true;
}

}  // namespace umbra::golden
