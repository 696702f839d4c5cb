// Views of a part of a tensor: select, slice, narrow, split, unbind, diagonal, as_strided; and the operators that undo
// them in a backward pass.
#include "dispatch/data_dependent.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// ---- one index ----

Tensor select_index(const Tensor& self, int64_t dim, SymInt index) {
  check<IndexError>(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  int64_t at = wrap_dim(dim, self.dim());
  SymInt size = self.sym_sizes()[at];
  SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
  SymInt offset;
  if (is_open(index, 0)) {  // whether it counts from the end, and thereby the place, only the run will tell
    offset = unknown_size("aten::select.int", INT64_MAX);
  } else {
    if (!expect_at_most(-size, index) || !expect_less(index, size))
      fail<IndexError>("select(): index ", index, " out of range for tensor of size ", to_string(self.sym_sizes()),
                       " at dimension ", at);
    offset = self.sym_storage_offset() + (index < 0 ? index + size : index) * strides[at];
  }
  sizes.erase(at);
  strides.erase(at);
  return alias_tensor(self, sizes, strides, offset);
}

UMBRA_OPERATOR("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
    .view(select_index)
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, int64_t dim, SymInt index) {
      return select_scatter(base, written, dim, index);
    })
    .gradient("self", {"grad", "self.sym_sizes", "dim", "index"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, SymInt index) {
                return select_backward(grad, sizes, dim, index);
              })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR("select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor")
    .generated_out("select_backward.out")
    .all_backends([](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, SymInt index) {
      Tensor out = grad.new_zeros(sizes);
      out.select(dim, index).copy_(grad);
      return out;
    })
    .gradient("grad_output", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, SymInt index) { return grad.select(dim, index); })
    .linear()
    .batch([](const Batched& grad, SymIntArrayRef sizes, int64_t dim, SymInt index) {
      int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size())) + 1;
      return Batched(select_backward(batch_first(grad), batch_sizes(sizes), at, index), 0);
    });

// ---- a range ----

struct Range {
  SymInt start, length;
};

// Bounds as Python's slices have them: negative ones count from the end, all are clamped.
Range clamp_range(SymInt size, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
  check(step > 0, "slice step must be positive");
  auto place = [&](SymInt v) {
    if (v.same(0)) return v;
    if (v.same(size)) return size;
    if (!v.is_symbolic() && v.value() >= (int64_t{1} << 62)) return size;
    if (v < 0) v = v + size;
    if (v < 0) return SymInt(0);
    return v > size ? size : v;
  };
  SymInt from = start ? place(*start) : SymInt(0), to = end ? place(*end) : size;
  if (!from.same(0) && to < from) to = from;
  SymInt span = to - from;
  return {from, step.same(1) || span.same(0) ? span : (span - 1) / step + 1};
}

// Whether only the run will tell what a bound of a slice is clamped to.
bool is_open_bound(SymInt bound, SymInt size) {
  if (bound.has_hint() && size.has_hint()) return false;
  if (bound.same(0) || bound.same(size) || (!bound.is_symbolic() && bound.value() >= (int64_t{1} << 62))) return false;
  if (sym_lt(bound, 0).known_true()) return is_open(bound + size, 0);  // counted from an end that is not known
  return is_open(bound, 0) || is_open(size, bound);
}

Tensor slice_range(const Tensor& self, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end,
                   SymInt step) {
  check<IndexError>(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  int64_t at = wrap_dim(dim, self.dim());
  SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
  SymInt size = sizes[at], offset = self.sym_storage_offset();
  bool open_start = start && is_open_bound(*start, size), open_end = end && is_open_bound(*end, size);
  if (open_start || open_end || (start && end && is_open(*end, *start))) {
    sizes[at] = unknown_size("aten::slice.Tensor", size);
    if (open_start) offset = unknown_size("aten::slice.Tensor", INT64_MAX);
    else if (start) offset = offset + clamp_range(size, start, std::nullopt, 1).start * strides[at];
  } else {
    Range range = clamp_range(size, start, end, step);
    offset = offset + range.start * strides[at];
    sizes[at] = range.length;
  }
  strides[at] *= step;
  return alias_tensor(self, sizes, strides, offset);
}

UMBRA_OPERATOR(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)")
    .view(slice_range)
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, int64_t dim, std::optional<SymInt> start,
                     std::optional<SymInt> end,
                     SymInt step) { return slice_scatter(base, written, dim, start, end, step); })
    .gradient("self", {"grad", "self.sym_sizes", "dim", "start", "end", "step"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, std::optional<SymInt> start,
                 std::optional<SymInt> end, SymInt step) {
                return slice_backward(grad, sizes, dim, start.value_or(0), end.value_or(SymInt(INT64_MAX)), step);
              })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> "
    "Tensor")
    .generated_out("slice_backward.out")
    .all_backends([](const Tensor& grad, SymIntArrayRef sizes, int64_t dim, SymInt start, SymInt end, SymInt step) {
      Tensor out = grad.new_zeros(sizes);
      slice(out, dim, start, end, step).copy_(grad);
      return out;
    })
    .gradient("grad_output", {"grad", "dim", "start", "end", "step"},
              [](const Tensor& grad, int64_t dim, SymInt start, SymInt end, SymInt step) {
                return slice(grad, dim, start, end, step);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}, .sizes = {"input_sizes"}});

