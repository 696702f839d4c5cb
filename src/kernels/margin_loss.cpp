// Losses by the margin between a target's score and the others, and their gradients.
#include "kernels/copy.h"
#include "kernels/loss.h"
#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

struct Rows {
  int64_t samples, classes;
  explicit Rows(const Tensor& scores)
      : samples(scores.dim() == 2 ? scores.size(0) : 1), classes(scores.dim() == 0 ? 1 : scores.size(-1)) {}
};

/// Puts losses of samples where they belong: each by itself, or their sum or mean.
template <class T, class C> void store_losses(const Tensor& out, const std::vector<C>& losses, Reduction reduction) {
  if (reduction == Reduction::None && out.dim() > 0) {
    for (size_t i = 0; i < losses.size(); ++i)
      out.data<T>()[static_cast<int64_t>(i) * out.stride(0)] = static_cast<T>(losses[i]);
    return;
  }
  C sum = 0;
  for (C loss : losses) sum += loss;
  if (reduction == Reduction::Mean) sum /= static_cast<C>(losses.size());
  *out.data<T>() = static_cast<T>(sum);
}

/// The gradient of a sample's loss, its share of a mean included.
template <class C> struct UpstreamGradient {
  std::vector<C> values;
  C share = 1;
  UpstreamGradient(const Tensor& grad, Reduction reduction, int64_t samples) : values(read_vector<C>(grad)) {
    if (reduction == Reduction::Mean) share = C(1) / static_cast<C>(samples);
  }
  C of(int64_t sample) const { return values[values.size() == 1 ? 0 : static_cast<size_t>(sample)] * share; }
};

template <class C> C weight_of(const std::vector<C>& weights, int64_t target) {
  return weights.empty() ? C(1) : weights[static_cast<size_t>(target)];
}

int64_t checked_target(int64_t target, int64_t classes) {
  check(target >= 0 && target < classes, "target out of range");
  return target;
}

/// Calls fn(target class) for the targets of a row, up to the first -1.
template <class Fn> void each_target(const int64_t* targets, int64_t classes, const Fn& fn) {
  for (int64_t k = 0; k < classes && targets[k] >= 0; ++k) fn(targets[k]);
}

}  // namespace

void check_probabilities(const Tensor& t, const char* name) {
  Tensor plain = contiguous(t);
  visit<FloatingTypes>(t.dtype(), "binary_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = plain.data<T>();
    bool inside = true;
    for (int64_t i = 0, n = plain.numel(); i < n; ++i) {
      auto value = static_cast<Compute<T>>(data[i]);
      inside &= value >= 0 && value <= 1;
    }
    check(inside, "all elements of ", name, " should be between 0 and 1");
  });
}

void multi_margin_loss(const Tensor& out, const Tensor& self, const Tensor& target, const MarginOptions& options) {
  Rows rows(self);
  Tensor scores = contiguous(self);
  std::vector<int64_t> targets = read_vector<int64_t>(target);
  visit<FloatingTypes>(self.dtype(), "multi_margin_loss_cpu_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> weights = read_vector<C>(options.weight), losses;
    for (int64_t i = 0; i < rows.samples; ++i) {
      const T* x = scores.data<T>() + i * rows.classes;
      int64_t own = checked_target(targets[static_cast<size_t>(i)], rows.classes);
      C sum = 0;
      for (int64_t c = 0; c < rows.classes; ++c) {
        C gap = static_cast<C>(options.margin) - static_cast<C>(x[own]) + static_cast<C>(x[c]);
        if (c != own && gap > 0) sum += (options.power == 1 ? gap : gap * gap) * weight_of(weights, own);
      }
      losses.push_back(sum / static_cast<C>(rows.classes));
    }
    store_losses<T>(out, losses, options.reduction);
  });
}

