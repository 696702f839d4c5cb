// Sums, means and maxima of bags of rows, and their gradients.
#include "kernels/copy.h"
#include "kernels/embedding.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

void check_rows(const std::vector<int64_t>& indices, int64_t rows) {
  for (int64_t i : indices)
    check(i >= 0 && i < rows, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", i);
}

/// One bag's row, computed in C: sums with their weights, or maxima and where they came from.
template <class T, class C> struct BagRow {
  std::vector<C> values;
  std::vector<int64_t> places;
  int64_t counted = 0;

  explicit BagRow(int64_t width) : values(static_cast<size_t>(width)), places(static_cast<size_t>(width)) {}
  void clear() {
    std::fill(values.begin(), values.end(), C(0));
    std::fill(places.begin(), places.end(), 0);
    counted = 0;
  }
  void add(const T* row, int64_t stride, C scale) {
    C* __restrict to = values.data();
    const auto width = static_cast<int64_t>(values.size());
    if (stride == 1)
      for (int64_t j = 0; j < width; ++j) to[j] += scale * static_cast<C>(row[j]);
    else
      for (int64_t j = 0; j < width; ++j) to[j] += scale * static_cast<C>(row[j * stride]);
    ++counted;
  }
  void raise(const T* row, int64_t stride, int64_t index) {
    for (size_t j = 0; j < values.size(); ++j) {
      C value = static_cast<C>(row[static_cast<int64_t>(j) * stride]);
      if (counted == 0 || value > values[j]) values[j] = value, places[j] = index;
    }
    ++counted;
  }
};

}  // namespace

int64_t Bags::end(int64_t bag) const {
  return bag + 1 < count() ? offsets[static_cast<size_t>(bag + 1)] : static_cast<int64_t>(indices.size());
}

std::vector<int64_t> Bags::bag_of() const {
  std::vector<int64_t> out(indices.size(), 0);
  for (int64_t bag = 0; bag < count(); ++bag)
    for (int64_t i = offsets[static_cast<size_t>(bag)]; i < end(bag); ++i) out[static_cast<size_t>(i)] = bag;
  return out;
}

void embedding_bag(const Tensor& out, const Tensor& bag_size, const Tensor& max_indices, const Tensor& weight,
                   const Bags& bags, const Tensor& per_sample_weights) {
  check_rows(bags.indices, weight.size(0));
  visit<FloatingTypes>(weight.dtype(), "embedding_bag", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> scales = read_vector<C>(per_sample_weights);
    int64_t width = weight.size(1), row = weight.stride(0), step = weight.stride(1);
    const T* table = weight.data<T>();
    const auto all = static_cast<int64_t>(bags.indices.size());
    const bool plain_sums = bags.mode == BagMode::Sum && step == 1 && scales.empty() && bags.padding_idx < 0;
    parallel_for(0, bags.count(), 1 + kGrain / (8 * width + 1), [&](int64_t begin, int64_t end) {
      BagRow<T, C> sum(width);
      // Rows lie anywhere in the table: memory is asked for one while others are added.
      constexpr int64_t kAhead = 10, kLine = 64 / sizeof(T);
      auto fetch = [&](int64_t i) {
        if (step != 1 || i >= all) return;
        const T* from = table + bags.indices[static_cast<size_t>(i)] * row;
        for (int64_t j = 0; j < width; j += kLine) __builtin_prefetch(from + j);
      };
      for (int64_t bag = begin; bag < end; ++bag) {
        if constexpr (std::is_same_v<T, C>)
          if (plain_sums) {
            int64_t first = bags.offsets[static_cast<size_t>(bag)], last = bags.end(bag);
            for (int64_t i = last; i < std::min(last + kAhead, all); ++i) fetch(i);
            row_functions<T>().sum_of_rows(out.data<T>() + bag * width, table, row, bags.indices.data() + first,
                                           last - first, width);
            continue;
          }
        sum.clear();
        for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
          int64_t index = bags.indices[static_cast<size_t>(i)];
          fetch(i + kAhead);
          if (index == bags.padding_idx) continue;
          if (bags.mode == BagMode::Max) sum.raise(table + index * row, step, index);
          else sum.add(table + index * row, step, scales.empty() ? C(1) : scales[static_cast<size_t>(i)]);
        }
        C share = bags.mode == BagMode::Mean && sum.counted > 0 ? static_cast<C>(sum.counted) : C(1);
        T* to = out.data<T>() + bag * width;
        const C* values = sum.values.data();
        for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(values[j] / share);
        if (bags.mode != BagMode::Sum) bag_size.data<int64_t>()[bag] = sum.counted;
        if (bags.mode == BagMode::Max) std::copy_n(sum.places.data(), width, max_indices.data<int64_t>() + bag * width);
      }
    });
  });
}

