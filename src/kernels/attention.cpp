#include "kernels/attention.h"

#include <cmath>
#include <limits>

#include "kernels/blas.h"
#include "kernels/copy.h"
#include "kernels/onednn.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// Blocks of queries and keys whose scores stay in the cache.
constexpr int64_t kQueryBlock = 64, kKeyBlock = 512;

template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_leading,
          const T* b, int64_t b_leading, T beta, T* c, int64_t c_leading) {
  if constexpr (std::is_same_v<T, float>)
    onednn::gemm(transpose_a, transpose_b, m, n, k, alpha, a, a_leading, b, b_leading, beta, c, c_leading);
  else blas::gemm<T>(m, n, k, alpha, {a, transpose_a, a_leading}, {b, transpose_b, b_leading}, beta, c, c_leading);
}

// One matrix of a [batch, heads, length, features] tensor with dense rows.
template <class T> struct HeadMatrix {
  T* data;
  int64_t row_stride;
  T* row(int64_t i) const { return data + i * row_stride; }
};

// The matrix that belongs to a head of the queries; keys and values may have fewer heads, each for a group of queries'.
template <class T> HeadMatrix<T> head_of(const Tensor& t, int64_t head, int64_t query_heads) {
  int64_t group = query_heads / t.size(1);
  return {t.data<T>() + head / query_heads * t.stride(0) + head % query_heads / group * t.stride(1), t.stride(2)};
}

// The tensor in the type that is computed in, with rows that a product can read.
template <class T> Tensor readable(const Tensor& t) {
  Tensor wide = cast(t, dtype_of<T>);
  bool dense_rows = wide.size(3) <= 1 || wide.stride(3) == 1;
  return dense_rows && wide.stride(2) >= wide.size(3) ? wide : contiguous(wide);
}

struct Sizes {
  int64_t heads, queries, keys, features, value_features;  // heads of all samples together
  int64_t query_heads, group;                              // of one sample; queries' heads for each of the keys'
  Sizes(const Tensor& query, const Tensor& key, const Tensor& value)
      : heads(query.size(0) * query.size(1)),
        queries(query.size(2)),
        keys(key.size(2)),
        features(query.size(3)),
        value_features(value.size(3)),
        query_heads(query.size(1)),
        group(key.size(1) == 0 ? 1 : query.size(1) / key.size(1)) {}
};

// What is added to the scores: a mask, causality, or nothing.
template <class T> class Bias {
 public:
  Bias(const AttentionOptions& options, const Tensor& query, int64_t keys) : causal_(options.is_causal) {
    if (!options.mask.defined()) return;
    heads_ = query.size(1);
    Tensor mask = options.mask;
    if (mask.dtype() == DType::Bool) mask = additive(mask);
    mask_ = cast(mask, dtype_of<T>);
    strides_ = broadcast_strides(mask_, {query.size(0), query.size(1), query.size(2), keys});
  }
  /// One past the last key that a query may look at.
  int64_t key_limit(int64_t last_query, int64_t keys) const { return causal_ ? std::min(keys, last_query + 1) : keys; }

  void add(T* scores, int64_t head, int64_t query, int64_t first_key, int64_t count) const {
    if (mask_.defined()) {
      const T* from = mask_.data<T>() + head / heads_ * strides_[0] + head % heads_ * strides_[1] +
                      query * strides_[2] + first_key * strides_[3];
      for (int64_t j = 0; j < count; ++j) scores[j] += from[j * strides_[3]];
    }
    if (!causal_) return;
    for (int64_t j = std::max<int64_t>(0, query + 1 - first_key); j < count; ++j)
      scores[j] = -std::numeric_limits<T>::infinity();
  }

 private:
  static Tensor additive(const Tensor& allowed) {
    Tensor flags = contiguous(allowed), mask = scratch(allowed.sizes(), dtype_of<T>);
    for (int64_t i = 0; i < flags.numel(); ++i)
      mask.data<T>()[i] = flags.data<bool>()[i] ? T(0) : -std::numeric_limits<T>::infinity();
    return mask;
  }
  bool causal_;
  int64_t heads_ = 1;
  Tensor mask_;
  SmallVector<int64_t> strides_;
};

