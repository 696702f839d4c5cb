// Rows of a table, summed, averaged or compared within bags.
#include "kernels/copy.h"
#include "kernels/embedding.h"
#include "kernels/rows.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/no_derivative.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using kernels::BagMode;
using kernels::Bags;

constexpr const char* kCaller = " (while checking arguments for embedding_bag)";

void check_integers(const Tensor& t, const char* name) {
  check(t.dtype() == DType::Int64 || t.dtype() == DType::Int32, "Expected tensor for argument #1 '", name,
        "' to have one of the following scalar types: Long, Int; but got torch.", kernel_name(t.dtype()),
        "Tensor instead", kCaller);
}

void check_bags(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                const Tensor& per_sample_weights, bool include_last_offset) {
  check(indices.dim() == 1 || indices.dim() == 2, "input has to be a 1D or 2D Tensor, but got Tensor of dimension ",
        indices.dim());
  check(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  check(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  check_integers(indices, "indices");
  check_integers(offsets, "offsets");
  check(is_floating(weight.dtype()),
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
        "Double; but got torch.",
        kernel_name(weight.dtype()), "Tensor instead", kCaller);
  check(mode >= 0 && mode <= 2, "embedding_bag: unknown mode ", mode);
  check(!include_last_offset || offsets.sym_size(0) >= 1, "include_last_offset: number of offset should be at least 1");
  if (!per_sample_weights.defined()) return;
  check(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
  check(per_sample_weights.dtype() == weight.dtype(),
        "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
        "'per_sample_weights'; but type torch.",
        kernel_name(weight.dtype()), "Tensor does not equal torch.", kernel_name(per_sample_weights.dtype()), "Tensor",
        kCaller);
  check(per_sample_weights.dim() == 1 && per_sample_weights.sym_numel() == indices.sym_numel(),
        "embedding_bag: per_sample_weights of size ", per_sample_weights.sym_sizes(), " do not fit indices of size ",
        indices.sym_sizes());
}

Bags bags_of(const Tensor& indices, const Tensor& offsets, int64_t mode, bool include_last_offset, int64_t padding) {
  Bags bags{kernels::read_vector<int64_t>(indices), kernels::read_vector<int64_t>(offsets), static_cast<BagMode>(mode),
            padding};
  auto length = static_cast<int64_t>(bags.indices.size());
  if (!bags.offsets.empty()) {
    check(bags.offsets.front() == 0,
          "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
          "got ",
          bags.offsets.front());
    check(bags.offsets.back() <= length, "offsets[-1] can not be greater than input's length ", length,
          " but got offsets[-1] of ", bags.offsets.back());
    for (size_t i = 1; i < bags.offsets.size(); ++i)
      check(bags.offsets[i] >= bags.offsets[i - 1], "embedding_bag: offsets must not decrease");
  }
  if (include_last_offset) bags.offsets.pop_back();
  return bags;
}

// PyTorch's quick way of summing keeps no table of bags, and what it leaves out is told by sizes.
bool sums_quickly(const Tensor& weight, int64_t mode, const Tensor& per_sample_weights, int64_t padding) {
  bool narrow = weight.dtype() != DType::Float64;
  bool unit = !per_sample_weights.defined() || per_sample_weights.sym_stride(0).same(1);
  return mode == 0 && narrow && weight.sym_stride(1).same(1) && unit && padding < 0;
}

using BagSpecs = std::tuple<TensorSpec, TensorSpec, TensorSpec, TensorSpec>;

struct EmbeddingBag {
  bool forward_only;

  void operator()(OperatorBuilder& builder) const {
    builder
        .meta([forward_only = forward_only](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                                            int64_t mode, bool, const Tensor& per_sample_weights,
                                            bool include_last_offset, int64_t padding) -> BagSpecs {
          check_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset);
          Device device = common_device({&weight, &indices, &offsets});
          SymInt all = offsets.sym_size(0), bags = include_last_offset ? all - 1 : all, width = weight.sym_size(1);
          bool accelerator = device.type == DeviceType::CUDA;
          bool quick = !accelerator && sums_quickly(weight, mode, per_sample_weights, padding);
          auto integers = [&](SymIntArrayRef sizes) { return TensorSpec(sizes, DType::Int64, device); };
          TensorSpec sizes = integers({accelerator || (mode == 0 && forward_only) ? all : bags});
          return {TensorSpec({bags, width}, weight.dtype(), device),
                  integers({quick ? SymInt(0) : indices.sym_numel()}), sizes,
                  mode == 2     ? integers({bags, width})
                  : accelerator ? integers({0})
                                : sizes};
        })
        .cpu<4>([](const Tensor& out, const Tensor& offset2bag, const Tensor& bag_size, const Tensor& max_indices,
                   const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                   const Tensor& per_sample_weights, bool include_last_offset, int64_t padding) {
          Bags bags = bags_of(indices, offsets, mode, include_last_offset, padding);
          kernels::fill(bag_size, 0);
          kernels::embedding_bag(out, bag_size, max_indices, weight, bags, per_sample_weights);
          if (mode != 2) kernels::copy(max_indices, bag_size);
          std::vector<int64_t> bag_of = bags.bag_of();
          if (offset2bag.numel() > 0) std::copy(bag_of.begin(), bag_of.end(), offset2bag.data<int64_t>());
        });
  }
};

UMBRA_OPERATOR(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
    "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
    "Tensor, Tensor, Tensor)")
    .generated_out("_embedding_bag.out", {"out0", "out1", "out2", "out3"})
    .use(EmbeddingBag{false})
    .gradient("weight",
              {"grad", "indices", "offsets", "result1", "result2", "result3", "weight.sym_sizes", "scale_grad_by_freq",
               "mode", "sparse", "per_sample_weights", "padding_idx"},
              [](const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor& offset2bag,
                 const Tensor& bag_size, const Tensor& max_indices, SymIntArrayRef sizes, bool scale, int64_t mode,
                 bool sparse, const Tensor& per_sample_weights, int64_t padding) {
                return _embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, max_indices, sizes[0],
                                               scale, mode, sparse, per_sample_weights, padding);
              })
    .gradient("per_sample_weights", {"grad", "weight", "indices", "offsets", "result1", "mode", "padding_idx"},
              [](const Tensor& grad, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                 const Tensor& offset2bag, int64_t mode, int64_t padding) {
                return _embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode,
                                                                  padding);
              })
    .differentiable_outputs({true, false, false, false})
    .tags({Tag::Core});

