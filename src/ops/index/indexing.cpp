// Advanced indexing: x[i, j], x[mask], and writes by them.
#include <algorithm>
#include <utility>

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/functors/comparison.h"
#include "kernels/index.h"
#include "kernels/masks.h"
#include "kernels/run_functor.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/index/fill_mask.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

bool is_mask(const Tensor& index) { return index.dtype() == DType::Bool || index.dtype() == DType::UInt8; }

void check_mask(const Tensor& self, const Tensor& mask, int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    int64_t at = first + d;
    if (at >= self.dim() || !expect_equal(mask.sym_sizes()[d], self.sym_sizes()[at]))
      fail<IndexError>("The shape of the mask ", mask.sym_sizes(), " at index ", d,
                       " does not match the shape of the indexed tensor ", self.sym_sizes(), " at index ", at);
  }
}

// Masks become the positions where they hold, one index for each of their dimensions.
std::vector<Tensor> positions(const Tensor& self, TensorList indices) {
  std::vector<Tensor> out;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      out.push_back(index);
      continue;
    }
    bool mask = is_mask(index);
    bool fits = mask || index.dtype() == DType::Int64 || index.dtype() == DType::Int32;
    const char* refusal = "tensors used as indices must be long, int, byte or bool tensors";
    check(fits || !only_metadata_is_asked(), refusal);
    check<IndexError>(fits, refusal);
    if (!mask) {
      out.push_back(index.dtype() == DType::Int64 ? index : index.to(DType::Int64));
      continue;
    }
    check_mask(self, index, static_cast<int64_t>(out.size()));
    Tensor rows = index.nonzero();
    for (int64_t d = 0; d < index.dim(); ++d) out.push_back(rows.select(1, d));
  }
  bool fits = static_cast<int64_t>(out.size()) <= self.dim();
  check(fits || !only_metadata_is_asked(), "too many indices for tensor of dimension ", self.dim(), " (got ",
        out.size(), ")");
  check<IndexError>(fits, "too many indices for tensor of dimension ", self.dim());
  return out;
}

// Where the dimensions that the indices bring stand in the result: in the place of the indexed ones if those are
// adjacent, else in front.
struct IndexPlace {
  size_t first = 0, count = 0;
  bool adjacent = true;

  explicit IndexPlace(const std::vector<Tensor>& indices) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!indices[i].defined()) continue;
      if (count == 0) first = i;
      adjacent &= i == first + count;
      ++count;
    }
  }
  size_t at() const { return adjacent ? first : 0; }
};

SymShape broadcast_index_shape(const std::vector<Tensor>& indices) {
  SymShape shape;
  try {
    for (const Tensor& index : indices)
      if (index.defined()) shape = broadcast_shapes(shape, index.sym_sizes());
  } catch (const GuardOnDataDependentSymNode&) {
    throw;
  } catch (const Error&) {
    std::string shapes;
    for (const Tensor& t : indices)
      if (t.defined()) shapes += (shapes.empty() ? "" : ", ") + to_string(t.sym_sizes());
    fail<IndexError>("shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
  }
  return shape;
}

/// What is kept of the sizes or strides of the indexed tensor, with `brought` in the place of the indexed dimensions.
SymShape with_brought(SymIntArrayRef values, const std::vector<Tensor>& indices, const IndexPlace& place,
                      SymIntArrayRef brought) {
  SymShape out;
  for (size_t d = 0; d < values.size(); ++d)
    if (d >= indices.size() || !indices[d].defined()) out.push_back(values[d]);
  for (size_t i = 0; i < brought.size(); ++i) out.insert(place.at() + i, brought[i]);
  return out;
}

SymShape indexed_shape(const Tensor& self, const std::vector<Tensor>& indices) {
  return with_brought(self.sym_sizes(), indices, IndexPlace(indices), broadcast_index_shape(indices));
}

// The memory order of the result: that of `self` for the dimensions that stay, that of the indices for those they
// bring.
SymShape indexed_strides(const Tensor& self, const std::vector<Tensor>& indices, SymIntArrayRef shape) {
  IndexPlace place(indices);
  SymShape brought = broadcast_index_shape(indices), none(brought.size(), 0);
  std::vector<SymShape> layouts{with_brought(self.sym_strides(), indices, place, none)};
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    SymShape own = expanded_strides(index.sym_sizes(), index.sym_strides(), brought), sizes(shape.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) sizes[place.at() + i] = brought[i];
    // Over the dimensions that stay an index is one element long. Where the result is so too, its stride counts.
    SymShape strides = view_strides(brought, own, sizes).value_or(SymShape(shape.size(), 0));
    for (size_t d = 0; d < shape.size(); ++d) {
      bool stays = d < place.at() || d >= place.at() + brought.size();
      if (stays && !known_equal(shape[d], 1)) strides[d] = 0;
    }
    layouts.push_back(std::move(strides));
  }
  return dense_strides_like(shape, layouts);
}

