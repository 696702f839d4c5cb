// Views that give the same elements another shape: view, reshape, flatten, squeeze, unsqueeze, expand.
#include "ops/common/batching.h"
#include "ops/common/expand_rank.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/sparse/structure.h"
#include "ops/view/contiguity.h"
#include "sym/layout_watch.h"
#include "umbra/core/sparse.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

Tensor view_as_shape(const Tensor& self, SymIntArrayRef size) {
  SymShape shape = infer_size(size, self.sym_numel());
  std::optional<SymShape> strides = view_strides(self.sym_sizes(), self.sym_strides(), shape);
  if (!strides) decide_contiguity(self);  // may be what only the run tells, which is another error
  check(strides.has_value(),
        "view size is not compatible with input tensor's size and stride (at least one dimension spans "
        "across two contiguous subspaces). Use .reshape(...) instead.");
  return alias_tensor(self, shape, *strides, self.sym_storage_offset());
}

UMBRA_OPERATOR("view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
    .view(view_as_shape)
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, SymIntArrayRef) {
      return written.reshape(base.sym_sizes());
    })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR("_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
    .generated_out("_unsafe_view.out")
    .all_backends(view_as_shape)
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .tags({Tag::CheapToRepeat})
    .use(BatchInFront{.sizes = {"size"}});

UMBRA_OPERATOR("view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .composite([](const Tensor& self, const Tensor& other) { return self.view(other.sym_sizes()); });

// A view where one is possible, else a copy; recorded as `view` or as `clone` and `_unsafe_view`.
UMBRA_OPERATOR("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
    .composite([](const Tensor& self, SymIntArrayRef size) {
      check(!is_sparse(self.layout()), "reshape is not implemented for sparse tensors");
      SymShape shape = infer_size(size, self.sym_numel());
      // A contiguous tensor is viewed by the shape as it was given, -1 and all: graphs show it so.
      if (view_strides(self.sym_sizes(), self.sym_strides(), shape))
        return sym::with_noted_sharing(self, self.view(self.is_contiguous() ? size : SymIntArrayRef(shape)));
      return sym::with_noted_copy(self, _unsafe_view(self.clone(MemoryFormat::Contiguous), shape),
                                  sym::CopyIs::Reshaped);
    });

UMBRA_OPERATOR("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .composite([](const Tensor& self, const Tensor& other) { return self.reshape(other.sym_sizes()); });

/// Where a stride is negative, the dimension lies around those after it.
SymShape without_negative_strides(SymIntArrayRef size, SymIntArrayRef given) {
  SymShape stride(given);
  for (size_t d = stride.size(); d-- > 0;) {
    if (stride[d].is_symbolic() || stride[d].value() >= 0) continue;
    stride[d] = d + 1 == stride.size() ? SymInt(1) : stride[d + 1] * sym_max(size[d + 1], 1);
  }
  return stride;
}

// A view by strides that were found before: what reshape was made of once.
UMBRA_OPERATOR("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
    .view([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef given) {
      check(size.size() == given.size(), "mismatch in length of strides and shape");
      SymShape stride = without_negative_strides(size, given);
      SymInt offset = self.sym_storage_offset(), need = storage_bytes(size, stride, offset, self.item_size());
      SymInt have = self.storage()->bytes();
      bool ends = !self.is_meta() || self.is_fake();  // the meta device has no memory that could end
      check(!ends || need.is_symbolic() || have.is_symbolic() || need <= have, "setStorage: sizes ", to_string(size),
            ", strides ", to_string(SymIntArrayRef(stride)), ", storage offset ", offset, ", and itemsize ",
            self.item_size(), " requiring a storage size of ", need, " are out of bounds for storage of size ", have);
      for (SymInt s : size) check(s.is_symbolic() || s >= 0, "Trying to create tensor with negative dimension ", s);
      return alias_tensor(self, size, stride, offset);
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, SymIntArrayRef, SymIntArrayRef) {
      return written.reshape(base.sym_sizes());
    })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .batch([](const Batched& self, SymIntArrayRef size, SymIntArrayRef) {
      return Batched(batch_first(self).reshape(batch_sizes(size)), 0);
    });

UMBRA_OPERATOR("ravel(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  return self.contiguous().view({-1});
});

UMBRA_OPERATOR("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
    .composite([](const Tensor& self, int64_t start_dim, int64_t end_dim) {
      int64_t start = wrap_dim(start_dim, self.dim()), end = wrap_dim(end_dim, self.dim());
      check(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
      if (self.dim() == 0) return self.reshape({1});
      if (start == end) return self;
      SymShape shape;
      for (int64_t d = 0; d < start; ++d) shape.push_back(self.sym_sizes()[d]);
      shape.push_back(product(self.sym_sizes().slice(start, end - start + 1)));
      for (int64_t d = end + 1; d < self.dim(); ++d) shape.push_back(self.sym_sizes()[d]);
      return self.reshape(shape);
    });

UMBRA_OPERATOR("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
    .composite([](const Tensor& self, int64_t dim, SymIntArrayRef sizes) {
      int64_t at = wrap_dim(dim, self.dim());
      check(!sizes.empty(), "unflatten: sizes must be non-empty");
      SymInt whole = self.sym_sizes()[at], known = 1;
      bool inferred = false;
      for (SymInt s : sizes) {
        if (!s.is_symbolic() && s.value() == -1)
          check(!std::exchange(inferred, true),
                "unflatten got an unexpected error:\nonly one dimension can be inferred");
        else known *= s;
      }
      bool fits = inferred ? known != 0 && expect_equal(whole % known, 0) : expect_equal(known, whole);
      check(fits, "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", at, " (", whole,
            ") in the input tensor");
      SymShape shape;
      for (int64_t d = 0; d < at; ++d) shape.push_back(self.sym_sizes()[d]);
      for (SymInt s : sizes) shape.push_back(!s.is_symbolic() && s.value() == -1 ? whole / known : s);
      for (int64_t d = at + 1; d < self.dim(); ++d) shape.push_back(self.sym_sizes()[d]);
      return self.view(shape);
    });

// ---- dimensions of size 1 ----

Tensor drop_dims(const Tensor& self, uint64_t mask) {
  SymShape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    SymInt size = self.sym_sizes()[d];
    if ((mask >> d & 1) && is_one(size)) continue;
    sizes.push_back(size);
    strides.push_back(self.sym_strides()[d]);
  }
  return alias_tensor(self, sizes, strides, self.sym_storage_offset());
}

Tensor add_dim(const Tensor& self, int64_t dim) {
  int64_t at = wrap_dim(dim, self.dim() + 1);
  SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
  SymInt stride = at == self.dim() ? SymInt(1) : sizes[at] * strides[at];
  sizes.insert(at, 1);
  strides.insert(at, stride);
  return alias_tensor(self, sizes, strides, self.sym_storage_offset());
}

UMBRA_OPERATOR("squeeze(Tensor(a) self) -> Tensor(a)")
    .inplace("squeeze_")
    .on_inplace([](OperatorBuilder& variant) { variant.node("SqueezeBackward3"); })
    .view([](const Tensor& self) { return drop_dims(self, ~uint64_t{0}); })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t) { return written.reshape(base.sym_sizes()); })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .batch([](const Batched& self) {
      Tensor value = batch_first(self);
      std::vector<int64_t> dims;
      for (int64_t d = 1; d < value.dim(); ++d)
        if (value.sym_sizes()[d] == 1) dims.push_back(d);
      return Batched(value.squeeze(dims), 0);
    });

UMBRA_OPERATOR("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
    .inplace("squeeze_.dim")
    .on_inplace([](OperatorBuilder& variant) { variant.node("SqueezeBackward4"); })
    .view([](const Tensor& self, int64_t dim) { return drop_dims(self, uint64_t{1} << wrap_dim(dim, self.dim())); })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, int64_t) {
      return written.reshape(base.sym_sizes());
    })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .node("SqueezeBackward1")
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)")
    .inplace("squeeze_.dims")
    .on_inplace([](OperatorBuilder& variant) { variant.node("SqueezeBackward5"); })
    .view([](const Tensor& self, std::vector<int64_t> dims) {
      return drop_dims(self, dim_mask(dims, self.dim(), false));
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, std::vector<int64_t>) {
      return written.reshape(base.sym_sizes());
    })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.reshape(sizes); })
    .linear()
    .node("SqueezeBackward2")
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
    .inplace("unsqueeze_")
    .on_inplace([](OperatorBuilder& variant) { variant.node("UnsqueezeBackward1"); })
    .view(add_dim)
    .view_inverse([](const Tensor&, const Tensor& written, int64_t, int64_t dim) { return written.squeeze(dim); })
    .sparse(sparse::unsqueeze)
    .gradient("self", {"grad", "dim"}, [](const Tensor& grad, int64_t dim) { return grad.squeeze(dim); })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, int64_t dim) {
      return Batched(batch_first(self).unsqueeze(wrap_dim(dim, self.rank() + 1) + 1), 0);
    });