UMBRA_OPERATOR(
    "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
    "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) "
    "-> "
    "(Tensor, Tensor, Tensor, Tensor)")
    .generated_out("_embedding_bag_forward_only.out", {"out0", "out1", "out2", "out3"})
    .use(EmbeddingBag{true});

// ---- gradients ----

TensorSpec table_spec(const Tensor& grad, SymInt rows) {
  if (only_metadata_is_asked()) {
    check(is_floating(grad.dtype()), "Unsupported input type encountered: ", grad.dtype());
    grad.sym_size(1);  // too few dimensions are an IndexError
  }
  check(grad.dim() == 2, "embedding_bag: expected a gradient of 2 dimensions, but got ", grad.dim());
  return TensorSpec({rows, grad.sym_size(1)}, grad.dtype(), grad.device());
}

void table_gradient(const Tensor& out, const Tensor& grad, const Tensor& indices, const std::vector<int64_t>& bag_of,
                    const Tensor& bag_size, const Tensor& max_indices, bool scale, int64_t mode,
                    const Tensor& per_sample_weights, int64_t padding) {
  std::vector<int64_t> rows = kernels::read_vector<int64_t>(indices);
  check(rows.size() == bag_of.size(), "embedding_bag: ", bag_of.size(), " bags for ", rows.size(), " indices");
  for (int64_t bag : bag_of) check(bag >= 0 && bag < grad.size(0), "embedding_bag: there is no gradient for bag ", bag);
  check(mode == 0 || bag_size.numel() >= grad.size(0), "embedding_bag: too few bag sizes");
  check(mode != 2 || max_indices.numel() == grad.numel(), "embedding_bag: max_indices do not fit the gradient");
  kernels::embedding_bag_backward(out, grad, rows, bag_of, bag_size, max_indices, per_sample_weights,
                                  static_cast<BagMode>(mode), padding, scale);
}

/// Indices are sorted, and the bags selected by where they came from.
constexpr const char* kNoVector = "index_select(): Index is supposed to be a vector";

