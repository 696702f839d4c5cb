#include "kernels/loss.h"

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

// Scores as [batch, classes, space], whatever their rank.
struct ClassShape {
  int64_t batch = 1, classes = 1, space = 1;
  int64_t samples() const { return batch * space; }
  /// Where the score of a sample's class lies.
  int64_t at(int64_t sample, int64_t target) const {
    if (space == 1) return sample * classes + target;
    return (sample / space * classes + target) * space + sample % space;
  }
};
ClassShape class_shape(const Tensor& scores) {
  ClassShape shape;
  if (scores.dim() == 1) {
    shape.classes = scores.size(0);
    return shape;
  }
  shape.batch = scores.size(0);
  shape.classes = scores.size(1);
  for (int64_t d = 2; d < scores.dim(); ++d) shape.space *= scores.size(d);
  return shape;
}

// The class of each sample, checked as it is read; -1 where it is to be ignored.
class Targets {
 public:
  Targets(const Tensor& target, int64_t classes, int64_t ignore_index)
      : tensor_(contiguous(cast(target, DType::Int64))), classes_(classes), ignored_(ignore_index) {
    if (tensor_.numel() > 0) data_ = tensor_.data<int64_t>();
  }
  int64_t operator[](int64_t sample) const {
    int64_t target = data_[sample];
    if (target == ignored_) return -1;
    check<IndexError>(target >= 0 && target < classes_, "Target ", target, " is out of bounds.");
    return target;
  }

 private:
  Tensor tensor_;
  int64_t classes_, ignored_;
  const int64_t* data_ = nullptr;
};

template <class T> T weight_of(const std::vector<T>& weights, int64_t target) {
  if (target < 0) return T(0);
  return weights.empty() ? T(1) : weights[target];
}

/// Adds the losses of `count` samples from `first` on, of which these are the classes, and their weights. A function of
/// its own, whose sums stay in registers: through memory each sample would wait for the one before.
template <class T, class C>
[[gnu::noinline]] void add_losses(double& sum, double& weight_sum, const T* scores, const ClassShape& shape,
                                  int64_t first, const int64_t* wanted, int64_t count, const std::vector<C>& weights) {
  double losses = sum, shares = weight_sum;
  for (int64_t i = 0; i < count; ++i) {
    if (wanted[i] < 0) continue;
    C share = weight_of(weights, wanted[i]);
    losses -= static_cast<C>(scores[shape.at(first + i, wanted[i])]) * share;
    shares += share;
  }
  sum = losses, weight_sum = shares;
}

}  // namespace

void nll_loss(const Tensor& out, const Tensor& total_weight, const Tensor& self, const Tensor& target,
              const Tensor& weight, Reduction reduction, int64_t ignore_index) {
  ClassShape shape = class_shape(self);
  Targets targets(target, shape.classes, ignore_index);
  Tensor scores = contiguous(self);
  visit<FloatingTypes>(self.dtype(), "nll_loss_out_frame", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const T* data = scores.data<T>();
    std::vector<C> weights = read_vector<C>(weight);
    auto loss = [&](int64_t i) {
      int64_t wanted = targets[i];
      return wanted < 0 ? C(0) : -static_cast<C>(data[shape.at(i, wanted)]) * weight_of(weights, wanted);
    };
    C total(0);
    if (reduction == Reduction::None && self.dim() > 1) {
      std::vector<C> losses(shape.samples());
      for (int64_t i = 0; i < shape.samples(); ++i) losses[i] = loss(i);
      write_vector(out, losses);
    } else {
      // Scores lie far apart: those of a block are on their way before the first is waited for.
      constexpr int64_t kBlock = 64;
      int64_t block[kBlock];
      double sum = 0, weight_sum = 0;
      for (int64_t from = 0, samples = shape.samples(); from < samples; from += kBlock) {
        const int64_t count = std::min(kBlock, samples - from);
        for (int64_t i = 0; i < count; ++i) {
          block[i] = targets[from + i];
          if (block[i] >= 0) __builtin_prefetch(data + shape.at(from + i, block[i]));
        }
        add_losses(sum, weight_sum, data, shape, from, block, count, weights);
      }
      *out.data<T>() = static_cast<T>(static_cast<C>(reduction == Reduction::Mean ? sum / weight_sum : sum));
      total = static_cast<C>(weight_sum);
    }
    *total_weight.data<T>() = static_cast<T>(total);
  });
}

void nll_loss_backward(const Tensor& grad_input, const Tensor& grad_output, const Tensor& target, const Tensor& weight,
                       Reduction reduction, int64_t ignore_index, const Tensor& total_weight) {
  ClassShape shape = class_shape(grad_input);
  Targets targets(target, shape.classes, ignore_index);
  DenseOutput result(grad_input);
  fill(result.tensor(), 0);
  visit<FloatingTypes>(grad_input.dtype(), "nll_loss_backward_out_frame", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> weights = read_vector<C>(weight), grads = read_vector<C>(grad_output);
    C total = reduction == Reduction::Mean ? read_vector<C>(total_weight)[0] : C(1);
    T* data = result.tensor().template data<T>();
    for (int64_t i = 0; i < shape.samples(); ++i) {
      int64_t wanted = targets[i];
      if (wanted < 0) continue;
      C grad = grads[reduction == Reduction::None ? i : 0];
      data[shape.at(i, wanted)] = static_cast<T>(-weight_of(weights, wanted) * grad / total);
    }
  });
  result.finish();
}

namespace {

// The sum, or mean, of what `sum_of(a, b, n)` makes of two rows, piece by piece: the same pieces however many threads.
template <class T, class Sum>
double sum_over_pairs(const Tensor& self, const Tensor& target, bool mean, const Sum& sum_of) {
  constexpr int64_t kChunk = 4096;
  int64_t n = self.numel(), chunks = (n + kChunk - 1) / kChunk;
  std::vector<double> sums(static_cast<size_t>(chunks));
  const T *a = n == 0 ? nullptr : self.data<T>(), *b = n == 0 ? nullptr : target.data<T>();
  parallel_for(0, chunks, kGrain / kChunk, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      sums[static_cast<size_t>(i)] = sum_of(a + i * kChunk, b + i * kChunk, std::min(kChunk, n - i * kChunk));
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return mean ? total / static_cast<double>(n) : total;
}

}  // namespace

void squared_distance(const Tensor& out, const Tensor& self, const Tensor& target, bool mean) {
  visit<Floating>(self.dtype(), "mse_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    *out.data<T>() = static_cast<T>(sum_over_pairs<T>(self, target, mean, row_functions<T>().squared_distance));
  });
}

void smooth_distance(const Tensor& out, const Tensor& self, const Tensor& target, double limit, double scale,
                     bool mean) {
  visit<Floating>(self.dtype(), "smooth_l1_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    double total = sum_over_pairs<T>(self, target, mean, [&](const T* a, const T* b, int64_t n) {
      return row_functions<T>().smooth_distance(a, b, static_cast<T>(limit), n);
    });
    *out.data<T>() = static_cast<T>(total * scale);
  });
}

}  // namespace umbra::kernels
