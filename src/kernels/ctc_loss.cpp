// The CTC loss and its gradient, over the paths through a target with blanks between its labels.
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "kernels/loss.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

/// One sample's target with a blank before, between and after its labels.
class Labels {
 public:
  Labels(const std::vector<int64_t>& targets, int64_t offset, int64_t stride, int64_t length, int64_t blank)
      : targets_(targets), offset_(offset), stride_(stride), length_(length), blank_(blank) {}
  /// How many states a path may be in.
  int64_t states() const { return 2 * length_ + 1; }
  int64_t operator[](int64_t state) const {
    return state % 2 == 0 ? blank_ : targets_[static_cast<size_t>(offset_ + stride_ * (state / 2))];
  }
  /// Whether a path may go from two states before to this one: between different labels.
  bool may_skip(int64_t state) const { return state % 2 == 1 && state >= 2 && (*this)[state] != (*this)[state - 2]; }

 private:
  const std::vector<int64_t>& targets_;
  int64_t offset_, stride_, length_, blank_;
};

/// The labels of each sample of a batch.
struct Batch {
  std::vector<int64_t> targets;
  std::vector<int64_t> offsets;
  int64_t stride;
  const CtcOptions& options;

  Batch(const Tensor& target, const CtcOptions& options)
      : targets(read_vector<int64_t>(target)), stride(1), options(options) {
    int64_t next = 0;
    for (int64_t length : options.target_lengths) {
      offsets.push_back(next);
      next += target.dim() == 1 ? length : target.size(1);
    }
  }
  Labels of(int64_t sample) const {
    auto i = static_cast<size_t>(sample);
    return Labels(targets, offsets[i], stride, options.target_lengths[i], options.blank);
  }
};

template <class C> constexpr C kNone = -std::numeric_limits<C>::infinity();

/// log(exp(a) + exp(b) + exp(c)).
template <class C> C log_sum(C a, C b, C c = kNone<C>) {
  C most = std::max({a, b, c});
  if (a != a || b != b || c != c) return a + b + c;  // what is no number stays none
  if (most == kNone<C>) return kNone<C>;
  return std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most)) + most;
}

/// Log probabilities of one sample, by time and class.
template <class T> struct Scores {
  const T* data;
  int64_t time_stride, class_stride;
  Scores(const Tensor& t, int64_t sample)
      : data(t.data<T>() + sample * t.stride(1)), time_stride(t.stride(0)), class_stride(t.stride(2)) {}
  T at(int64_t time, int64_t label) const { return data[time * time_stride + label * class_stride]; }
};

/// alpha[t][s]: the log likelihood of all paths that are in state s at time t, having seen all before.
template <class T>
T forward_pass(T* alpha, int64_t width, const Scores<T>& scores, const Labels& labels, int64_t steps, int64_t length) {
  std::fill_n(alpha, width, kNone<T>);
  if (steps == 0) return length == 0 ? T(0) : std::numeric_limits<T>::infinity();
  alpha[0] = scores.at(0, labels[0]);
  if (length > 0) alpha[1] = scores.at(0, labels[1]);
  for (int64_t t = 1; t < steps; ++t) {
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    for (int64_t s = 0; s < labels.states(); ++s) {
      T stay = before[s], step = s > 0 ? before[s - 1] : kNone<T>;
      now[s] = log_sum(stay, step, labels.may_skip(s) ? before[s - 2] : kNone<T>) + scores.at(t, labels[s]);
    }
  }
  const T* last = alpha + (steps - 1) * width;
  return -(length == 0 ? last[0] : log_sum(last[2 * length], last[2 * length - 1]));
}

/// The other way round, from the end: beta; and the log of how likely each label is at each time, alpha and beta
/// together.
template <class T>
void backward_pass(T* occupancy, int64_t classes, const T* alpha, int64_t width, const Scores<T>& scores,
                   const Labels& labels, int64_t steps, int64_t length) {
  std::vector<T> later(static_cast<size_t>(labels.states()), kNone<T>), now = later;
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t s = labels.states() - 1; s >= 0; --s) {
      auto i = static_cast<size_t>(s);
      if (t == steps - 1) {
        now[i] = s >= 2 * length - 1 ? scores.at(t, labels[s]) : kNone<T>;
      } else {
        T stay = later[i], step = s + 1 < labels.states() ? later[i + 1] : kNone<T>;
        bool skips = s + 2 < labels.states() && labels.may_skip(s + 2);
        now[i] = log_sum(stay, step, skips ? later[i + 2] : kNone<T>) + scores.at(t, labels[s]);
      }
      T& slot = occupancy[t * classes + labels[s]];
      slot = log_sum(slot, alpha[t * width + s] + now[i]);
    }
    std::swap(later, now);
  }
}

}  // namespace

void ctc_loss(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
              const CtcOptions& options) {
  Batch batch(targets, options);
  int64_t width = log_alpha.size(2), classes = log_probs.size(2);
  for (int64_t t : batch.targets)
    check(t >= -classes && t < (int64_t{1} << 40), "ctc_loss: a target of ", t, " is no class");
  visit<Floating>(log_probs.dtype(), "ctc_loss_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill(log_alpha, -INFINITY);
    parallel_for(0, log_probs.size(1), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        auto i = static_cast<size_t>(b);
        Labels labels = batch.of(b);
        for (int64_t s = 0; s < labels.states(); ++s)
          check(labels[s] >= 0 && labels[s] < classes, "ctc_loss: a target of ", labels[s], " is no class");
        losses.data<T>()[b] =
            forward_pass(log_alpha.data<T>() + b * log_alpha.stride(0), width, Scores<T>(log_probs, b), labels,
                         options.input_lengths[i], options.target_lengths[i]);
      }
    });
  });
}

void ctc_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& log_probs,
                       const Tensor& targets, const Tensor& losses, const Tensor& log_alpha,
                       const CtcOptions& options) {
  Batch batch(targets, options);
  int64_t classes = log_probs.size(2), time = log_probs.size(0), samples = log_probs.size(1);
  Tensor alphas = contiguous(log_alpha);
  visit<Floating>(log_probs.dtype(), "ctc_loss_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> upstream = read_vector<T>(grad_output), loss = read_vector<T>(losses);
    parallel_for(0, samples, 1, [&](int64_t begin, int64_t end) {
      std::vector<T> occupancy;
      for (int64_t b = begin; b < end; ++b) {
        auto i = static_cast<size_t>(b);
        int64_t steps = options.input_lengths[i];
        T* to = grad_input.data<T>() + b * grad_input.stride(1);
        int64_t row = grad_input.stride(0);
        for (int64_t t = 0; t < time; ++t) std::fill_n(to + t * row, classes, T(0));
        if (options.zero_infinity && loss[i] == std::numeric_limits<T>::infinity()) continue;
        occupancy.assign(static_cast<size_t>(steps * classes), kNone<T>);
        Scores<T> scores(log_probs, b);
        backward_pass(occupancy.data(), classes, alphas.data<T>() + b * alphas.stride(0), alphas.size(2), scores,
                      batch.of(b), steps, options.target_lengths[i]);
        for (int64_t t = 0; t < steps; ++t)
          for (int64_t c = 0; c < classes; ++c) {
            T score = scores.at(t, c), seen = occupancy[static_cast<size_t>(t * classes + c)];
            to[t * row + c] = (std::exp(score) - std::exp(seen + loss[i] - score)) * upstream[i];
          }
      }
    });
  });
}

}  // namespace umbra::kernels
