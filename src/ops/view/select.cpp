// Views of a part along one dimension: select, slice, narrow; and the operators that undo them in a backward pass.
#include "ops/view/select.h"

#include "dispatch/data_dependent.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/sparse/structure.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"
#include "umbra/sym/shape_env.h"

namespace umbra::ops {

Tensor select_view(const Tensor& self, int64_t dim, SymInt index) {
  check<IndexError>(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  int64_t at = wrap_dim(dim, self.dim());
  SymInt size = self.sym_sizes()[at];
  SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
  SymInt offset;
  if (is_open(index, 0)) {  // whether it counts from the end, and thereby the place, only the run will tell
    offset = unknown_size("aten::select.int", INT64_MAX);
  } else {
    if (!expect_at_most(-size, index) || !expect_less(index, size))
      fail<IndexError>("select(): index ", index, " out of range for tensor of size ", self.sym_sizes(),
                       " at dimension ", at);
    offset = self.sym_storage_offset() + (index < 0 ? index + size : index) * strides[at];
  }
  sizes.erase(at);
  strides.erase(at);
  return alias_tensor(self, sizes, strides, offset);
}

namespace {

// ---- one index ----

UMBRA_OPERATOR("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
    .view(select_view)
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t, int64_t dim, SymInt index) {
      return select_scatter(base, written, dim, index);
    })
    .sparse([](const Tensor& self, int64_t dim, SymInt index) { return sparse::select(self, dim, index.guard_int()); })
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
      if (out.is_meta()) return out;  // the meta device is not asked where the gradient goes
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

// The length of a slice, which the program may compute with, goes by the answer: an input of size 0 or 1 for which it
// is another one has to be refused.
bool is_less(SymInt a, SymInt b) {
  sym::rely_on(SymOp::Lt, a, b);
  return a < b;
}

// How many places there are in a span, of which every `step`-th is taken.
SymInt in_steps(SymInt span, SymInt step) {
  if (step.same(1) || span.same(0)) return span;
  bool numbers = !span.is_symbolic() && !step.is_symbolic();  // whose sum may not fit
  return numbers ? SymInt((span.value() - 1) / step.value() + 1) : (span + step - 1) / step;
}

// Bounds as Python's slices have them: negative ones count from the end, all are clamped.
Range clamp_range(SymInt size, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
  check(step > 0, "slice step must be positive");
  auto place = [&](SymInt v) {
    if (v.same(0)) return v;
    if (v.same(size)) return size;
    if (!v.is_symbolic() && v.value() >= (int64_t{1} << 62)) return size;
    if (is_less(v, 0)) v = v + size;
    if (is_less(v, 0)) return SymInt(0);
    return is_less(size, v) ? size : v;
  };
  SymInt from = start ? place(*start) : SymInt(0), to = end ? place(*end) : size;
  if (!from.same(0) && is_less(to, from)) to = from;
  SymInt span = to - from;
  return {from, in_steps(span, step)};
}

// Whether only the run will tell what a bound of a slice is clamped to.
bool is_open_bound(SymInt bound, SymInt size) {
  if (bound.has_hint() && size.has_hint()) return false;
  if (bound.same(0) || bound.same(size) || (!bound.is_symbolic() && bound.value() >= (int64_t{1} << 62))) return false;
  if (sym_lt(bound, 0).known_true()) return is_open(bound + size, 0);  // counted from an end that is not known
  return is_open(bound, 0) || is_open(size, bound);
}

// The same where only the run will tell, as expressions; none where it is not known which end a bound counts from.
std::optional<Range> open_range(SymInt size, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
  auto place = [&](SymInt v) -> std::optional<SymInt> {
    if (v.same(0) || v.same(size)) return v;
    if (!v.is_symbolic() && v.value() >= (int64_t{1} << 62)) return size;
    SymBool from_end = sym_lt(v, 0);
    if (!from_end.known_true() && !from_end.known_false()) return std::nullopt;
    sym::rely_on(SymOp::Lt, v, 0);
    return from_end.known_true() ? sym_max(v + size, 0) : sym_min(v, size);
  };
  std::optional<SymInt> from = start ? place(*start) : SymInt(0), to = end ? place(*end) : size;
  if (!from || !to) return std::nullopt;
  return Range{*from, in_steps(sym_max(*to - *from, 0), step)};
}

Tensor slice_range(const Tensor& self, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end,
                   SymInt step) {
  check<IndexError>(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  int64_t at = wrap_dim(dim, self.dim());
  SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
  SymInt size = sizes[at], offset = self.sym_storage_offset();
  bool open_start = start && is_open_bound(*start, size), open_end = end && is_open_bound(*end, size);
  bool open = open_start || open_end || (start && end && is_open(*end, *start));
  if (std::optional<Range> range = open ? open_range(size, start, end, step) : std::nullopt) {
    offset = offset + range->start * strides[at];
    sizes[at] = range->length;
  } else if (open) {
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
      if (out.is_meta()) return out;
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
      auto check_end = [&] {
        check(expect_at_most(length, size - start), "start (", start, ") + length (", length,
              ") exceeds dimension size (", size, ").");
      };
      if (is_open(start, 0)) {  // whether it counts from the end only the run will tell
        check_end();
        start = start % size;
      } else if (start < 0) {
        start = start + size;
      }
      check_end();
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
      bool ends = !self.is_meta() || self.is_fake();  // the meta device has no memory that could end
      check(!ends || need.is_symbolic() || have.is_symbolic() || need <= have, "setStorage: sizes ", src.sym_sizes(),
            ", strides ", to_string(src.sym_strides()), ", storage offset ", offset, ", and itemsize ",
            self.item_size(), " requiring a storage size of ", need, " are out of bounds for storage of size ", have);
      return alias_tensor(self, src.sym_sizes(), src.sym_strides(), offset);
    })
    .gradient("self", {"grad", "dim", "start", "end", "step"},
              [](const Tensor& grad, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
                return slice(grad, dim, start, end, step);
              })
    .linear();

}  // namespace
}  // namespace umbra::ops