// ---- forward
// ---------------------------------------------------------------------------------------------------------

// The softmax of some queries of one head, as far as keys have been seen: the largest score, the sum of exponentials
// relative to it, and the values weighted by them.
template <class T> class RunningSoftmax {
 public:
  RunningSoftmax(int64_t features)
      : features_(features), largest_(kQueryBlock), sums_(kQueryBlock), values_(kQueryBlock * features) {}

  void reset() {
    std::fill(largest_.begin(), largest_.end(), -std::numeric_limits<T>::infinity());
    std::fill(sums_.begin(), sums_.end(), T(0));
    std::fill(values_.begin(), values_.end(), T(0));
  }
  /// Turns scores of more keys into weights, and scales what was there before to match.
  void admit(int64_t row, T* scores, int64_t count) {
    const auto& rows = row_functions<T>();
    T seen = largest_[row], largest = rows.largest(scores, count);
    if (seen > largest) largest = seen;
    if (largest == -std::numeric_limits<T>::infinity()) {
      std::fill_n(scores, count, T(0));
      return;
    }
    T shrink = std::exp(seen - largest);
    sums_[row] = sums_[row] * shrink + rows.exp_scaled(scores, scores, T(1), largest, count);
    largest_[row] = largest;
    if (shrink != T(1)) rows.affine(values(row), values(row), shrink, T(0), features_);
  }
  T* values(int64_t row) { return values_.data() + row * features_; }
  /// Queries that may look at nothing have zeros as their results.
  T scale(int64_t row) const { return sums_[row] == T(0) ? T(0) : T(1) / sums_[row]; }
  T logsumexp(int64_t row) const { return sums_[row] == T(0) ? T(0) : largest_[row] + std::log(sums_[row]); }

 private:
  int64_t features_;
  std::vector<T> largest_, sums_, values_;
};

template <class T>
void forward(const Tensor& out, const Tensor& logsumexp, const Tensor& query_in, const Tensor& key_in,
             const Tensor& value_in, const AttentionOptions& options) {
  Tensor query = readable<T>(query_in), key = readable<T>(key_in), value = readable<T>(value_in);
  Sizes sizes(query, key, value);
  Bias<T> bias(options, query, sizes.keys);
  bool direct = out.dtype() == dtype_of<T>;
  Tensor result = direct ? out : scratch(out.sizes(), dtype_of<T>);
  Tensor sums = logsumexp.dtype() == dtype_of<T> ? logsumexp : scratch(logsumexp.sizes(), dtype_of<T>);
  int64_t blocks = (sizes.queries + kQueryBlock - 1) / kQueryBlock, features = sizes.value_features;

  parallel_for(0, sizes.heads * blocks, 1, [&](int64_t from, int64_t to) {
    std::vector<T> scores(kQueryBlock * std::min(kKeyBlock, sizes.keys));
    RunningSoftmax<T> softmax(features);
    for (int64_t unit = from; unit < to; ++unit) {
      int64_t head = unit / blocks, first = unit % blocks * kQueryBlock,
              rows = std::min(kQueryBlock, sizes.queries - first);
      HeadMatrix<T> q = head_of<T>(query, head, sizes.query_heads), k = head_of<T>(key, head, sizes.query_heads),
                    v = head_of<T>(value, head, sizes.query_heads);
      softmax.reset();
      int64_t limit = bias.key_limit(first + rows - 1, sizes.keys);
      for (int64_t start = 0; start < limit; start += kKeyBlock) {
        int64_t count = std::min(kKeyBlock, limit - start);
        gemm<T>(false, true, rows, count, sizes.features, static_cast<T>(options.scale), q.row(first), q.row_stride,
                k.row(start), k.row_stride, T(0), scores.data(), count);
        for (int64_t i = 0; i < rows; ++i) {
          bias.add(scores.data() + i * count, head, first + i, start, count);
          softmax.admit(i, scores.data() + i * count, count);
        }
        gemm<T>(false, false, rows, features, count, T(1), scores.data(), count, v.row(start), v.row_stride, T(1),
                softmax.values(0), features);
      }
      int64_t batch = head / query.size(1), in_batch = head % query.size(1);
      T* target = result.data<T>() + batch * result.stride(0) + in_batch * result.stride(1);
      T* sum = sums.data<T>() + batch * sums.stride(0) + in_batch * sums.stride(1);
      int64_t row_stride = result.stride(2), column_stride = result.stride(3), sum_stride = sums.stride(2);
      for (int64_t i = 0; i < rows; ++i) {
        T scale = softmax.scale(i);
        T* row = target + (first + i) * row_stride;
        const T* values = softmax.values(i);
        if (column_stride == 1) row_functions<T>().affine(row, values, scale, T(0), features);
        else
          for (int64_t j = 0; j < features; ++j) row[j * column_stride] = values[j] * scale;
        sum[(first + i) * sum_stride] = softmax.logsumexp(i);
      }
    }
  });
  if (!direct) copy(out, result);
  if (!sums.is_same(logsumexp)) copy(logsumexp, sums);
}

