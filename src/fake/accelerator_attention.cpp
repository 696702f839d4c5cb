// Attention as accelerators compute it, for fake tensors of such a device: metadata and gradients, and no kernel. Who
// calls one of these operators does so by name.
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra {
namespace {

using Scale = std::optional<double>;

Tensor make(const Tensor& like, const SymShape& sizes, DType dtype) { return like.new_empty(sizes, {.dtype = dtype}); }

/// What the kernel drew its random numbers from. PyTorch describes them as meta tensors, wherever the others are.
Tensor random_state(const Tensor& query, const SymShape& sizes, DType dtype) {
  if (query.is_fake()) return make(query, sizes, dtype);
  return query.new_empty(sizes, {.dtype = dtype, .device = Device(DeviceType::Meta)});
}

/// Dense, with the dimensions of memory in the order of another tensor's.
Tensor laid_out_like(const Tensor& other, const SymShape& sizes) {
  return other.new_empty_strided(sizes, ops::dense_strides_like(sizes, {SymShape(other.sym_strides())}));
}

Tensor same_layout(const Tensor& t) { return empty_like(t); }

/// [batch, heads, length, width], where the heads of one place in the sequence lie together.
Tensor heads_together(const Tensor& like, SymInt batch, SymInt heads, SymInt length, SymInt width) {
  return like.new_empty({batch, length, heads, width}).transpose(1, 2);
}

Tensor heads_together_like(const Tensor& t) {
  return heads_together(t, t.sym_size(0), t.sym_size(1), t.sym_size(2), t.sym_size(3));
}

SymShape with_width(const Tensor& query, SymInt width) {
  query.sym_size(-1);  // too few dimensions are an IndexError
  SymShape sizes(query.sym_sizes());
  sizes.back() = width;
  return sizes;
}

/// What dropout left, which the kernel writes in blocks of keys.
Tensor debug_mask(const Tensor& query, SymInt batch, SymInt heads, SymInt queries, SymInt keys, bool wanted) {
  if (!wanted) return make(query, {SymInt(0)}, query.dtype());
  SymInt block = query.sym_size(-1) > 64 ? 128 : 256;
  SymInt blocks = (keys + block - 1) / block;
  SymInt columns = keys <= 128 ? SymInt(128) : keys <= 256 ? SymInt(256) : blocks;
  return make(query, {batch, heads, queries, columns}, query.dtype());
}

// ---- flash attention ----

using Flash = std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt, Tensor, Tensor, Tensor>;
using ThreeGradients = std::tuple<Tensor, Tensor, Tensor>;

ThreeGradients gradients_like(const Tensor& query, const Tensor& key, const Tensor& value) {
  return {same_layout(query), same_layout(key), same_layout(value)};
}

UMBRA_OPERATOR(
    "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool "
    "is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor "
    "cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)")
    .fake([](const Tensor& query, const Tensor& key, const Tensor& value, double, bool, bool return_debug_mask,
             Scale) -> Flash {
      SymInt batch = query.sym_size(0), heads = query.sym_size(1), queries = query.sym_size(2), keys = key.sym_size(2);
      return {laid_out_like(query, with_width(query, value.sym_size(3))),
              make(query, {batch, heads, queries}, DType::Float32),
              Tensor(),
              Tensor(),
              queries,
              keys,
              make(query, {SymInt(2)}, DType::UInt64),
              make(query, {}, DType::UInt64),
              debug_mask(query, batch, heads, queries, keys, return_debug_mask)};
    })
    .gradient("query, key, value",
              {"grad", "query", "key", "value", "output", "logsumexp", "dropout_p", "is_causal", "rng_state", "unused",
               "scale"},
              [](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& output,
                 const Tensor& logsumexp, double dropout_p, bool is_causal, const Tensor& rng_state,
                 const Tensor& unused, Scale scale) {
                static const auto backward = typed<ThreeGradients(
                    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    const Tensor&, const Tensor&, SymInt, SymInt, double, bool, const Tensor&, const Tensor&, Scale)>(
                    "aten::_scaled_dot_product_flash_attention_backward");
                return backward(grad, query, key, value, output, logsumexp, Tensor(), Tensor(), query.sym_size(2),
                                key.sym_size(2), dropout_p, is_causal, rng_state, unused, scale);
              })
    .differentiable_outputs({true, false, false, false, false, false, false, false, false})
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor logsumexp, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool "
    "is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor "
    "grad_key, Tensor grad_value)")
    .fake([](const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&, const Tensor&,
             const Tensor&, const Tensor&, SymInt, SymInt, double, bool, const Tensor&, const Tensor&,
             Scale) { return gradients_like(query, key, value); });

using Window = std::optional<SymInt>;

UMBRA_OPERATOR(
    "_flash_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt "
    "max_q, SymInt max_k, float dropout_p, bool is_causal, bool return_debug_mask, *, float? scale=None, SymInt? "
    "window_size_left=None, SymInt? window_size_right=None, Tensor? seqused_k=None, Tensor? alibi_slopes=None, Tensor? "
    "block_table=None, int? num_splits=None) -> (Tensor output, Tensor softmax_logsumexp, Tensor rng_state, Tensor "
    "unused, Tensor debug_attn_mask)")
    .fake([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& cum_seq_q,
             const Tensor& cum_seq_k, SymInt max_q, SymInt max_k, double, bool, bool return_debug_mask, Scale, Window,
             Window, const Tensor&, const Tensor&, const Tensor&,
             std::optional<int64_t>) -> std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> {
      bool packed = cum_seq_q.defined();  // sequences of different lengths, one after the other
      SymInt batch = packed ? cum_seq_q.sym_numel() - 1 : query.sym_size(0), heads = query.sym_size(-2);
      SymInt queries = packed ? max_q : query.sym_size(1), keys = cum_seq_k.defined() ? max_k : key.sym_size(1);
      SymShape sums = packed ? SymShape{heads, query.sym_size(0)} : SymShape{batch, heads, queries};
      return {laid_out_like(query, with_width(query, value.sym_size(-1))), make(query, sums, DType::Float32),
              random_state(query, {SymInt(2)}, DType::UInt64), random_state(query, {}, DType::UInt64),
              debug_mask(query, batch, heads, queries, keys, return_debug_mask)};
    })
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
    "Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor "
    "rng_state, Tensor unused, *, float? scale=None, SymInt? window_size_left=None, SymInt? window_size_right=None) -> "
    "(Tensor, Tensor, Tensor)")
    .fake([](const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&, const Tensor&,
             const Tensor&, const Tensor&, SymInt, SymInt, double, bool, const Tensor&, const Tensor&, Scale, Window,
             Window) { return gradients_like(query, key, value); });