UMBRA_OPERATOR("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
    .composite([](const Tensor& self, int64_t dim, SymInt start, SymInt length) {
      check(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
      check(expect_at_most(0, length), "narrow(): length must be non-negative.");
      SymInt size = self.sym_size(dim);
      check<IndexError>(expect_at_most(-size, start) && expect_at_most(start, size),
                        "start out of range (expected to be in range of [", -size, ", ", size, "], but got ", start,
                        ")");
      if (start < 0) start = start + size;
      check(expect_at_most(length, size - start), "start (", start, ") + length (", length,
            ") exceeds dimension size (", size, ").");
      return slice(self, dim, start, start + length, 1);
    });

UMBRA_OPERATOR("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)")
    .composite([](const Tensor& self, int64_t dim, const Tensor& start, SymInt length) {
      check(start.dim() == 0 && is_integral(start.dtype(), false), "start must be an 0-dim integral Tensor.");
      return self.narrow(dim, start.item().to_sym_int(), length);
    });

// What a slice was taken of, found by strides: `self` is the slice, and its memory is that of `src`.
UMBRA_OPERATOR(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor(a)")
    .view([](const Tensor& self, const Tensor& src, int64_t, std::optional<SymInt>, std::optional<SymInt>, SymInt) {
      SymInt offset = src.sym_storage_offset();
      SymInt need = storage_bytes(src.sym_sizes(), src.sym_strides(), offset, self.item_size());
      SymInt have = self.storage()->bytes();
      check(need.is_symbolic() || have.is_symbolic() || need <= have, "setStorage: sizes ", to_string(src.sym_sizes()),
            ", strides ", to_string(src.sym_strides()), ", storage offset ", offset, ", and itemsize ",
            self.item_size(), " requiring a storage size of ", need, " are out of bounds for storage of size ", have);
      return alias_tensor(self, src.sym_sizes(), src.sym_strides(), offset);
    })
    .gradient("self", {"grad", "dim", "start", "end", "step"},
              [](const Tensor& grad, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
                return slice(grad, dim, start, end, step);
              })
    .linear();

// ---- several parts ----

[[noreturn]] void fail_split(const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
  fail("split_with_sizes expects split_sizes to sum exactly to ", self.sym_sizes()[dim],
       " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
}

std::vector<Tensor> split_sizes(const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
  check(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  int64_t at = wrap_dim(dim, self.dim());
  SymInt start = 0;
  std::vector<Tensor> parts;
  for (SymInt length : sizes) {
    check(expect_at_most(0, length),
          "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", sizes);
    if (!length.is_symbolic() && !self.is_symbolic() && length > self.sym_sizes()[at] - start)
      fail_split(self, sizes, at);
    SymShape shape(self.sym_sizes());
    shape[at] = length;
    parts.push_back(
        alias_tensor(self, shape, self.sym_strides(), self.sym_storage_offset() + start * self.sym_strides()[at]));
    start += length;
  }
  if (!expect_equal(start, self.sym_sizes()[at])) fail_split(self, sizes, at);
  return parts;
}

SymShape even_parts(SymInt size, SymInt split) {
  check(split >= 0, "split expects split_size be non-negative, but got split_size=", split);
  check(split > 0 || size == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  if (split == 0) return SymShape{0};
  int64_t count = std::max<int64_t>(((size + split - 1) / split).guard_int(), 1);
  SymShape sizes(count, split);
  sizes[count - 1] = size - split * (count - 1);
  return sizes;
}

// Joins the gradients of parts; absent ones are zeros of their part's shape.
Tensor join_parts(TensorList grads, SymIntArrayRef part_sizes, int64_t dim, SymIntArrayRef sizes) {
  Tensor any;
  for (const Tensor& g : grads)
    if (g.defined()) any = g;
  int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  std::vector<Tensor> whole;
  for (size_t i = 0; i < grads.size(); ++i) {
    SymShape shape(sizes);
    shape[at] = part_sizes[i];
    whole.push_back(grads[i].defined() ? grads[i] : any.new_zeros(shape));
  }
  return cat(whole, at);
}

UMBRA_OPERATOR("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
    .view([](const Tensor& self, SymInt split, int64_t dim) {
      check(self.dim() > 0, "split expects at least a 1-dimensional tensor");
      return split_sizes(self, even_parts(self.sym_size(dim), split), dim);
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t which, SymInt split, int64_t dim) {
      SymInt start = split * which;
      return slice_scatter(base, written, dim, start, start + written.sym_size(dim), 1);
    })
    .gradient("self", {"grad", "split_size", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, SymInt split, int64_t dim, SymIntArrayRef sizes) {
                int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
                return join_parts(grads, even_parts(sizes[at], split), dim, sizes);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
    .view(split_sizes)
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t which, std::vector<SymInt> sizes, int64_t dim) {
      SymInt start = 0;
      for (int64_t i = 0; i < which; ++i) start += sizes[i];
      return slice_scatter(base, written, dim, start, start + sizes[which], 1);
    })
    .gradient("self", {"grad", "split_sizes", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, std::vector<SymInt> parts, int64_t dim, SymIntArrayRef sizes) {
                return join_parts(grads, parts, dim, sizes);
              })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}});

// The same memory, but no views: whoever calls these promises that no write to one part is seen in another. Each counts
// its own changes, so that one may be written while autograd keeps the others.
std::vector<Tensor> parts_apart(std::vector<Tensor> parts) {
  for (const Tensor& part : parts) part.impl()->set_version_counter(make_counted<VersionCounter>());
  return parts;
}

UMBRA_OPERATOR("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, SymInt split, int64_t dim) {
      check(self.dim() > 0, "split expects at least a 1-dimensional tensor");
      return parts_apart(split_sizes(self, even_parts(self.sym_size(dim), split), dim));
    })
    .gradient("self", {"grad", "split_size", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, SymInt split, int64_t dim, SymIntArrayRef sizes) {
                int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
                return join_parts(grads, even_parts(sizes[at], split), dim, sizes);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}});
UMBRA_OPERATOR("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, std::vector<SymInt> sizes, int64_t dim) {
      return parts_apart(split_sizes(self, sizes, dim));
    })
    .gradient("self", {"grad", "split_sizes", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, std::vector<SymInt> parts, int64_t dim, SymIntArrayRef sizes) {
                return join_parts(grads, parts, dim, sizes);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
    .composite([](const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
      return split_with_sizes(self, sizes, dim);
    });

/// The length of all parts but the last.
SymInt chunk_length(const Tensor& self, int64_t chunks, int64_t dim) {
  check(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  SymInt size = self.sym_size(dim);
  return size.same(0) ? size : (size - 1) / chunks + 1;
}

UMBRA_OPERATOR("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
    .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
      SymInt split = chunk_length(self, chunks, dim);
      if (split == 0) return split_with_sizes(self, SymShape(chunks, split), dim);
      return umbra::split(self, split, dim);
    });
UMBRA_OPERATOR("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
    .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
      SymInt split = chunk_length(self, chunks, dim);
      if (split == 0) return unsafe_split_with_sizes(self, SymShape(chunks, split), dim);
      return unsafe_split(self, split, dim);
    })
    .tags({Tag::MaybeAliasingOrMutating});

UMBRA_OPERATOR("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
    .view([](const Tensor& self, int64_t dim) {
      int64_t at = wrap_dim(dim, self.dim(), false);
      std::vector<Tensor> parts;
      for (int64_t i = 0, n = self.sym_sizes()[at].guard_int(); i < n; ++i) parts.push_back(select_index(self, at, i));
      return parts;
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t which, int64_t dim) {
      return select_scatter(base, written, dim, which);
    })
    .gradient("self", {"grad", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, int64_t dim, SymIntArrayRef sizes) {
                Tensor any;
                for (const Tensor& g : grads)
                  if (g.defined()) any = g;
                for (Tensor& g : grads)
                  if (!g.defined()) g = zeros_like(any);
                (void)sizes;
                return stack(grads, dim);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}});

// ---- by strides ----

/// Whether two elements of the geometry may lie at the same place.
bool may_overlap(SymIntArrayRef sizes, SymIntArrayRef strides) {
  SmallVector<int, 6> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) order.push_back(static_cast<int>(d));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] < strides[b]; });
  SymInt reach = 0;
  for (int d : order) {
    if (strides[d] <= reach) return true;
    reach += strides[d] * (sizes[d] - 1);
  }
  return false;
}

