// Scaled dot product attention: the operator users call, the fused kernel, and the plain decomposition.
#include "kernels/attention.h"

#include <cmath>

#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/needs_data.h"
#include "ops/common/same_shape.h"
#include "ops/common/shape.h"
#include "ops/pointwise/family.h"
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
  query.sym_size(2);  // too few dimensions are an IndexError
  check(!has_elements(query) || (is_floating(query.dtype()) && !is_float8(query.dtype())), name,
        "Expected data type in FP32, FP64, BF16, FP16, but got ", kernel_name(query.dtype()), " instead.");
  check(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, name,
        "Accept only 4 dims inputs shape of {B, H, T, K}");
  check(query.dtype() == key.dtype() && query.dtype() == value.dtype(), "expected scalar type ",
        kernel_name(query.dtype()), " but found ",
        kernel_name(query.dtype() == key.dtype() ? value.dtype() : key.dtype()));
  SymIntArrayRef q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  check(v[3] == q[3] && k[3] == q[3], name, "Q/K/V should have the same head size");
  bool heads_fit = k[1] == q[1] || (k[1] != 0 && q[1] % k[1] == 0);  // keys and values may be shared by groups of heads
  check(expect_equal(k[0], q[0]) && heads_fit && expect_same_shape(k.drop_back(), v.drop_back()), name, "sizes of Q ",
        q, ", K ", k, " and V ", v, " do not fit");
  if (!mask.defined()) return;
  SymShape scores{q[0], q[1], q[2], k[2]};
  check(mask.dim() <= 4 && SymIntArrayRef(broadcast_shapes(mask.sym_sizes(), scores)) == SymIntArrayRef(scores), name,
        "a mask of size ", mask.sym_sizes(), " does not fit scores of size ", scores);
}

/// The batch next to the one that attention has of its own.
Tensor fold_heads(const Batched& t) { return fold_batch({batch_all(t), 0}, 0); }
Tensor fold_mask(const Batched& mask, SymInt rows) {
  if (!mask.defined() || (!mask.is_batched() && mask.rank() == 2)) return mask.value;
  Batched whole{batch_first({batch_all(mask), 0}, 4), 0};
  SymShape sizes(whole.value.sym_sizes());
  sizes[1] = rows;
  return fold_batch({whole.value.expand(sizes), 0}, 0);
}

UMBRA_OPERATOR(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
    "is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)")
    .meta([](const Tensor& query, const Tensor& key, const Tensor& value, double dropout, bool, const Tensor& mask,
             std::optional<double>) -> Pair {
      // On the meta device PyTorch looks at the query alone.
      bool described = only_metadata_is_asked() && !query.is_fake();
      if (described) query.sym_size(2);
      else check_attention(query, key, value, mask);
      check(described || dropout == 0,
            "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0");
      SymIntArrayRef q = query.sym_sizes();
      SymShape sums{q[0], q[1], q[2]};
      SymShape sum_strides{q[1] * q[2], 1, q[1]};
      DType wide = is_reduced_floating(query.dtype()) ? DType::Float32 : query.dtype();
      return {spec_like(query), TensorSpec(sums, sum_strides, wide, query.device())};
    })
    .cpu<2>([](const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key, const Tensor& value,
               double, bool is_causal, const Tensor& mask, std::optional<double> scale) {
      kernels::flash_attention(out, logsumexp, query, key, value, {is_causal, scale_or_default(query, scale), mask});
    })
    .gradient("query, key, value",
              {"grad", "query", "key", "value", "output", "logsumexp", "dropout_p", "is_causal", "attn_mask", "scale"},
              [](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
                 const Tensor& logsumexp, double dropout, bool is_causal, const Tensor& mask,
                 std::optional<double> scale) {
                return _scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, out, logsumexp,
                                                                            dropout, is_causal, mask, scale);
              })
    .differentiable_outputs({true, false})
    .tags({Tag::NondeterministicSeeded})
    .batch([](const Batched& query, const Batched& key, const Batched& value, double dropout, bool is_causal,
              const Batched& mask, std::optional<double> scale) {
      SymInt rows = batch_first(query).sym_sizes()[query.is_batched() ? 1 : 0];
      auto [out, sums] = _scaled_dot_product_flash_attention_for_cpu(
          fold_heads(query), fold_heads(key), fold_heads(value), dropout, is_causal, fold_mask(mask, rows), scale);
      return std::tuple(unfold_batch(out, 0), unfold_batch(sums, 0));
    });