// ---- memory-efficient attention ----

/// Sums are kept for whole blocks of queries.
Tensor sums_of_blocks(const Tensor& query, SymInt batch, SymInt heads, SymInt queries, bool wanted) {
  SymInt padded = wanted ? (queries + 31) / 32 * 32 : SymInt(0);
  return make(query, {batch, heads, padded}, DType::Float32);
}

/// A bias is read in aligned rows, and its gradient is written so.
Tensor bias_gradient(const Tensor& bias) {
  SymInt width = bias.sym_size(-1);  // too few dimensions are an IndexError
  SymShape sizes(bias.sym_sizes());
  sizes.back() = (width + 15) / 16 * 16;
  return bias.new_empty(sizes).slice(-1, 0, width);
}

using FourGradients = std::tuple<Tensor, Tensor, Tensor, Tensor>;

UMBRA_OPERATOR(
    "_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
    "compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor "
    "log_sumexp, Tensor philox_seed, Tensor philox_offset)")
    .fake([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&, bool compute_log_sumexp,
             double, bool, Scale) -> FourGradients {
      for (const Tensor* t : {&query, &key, &value}) t->sym_size(1), t->sym_size(2);  // too few are an IndexError
      SymInt batch = query.sym_size(0), heads = query.sym_size(1), queries = query.sym_size(2);
      return {heads_together(query, batch, heads, queries, value.sym_size(-1)),
              sums_of_blocks(query, batch, heads, queries, compute_log_sumexp), random_state(query, {}, DType::Int64),
              random_state(query, {}, DType::Int64)};
    })
    .gradient("query, key, value, attn_bias",
              {"grad", "query", "key", "value", "attn_bias", "output", "log_sumexp", "philox_seed", "philox_offset",
               "dropout_p", "needs", "is_causal", "scale"},
              [](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                 const Tensor& output, const Tensor& sums, const Tensor& seed, const Tensor& offset, double dropout_p,
                 std::vector<bool> needs, bool is_causal, Scale scale) {
                static const auto backward = typed<FourGradients(
                    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    const Tensor&, const Tensor&, const Tensor&, double, std::vector<bool>, bool, Scale)>(
                    "aten::_scaled_dot_product_efficient_attention_backward");
                return backward(grad, query, key, value, bias, output, sums, seed, offset, dropout_p, needs, is_causal,
                                scale);
              })
    .differentiable_outputs({true, false, false, false})
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, "
    "bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)")
    .fake([](const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
             const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, std::vector<bool> wanted, bool,
             Scale) -> FourGradients {
      FourGradients gradients{heads_together_like(query), heads_together_like(key), heads_together_like(value),
                              Tensor()};
      if (!bias.defined()) return gradients;
      check<IndexError>(wanted.size() > 3, "list index out of range");
      if (wanted[3]) std::get<3>(gradients) = bias_gradient(bias);
      return gradients;
    });

