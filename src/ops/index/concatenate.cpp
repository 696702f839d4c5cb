// Joining tensors: cat and stack.
#include "kernels/concatenate.h"

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/list_shapes.h"
#include "ops/common/out_asks.h"
#include "ops/common/promotion.h"
#include "ops/common/same_shape.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/sparse/structure.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// A one-dimensional tensor without elements joins anything: an old habit that models rely on.
bool is_skipped_shape(SymIntArrayRef shape) {
  return shape.size() == 1 && !shape[0].is_symbolic() && shape[0].value() == 0;
}

bool is_skipped(const Tensor& t) { return is_skipped_shape(t.sym_sizes()); }

const Tensor& first_counted(TensorList tensors) {
  for (const Tensor& t : tensors)
    if (!is_skipped(t)) return t;
  return tensors[0];
}

/// Said first where one of them is a meta tensor.
void check_one_device(TensorList tensors) {
  if (!only_metadata_is_asked()) return;
  for (const Tensor& t : tensors)
    check(t.device() == tensors[0].device(), "Tensor on device ", t.device(), " is not on the expected device ",
          tensors[0].device(), "!");
}

/// The dimension to join along, of tensors that all have one.
int64_t joined_dim(TensorList tensors, int64_t dim) {
  check<ValueError>(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  check_one_device(tensors);
  bool numbers = std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.dim() == 0; });
  check<IndexError>(!numbers || !only_metadata_is_asked(), "list assignment index out of range");
  for (size_t i = 0; i < tensors.size(); ++i)
    check(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
  const Tensor& counted = first_counted(tensors);
  return is_skipped(counted) ? 0 : wrap_dim(dim, counted.dim());  // where all are skipped any dimension will do
}

DType joined_type(TensorList tensors) {
  ResultType type;
  for (const Tensor& t : tensors) type.add(t);
  return type.get();
}

void check_joined_type(TensorList tensors, const Tensor& out) {
  check<TypeError>(only_metadata_is_asked() || can_cast(joined_type(tensors), out.dtype()),
                   "torch.cat(): input types can't be cast to the desired output type ", kernel_name(out.dtype()));
}

/// The format that all of them suggest.
MemoryFormat joined_format(TensorList tensors) {
  MemoryFormat format = tensors[0].suggested_format();
  bool alike =
      std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.suggested_format() == format; });
  return alike ? format : MemoryFormat::Contiguous;
}

TensorSpec cat_spec(TensorList tensors, int64_t dim) {
  int64_t at = joined_dim(tensors, dim);
  SmallVector<const Tensor*, 8> pointers;
  for (const Tensor& t : tensors) pointers.push_back(&t);
  const Tensor& model = first_counted(tensors);
  SymShape shape(model.sym_sizes());
  SymInt length = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t)) continue;
    check(t.dim() == model.dim(), "Tensors must have same number of dimensions: got ", model.dim(), " and ", t.dim());
    for (int64_t d = 0; d < t.dim(); ++d)
      if (d != at && !expect_equal(t.sym_sizes()[d], shape[d]))
        fail("Sizes of tensors must match except in dimension ", at, ". Expected size ", shape[d], " but got size ",
             t.sym_sizes()[d], " for tensor number ", i, " in the list.");
    length += t.sym_sizes()[at];
  }
  if (!is_skipped(model)) shape[at] = length;
  Device device = common_device({pointers.data(), pointers.size()});
  MemoryFormat format = model.dim() == 4 || model.dim() == 5 ? joined_format(tensors) : MemoryFormat::Contiguous;
  if (format == MemoryFormat::Contiguous) return TensorSpec(shape, joined_type(tensors), device);
  return TensorSpec(shape, strides_for(shape, format), joined_type(tensors), device);
}

UMBRA_OPERATOR("cat(Tensor[] tensors, int dim=0) -> Tensor")
    .out("cat.out")
    .use(out_asks("cat.out",
                  [](TensorList tensors, int64_t dim, const Tensor& out) {
                    joined_dim(tensors, dim);
                    check_joined_type(tensors, out);
                  }))
    .meta(cat_spec)
    .cpu([](const Tensor& out, TensorList tensors, int64_t dim) {
      int64_t at = joined_dim(tensors, dim);
      bool alike =
          std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.dtype() == out.dtype(); });
      if (alike) return kernels::cat(out, tensors, at);
      std::vector<Tensor> cast;
      for (const Tensor& t : tensors) cast.push_back(kernels::cast(t, out.dtype()));
      kernels::cat(out, cast, at);
    })
    .sparse([](TensorList tensors, int64_t dim) { return sparse::cat(tensors, dim); })
    .gradient("tensors", {"grad", "tensors.sym_sizes", "dim"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t dim) {
                std::vector<SymIntArrayRef> shapes = shapes_in(sizes);
                auto counted = std::find_if_not(shapes.begin(), shapes.end(), is_skipped_shape);
                int64_t at = counted == shapes.end() ? 0 : wrap_dim(dim, static_cast<int64_t>(counted->size()));
                std::vector<Tensor> parts;
                SymInt start = 0;
                for (SymIntArrayRef shape : shapes) {
                  if (is_skipped_shape(shape)) {
                    parts.push_back(grad.new_zeros({SymInt(0)}));
                    continue;
                  }
                  SymInt length = shape[static_cast<size_t>(at)];
                  parts.push_back(grad.narrow(at, start, length));
                  start += length;
                }
                return parts;
              })
    .linear()
    .tags({Tag::Core, Tag::CastsToOut})
    .batch([](const std::vector<Batched>& tensors, int64_t dim) {
      std::vector<Tensor> all;
      bool has_rows = std::any_of(tensors.begin(), tensors.end(), [](const Batched& t) { return t.rank() != 1; });
      for (const Batched& t : tensors) {
        Tensor value = batch_all(t);
        bool skipped = has_rows && t.rank() == 1 && !value.sym_size(1).is_symbolic() && value.sym_size(1) == 0;
        if (!skipped) all.push_back(value);
      }
      if (all.empty()) all.push_back(batch_all(tensors[0]));
      return Batched(cat(all, wrap_dim(dim, all[0].dim() - 1) + 1), 0);
    });