void warn_of_bytes(TensorList indices) {
  for (const Tensor& index : indices)
    if (index.defined() && index.dtype() == DType::UInt8 && !index.is_meta())
      warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
}

// Whether a dimension of one element has another stride than it would have in a fresh tensor: such strides are passed
// on.
bool has_odd_stride(const Tensor& t) {
  SymInt dense = 1;
  for (int64_t d = t.dim(); d-- > 0;) {
    SymInt size = t.sym_sizes()[d], stride = t.sym_strides()[d];
    if (size.same(1) && !stride.is_symbolic() && !stride.same(dense)) return true;
    dense = dense * size;
  }
  return false;
}

TensorSpec index_spec(const Tensor& self, TensorList indices) {
  warn_of_bytes(indices);
  std::vector<Tensor> at = positions(self, indices);
  SymShape shape = indexed_shape(self, at);
  bool contiguous = self.is_contiguous() && !has_odd_stride(self);
  for (const Tensor& index : at)
    contiguous = contiguous && (!index.defined() || index.dim() <= 1 || index.is_contiguous());
  SymShape strides = contiguous ? contiguous_strides(shape) : indexed_strides(self, at, shape);
  return TensorSpec(shape, strides, self.dtype(), self.device());
}
bool any_dimension_is_indexed(TensorList indices) {
  return std::any_of(indices.begin(), indices.end(), [](const Tensor& index) { return index.defined(); });
}
/// The kernels move elements by at least one index.
void check_any_index(const Tensor& moved, TensorList indices) {
  check(any_dimension_is_indexed(indices) || moved.numel() == 0,
        "ntensor >= 3 INTERNAL ASSERT FAILED: no dimension is indexed");
}

void run_index(const Tensor& out, const Tensor& self, TensorList indices) {
  check_any_index(out, indices);
  bool whole_mask =
      indices.size() == 1 && indices[0].defined() && indices[0].dim() == self.dim() && is_mask(indices[0]);
  if (whole_mask && self.dim() > 0) return kernels::masked_select(out, self, indices[0]);
  kernels::index(out, self, positions(self, indices));
}

Tensor index_gradient(const Tensor& grad, SymIntArrayRef sizes, std::vector<Tensor> indices) {
  return index_put(grad.new_zeros(sizes), indices, grad, true);
}

// ---- under vmap ----

/// Indices of a call, some of which differ from one element of the batch to the next.
struct BatchedIndices {
  std::vector<Batched> items;
  std::vector<Tensor> seen;  // as the function under vmap sees them
  bool mapped = false;
  int64_t rank = 0;  // of the dimensions that they bring

  explicit BatchedIndices(const std::vector<Batched>& given) {
    for (const Batched& index : given) {
      bool mask = index.defined() && is_mask(index.value);
      check(!mask || !index.is_batched(),
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
            "indexing with a boolean mask.");
      if (mask) {
        Tensor rows = index.value.nonzero();
        for (int64_t d = 0; d < index.value.dim(); ++d) add({rows.select(1, d), -1});
      } else {
        add(index.defined() ? Batched(index.value.to(DType::Int64), index.dim) : index);
      }
    }
  }
  void add(Batched index) {
    if (index.defined()) rank = std::max(rank, index.rank());
    mapped = mapped || index.is_batched();
    seen.push_back(index.wrap());
    items.push_back(std::move(index));
  }
  /// The indices behind `first`, which is for the batch dimension.
  std::vector<Tensor> behind(const Tensor& first) const {
    std::vector<Tensor> out{first};
    for (const Tensor& t : alone()) out.push_back(t);
    return out;
  }
  std::vector<Tensor> alone() const {
    std::vector<Tensor> out;
    for (const Batched& index : items) out.push_back(index.defined() ? batch_first(index, rank) : Tensor());
    return out;
  }
  /// Each element of the batch by itself.
  Tensor batch_index(const Tensor& self) const {
    SymShape sizes(static_cast<size_t>(rank) + 1, 1);
    sizes[0] = batch_scope().size;
    return arange(Scalar(batch_scope().size), {.dtype = DType::Int64, .device = self.device()}).view(sizes);
  }
  /// From [batch, brought, rest] to where the brought dimensions belong, and back.
  Tensor move_brought(const Tensor& t, bool back) const {
    IndexPlace place(seen);
    if (place.at() == 0 || rank == 0) return t;
    std::vector<int64_t> front, home;
    for (int64_t d = 0; d < rank; ++d) {
      front.push_back(1 + d);
      home.push_back(1 + static_cast<int64_t>(place.at()) + d);
    }
    return back ? t.movedim(home, front) : t.movedim(front, home);
  }
};

