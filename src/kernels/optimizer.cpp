#include "kernels/optimizer.h"

#include <array>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"

/// Before a loop over a step's tensors: no two of them lie on the same memory.
#ifdef __clang__
#define UMBRA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define UMBRA_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace umbra::kernels {
namespace {

constexpr int64_t kGrain = 8192;

/// Tensors of one size as runs of contiguous elements: themselves where they are, else copies
/// that are written back.
template <size_t N> class Rows {
 public:
  Rows(std::array<const Tensor*, N> tensors) : tensors_(tensors) {
    for (size_t i = 0; i < N; ++i) {
      const Tensor& t = *tensors[i];
      if (!t.defined()) continue;
      check(t.sizes() == tensors[0]->sizes(), "a step's tensors have different sizes");
      check(t.dtype() == tensors[0]->dtype(), "expected scalar type ", kernel_name(tensors[0]->dtype()), " but found ",
            kernel_name(t.dtype()));
      if (t.is_contiguous()) {
        dense_[i] = t;
      } else {
        dense_[i] = scratch(t.sizes(), t.dtype());
        copy(dense_[i], t);
      }
    }
  }
  template <class T> std::array<T*, N> data() const {
    std::array<T*, N> out{};
    for (size_t i = 0; i < N; ++i)
      if (dense_[i].defined()) out[i] = dense_[i].template data<T>();
    return out;
  }
  void write_back() const {
    for (size_t i = 0; i < N; ++i)
      if (dense_[i].defined() && !dense_[i].is_same(*tensors_[i])) copy(*tensors_[i], dense_[i]);
  }

 private:
  std::array<const Tensor*, N> tensors_;
  std::array<Tensor, N> dense_;
};

/// Calls `step(data, i)` for every element, by chunks in parallel.
template <size_t N, class Step>
void for_elements(const char* name, std::array<const Tensor*, N> tensors, const Step& step) {
  Rows<N> rows(tensors);
  visit<FloatingTypes>(tensors[0]->dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto data = rows.template data<T>();
    parallel_for(0, tensors[0]->numel(), kGrain, [&](int64_t from, int64_t to) { step(data, from, to); });
  });
  rows.write_back();
}

/// The gradient to step by: without its scale, in the direction of the step.
template <class C> struct GradientReader {
  C scale, direction;
  bool scaled;
  explicit GradientReader(const GradientRule& rule)
      : scale(static_cast<C>(rule.scale)), direction(rule.maximize ? C(-1) : C(1)), scaled(rule.scaled) {}
  template <bool kScaled, class T> C read(T& stored) const {
    C value = stored;
    if constexpr (kScaled) stored = static_cast<T>(value = value / scale);
    return direction * value;
  }
};

/// Calls fn(first, second) with these as constants: in a loop over elements they are no questions.
template <class Fn> void with_constants(bool first, bool second, const Fn& fn) {
  auto with = [&](auto constant) {
    if (second) fn(constant, std::true_type());
    else fn(constant, std::false_type());
  };
  if (first) with(std::true_type());
  else with(std::false_type());
}

}  // namespace