std::vector<int64_t> bag_of_each(const Tensor& indices, const Tensor& offsets, const Tensor& offset2bag) {
  if (offset2bag.numel() != 0) return kernels::read_vector<int64_t>(offset2bag);
  return bags_of(indices, offsets, 0, false, -1).bag_of();
}

/// The bag of each index, by operators.
Tensor bags_by_offsets(const Tensor& indices, const Tensor& offsets) {
  Tensor starts = zeros({indices.sym_numel() + 1}, {.dtype = offsets.dtype(), .device = offsets.device()});
  starts = starts.index_add(0, offsets, ones_like(offsets));
  return starts.cumsum(0).sub(1).slice(0, 0, -1);
}

/// The gradient of the table as a sparse tensor: each index gets the gradient of its bag.
Tensor bag_rows_gradient(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag, const Tensor& bag_size,
                         SymInt rows, bool scale, int64_t mode, const Tensor& per_sample_weights, int64_t padding) {
  Tensor of_each = grad.index_select(0, offset2bag);
  check(mode != static_cast<int64_t>(BagMode::Max), "embedding_bag: max mode has no sparse gradient");
  bool mean = mode == static_cast<int64_t>(BagMode::Mean);
  check(is_differentiable(grad.dtype()) || (!mean && !per_sample_weights.defined()),
        "result type Float can't be cast to the desired output type ", kernel_name(grad.dtype()));
  if (mean) of_each = of_each.div(bag_size.index_select(0, offset2bag).unsqueeze(1).to(grad.dtype()));
  check(!mean || !per_sample_weights.defined(), "embedding_bag: weights of samples go with sums alone");
  if (per_sample_weights.defined()) of_each = of_each.mul(per_sample_weights.unsqueeze(1));
  return embedding_backward(of_each, indices, rows, padding, scale, true);
}

UMBRA_OPERATOR(
    "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor "
    "maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor")
    .all_backends([](const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor& offset2bag,
                     const Tensor& bag_size, const Tensor& max_indices, SymInt rows, bool scale, int64_t mode,
                     bool sparse, const Tensor& per_sample_weights, int64_t padding) {
      bool meta = false;
      for (const Tensor* t : {&grad, &indices, &offsets, &offset2bag, &bag_size, &max_indices, &per_sample_weights})
        meta |= t->defined() && t->is_meta();
      if (meta && !sparse) {
        check(is_floating(grad.dtype()), "Unsupported input type encountered: ", grad.dtype());
        grad.sym_size(1);  // too few dimensions are an IndexError
        return grad.new_empty(table_spec(grad, rows).sizes);
      }
      check<IndexError>(!meta || offset2bag.dim() <= 1, kNoVector);
      check_integers(indices, "indices");
      check_integers(offsets, "offsets");
      Tensor bags = offset2bag.sym_numel() == 0 ? bags_by_offsets(indices, offsets) : offset2bag;
      if (sparse)
        return bag_rows_gradient(grad, indices, bags, bag_size, rows, scale, mode, per_sample_weights, padding);
      return _embedding_bag_dense_backward(grad, indices, bags, bag_size, max_indices, rows, scale, mode,
                                           per_sample_weights, padding);
    })
    .gradient("grad", {"grad0"}, [](const Tensor&) { return no_derivative("_embedding_bag_backward"); })
    .gradient("per_sample_weights", {"grad0"}, [](const Tensor&) { return no_derivative("_embedding_bag_backward"); });

UMBRA_OPERATOR(
    "_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& indices, const Tensor&, const Tensor& offset2bag,
                  const Tensor& bag_size, SymInt rows, bool scale, int64_t mode, const Tensor& per_sample_weights,
                  int64_t padding) {
      return bag_rows_gradient(grad, indices, offset2bag, bag_size, rows, scale, mode, per_sample_weights, padding);
    });