// ---- expand ----

Tensor expand_to(const Tensor& self, SymIntArrayRef size, bool) {
  int64_t rank = static_cast<int64_t>(size.size()), lead = rank - self.dim();
  check_expand_rank(self, self.dim(), size);
  SymShape sizes(size), strides(size.size(), 0);
  for (int64_t d = rank - 1; d >= 0; --d) {  // of several sizes that do not fit, the last is the one to name
    bool keep = !size[d].is_symbolic() && size[d].value() == -1;
    if (d < lead) {
      check(!keep, "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", d);
      if (size[d].is_symbolic()) check(expect_size(size[d]), "invalid size ", size[d], " in expand");
      continue;
    }
    SymInt have = self.sym_sizes()[d - lead];
    if (keep || have.same(size[d])) {
      sizes[d] = have;
      strides[d] = self.sym_strides()[d - lead];
    } else if (equal_or(have, 1, false)) {
      check(expect_size(size[d]), "invalid size ", size[d], " in expand");
    } else if (expect_equal(have, size[d])) {
      strides[d] = self.sym_strides()[d - lead];
    } else {
      fail("The expanded size of the tensor (", size[d], ") must match the existing size (", have,
           ") at non-singleton dimension ", d, ".  Target sizes: ", to_string(size),
           ".  Tensor sizes: ", self.sym_sizes());
    }
  }
  // New dimensions of size 1 have the stride that a contiguous tensor would have there.
  for (int64_t d = std::min(lead, rank - 1) - 1; d >= 0; --d)
    if (equal_or(sizes[d], 1, false)) strides[d] = sizes[d + 1] * strides[d + 1];
  return alias_tensor(self, sizes, strides, self.sym_storage_offset());
}