UMBRA_OPERATOR(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor grad_query, Tensor grad_key, Tensor grad_value)")
    .meta([](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
             const Tensor& logsumexp, double, bool, const Tensor& mask, std::optional<double>) {
      if (query.is_meta() || only_metadata_is_asked())
        check(query.dim() == 4, "Number of dimensions in size does not match the length of the ",
              "physical_layout; i.e. len(size) = ", query.dim(), " is not equal to 4");
      else
        for (const Tensor* t : {&grad, &query, &key, &value, &out}) wrap_dim(2, t->dim(), false);
      check_attention(query, key, value, mask);
      for (const Tensor* t : {&grad, &out})
        check(t->sym_sizes() == query.sym_sizes() && t->dtype() == query.dtype(),
              "expected a gradient and an output of the query's size and type, ", query.sym_sizes(), ", but got ",
              t->sym_sizes());
      check(logsumexp.sym_sizes() == query.sym_sizes().drop_back(), "expected logsumexp of size ",
            query.sym_sizes().drop_back(), ", but got ", logsumexp.sym_sizes());
      auto spec = [](const Tensor& t) {
        SymIntArrayRef s = t.sym_sizes();
        SymInt row = s[3] * s[1];
        return TensorSpec(s, SymShape{row * s[2], s[3], row, 1}, t.dtype(), t.device());
      };
      return std::tuple(spec(query), spec(key), spec(value));
    })
    .cpu<3>([](const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value, const Tensor& grad,
               const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out, const Tensor& logsumexp,
               double, bool is_causal, const Tensor& mask, std::optional<double> scale) {
      kernels::flash_attention_backward(grad_query, grad_key, grad_value, grad, query, key, value, out, logsumexp,
                                        {is_causal, scale_or_default(query, scale), mask});
    })
    .batch([](const Batched& grad, const Batched& query, const Batched& key, const Batched& value, const Batched& out,
              const Batched& sums, double dropout, bool is_causal, const Batched& mask, std::optional<double> scale) {
      SymInt rows = batch_first(query).sym_sizes()[query.is_batched() ? 1 : 0];
      auto [of_query, of_key, of_value] = _scaled_dot_product_flash_attention_for_cpu_backward(
          fold_heads(grad), fold_heads(query), fold_heads(key), fold_heads(value), fold_heads(out), fold_heads(sums),
          dropout, is_causal, fold_mask(mask, rows), scale);
      return std::tuple(unfold_batch(of_query, 0), unfold_batch(of_key, 0), unfold_batch(of_value, 0));
    });

// A mask of bools says which scores count; the others become minus infinity.
Tensor additive_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::Bool) return mask;
  Tensor lowest = scalar_tensor(-INFINITY, {.dtype = dtype, .device = mask.device()});
  return where(mask, 0.0, lowest);
}

// Softmax where a row that is masked altogether gives zeros and not NaN.
UMBRA_OPERATOR("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .all_backends([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      Tensor out = softmax(self, dim, dtype);
      check<TypeError>(!self.is_complex() || self.is_meta(), "isneginf does not support complex inputs.");
      if (out.sym_numel().same(0)) return out;
      return where(self.eq(-INFINITY).all(dim, true), zeros({}, {.dtype = out.dtype(), .device = out.device()}), out);
    })
    .gradient("self", {"grad", "result", "dim", "self.dtype"},
              [](const Tensor& grad, const Tensor& result, int64_t dim, DType dtype) {
                return _softmax_backward_data(grad, result, dim, dtype);
              });