void adam_step(const AdamRule& rule, const Tensor& parameter, const Tensor& gradient, const Tensor& average,
               const Tensor& square, const Tensor& largest_square, double step) {
  double correction = 1 - std::pow(rule.beta1, step), square_correction = std::sqrt(1 - std::pow(rule.beta2, step));
  for_elements<5>(
      "adam_fused_step_impl", {&parameter, &gradient, &average, &square, &largest_square},
      [&](const auto& data, int64_t from, int64_t to) {
        using T = std::remove_pointer_t<std::remove_cvref_t<decltype(data[0])>>;
        using C = Compute<T>;
        T *p = data[0], *g = data[1], *m = data[2], *v = data[3], *most = data[4];
        const GradientReader<C> reader(rule.gradient);
        const C all_decay = static_cast<C>(rule.gradient.weight_decay), decay = rule.decoupled ? C(0) : all_decay;
        const C shrink = rule.decoupled ? static_cast<C>(rule.rate) * all_decay : C(0);
        const C weight = static_cast<C>(1 - rule.beta1), weight_size = std::abs(weight);
        const C square_weight = static_cast<C>(1 - rule.beta2);
        const C beta2 = static_cast<C>(rule.beta2), size = static_cast<C>(rule.rate / correction);
        const C root = static_cast<C>(square_correction), epsilon = static_cast<C>(rule.epsilon);
        with_constants(most != nullptr, reader.scaled, [=](auto kKept, auto kScaled) {
          UMBRA_INDEPENDENT
          for (int64_t i = from; i < to; ++i) {
            C grad = reader.template read<kScaled()>(g[i]), value = p[i];
            value = shrink != 0 ? value - shrink * value : value;
            grad = decay != 0 ? grad + value * decay : grad;
            C mean = m[i];
            mean = weight_size < C(0.5) ? mean + weight * (grad - mean) : grad - (grad - mean) * (C(1) - weight);
            C second = beta2 * C(v[i]) + square_weight * grad * grad;
            m[i] = static_cast<T>(mean);
            v[i] = static_cast<T>(second);
            if constexpr (kKept()) {
              second = std::max(C(most[i]), second);
              most[i] = static_cast<T>(second);
            }
            p[i] = static_cast<T>(value - size * mean / (std::sqrt(second) / root + epsilon));
          }
        });
      });
}

void sgd_step(const SgdRule& rule, const Tensor& parameter, const Tensor& gradient, const Tensor& buffer) {
  for_elements<3>("fused_sgd", {&parameter, &gradient, &buffer}, [&](const auto& data, int64_t from, int64_t to) {
    using T = std::remove_pointer_t<std::remove_cvref_t<decltype(data[0])>>;
    using C = Compute<T>;
    T *p = data[0], *g = data[1], *b = data[2];
    const GradientReader<C> reader(rule.gradient);
    const C decay = static_cast<C>(rule.gradient.weight_decay), rate = static_cast<C>(rule.rate);
    const C momentum = static_cast<C>(rule.momentum), share = static_cast<C>(1 - rule.dampening);
    const bool first = rule.first, nesterov = rule.nesterov;
    with_constants(b != nullptr, reader.scaled, [=](auto kKept, auto kScaled) {
      UMBRA_INDEPENDENT
      for (int64_t i = from; i < to; ++i) {
        C grad = reader.template read<kScaled()>(g[i]), value = p[i];
        if (decay != 0) grad += value * decay;
        if constexpr (kKept()) {
          C moved = first ? grad : momentum * C(b[i]) + share * grad;
          b[i] = static_cast<T>(moved);
          grad = nesterov ? grad + momentum * moved : moved;
        }
        p[i] = static_cast<T>(value - rate * grad);
      }
    });
  });
}

void adagrad_step(const AdagradRule& rule, const Tensor& parameter, const Tensor& gradient, const Tensor& sum,
                  double step) {
  double rate = rule.rate / (1 + (step - 1) * rule.rate_decay);
  for_elements<3>("fused_adagrad", {&parameter, &gradient, &sum}, [&](const auto& data, int64_t from, int64_t to) {
    using T = std::remove_pointer_t<std::remove_cvref_t<decltype(data[0])>>;
    using C = Compute<T>;
    T *p = data[0], *g = data[1], *s = data[2];
    const GradientReader<C> reader(rule.gradient);
    const C decay = static_cast<C>(rule.gradient.weight_decay), size = static_cast<C>(rate);
    const C epsilon = static_cast<C>(rule.epsilon);
    with_constants(false, reader.scaled, [=](auto, auto kScaled) {
      UMBRA_INDEPENDENT
      for (int64_t i = from; i < to; ++i) {
        C grad = reader.template read<kScaled()>(g[i]), value = p[i];
        if (decay != 0) grad += value * decay;
        C total = C(s[i]) + grad * grad;
        s[i] = static_cast<T>(total);
        p[i] = static_cast<T>(value - size * grad / (std::sqrt(total) + epsilon));
      }
    });
  });
}

}  // namespace umbra::kernels
