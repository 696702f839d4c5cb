// Scaled dot product attention: the operator users call, the fused kernel, and the plain decomposition.
#include "kernels/attention.h"

#include <cmath>

#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

double scale_or_default(const Tensor& query, std::optional<double> scale) {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(query.sym_sizes().back().guard_int()));
}

using Pair = std::tuple<TensorSpec, TensorSpec>;

// Heads of one batch side by side, queries against keys; a mask that broadcasts to their scores.
void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  const char* name = "scaled_dot_product_attention_flash_attention: ";
  check(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, name, "Accept only 4 dims inputs shape of {B, H, T, K}");
  check(query.dtype() == key.dtype() && query.dtype() == value.dtype(), "expected scalar type ", kernel_name(query.dtype()), " but found ",
        kernel_name(query.dtype() == key.dtype() ? value.dtype() : key.dtype()));
  SymIntArrayRef q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  check(v[3] == q[3] && k[3] == q[3], name, "Q/K/V should have the same head size");
  check(k[0] == q[0] && k[1] == q[1] && k.drop_back() == v.drop_back(), name, "sizes of Q ", to_string(q), ", K ", to_string(k), " and V ",
        to_string(v), " do not fit");
  if (!mask.defined()) return;
  SymShape scores{q[0], q[1], q[2], k[2]};
  check(mask.dim() <= 4 && SymIntArrayRef(broadcast_shapes(mask.sym_sizes(), scores)) == SymIntArrayRef(scores), name, "a mask of size ",
        to_string(mask.sym_sizes()), " does not fit scores of size ", to_string(scores));
}

UMBRA_OPERATOR("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)")
    .meta([](const Tensor& query, const Tensor& key, const Tensor& value, double dropout, bool, const Tensor& mask, std::optional<double>) -> Pair {
      check_attention(query, key, value, mask);
      check(dropout == 0, "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0");
      SymIntArrayRef q = query.sym_sizes();
      SymShape sums{q[0], q[1], q[2]};
      SymShape sum_strides{q[1] * q[2], 1, q[1]};
      DType wide = query.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
      return {spec_like(query), TensorSpec(sums, sum_strides, wide, query.device())};
    })
    .cpu<2>([](const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key, const Tensor& value, double, bool is_causal,
               const Tensor& mask, std::optional<double> scale) {
      kernels::flash_attention(out, logsumexp, query, key, value, {is_causal, scale_or_default(query, scale), mask});
    })
    .gradient("query, key, value", {"grad", "query", "key", "value", "output", "logsumexp", "dropout_p", "is_causal", "attn_mask", "scale"},
              [](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                 double dropout, bool is_causal, const Tensor& mask, std::optional<double> scale) {
                return _scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, out, logsumexp, dropout, is_causal, mask, scale);
              })
    .differentiable_outputs({true, false});

UMBRA_OPERATOR("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)")
    .meta([](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out, const Tensor& logsumexp, double, bool,
             const Tensor& mask, std::optional<double>) {
      check_attention(query, key, value, mask);
      for (const Tensor* t : {&grad, &out})
        check(t->sym_sizes() == query.sym_sizes() && t->dtype() == query.dtype(), "expected a gradient and an output of the query's size and type, ",
              to_string(query.sym_sizes()), ", but got ", to_string(t->sym_sizes()));
      check(logsumexp.sym_sizes() == query.sym_sizes().drop_back(), "expected logsumexp of size ", to_string(query.sym_sizes().drop_back()),
            ", but got ", to_string(logsumexp.sym_sizes()));
      auto spec = [](const Tensor& t) {
        SymIntArrayRef s = t.sym_sizes();
        SymInt row = s[3] * s[1];
        return TensorSpec(s, SymShape{row * s[2], s[3], row, 1}, t.dtype(), t.device());
      };
      return std::tuple(spec(query), spec(key), spec(value));
    })
    .cpu<3>([](const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value, const Tensor& grad, const Tensor& query, const Tensor& key,
               const Tensor& value, const Tensor& out, const Tensor& logsumexp, double, bool is_causal, const Tensor& mask, std::optional<double> scale) {
      kernels::flash_attention_backward(grad_query, grad_key, grad_value, grad, query, key, value, out, logsumexp,
                                        {is_causal, scale_or_default(query, scale), mask});
    });

// A mask of bools says which scores count; the others become minus infinity.
Tensor additive_mask(const Tensor& mask, const Tensor& query) {
  if (!mask.defined() || mask.dtype() != DType::Bool) return mask;
  return zeros_like(mask, {.dtype = query.dtype()}).masked_fill(mask.logical_not(), -INFINITY);
}

Tensor repeat_heads(const Tensor& t, SymInt heads) {
  SymInt have = t.sym_size(-3);
  if (have == heads) return t;
  SymShape expanded(t.sym_sizes()), merged(t.sym_sizes());
  size_t at = merged.size() - 3;
  expanded.insert(at + 1, heads / have);
  merged[at] = heads;
  return t.unsqueeze(t.dim() - 2).expand(expanded).reshape(merged);
}

Tensor plain_attention(const Tensor& query, const Tensor& key, const Tensor& value, Tensor mask, double dropout_p, bool is_causal, double scale) {
  if (is_causal) {
    check(!mask.defined(), "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    Tensor allowed = ones({query.sym_size(-2), key.sym_size(-2)}, {.dtype = DType::Bool, .device = query.device()}).tril();
    mask = additive_mask(allowed, query);
  }
  double root = std::sqrt(scale);
  Tensor scores = query.mul(root).matmul(key.transpose(-2, -1).mul(root));
  if (mask.defined()) scores = scores.add(mask);
  Tensor weights = softmax(scores, -1);
  if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
  return weights.matmul(value);
}

UMBRA_OPERATOR("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
    .composite([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, double dropout_p, bool is_causal,
                  std::optional<double> scale, bool enable_gqa) {
      check(query.dtype() == key.dtype() && query.dtype() == value.dtype(), "Expected query, key, and value to have the same dtype, but got query.dtype: ",
            name(query.dtype()), " key.dtype: ", name(key.dtype()), " and value.dtype: ", name(value.dtype()), " instead.");
      check(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ",
            query.dim(), ", key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
      check(!attn_mask.defined() || !is_causal, "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
      Tensor k = key, v = value;
      if (enable_gqa) {
        k = repeat_heads(key, query.sym_size(-3));
        v = repeat_heads(value, query.sym_size(-3));
      }
      Tensor mask = additive_mask(attn_mask, query);
      bool fused = query.dim() == 4 && k.dim() == 4 && v.dim() == 4 && dropout_p == 0 && is_floating(query.dtype()) &&
                   query.device().type == DeviceType::CPU && (!mask.defined() || !mask.requires_grad()) && query.sym_size(-1) == v.sym_size(-1) &&
                   query.sym_size(0) == k.sym_size(0) && query.sym_size(1) == k.sym_size(1) &&
                   k.sym_sizes().drop_back() == v.sym_sizes().drop_back();
      if (fused) return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(query, k, v, dropout_p, is_causal, mask, scale));
      return plain_attention(query, k, v, mask, dropout_p, is_causal, scale_or_default(query, scale));
    });

}  // namespace
}  // namespace umbra::ops