// Keys and values that are shared by groups of heads, once for each head of the queries.
Tensor repeat_heads(const Tensor& t, const Tensor& query) {
  if (t.dim() < 3 || query.dim() < 3) return t;
  SymInt have = t.sym_size(-3), heads = query.sym_size(-3);
  if (have == heads || have == 1) return t;
  SymShape expanded(t.sym_sizes()), merged(t.sym_sizes());
  size_t at = merged.size() - 3;
  expanded.insert(at + 1, heads / have);
  merged[at] = heads;
  return t.unsqueeze(t.dim() - 2).expand(expanded).clone(MemoryFormat::Contiguous).view(merged);
}

struct Attention {
  Tensor query, key, value, mask;
  double dropout;
  bool is_causal, grouped;
  std::optional<double> scale;
};

// By products and a softmax; narrow types are computed in float.
std::tuple<Tensor, Tensor> attention_and_weights(Attention a) {
  DType dtype = a.query.dtype();
  bool narrow = dtype == DType::Float16 || dtype == DType::BFloat16;
  if (narrow)
    for (Tensor* t : {&a.query, &a.key, &a.value}) *t = t->to(DType::Float32);
  double root = std::sqrt(scale_or_default(a.query, a.scale));
  Tensor query = a.query.mul(root);
  if (a.is_causal) {
    check(!a.mask.defined(), "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    Tensor allowed = ones({a.query.sym_size(-2), a.key.sym_size(-2)},
                          {.dtype = DType::Bool, .layout = Layout::Strided, .device = a.query.device()});
    a.mask = additive_mask(allowed.tril(), a.query.dtype());
  }
  if (a.grouped)
    for (Tensor* t : {&a.key, &a.value}) *t = repeat_heads(*t, a.query);
  Tensor scores = query.matmul(a.key.transpose(-2, -1).mul(root));
  if (a.mask.defined()) scores = scores.add(a.mask);
  Tensor weights = _safe_softmax(scores, -1);
  if (a.dropout > 0) weights = dropout(weights, a.dropout, true);
  if (!narrow) return {weights.matmul(a.value), weights};
  Tensor narrow_weights = weights.to(dtype);
  return {weights.matmul(a.value).to(dtype), narrow_weights};
}

Tensor plain_attention(const Attention& a) { return std::get<0>(attention_and_weights(a)); }

// What PyTorch's fused kernel takes on the CPU.
bool fits_flash_kernel(const Attention& a) {
  const Tensor &query = a.query, &key = a.key, &value = a.value, &mask = a.mask;
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4 || query.device().type != DeviceType::CPU) return false;
  if (!is_floating(query.dtype()) || a.dropout > 0 || (mask.defined() && mask.requires_grad())) return false;
  SymIntArrayRef q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  for (const Tensor* t : {&query, &key, &value}) {
    if (!t->sym_sizes()[3].same(1) && !t->sym_strides()[3].same(1)) return false;
    if (t->sym_sizes()[2].same(0)) return false;
  }
  bool heads_fit = q[1] == k[1] || k[1] == 1 || (a.grouped && k[1] != 0 && q[1] % k[1] == 0);
  if (!(q[0] == k[0] && heads_fit && q[3] == v[3] && k[3] == q[3] && expect_same_shape(k.drop_back(), v.drop_back())))
    return false;
  if (!mask.defined()) return true;
  if (mask.dim() != 2 && mask.dim() != 4) return false;
  SymShape scores{q[0], q[1], q[2], k[2]};
  for (int64_t d = 1; d <= mask.dim(); ++d) {
    SymInt size = mask.sym_size(-d);
    if (!(size == 1 || size == scores[static_cast<size_t>(4 - d)])) return false;
  }
  return true;
}