UMBRA_OPERATOR(
    "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor "
    "maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int "
    "padding_idx=-1) -> Tensor")
    .generated_out("_embedding_bag_dense_backward.out")
    .use(NoOutputsOnMeta{"_embedding_bag_dense_backward.out"})
    .meta([](const Tensor& grad, const Tensor& indices, const Tensor&, const Tensor&, const Tensor&, SymInt rows, bool,
             int64_t mode, const Tensor&, int64_t) {
      check(!has_elements(grad) || is_floating(grad.dtype()),
            "Expected tensor for argument #1 'grad_' to have one of the ",
            "following scalar types: Half, BFloat16, Float, Double; but got torch.", kernel_name(grad.dtype()),
            "Tensor instead (while checking arguments for embedding_bag)");
      check(!has_elements(grad) || (mode >= 0 && mode <= 2),
            "embedding_bag: expected mode 0 (sum), 1 (mean) or 2 (max), but got ", mode);
      check(!has_elements(grad) || mode == 2 || !(rows < 0), "zeros: Dimension size must be non-negative.");
      check<IndexError>(!has_elements(indices) || mode == 2 || indices.dim() <= 1, kNoVector);
      return table_spec(grad, rows);
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
            const Tensor& bag_size, const Tensor& max_indices, SymInt, bool scale, int64_t mode,
            const Tensor& per_sample_weights, int64_t padding) {
      table_gradient(out, grad, indices, kernels::read_vector<int64_t>(offset2bag), bag_size, max_indices, scale, mode,
                     per_sample_weights, padding);
    });

UMBRA_OPERATOR(
    "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor "
    "offset2bag, int mode, int padding_idx=-1) -> Tensor")
    .generated_out("_embedding_bag_per_sample_weights_backward.out")
    .use(NoOutputsOnMeta{"_embedding_bag_per_sample_weights_backward.out"})
    .meta([](const Tensor& grad, const Tensor& weight, const Tensor& indices, const Tensor&, const Tensor&,
             int64_t mode, int64_t) {
      if (only_metadata_is_asked()) grad.sym_size(1);  // too few dimensions are an IndexError
      check_kernel_type(is_floating(grad.dtype()), "_embedding_bag_per_sample_weights_backward_cpu", grad);
      check(mode == 0, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
      check(weight.dim() == 2 && grad.dim() == 2 && grad.sym_size(1) == weight.sym_size(1) &&
                grad.dtype() == weight.dtype(),
            "embedding_bag: a gradient of ", grad.sym_sizes(), " does not fit weights of ", weight.sym_sizes());
      return TensorSpec({indices.sym_numel()}, grad.dtype(), grad.device());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
            const Tensor& offset2bag, int64_t, int64_t padding) {
      std::vector<int64_t> bag_of = bag_of_each(indices, offsets, offset2bag);
      for (int64_t bag : bag_of)
        check(bag >= 0 && bag < grad.size(0), "embedding_bag: there is no gradient for bag ", bag);
      kernels::embedding_bag_sample_backward(out, grad, weight, kernels::read_vector<int64_t>(indices), bag_of,
                                             padding);
    });

// ---- as users call it ----

using BagResult = std::tuple<Tensor, Tensor, Tensor, Tensor>;

BagResult run_embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale,
                            int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
                            int64_t padding) {
  auto call = weight.requires_grad() || (per_sample_weights.defined() && per_sample_weights.requires_grad())
                  ? _embedding_bag
                  : _embedding_bag_forward_only;
  return call(weight, indices.contiguous(), offsets.contiguous(), scale, mode, sparse, per_sample_weights,
              include_last_offset, padding);
}

UMBRA_OPERATOR(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
    "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, "
    "Tensor)")
    .composite([](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale, int64_t mode,
                  bool sparse, const Tensor& per_sample_weights, bool include_last_offset) {
      return run_embedding_bag(weight, indices, offsets, scale, mode, sparse, per_sample_weights, include_last_offset,
                               -1);
    });

UMBRA_OPERATOR(
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool "
    "sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, "
    "Tensor)")
    .composite([](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale, int64_t mode,
                  bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
                  std::optional<int64_t> padding_idx) {
      int64_t padding = -1;
      if (padding_idx) {
        SymInt rows = weight.sym_size(0);
        check(rows > *padding_idx && -rows <= *padding_idx, "padding_idx must be within the number of embeddings, -",
              rows, " through ", rows - 1, ", but got ", *padding_idx);
        padding = *padding_idx < 0 ? *padding_idx + rows.guard_int() : *padding_idx;
      }
      return run_embedding_bag(weight, indices, offsets, scale, mode, sparse, per_sample_weights, include_last_offset,
                               padding);
    });

}  // namespace
}  // namespace umbra::ops