UMBRA_OPERATOR(
    "_efficient_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? cu_seqlens_q, Tensor? "
    "cu_seqlens_k, SymInt? max_seqlen_q, SymInt? max_seqlen_k, float dropout_p, int custom_mask_type, bool "
    "compute_log_sumexp=False, *, float? scale=None, Tensor? seqlen_k=None, int? window_size=None) -> (Tensor output, "
    "Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, SymInt max_seqlen_batch_q, SymInt max_seqlen_batch_k)")
    .fake([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&, const Tensor& cu_seqlens_q,
             const Tensor&, Window max_seqlen_q, Window max_seqlen_k, double, int64_t, bool compute_log_sumexp, Scale,
             const Tensor&, std::optional<int64_t>) -> std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt> {
      bool packed = cu_seqlens_q.defined();
      SymInt batch = packed ? cu_seqlens_q.sym_size(0) - 1 : query.sym_size(0), heads = query.sym_size(-2);
      check<AssertionError>(!packed || max_seqlen_q, "max_seqlen_q must not be None when cu_seqlens_q is provided");
      SymInt queries = packed ? *max_seqlen_q : query.sym_size(1), keys = key.sym_size(1);
      if (max_seqlen_k) keys = *max_seqlen_k;
      return {make(query, {query.sym_size(0), query.sym_size(1), heads, value.sym_size(-1)}, query.dtype()),
              sums_of_blocks(query, batch, heads, queries, compute_log_sumexp),
              random_state(query, {}, DType::Int64),
              random_state(query, {}, DType::Int64),
              queries,
              keys};
    })
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor out, "
    "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, SymInt max_seqlen_q, SymInt max_seqlen_k, Tensor logsumexp, float "
    "dropout_p, Tensor philox_seed, Tensor philox_offset, int custom_mask_type, bool bias_requires_grad, *, float? "
    "scale=None, int? num_splits_key=None, int? window_size=None, bool shared_storage_dqdkdv=False) -> (Tensor, "
    "Tensor, Tensor, Tensor)")
    .fake([](const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
             const Tensor&, const Tensor&, const Tensor&, SymInt, SymInt, const Tensor&, double, const Tensor&,
             const Tensor&, int64_t, bool bias_requires_grad, Scale, std::optional<int64_t>, std::optional<int64_t>,
             bool shared) -> FourGradients {
      Tensor of_bias = bias_requires_grad && bias.defined() ? bias_gradient(bias) : make(query, {}, DType::Float32);
      if (!shared) return {same_layout(query), same_layout(key), same_layout(value), of_bias};
      check(query.sym_size(1) == key.sym_size(1), "seqlen must match for `shared_storage_dqdkdv`");
      check(query.sym_size(3) == key.sym_size(3), "embedding dim must match for `shared_storage_dqdkdv`");
      Tensor all =
          query.new_empty({query.sym_size(0), query.sym_size(1), SymInt(3), query.sym_size(2), query.sym_size(3)});
      return {all.select(2, 0), all.select(2, 1), all.select(2, 2), of_bias};
    });

// ---- cuDNN ----

UMBRA_OPERATOR(
    "_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
    "compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) "
    "-> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor "
    "philox_seed, Tensor philox_offset, Tensor debug_attn_mask)")
    .fake([](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&, bool, double, bool, bool,
             Scale) -> Flash {
      SymInt batch = query.sym_size(0), heads = query.sym_size(1), queries = query.sym_size(2);
      return {laid_out_like(query, with_width(query, value.sym_size(3))),
              make(query, {batch, heads, queries, SymInt(1)}, DType::Float32),
              Tensor(),
              Tensor(),
              queries,
              key.sym_size(2),
              make(query, {}, DType::Int64),
              make(query, {}, DType::Int64),
              Tensor()};
    })
    .gradient("query, key, value",
              {"grad", "query", "key", "value", "output", "logsumexp", "philox_seed", "philox_offset", "attn_bias",
               "dropout_p", "is_causal", "scale"},
              [](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& output,
                 const Tensor& logsumexp, const Tensor& seed, const Tensor& offset, const Tensor& bias,
                 double dropout_p, bool is_causal, Scale scale) {
                static const auto backward =
                    typed<ThreeGradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                         const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                         const Tensor&, SymInt, SymInt, double, bool, Scale)>(
                        "aten::_scaled_dot_product_cudnn_attention_backward");
                return backward(grad, query, key, value, output, logsumexp, seed, offset, bias, Tensor(), Tensor(),
                                query.sym_size(2), key.sym_size(2), dropout_p, is_causal, scale);
              })
    .differentiable_outputs({true, false, false, false, false, false, false, false, false})
    .tags({Tag::NondeterministicSeeded});

UMBRA_OPERATOR(
    "_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor? attn_bias, Tensor? cum_seq_q, Tensor? "
    "cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor, "
    "Tensor)")
    .fake([](const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&, const Tensor&,
             const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, SymInt, SymInt, double, bool,
             Scale) { return gradients_like(query, key, value); });

}  // namespace
}  // namespace umbra