// ---- backward
// --------------------------------------------------------------------------------------------------------

// The gradients of one head, block by block: the weights are computed again from the scores and their logsumexp.
template <class T> class HeadBackward {
 public:
  HeadBackward(const Sizes& sizes, const Bias<T>& bias, T scale)
      : sizes_(sizes),
        bias_(bias),
        scale_(scale),
        weights_(kQueryBlock * std::min(kKeyBlock, sizes.keys)),
        grads_(weights_.size()),
        delta_(sizes.queries) {}

  struct Inputs {
    HeadMatrix<T> query, key, value, out, grad;
    const T* logsumexp;
  };
  struct Outputs {
    T *query, *key, *value;  // contiguous, and zero to begin with
  };

  void run(int64_t head, const Inputs& in, const Outputs& out) {
    for (int64_t i = 0; i < sizes_.queries; ++i) {
      T sum_of_grad;
      row_functions<T>().two_sums(in.grad.row(i), in.out.row(i), T(0), nullptr, sizes_.value_features, &sum_of_grad,
                                  &delta_[i]);
    }
    for (int64_t first = 0; first < sizes_.queries; first += kQueryBlock) {
      int64_t rows = std::min(kQueryBlock, sizes_.queries - first),
              limit = bias_.key_limit(first + rows - 1, sizes_.keys);
      for (int64_t start = 0; start < limit; start += kKeyBlock)
        block(head, in, out, first, rows, start, std::min(kKeyBlock, limit - start));
    }
  }

 private:
  void block(int64_t head, const Inputs& in, const Outputs& out, int64_t first, int64_t rows, int64_t start,
             int64_t count) {
    int64_t features = sizes_.features, width = sizes_.value_features;
    T *weights = weights_.data(), *grads = grads_.data();
    gemm<T>(false, true, rows, count, features, scale_, in.query.row(first), in.query.row_stride, in.key.row(start),
            in.key.row_stride, T(0), weights, count);
    for (int64_t i = 0; i < rows; ++i) {
      T* row = weights + i * count;
      bias_.add(row, head, first + i, start, count);
      row_functions<T>().exp_scaled(row, row, T(1), in.logsumexp[first + i], count);
    }
    gemm<T>(true, false, count, width, rows, T(1), weights, count, in.grad.row(first), in.grad.row_stride, T(1),
            out.value + start * width, width);
    gemm<T>(false, true, rows, count, width, T(1), in.grad.row(first), in.grad.row_stride, in.value.row(start),
            in.value.row_stride, T(0), grads, count);
    for (int64_t i = 0; i < rows; ++i)
      row_functions<T>().softmax_gradient(grads + i * count, weights + i * count, grads + i * count, delta_[first + i],
                                          scale_, count);
    gemm<T>(false, false, rows, features, count, T(1), grads, count, in.key.row(start), in.key.row_stride, T(1),
            out.query + first * features, features);
    gemm<T>(true, false, count, features, rows, T(1), grads, count, in.query.row(first), in.query.row_stride, T(1),
            out.key + start * features, features);
  }

  const Sizes& sizes_;
  const Bias<T>& bias_;
  T scale_;
  std::vector<T> weights_, grads_, delta_;
};