UMBRA_OPERATOR("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)")
    .view(expand_to)
    // Only what writes one value everywhere may write an expanded tensor: any copy of an element has the new contents.
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, SymIntArrayRef, bool) {
      Tensor out = written;
      while (out.dim() > base.dim()) out = out.select(0, 0);
      for (int64_t d = 0; d < base.dim(); ++d)
        if (!(out.sym_size(d) == base.sym_size(d))) out = out.narrow(d, 0, 1);
      return out;
    })
    .sparse([](const Tensor&, SymIntArrayRef, bool) -> Tensor { fail("expand is unsupported for Sparse tensors"); })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return ops::sum_to_size(grad, sizes); })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, SymIntArrayRef size, bool implicit) {
      check_expand_rank(self.value, self.rank(), size);
      return Batched(expand(batch_first(self, static_cast<int64_t>(size.size())), batch_sizes(size), implicit), 0);
    });

UMBRA_OPERATOR("broadcast_tensors(Tensor[] tensors) -> Tensor[]").composite([](TensorList tensors) {
  SymShape shape;
  for (const Tensor& t : tensors) shape = broadcast_shapes(shape, t.sym_sizes());
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    bool same = std::ranges::equal(t.sym_sizes(), shape, known_equal);
    out.push_back(same ? t : t.expand(shape));
  }
  return out;
});

UMBRA_OPERATOR("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .composite([](const Tensor& self, const Tensor& other) { return self.expand(other.sym_sizes()); });

UMBRA_OPERATOR("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
    .composite([](const Tensor& self, SymIntArrayRef size) { return self.expand(size); });

UMBRA_OPERATOR("sum_to_size(Tensor self, SymInt[] size) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef size) {
      bool fits = static_cast<int64_t>(size.size()) <= self.dim();
      for (size_t i = 1; fits && i <= size.size(); ++i) {
        SymInt wanted = size[size.size() - i];
        fits = wanted == self.sym_size(-static_cast<int64_t>(i)) || wanted == 1;
      }
      check(fits, "size {", to_string(size), "} is not expandable to size {", self.sym_sizes(), "}.");
      return size.empty() ? self.sum()
                          : sym::with_noted_copy(self, ops::sum_to_size(self, size), sym::CopyIs::Reshaped);
    });

// ---- several tensors as one row, as data parallel training sends gradients ----

UMBRA_OPERATOR("flatten_dense_tensors(Tensor[] tensors) -> Tensor").composite([](TensorList tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) rows.push_back(t.contiguous().view({-1}));
  return rows.size() == 1 ? rows[0] : cat(rows);
});
UMBRA_OPERATOR("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]")
    .composite([](const Tensor& flat, TensorList tensors) {
      std::vector<Tensor> out;
      SymInt start = 0;
      for (const Tensor& t : tensors) {
        SymInt count = t.sym_numel();
        // An empty tensor has no place in the row; memory of its own keeps tensors apart.
        out.push_back(count == 0 ? empty(t.sym_sizes(), flat.options())
                                 : flat.narrow(0, start, count).view(t.sym_sizes()));
        start += count;
      }
      return out;
    });

}  // namespace
}  // namespace umbra::ops