// The input's memory, laid out flat; what the view reads takes the gradient. Elements read twice add up.
Tensor as_strided_backward(const Tensor& grad, std::vector<SymInt> input_size, std::vector<SymInt> input_stride,
                           SymInt base, std::vector<SymInt> size, std::vector<SymInt> stride,
                           std::optional<SymInt> offset) {
  SymInt at = offset.value_or(base), from = sym_min(base, at);
  SymInt input_span = storage_bytes(input_size, input_stride, base - from, 1);
  SymInt view_span = storage_bytes(size, stride, at - from, 1);
  Tensor flat = grad.new_zeros({sym_max(input_span, view_span)});
  if (!may_overlap(size, stride)) {
    as_strided(flat, size, stride, at - from).copy_(grad);
  } else {
    Tensor positions = arange(Scalar(flat.sym_numel()), {.dtype = DType::Int64, .device = grad.device()});
    Tensor places = as_strided(positions, size, stride, at - from).reshape({-1});
    flat = index_add(flat, 0, places, grad.reshape({-1}));
  }
  return as_strided(flat, input_size, input_stride, base - from);
}

UMBRA_OPERATOR("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
    .inplace("as_strided_")
    .on_inplace([](OperatorBuilder& variant) { variant.node("AsStridedBackward1"); })
    .view([](const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride, std::optional<SymInt> offset) {
      check(size.size() == stride.size(), "mismatch in length of strides and shape");
      for (SymInt s : size)
        if (!s.is_symbolic() && s.value() < 0)
          fail("Trying to create tensor with negative dimension ", s, ": ", to_string(size));
      for (SymInt s : stride)
        if (!s.is_symbolic() && s.value() < 0)
          fail("as_strided: Negative strides are not supported at the moment, got strides: ", to_string(stride));
      SymInt at = offset.value_or(self.sym_storage_offset());
      check(at.is_symbolic() || at.value() >= 0, "Tensor: invalid storage offset ", at);
      SymInt need = storage_bytes(size, stride, at, self.item_size()), have = self.storage()->bytes();
      if (!need.is_symbolic() && !have.is_symbolic() && need.value() > have.value())
        fail("setStorage: sizes ", to_string(size), ", strides ", to_string(stride), ", storage offset ", at,
             ", and itemsize ", self.item_size(), " requiring a storage size of ", need,
             " are out of bounds for storage of size ", have);
      return alias_tensor(self, size, stride, at);
    })
    .gradient("self",
              {"grad", "self.sym_sizes", "self.sym_strides", "self.sym_storage_offset", "size", "stride",
               "storage_offset"},
              as_strided_backward)
    .linear()
    .tags({Tag::Core, Tag::AddressesMemory})
    .batch([](const Batched& self, SymIntArrayRef size, SymIntArrayRef stride, std::optional<SymInt> offset) {
      // A batched tensor shows the strides that its value has, so the same steps apply to each element of the batch.
      SymShape strides{self.value.sym_strides()[self.dim]};
      for (SymInt s : stride) strides.push_back(s);
      return Batched(as_strided(self.value, batch_sizes(size), strides, offset), 0);
    });

UMBRA_OPERATOR("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
    .view([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
      int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
      check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
      SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
      SymInt rows = sizes[a], columns = sizes[b];
      SymInt length =
          offset >= 0 ? sym_max(sym_min(rows, columns - offset), 0) : sym_max(sym_min(rows + offset, columns), 0);
      SymInt at = self.sym_storage_offset();
      if (!(length == 0)) at += offset >= 0 ? strides[b] * offset : strides[a] * -offset;
      SymInt stride = strides[a] + strides[b];
      for (int64_t d : {std::max(a, b), std::min(a, b)}) {
        sizes.erase(d);
        strides.erase(d);
      }
      sizes.push_back(length);
      strides.push_back(stride);
      return alias_tensor(self, sizes, strides, at);
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, int64_t offset, int64_t dim1, int64_t dim2) {
      return diagonal_scatter(base, written, offset, dim1, dim2);
    })
    .gradient("self", {"grad", "self.sym_sizes", "offset", "dim1", "dim2"},
              [](const Tensor& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
                return diagonal_backward(grad, sizes, offset, dim1, dim2);
              })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim1", "dim2"}});

UMBRA_OPERATOR("diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor")
    .generated_out("diagonal_backward.out")
    .all_backends([](const Tensor& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
      Tensor out = grad.new_zeros(sizes);
      out.diagonal(offset, dim1, dim2).copy_(grad);
      return out;
    })
    .gradient("grad_output", {"grad", "offset", "dim1", "dim2"},
              [](const Tensor& grad, int64_t offset, int64_t dim1, int64_t dim2) {
                return grad.diagonal(offset, dim1, dim2);
              })
    .linear()
    .batch([](const Batched& grad, SymIntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
      auto at = [&](int64_t dim) { return wrap_dim(dim, static_cast<int64_t>(sizes.size())) + 1; };
      return Batched(diagonal_backward(batch_first(grad), batch_sizes(sizes), offset, at(dim1), at(dim2)), 0);
    });

}  // namespace
}  // namespace umbra::ops
