#include "kernels/attention.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

using testing::FloatNear;
using testing::Pointwise;

Tensor waves(IntArrayRef sizes, double step) {
  Tensor t = counting(sizes, step);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = std::sin(t.data<float>()[i]);
  return t;
}

// Attention of one head by definition.
std::vector<double> expected_attention(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
                                       bool causal, const std::vector<float>& mask) {
  int64_t queries = query.size(2), keys = key.size(2), features = query.size(3), width = value.size(3);
  std::vector<float> q = values(query), k = values(key), v = values(value);
  std::vector<double> out(queries * width, 0);
  for (int64_t i = 0; i < queries; ++i) {
    double sum = 0;
    std::vector<double> weights(keys);
    for (int64_t j = 0; j < keys; ++j) {
      double score = mask.empty() ? 0 : mask[i * keys + j];
      for (int64_t e = 0; e < features; ++e) score += scale * q[i * features + e] * k[j * features + e];
      sum += weights[j] = causal && j > i ? 0 : std::exp(score);
    }
    for (int64_t j = 0; j < keys && sum > 0; ++j)
      for (int64_t e = 0; e < width; ++e) out[i * width + e] += weights[j] / sum * v[j * width + e];
  }
  return out;
}

struct Attention : testing::Test {
  Tensor query = waves({1, 1, 70, 8}, 0.7), key = waves({1, 1, 600, 8}, 1.1), value = waves({1, 1, 600, 4}, 0.3);
  Tensor out = empty_tensor({1, 1, 70, 4}), logsumexp = empty_tensor({1, 1, 70});
};

TEST_F(Attention, AgreesWithTheDefinitionAcrossBlocks) {
  for (bool causal : {false, true}) {
    flash_attention(out, logsumexp, query, key, value, {.is_causal = causal, .scale = 0.5});
    EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), expected_attention(query, key, value, 0.5, causal, {})));
  }
}

TEST_F(Attention, MasksAreAdded) {
  Tensor mask = waves({70, 600}, 0.9);
  for (int64_t j = 0; j < 600; ++j) mask.data<float>()[j] = -INFINITY;
  flash_attention(out, logsumexp, query, key, value, {.scale = 0.5, .mask = mask});
  EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4), expected_attention(query, key, value, 0.5, false, values(mask))));
  EXPECT_EQ(values(out)[0], 0);  // nothing to look at
}

TEST_F(Attention, GradientsAreThoseOfDifferences) {
  AttentionOptions options = {.is_causal = true, .scale = 0.5};
  Tensor grad = waves({1, 1, 70, 4}, 0.2), grad_query = empty_tensor({1, 1, 70, 8});
  Tensor grad_key = empty_tensor({1, 1, 600, 8}), grad_value = empty_tensor({1, 1, 600, 4});
  flash_attention(out, logsumexp, query, key, value, options);
  flash_attention_backward(grad_query, grad_key, grad_value, grad, query, key, value, out, logsumexp, options);
  auto loss = [&] {
    std::vector<double> result = expected_attention(query, key, value, 0.5, true, {});
    double sum = 0;
    for (size_t i = 0; i < result.size(); ++i) sum += result[i] * values(grad)[i];
    return sum;
  };
  auto slope = [&](const Tensor& t, int64_t at) {
    float before = t.data<float>()[at], step = 1e-2f;
    t.data<float>()[at] = before + step;
    double above = loss();
    t.data<float>()[at] = before - step;
    double below = loss();
    t.data<float>()[at] = before;
    return (above - below) / (2 * step);
  };
  EXPECT_NEAR(values(grad_query)[43], slope(query, 43), 1e-3);
  EXPECT_NEAR(values(grad_key)[21], slope(key, 21), 1e-3);
  EXPECT_NEAR(values(grad_value)[10], slope(value, 10), 1e-3);
}

}  // namespace
}  // namespace umbra::kernels