UMBRA_OPERATOR(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
    .composite([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                  double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
      check(query.dtype() == key.dtype() && query.dtype() == value.dtype(),
            "Expected query, key, and value to have the same dtype, but got query.dtype: ", cpp_name(query.dtype()),
            " key.dtype: ", cpp_name(key.dtype()), " and value.dtype: ", cpp_name(value.dtype()), " instead.");
      check(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", query.dim(),
            " key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
      bool fits = !attn_mask.defined() || attn_mask.dtype() == DType::Bool || attn_mask.dtype() == DType::Float32 ||
                  attn_mask.dtype() == query.dtype();
      check(fits, "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
            fits ? "" : cpp_name(attn_mask.dtype()), " and  query.dtype: ", cpp_name(query.dtype()), " instead.");
      check(!attn_mask.defined() || !is_causal,
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
      Attention a{query, key, value, attn_mask, dropout_p, is_causal, enable_gqa, scale};
      bool single = query.dim() == 3 && key.dim() == 3 && value.dim() == 3;  // one sample without a batch
      if (single) {
        for (Tensor* t : {&a.query, &a.key, &a.value}) *t = t->unsqueeze(0);
        while (a.mask.defined() && a.mask.dim() >= 2 && a.mask.dim() < 4) a.mask = a.mask.unsqueeze(0);
      }
      a.mask = additive_mask(a.mask, query.dtype());
      Tensor out = fits_flash_kernel(a) ? std::get<0>(_scaled_dot_product_flash_attention_for_cpu(
                                              a.query, a.key, a.value, dropout_p, is_causal, a.mask, scale))
                                        : plain_attention(a);
      return single ? out.squeeze(0) : out;
    })
    .tags({Tag::NondeterministicSeeded});

// ---- pieces of attention that stand by themselves ----

UMBRA_OPERATOR(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
    "dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> "
    "(Tensor, Tensor)")
    .composite([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                  double dropout_p, bool is_causal, const Tensor& dropout_mask, std::optional<double> scale,
                  bool enable_gqa) {
      query.sym_size(-1);  // a number is an IndexError
      check<NotImplementedError>(!dropout_mask.defined(),
                                 "_scaled_dot_product_attention_math: a dropout_mask is not in Umbra yet");
      return attention_and_weights(
          {query, key, value, additive_mask(attn_mask, query.dtype()), dropout_p, is_causal, enable_gqa, scale});
    })
    .tags({Tag::NondeterministicSeeded});

// 1: the fused kernel, 0: products and a softmax.
UMBRA_OPERATOR(
    "_fused_sdp_choice(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool "
    "is_causal=False, *, float? scale=None, bool enable_gqa=False) -> int")
    .composite([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                  double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
      return int64_t{fits_flash_kernel({query, key, value, attn_mask, dropout_p, is_causal, enable_gqa, scale})};
    })
    .tags({Tag::NondeterministicSeeded});

// Elements that are masked count for nothing; where all are, there is no result but NaN.
Tensor shaped_mask(const Tensor& self, const Tensor& mask, std::optional<int64_t> mask_type) {
  check(mask.dtype() == DType::Bool, "Mask should be a boolean tensor");
  bool of_attention = mask.dim() == 2 && self.dim() == 4;  // then the type says what the two dimensions are
  if (of_attention && mask_type && *mask_type == 0) {      // of the sequence: [length, length]
    check(mask.sym_size(0) == self.sym_size(2) && mask.sym_size(1) == self.sym_size(2),
          "For mask_type == 0 mask shape should be (L, L)");
    return mask.expand(self.sym_sizes());
  }
  if (of_attention && mask_type && *mask_type == 1) {  // of padding: [batch, length]
    check(mask.sym_size(0) == self.sym_size(0) && mask.sym_size(1) == self.sym_size(2),
          "For mask_type == 1 mask shape should be (B, L)");
    return mask.view({mask.sym_size(0), 1, 1, mask.sym_size(1)}).expand(self.sym_sizes());
  }
  check(mask.sym_sizes() == self.sym_sizes(), "For mask_type == 2 mask shape should match input shape");
  return mask;
}

UMBRA_OPERATOR("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor")
    .generated_out("_masked_softmax.out")
    .all_backends([](const Tensor& self, const Tensor& mask, std::optional<int64_t> dim, std::optional<int64_t> type) {
      Tensor hidden = shaped_mask(self, mask, type);
      int64_t along = dim.value_or(self.dim() - 1);
      return softmax(self.masked_fill(hidden, -INFINITY), along).contiguous();
    })
    .gradient("self", {"grad", "result", "mask", "dim"},
              [](const Tensor& grad, const Tensor& result, const Tensor& mask, std::optional<int64_t> dim) {
                return _masked_softmax_backward(grad, result, mask, dim);
              })
    .use(NeedsData{});

UMBRA_OPERATOR("_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor")
    .generated_out("_masked_softmax_backward.out")
    .all_backends([](const Tensor& grad, const Tensor& output, const Tensor& mask, std::optional<int64_t> dim) {
      check(grad.sym_sizes() == mask.sym_sizes(), "Mask shape should match grad shape");
      check(mask.dtype() == DType::Bool, "Mask should be a boolean tensor");
      check_kernel_type(is_floating(grad.dtype()), "masked_softmax_backward", grad);
      int64_t along = dim.value_or(output.dim() - 1);
      Tensor hidden = mask.sym_sizes() == output.sym_sizes() ? mask : mask.expand(output.sym_sizes());
      Tensor part = grad.mul(output).masked_fill(hidden, 0);
      return part.sub(output.mul(part.sum(IntArrayRef{along}, true))).masked_fill(hidden, 0);
    })
    .use(NeedsData{});

UMBRA_OPERATOR("_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)")
    .generated_out("_transform_bias_rescale_qkv.out", {"out0", "out1", "out2"})
    .all_backends([](const Tensor& qkv, const Tensor& bias, int64_t heads) {
      for (int64_t d : {0, 1, 2}) qkv.sym_size(d);  // too few dimensions are an IndexError
      check(qkv.sym_size(2) % 3 == 0, "Expected _3D % 3 == 0 to be true, but got false.");
      check(heads > 0, "expected heads to divide the width among, but got ", heads);  // there is room for them first
      check_kernel_type(is_floating(qkv.dtype()), "transform_bias_rescale_qkv", qkv);
      bias.sym_size(0);
      check(qkv.dim() == 3 && bias.dim() == 1 && qkv.sym_size(2) == bias.sym_size(0) &&
                bias.sym_size(0) % (3 * heads) == 0,
            "expected qkv of [batch, length, 3 * width] and as many biases, but got ", qkv.sym_sizes(), " and ",
            bias.sym_sizes());
      SymInt width = qkv.sym_size(2) / 3, head = width / heads;
      bool full_width = qkv.dtype() == DType::Float32 || qkv.dtype() == DType::Float64;
      if (full_width && qkv.dtype() == bias.dtype() && may_read(qkv) && may_read(bias)) {
        std::array<Tensor, 3> parts;
        for (Tensor& part : parts)
          part = kernels::scratch({qkv.size(0), heads, qkv.size(1), head.guard_int()}, qkv.dtype());
        kernels::split_heads(parts, kernels::contiguous(qkv), kernels::contiguous(bias));
        return std::tuple(parts[0], parts[1], parts[2]);
      }
      Tensor parts = qkv.add(bias).view({qkv.sym_size(0), qkv.sym_size(1), 3, heads, head}).permute({2, 0, 3, 1, 4});
      parts = parts.contiguous();
      double scale = 1 / std::sqrt(static_cast<double>(head.guard_int()));
      return std::tuple(parts.select(0, 0).mul(scale), parts.select(0, 1).clone(), parts.select(0, 2).clone());
    })
    .use(NeedsData{});

}  // namespace
}  // namespace umbra::ops