/// The new dimension, of tensors that all have the same size.
int64_t stacked_dim(TensorList tensors, int64_t dim) {
  check(!tensors.empty(), "stack expects a non-empty TensorList");
  int64_t at = wrap_dim(dim, tensors[0].dim() + 1);
  for (size_t i = 1; i < tensors.size(); ++i)
    if (!expect_same_shape(tensors[i].sym_sizes(), tensors[0].sym_sizes()))
      fail("stack expects each tensor to be equal size, but got ", to_string(tensors[0].sym_sizes()),
           " at entry 0 and ", to_string(tensors[i].sym_sizes()), " at entry ", i);
  return at;
}

Tensor stack_tensors(TensorList tensors, int64_t dim) {
  int64_t at = stacked_dim(tensors, dim);
  if (at < tensors[0].dim()) {
    // Joined along the dimension and then divided: memory formats stay, as they do in PyTorch.
    SymShape shape(tensors[0].sym_sizes());
    shape.insert(static_cast<size_t>(at), SymInt(static_cast<int64_t>(tensors.size())));
    return cat(tensors, at).view(shape);
  }
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(t.unsqueeze(at));
  return cat(parts, at);
}

/// The definition of stack, and of the operator that it once was made of.
void stack_definition(OperatorBuilder& builder) {
  builder.all_backends(stack_tensors)
      .gradient("tensors", {"grad", "dim"}, [](const Tensor& grad, int64_t dim) { return grad.unbind(dim); })
      .linear()
      .batch([](const std::vector<Batched>& tensors, int64_t dim) {
        std::vector<Tensor> all;
        for (const Batched& t : tensors) all.push_back(batch_all(t));
        check(!all.empty(), "stack expects a non-empty TensorList");
        return Batched(stack(all, wrap_dim(dim, all[0].dim()) + 1), 0);
      });
}

void check_stack_out(TensorList tensors, int64_t dim, const Tensor& out) {
  stacked_dim(tensors, dim);
  check_joined_type(tensors, out);
}

UMBRA_OPERATOR("stack(Tensor[] tensors, int dim=0) -> Tensor")
    .out("stack.out")
    .use(out_asks("stack.out", check_stack_out))
    .use(stack_definition)
    .sparse([](TensorList tensors, int64_t dim) {
      int64_t at = stacked_dim(tensors, dim);
      std::vector<Tensor> parts;
      for (const Tensor& t : tensors) parts.push_back(t.unsqueeze(at));
      return cat(parts, at);
    });
UMBRA_OPERATOR("_stack(Tensor[] tensors, int dim=0) -> Tensor")
    .out("_stack.out")
    .use(out_asks("_stack.out", check_stack_out))
    .all_backends(stack_tensors);

/// The dimension that is chunked, of tensors that can be.
int64_t chunked_dim(TensorList tensors, int64_t dim, int64_t chunks) {
  check(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  check(chunks > 0, "_chunk_cat expects positive num_chunks");
  bool same_rank = true;
  for (const Tensor& t : tensors) {
    check(t.dtype() == tensors[0].dtype(), "_chunk_cat expects all input tensors with the same dtype");
    check(t.sym_numel() > 0, "_chunk_cat expects non-empty tensor");
    same_rank &= t.dim() == tensors[0].dim();
  }
  check(dim >= 0 || same_rank, "_chunk_cat expects non-negative dim when input tensors have different ndims");
  int64_t at = same_rank ? wrap_dim(dim, tensors[0].dim()) : dim;
  for (const Tensor& t : tensors) {
    check(at < t.dim(), "_chunk_cat expects dim < ndim for all input tensors");
    for (int64_t d = 0; d < at; ++d)
      check(d < tensors[0].dim() && t.sym_size(d) == tensors[0].sym_size(d),
            "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
  }
  return at;
}

/// Each tensor in equal pieces along `dim`, the last filled up with zeros; piece by piece side by side.
UMBRA_OPERATOR("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor")
    .out("_chunk_cat.out")
    .use(out_asks("_chunk_cat.out",
                  [](TensorList tensors, int64_t dim, int64_t chunks, const Tensor& out) {
                    chunked_dim(tensors, dim, chunks);
                    check_joined_type(tensors, out);
                  }))
    .all_backends([](TensorList tensors, int64_t dim, int64_t chunks) {
      int64_t at = chunked_dim(tensors, dim, chunks);
      std::vector<Tensor> pieces;
      for (const Tensor& t : tensors) {
        SymInt size = t.sym_size(at), length = (size + chunks - 1) / chunks, missing = length * chunks - size;
        Tensor whole = t;
        if (missing > 0) {
          SymShape rest(t.sym_sizes());
          rest[at] = missing;
          whole = cat({t, t.new_zeros(rest)}, at);
        }
        SymShape sizes(t.sym_sizes().slice(0, at));
        sizes.push_back(chunks);
        sizes.push_back(-1);
        pieces.push_back(whole.reshape(sizes));
      }
      return cat(pieces, at + 1);
    });

}  // namespace
}  // namespace umbra::ops