template <class T>
void backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value, const Tensor& grad_in,
              const Tensor& query_in, const Tensor& key_in, const Tensor& value_in, const Tensor& out_in,
              const Tensor& logsumexp, const AttentionOptions& options) {
  Tensor query = readable<T>(query_in), key = readable<T>(key_in), value = readable<T>(value_in);
  Tensor out = readable<T>(out_in), grad = readable<T>(grad_in), sums = contiguous(cast(logsumexp, dtype_of<T>));
  Sizes sizes(query, key, value);
  Bias<T> bias(options, query, sizes.keys);
  // Gradients are added up in contiguous memory of the computing type.
  auto zeros = [](const Tensor& like) {
    Tensor t = scratch(like.sizes(), dtype_of<T>);
    fill(t, 0);
    return t;
  };
  Tensor gq = zeros(grad_query), gk = zeros(grad_key), gv = zeros(grad_value);
  // Heads of one group add to the same gradients of keys and values.
  parallel_for(0, sizes.heads / sizes.group, 1, [&](int64_t from, int64_t to) {
    HeadBackward<T> work(sizes, bias, static_cast<T>(options.scale));
    for (int64_t head = from * sizes.group; head < to * sizes.group; ++head) {
      auto part = [&](const Tensor& t) { return head_of<T>(t, head, sizes.query_heads); };
      work.run(head,
               {part(query), part(key), part(value), part(out), part(grad), sums.data<T>() + head * sizes.queries},
               {part(gq).data, part(gk).data, part(gv).data});
    }
  });
  copy(grad_query, gq);
  copy(grad_key, gk);
  copy(grad_value, gv);
}

}  // namespace

void flash_attention(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key,
                     const Tensor& value, const AttentionOptions& options) {
  if (logsumexp.numel() == 0) return;
  visit<FloatingTypes>(query.dtype(), "flash_attention", [&](auto tag) {
    forward<Compute<typename decltype(tag)::type>>(out, logsumexp, query, key, value, options);
  });
}

void flash_attention_backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
                              const Tensor& grad_output, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& out, const Tensor& logsumexp, const AttentionOptions& options) {
  visit<FloatingTypes>(query.dtype(), "flash_attention_backward", [&](auto tag) {
    backward<Compute<typename decltype(tag)::type>>(grad_query, grad_key, grad_value, grad_output, query, key, value,
                                                    out, logsumexp, options);
  });
}

void split_heads(const std::array<Tensor, 3>& parts, const Tensor& rows, const Tensor& bias) {
  visit<Floating>(rows.dtype(), "transform_bias_rescale_qkv", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t heads = parts[0].size(1), length = parts[0].size(2), features = parts[0].size(3);
    const T *from = rows.data<T>(), *shift = bias.data<T>();
    const std::array<T*, 3> to = {parts[0].data<T>(), parts[1].data<T>(), parts[2].data<T>()};
    const T root = static_cast<T>(1 / std::sqrt(static_cast<double>(features)));
    const int64_t width = 3 * heads * features;
    parallel_for(0, rows.size(0) * length, 1 + kGrain / (width + 1), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t h = 0; h < 3 * heads; ++h) {
          const T *x = from + i * width + h * features, *b = shift + h * features;
          T* out = to[h / heads] + ((i / length * heads + h % heads) * length + i % length) * features;
          const T scale = h < heads ? root : T(1);
          for (int64_t j = 0; j < features; ++j) out[j] = (x[j] + b[j]) * scale;
        }
    });
  });
}

}  // namespace umbra::kernels