template <class F> Batched batch_index(const Batched& self, const std::vector<Batched>& given, F call) {
  BatchedIndices indices(given);
  IndexPlace place(indices.seen);
  if (!indices.mapped) {
    Tensor out = call(batch_first(self), indices.behind(Tensor()));
    return {out, place.adjacent ? 0 : indices.rank};
  }
  if (!self.is_batched()) return {call(self.value, indices.alone()), static_cast<int64_t>(place.at())};
  Tensor out = call(batch_first(self), indices.behind(indices.batch_index(self.value)));
  return {indices.move_brought(out, false), 0};
}

template <class F>
Batched batch_index_put(const Batched& self, const std::vector<Batched>& given, const Batched& values, F call) {
  BatchedIndices indices(given);
  IndexPlace place(indices.seen);
  SymShape shape = with_brought(self.wrap().sym_sizes(), indices.seen, place, broadcast_index_shape(indices.seen));
  Tensor terms = batch_first(values, static_cast<int64_t>(shape.size())).expand(batch_sizes(shape));
  if (indices.mapped)
    return {call(batch_all(self), indices.behind(indices.batch_index(self.value)), indices.move_brought(terms, true)),
            0};
  if (!place.adjacent) terms = terms.movedim(0, indices.rank);
  return {call(batch_all(self), indices.behind(Tensor()), terms), 0};
}