void embedding_bag_backward(const Tensor& grad_weight, const Tensor& grad_output, const std::vector<int64_t>& indices,
                            const std::vector<int64_t>& bag_of, const Tensor& bag_size, const Tensor& max_indices,
                            const Tensor& per_sample_weights, BagMode mode, int64_t padding_idx, bool scale_by_freq) {
  int64_t rows = grad_weight.size(0), width = grad_weight.size(1);
  check_rows(indices, rows);
  visit<FloatingTypes>(grad_weight.dtype(), "embedding_bag_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> upstream = read_vector<C>(grad_output), scales = read_vector<C>(per_sample_weights);
    std::vector<C> sums(static_cast<size_t>(rows * width), C(0));
    std::vector<int64_t> sizes = read_vector<int64_t>(bag_size);
    if (mode == BagMode::Max) {
      std::vector<int64_t> places = read_vector<int64_t>(max_indices);
      check_rows(places, rows);
      for (size_t k = 0; k < places.size(); ++k) {
        auto j = static_cast<int64_t>(k) % width;
        if (sizes[k / static_cast<size_t>(width)] > 0) sums[static_cast<size_t>(places[k] * width + j)] += upstream[k];
      }
    } else {
      std::vector<int64_t> taken(scale_by_freq ? static_cast<size_t>(rows) : 0, 0);
      if (scale_by_freq)
        for (int64_t i : indices) ++taken[static_cast<size_t>(i)];
      for (size_t k = 0; k < indices.size(); ++k) {
        int64_t index = indices[k], bag = bag_of[k];
        if (index == padding_idx) continue;
        C scale = scales.empty() ? C(1) : scales[k];
        if (scale_by_freq) scale /= static_cast<C>(taken[static_cast<size_t>(index)]);
        if (mode == BagMode::Mean) scale /= static_cast<C>(sizes[static_cast<size_t>(bag)]);
        for (int64_t j = 0; j < width; ++j)
          sums[static_cast<size_t>(index * width + j)] += scale * upstream[static_cast<size_t>(bag * width + j)];
      }
    }
    for (int64_t k = 0; k < rows * width; ++k) grad_weight.data<T>()[k] = static_cast<T>(sums[static_cast<size_t>(k)]);
  });
}

void embedding_bag_sample_backward(const Tensor& grad_samples, const Tensor& grad_output, const Tensor& weight,
                                   const std::vector<int64_t>& indices, const std::vector<int64_t>& bag_of,
                                   int64_t padding_idx) {
  check_rows(indices, weight.size(0));
  visit<FloatingTypes>(weight.dtype(), "_embedding_bag_per_sample_weights_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    Tensor table = contiguous(weight), upstream = contiguous(grad_output);
    int64_t width = weight.size(1);
    for (size_t k = 0; k < indices.size(); ++k) {
      C sum = 0;
      const T* row = table.data<T>() + indices[k] * width;
      const T* grad = upstream.data<T>() + bag_of[k] * width;
      if (indices[k] != padding_idx)
        for (int64_t j = 0; j < width; ++j) sum += static_cast<C>(row[j]) * static_cast<C>(grad[j]);
      grad_samples.data<T>()[k] = static_cast<T>(sum);
    }
  });
}

}  // namespace umbra::kernels