void multi_margin_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& self,
                                const Tensor& target, const MarginOptions& options) {
  Rows rows(self);
  Tensor scores = contiguous(self);
  std::vector<int64_t> targets = read_vector<int64_t>(target);
  visit<FloatingTypes>(self.dtype(), "multi_margin_loss_backward_cpu_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> weights = read_vector<C>(options.weight), slopes(static_cast<size_t>(rows.classes));
    UpstreamGradient<C> upstream(grad_output, options.reduction, rows.samples);
    for (int64_t i = 0; i < rows.samples; ++i) {
      const T* x = scores.data<T>() + i * rows.classes;
      int64_t own = checked_target(targets[static_cast<size_t>(i)], rows.classes);
      C taken = 0, scale = upstream.of(i) / static_cast<C>(rows.classes) * weight_of(weights, own);
      for (int64_t c = 0; c < rows.classes; ++c) {
        C gap = static_cast<C>(options.margin) - static_cast<C>(x[own]) + static_cast<C>(x[c]), slope = 0;
        if (c != own && gap > 0) slope = options.power == 1 ? scale : 2 * scale * gap;
        taken -= slope;
        slopes[static_cast<size_t>(c)] = slope;
      }
      slopes[static_cast<size_t>(own)] = taken;
      T* to = grad_input.data<T>() + i * rows.classes;
      for (int64_t c = 0; c < rows.classes; ++c) to[c] = static_cast<T>(slopes[static_cast<size_t>(c)]);
    }
  });
}

void multilabel_margin_loss(const Tensor& out, const Tensor& is_target, const Tensor& self, const Tensor& target,
                            Reduction reduction) {
  Rows rows(self);
  Tensor scores = contiguous(self);
  std::vector<int64_t> targets = read_vector<int64_t>(target);
  visit<FloatingTypes>(self.dtype(), "multilabel_margin_loss_forward_out_frame", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> losses;
    fill(is_target, 0);
    for (int64_t i = 0; i < rows.samples; ++i) {
      const T* x = scores.data<T>() + i * rows.classes;
      T* marks = is_target.data<T>() + i * rows.classes;
      const int64_t* own = targets.data() + i * rows.classes;
      each_target(own, rows.classes, [&](int64_t t) { marks[t] = T(1); });
      C sum = 0;
      each_target(own, rows.classes, [&](int64_t t) {
        for (int64_t c = 0; c < rows.classes; ++c)
          if (static_cast<C>(marks[c]) == 0) sum += std::max(C(0), 1 - static_cast<C>(x[t]) + static_cast<C>(x[c]));
      });
      losses.push_back(sum / static_cast<C>(rows.classes));
    }
    store_losses<T>(out, losses, reduction);
  });
}

void multilabel_margin_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& self,
                                     const Tensor& target, const Tensor& is_target, Reduction reduction) {
  Rows rows(self);
  Tensor scores = contiguous(self), all_marks = contiguous(is_target);
  std::vector<int64_t> targets = read_vector<int64_t>(target);
  visit<FloatingTypes>(self.dtype(), "multilabel_margin_loss_backward_out_frame", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    UpstreamGradient<C> upstream(grad_output, reduction, rows.samples);
    for (int64_t i = 0; i < rows.samples; ++i) {
      const T* x = scores.data<T>() + i * rows.classes;
      const T* marks = all_marks.data<T>() + i * rows.classes;
      C scale = upstream.of(i) / static_cast<C>(rows.classes);
      std::vector<C> slopes(static_cast<size_t>(rows.classes), C(0));
      each_target(targets.data() + i * rows.classes, rows.classes, [&](int64_t t) {
        for (int64_t c = 0; c < rows.classes; ++c)
          if (static_cast<C>(marks[c]) == 0 && 1 - static_cast<C>(x[t]) + static_cast<C>(x[c]) > 0) {
            slopes[static_cast<size_t>(t)] -= scale;
            slopes[static_cast<size_t>(c)] += scale;
          }
      });
      T* to = grad_input.data<T>() + i * rows.classes;
      for (int64_t c = 0; c < rows.classes; ++c) to[c] = static_cast<T>(slopes[static_cast<size_t>(c)]);
    }
  });
}

}  // namespace umbra::kernels