UMBRA_OPERATOR("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
    .out("index.Tensor_out")
    .use(out_asks("index.Tensor_out",
                  [](const Tensor& self, TensorList indices, const Tensor& out) {
                    check<IndexError>(!indices.empty(), "at least one index must be provided");
                    check<IndexError>(static_cast<int64_t>(indices.size()) <= self.dim(),
                                      "too many indices for tensor of dimension ", self.dim(), " (got ", indices.size(),
                                      ")");
                    check(self.dtype() == out.dtype(), "index_out: self (", kernel_name(self.dtype()), ") and result (",
                          kernel_name(out.dtype()), ") must have the same scalar type");
                  }))
    .meta([](const Tensor& self, TensorList indices) {
      check(!self.is_meta() || !indices.empty(), "at least one index must be provided");
      check<IndexError>(!indices.empty(), "at least one index must be provided");
      return index_spec(self, indices);
    })
    .cpu(run_index)
    .gradient("self", {"grad", "self.sym_sizes", "indices"}, index_gradient)
    .tags({Tag::Core})
    .batch([](const Batched& self, const std::vector<Batched>& indices) {
      return batch_index(self, indices, [](const Tensor& t, TensorList at) { return index(t, at); });
    });

void check_unsafe(const char* name, TensorList indices, bool masks) {
  check(!indices.empty() || !only_metadata_is_asked(), "at least one index must be provided");
  check<IndexError>(!indices.empty(), "at least one index must be provided");
  for (const Tensor& index : indices)
    check(!index.defined() || index.dtype() == DType::Int64 || index.dtype() == DType::Int32 ||
              (masks && index.dtype() == DType::Bool),
          name, " found unexpected index type ", index.defined() ? kernel_name(index.dtype()) : "");
}

UMBRA_OPERATOR("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
    .meta([](const Tensor& self, TensorList indices) {
      check_unsafe("_unsafe_index", indices, true);
      return index_spec(self, indices);
    })
    .cpu(run_index)
    .gradient("self", {"grad", "self.sym_sizes", "indices"}, index_gradient)
    .batch([](const Batched& self, const std::vector<Batched>& indices) {
      return batch_index(self, indices, [](const Tensor& t, TensorList at) { return _unsafe_index(t, at); });
    });

void check_same_type(const Tensor& self, const Tensor& values) {
  check(self.dtype() == values.dtype(), "Index put requires the source and destination dtypes match, got ",
        kernel_name(self.dtype()), " for the destination and ", kernel_name(values.dtype()), " for the source.");
}

// One value that goes to where one mask holds is a masked_fill_, whatever the value's type: the place of the mask among
// the indices. None for other writes.
std::optional<size_t> place_of_fill(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  if (accumulate || !known_equal(values.sym_numel(), 1)) return {};
  std::optional<size_t> place;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    if (place || !is_mask(indices[i]) || indices[i].device() != self.device()) return {};
    place = i;
  }
  if (place) check_mask(self, indices[*place], static_cast<int64_t>(*place));
  return place;
}

// A mask that begins at a dimension of self, with ones for those behind it.
Tensor mask_over(const Tensor& self, const Tensor& mask, size_t place) {
  SymShape sizes(mask.sym_sizes()), strides(mask.sym_strides());
  for (int64_t d = static_cast<int64_t>(place) + mask.dim(); d < self.dim(); ++d) {
    sizes.push_back(1);
    strides.push_back(0);
  }
  return alias_tensor(mask, sizes, strides, mask.storage_offset());
}

TensorSpec index_put_spec(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  if (only_metadata_is_asked()) return spec_like(self);
  check<IndexError>(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices.size(), ")");
  check(known_equal(self.sym_numel(), 0) || any_dimension_is_indexed(indices), "at least one index must be provided");
  if (std::optional<size_t> place = place_of_fill(self, indices, values, accumulate)) {
    check_fill_by_mask(self, indices[*place]);
    return spec_like(self);
  }
  warn_of_bytes(indices);
  // Indices may be on another device, values may not.
  check(values.dim() == 0 || values.device() == self.device(), "Mismatching index_put device between self (",
        self.device(), ") and values (", values.device(), ")");
  // How many elements a mask picks is not known without its data, and the result does not depend on it.
  for (const Tensor& index : indices)
    if (index.defined() && is_mask(index) && !index.storage()->has_data()) {
      check_same_type(self, values);
      return spec_like(self);
    }
  SymShape shape = indexed_shape(self, positions(self, indices));
  SymIntArrayRef have = values.sym_sizes();
  bool fits = have.size() <= shape.size();
  for (size_t i = 0; fits && i < have.size(); ++i) {
    SymInt want = shape[shape.size() - 1 - i], got = have[have.size() - 1 - i];
    fits = equal_or(got, 1, false) || expect_equal(got, want);
  }
  if (!fits)
    fail("shape mismatch: value tensor of shape ", to_string(have), " cannot be broadcast to indexing result of shape ",
         to_string(shape));
  check_same_type(self, values);
  return spec_like(self);
}
void run_index_put(const Tensor& out, const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  if (overlaps_itself(out))
    warn("Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this ",
         "operation. This also applies to advanced indexing e.g. tensor[indices] = tensor");
  if (std::optional<size_t> place = place_of_fill(self, indices, values, accumulate)) {
    const Tensor mask = mask_over(self, indices[*place], *place);
    const Scalar value = values.item();
    kernels::check_fits(value, self.dtype());
    return kernels::pointwise(functors::MaskedFill{.value = value}, out, {&self, &mask});
  }
  if (!out.is_same(self)) kernels::copy(out, self);
  kernels::index_put(out, positions(self, indices), values, accumulate);
}

Tensor index_put_gradient(const Tensor& grad, std::vector<Tensor> indices, const Tensor& values, bool accumulate) {
  return accumulate ? grad : index_put(grad, indices, zeros_like(values), false);
}

Batched batched_index_put(const Batched& self, const std::vector<Batched>& indices, const Batched& values,
                          bool accumulate) {
  return batch_index_put(self, indices, values, [&](const Tensor& t, TensorList at, const Tensor& v) {
    return index_put(t, at, v, accumulate);
  });
}

UMBRA_OPERATOR("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
    .generated_out("index_put.out")
    .inplace("index_put_")
    .meta(index_put_spec)
    .cpu(run_index_put)
    .elementwise()  // a write in place touches nothing that it reads
    .writes_straight()
    .gradient("self", {"grad", "indices", "values", "accumulate"}, index_put_gradient)
    .gradient("values", {"grad", "indices"},
              [](const Tensor& grad, TensorList indices) { return index(grad, indices); })
    .linear()
    .tags({Tag::WritesOverlapping, Tag::Core})
    .batch(batched_index_put);

UMBRA_OPERATOR("_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
    .meta(index_put_spec)
    .cpu(run_index_put)
    .gradient("self", {"grad", "indices", "values", "accumulate"},
              [](const Tensor& grad, std::vector<Tensor> indices, const Tensor& values, bool accumulate) {
                return accumulate ? grad : _unsafe_index_put(grad, indices, zeros_like(values), false);
              })
    .gradient("values", {"grad", "indices"},
              [](const Tensor& grad, TensorList indices) { return _unsafe_index(grad, indices); })
    .linear()
    .batch([](const Batched& self, const std::vector<Batched>& indices, const Batched& values, bool accumulate) {
      return batch_index_put(self, indices, values, [&](const Tensor& t, TensorList at, const Tensor& v) {
        return _unsafe_index_put(t, at, v, accumulate);
      });
    });

UMBRA_OPERATOR(
    "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> "
    "Tensor")
    .inplace("_index_put_impl_")
    .generated_out("_index_put_impl.out")
    .meta([](const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool) {
      if (!only_metadata_is_asked()) return index_put_spec(self, indices, values, accumulate);
      check<NotImplementedError>(self.is_meta(), "Cannot inplace into non-meta tensor with meta tensor argument");
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool) {
      run_index_put(out, self, indices, values, accumulate);
    })
    .elementwise()
    .gradient("self", {"grad", "indices", "values", "accumulate"}, index_put_gradient)
    .gradient("values", {"grad", "indices"},
              [](const Tensor& grad, TensorList indices) { return index(grad, indices); })
    .linear()
    .tags({Tag::WritesOverlapping, Tag::Generated})
    .batch([](const Batched& self, const std::vector<Batched>& indices, const Batched& values, bool accumulate, bool) {
      return batched_index_put(self, indices, values, accumulate);
    });

// ---- where a mask holds; elsewhere positions may lie outside ----

std::vector<Tensor> clamped(const Tensor& self, TensorList indices) {
  std::vector<Tensor> out;
  for (size_t d = 0; d < indices.size(); ++d)
    out.push_back(indices[d].defined() ? indices[d].clamp(Scalar(-self.sym_size(static_cast<int64_t>(d))),
                                                          Scalar(self.sym_size(static_cast<int64_t>(d)) - 1))
                                       : Tensor());
  return out;
}
/// Where a tensor is on the meta device, types are asked for before all else, the mask's as well.
void check_masked(std::initializer_list<const Tensor*> tensors, const Tensor& mask, TensorList indices) {
  auto on_meta = [](const Tensor& t) { return t.defined() && t.is_meta(); };
  bool any = on_meta(mask) || std::any_of(indices.begin(), indices.end(), on_meta);
  for (const Tensor* t : tensors) any |= on_meta(*t);
  if (!any) return;
  for (const Tensor& index : indices)
    check(!index.defined() || index.dtype() == DType::Int64 || index.dtype() == DType::Int32,
          "tensors used as indices must be long or int tensors");
  check(mask.dtype() == DType::Bool, "tensors used as masks must be bool tensors");
}
Tensor masked_index(const Tensor& self, const Tensor& mask, TensorList indices, const Scalar& fill) {
  check_masked({&self}, mask, indices);
  check_unsafe("_unsafe_masked_index", indices, false);
  if (self.sym_numel() == 0) {
    // Nothing to read: the fill in the shape that the indices span; what they leave alone stays as long as it is, and
    // what they do not speak of has no elements.
    SymShape sizes(self.sym_sizes());
    for (size_t d = indices.size(); d < sizes.size(); ++d) sizes[d] = 0;
    for (size_t d = 0; d < indices.size() && d < sizes.size(); ++d)
      if (indices[d].defined()) sizes[d] = 1;
    Tensor one = self.new_full(sizes, fill);
    return _unsafe_index(one, clamped(one, indices));
  }
  return _unsafe_index(self, clamped(self, indices)).masked_fill(mask.logical_not(), fill);
}
Tensor masked_index_put(const Tensor& self, const Tensor& mask, TensorList indices, const Tensor& values) {
  check_masked({&self, &values}, mask, indices);
  if (self.sym_numel() == 0) return self.clone();
  if (!indices.empty()) check_unsafe("_unsafe_masked_index", indices, false);
  Tensor chosen = values.masked_fill(mask.logical_not(), Scalar(0));
  return _unsafe_index_put(self, clamped(self, indices), chosen, true);
}

UMBRA_OPERATOR("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor")
    .all_backends(masked_index)
    .gradient("self", {"grad", "self.sym_sizes", "mask", "indices"},
              [](const Tensor& grad, SymIntArrayRef sizes, const Tensor& mask, std::vector<Tensor> indices) {
                return _unsafe_masked_index_put_accumulate(grad.new_zeros(sizes), mask, indices, grad);
              })
    .use(batch_through(masked_index));
UMBRA_OPERATOR(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor")
    .all_backends(masked_index_put)
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .gradient("values", {"grad", "mask", "indices"},
              [](const Tensor& grad, const Tensor& mask, std::vector<Tensor> indices) {
                return _unsafe_masked_index(grad, mask, indices, Scalar(0));
              })
    .use(batch_through(masked_index_put));

}  // namespace
}  // namespace umbra::ops
