// A layer of a transformer in one call, as its modules make it for inference. By other operators, and without a
// derivative.
#include <cmath>

#include "dispatch/layers.h"
#include "ops/common/needs_data.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using OptionalInt = std::optional<int64_t>;

void check_heads(const Tensor& query, const Tensor& key, const Tensor& value, int64_t width, int64_t heads,
                 const Tensor& qkv_weight, const Tensor& qkv_bias) {
  check(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  check(query.sym_size(2) == width, "passed-in embed_dim ", width, " didn't match last dim of query ",
        query.sym_size(2));
  check(key.dim() == 3, "expected 3-D `key`, got ", key.dim(), "-D tensor");
  check(value.dim() == 3, "expected 3-D `value`, got ", value.dim(), "-D tensor");
  check(query.sym_sizes() == key.sym_sizes() && key.sym_sizes() == value.sym_sizes(),
        "expected `query`/`key`/`value` shapes to match");
  check(qkv_weight.dim() == 2, "expected 2-D `qkv_weight`, got ", qkv_weight.dim(), "-D tensor");
  check(qkv_weight.sym_size(0) == width * 3, "expected `qkv_weight` first dim to be 3x embed_dim");
  check(qkv_weight.sym_size(1) == width, "expected `qkv_weight` second dim to be embed_Dim");
  check(qkv_bias.dim() == 1, "expected 1-D `qkv_bias`, got ", qkv_bias.dim(), "-D tensor");
  check(qkv_bias.sym_size(0) == width * 3, "expected `qkv_bias` first dim and first dim of query to be equal");
  check(heads > 0 && width % heads == 0, "`embed_dim` must divide evenly by `num_heads`");
}

/// What the heads attend to, [batch, heads, length, length], where it is asked for or there is a mask; and what they
/// gather from the values, side by side. A mask of numbers hides what it has no zero for.
std::pair<Tensor, Tensor> attend(const Tensor& query, const Tensor& key, const Tensor& value, int64_t width,
                                 int64_t heads, const Tensor& weight, const Tensor& bias, const Tensor& mask,
                                 OptionalInt mask_type, bool need_weights) {
  SymInt batch = query.sym_size(0), length = query.sym_size(1);
  int64_t head = width / heads;
  auto projected = [&](const Tensor& x, int64_t part) {
    Tensor out = linear(x, weight.narrow(0, part * width, width), bias.narrow(0, part * width, width));
    return out.view({batch, length, heads, head}).transpose(1, 2);
  };
  auto side_by_side = [&](const Tensor& x) { return x.transpose(1, 2).reshape({batch, length, width}); };
  check(!mask.defined() || mask_type, "Mask Type should be defined");
  Tensor q = projected(query, 0), k = projected(key, 1), v = projected(value, 2);
  if (!mask.defined() && !need_weights) return {Tensor(), side_by_side(scaled_dot_product_attention(q, k, v))};
  Tensor scores = q.div(std::sqrt(static_cast<double>(head))).matmul(k.transpose(-2, -1));
  Tensor weights = mask.defined() ? _masked_softmax(scores, mask.to(DType::Bool), 3, mask_type) : softmax(scores, -1);
  return {weights, side_by_side(weights.matmul(v))};
}

/// On the meta device sizes are taken as they come, and nothing fits anything else.
void describe_heads(const Operator&, DispatchKeySet, Value* frame) {
  const Tensor& query = frame[0].tensor_ref();
  auto like_query = [&](SymShape sizes) {
    Tensor result = query.new_empty(sizes);
    check(result.is_meta() || result.sym_numel() == 0,
          "Expected all tensors to be on the same device, but found at least two devices, ", query.device(),
          " and meta!");
    return result;
  };
  Tensor out, weights = like_query({SymInt(0)});
  if (query.sym_numel() == 0) {
    out = like_query(SymShape(query.sym_sizes()));
  } else {
    SymInt batch = query.sym_size(0), length = query.sym_size(1);
    out = like_query({batch, length, frame[7].tensor_ref().sym_size(0)});
    bool need_weights = frame[10].to_bool(), average = frame[11].to_bool();
    if (need_weights)
      weights = like_query(average ? SymShape{batch, length, length}
                                   : SymShape{batch, SymInt(frame[4].to_int()), length, length});
  }
  frame[0] = Value(std::move(out));
  frame[1] = Value(std::move(weights));
}

UMBRA_OPERATOR(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor "
    "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool "
    "average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)")
    .generated_out("_native_multi_head_attention.out", {"out0", "out1"})
    .all_backends([](const Tensor& query, const Tensor& key, const Tensor& value, int64_t width, int64_t heads,
                     const Tensor& qkv_weight, const Tensor& qkv_bias, const Tensor& weight, const Tensor& bias,
                     const Tensor& mask, bool need_weights, bool average, OptionalInt mask_type) {
      check_heads(query, key, value, width, heads, qkv_weight, qkv_bias);
      auto [weights, gathered] =
          attend(query, key, value, width, heads, qkv_weight, qkv_bias, mask, mask_type, need_weights);
      Tensor out = linear(gathered, weight, bias);
      if (!need_weights) return std::tuple(out, query.is_fake() ? query.new_empty({0}) : Tensor());
      return std::tuple(out, average ? weights.mean(IntArrayRef{1}) : weights);
    })
    .use([](OperatorBuilder& builder) { set_own_layer(builder.op(), DispatchKey::Meta, describe_heads); });

UMBRA_OPERATOR(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor "
    "norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor "
    "ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor")
    .generated_out("_transformer_encoder_layer_fwd.out")
    .all_backends([](const Tensor& src, int64_t width, int64_t heads, const Tensor& qkv_weight, const Tensor& qkv_bias,
                     const Tensor& proj_weight, const Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
                     const Tensor& norm_weight_1, const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                     const Tensor& norm_bias_2, const Tensor& ffn_weight_1, const Tensor& ffn_bias_1,
                     const Tensor& ffn_weight_2, const Tensor& ffn_bias_2, const Tensor& mask, OptionalInt mask_type) {
      if (src.sym_numel().same(0)) return src.clone();
      auto attention = [&](const Tensor& x) {
        check_heads(x, x, x, width, heads, qkv_weight, qkv_bias);
        return linear(attend(x, x, x, width, heads, qkv_weight, qkv_bias, mask, mask_type, false).second, proj_weight,
                      proj_bias);
      };
      auto feed_forward = [&](const Tensor& x) {
        Tensor hidden = linear(x, ffn_weight_1, ffn_bias_1);
        return linear(use_gelu ? gelu(hidden) : relu(hidden), ffn_weight_2, ffn_bias_2);
      };
      auto normalised = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return layer_norm(x, {SymInt(width)}, weight, bias, eps);
      };
      if (norm_first) {
        Tensor x = src.add(attention(normalised(src, norm_weight_1, norm_bias_1)));
        return x.add(feed_forward(normalised(x, norm_weight_2, norm_bias_2)));
      }
      Tensor x = normalised(src.add(attention(src)), norm_weight_1, norm_bias_1);
      return normalised(x.add(feed_forward(x)), norm_weight_2, norm_bias_2);
    })
    .use(LikeOnMeta{{0}});

}  // namespace
}  // namespace umbra::ops
