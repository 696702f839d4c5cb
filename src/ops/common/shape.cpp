#include "ops/common/shape.h"

#include "ops/common/unbacked.h"
#include "sym/layout_watch.h"
#include "umbra/dispatch/device_mismatch.h"
#include "umbra/generated/functions.h"
#include "umbra/sym/shape_env.h"

namespace umbra::ops {

namespace {
constexpr int64_t kLowest = -(int64_t{1} << 62);  // lists hold no lower numbers
std::optional<uint64_t> counted(SymIntArrayRef sizes) {
  uint64_t count = 1;
  for (SymInt s : sizes)
    if (!s.is_symbolic() && s.value() <= kLowest) return std::nullopt;  // which one it was is not known
    else if (!s.is_symbolic() && __builtin_mul_overflow(count, static_cast<uint64_t>(s.value()), &count))
      return std::nullopt;
  return count;
}
}  // namespace

void check_held(SymIntArrayRef numbers) {
  for (SymInt n : numbers)
    check(n.is_symbolic() || n.value() > kLowest, "SymIntArrayRef expected to contain only concrete integers that are ",
          "stored inline and can be viewed as an IntArrayRef");
}
bool make_nothing(SymIntArrayRef sizes) { return counted(sizes) == 0; }
bool can_be_counted(SymIntArrayRef sizes) {
  return counted(sizes).value_or(UINT64_MAX) <= static_cast<uint64_t>(INT64_MAX);
}

bool is_one(SymInt size) {
  if (!size.is_symbolic()) return size.value() == 1;
  if (sym_eq(size, 1).guard_or(false)) return true;
  if (size.has_hint()) sym::rely_on(SymOp::Eq, size, 1);
  else check(sym_ne(size, 1).expect_true(), "a size that was taken not to be 1 is 1");
  return false;
}

SymShape broadcast_shapes(SymIntArrayRef a, SymIntArrayRef b) {
  size_t rank = std::max(a.size(), b.size());
  SymShape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    size_t d = rank - 1 - i;
    if (i >= a.size()) out[d] = b[b.size() - 1 - i];
    else if (i >= b.size()) out[d] = a[a.size() - 1 - i];
    else {
      SymInt x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
      if (x.same(y)) out[d] = x;
      else if (equal_or(x, 1, false)) out[d] = y;
      else if (equal_or(y, 1, false)) out[d] = x;
      else if (expect_equal(x, y)) out[d] = x.is_symbolic() ? y : x;
      else
        fail("The size of tensor a (", x, ") must match the size of tensor b (", y, ") at non-singleton dimension ", d);
    }
  }
  return out;
}

SymShape expanded_strides(SymIntArrayRef sizes, SymIntArrayRef strides, SymIntArrayRef target) {
  size_t lead = target.size() - sizes.size();
  SymShape out(target.size(), 0);
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool stretched = !sizes[d].same(target[lead + d]) && equal_or(sizes[d], 1, false);
    out[lead + d] = stretched ? SymInt(0) : strides[d];
  }
  return out;
}

SymShape infer_size(SymIntArrayRef shape, SymInt numel) {
  SymShape out(shape);
  SymInt known = 1;
  int unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_symbolic() && shape[i].value() == -1) {
      check(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int>(i);
    } else {
      if (!expect_size(shape[i]))
        fail("invalid shape dimension ", shape[i], " at index ", i, " of shape ", to_string(shape));
      known *= shape[i];
    }
  }
  auto invalid = [&] { fail("shape '", to_string(shape), "' is invalid for input of size ", numel); };
  if (unknown < 0) {
    if (!expect_equal(known, numel)) invalid();
    return out;
  }
  if (equal_or(known, 0, false)) {
    check(numel != 0, "cannot reshape tensor of 0 elements into shape ", to_string(shape),
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    invalid();
  }
  if (known.is_symbolic() && !known.node()->has_hint() && !sym_ne(known, 0).expect_true()) invalid();
  SymInt rest = numel / known;
  if (!(rest * known).same(numel) && !expect_equal(numel % known, 0)) invalid();
  out[static_cast<size_t>(unknown)] = rest;
  return out;
}

namespace {
bool is_same(SymIntArrayRef a, SymIntArrayRef b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].same(b[i])) return false;
  return true;
}
}  // namespace

std::optional<SymShape> view_strides(SymIntArrayRef sizes, SymIntArrayRef strides, SymIntArrayRef shape) {
  SymInt numel = product(sizes);
  if (!numel.is_symbolic() && numel.value() == 0) {
    if (SymIntArrayRef(sizes) == shape) return SymShape(strides);
    return contiguous_strides(shape);
  }
  SymShape out(shape.size(), 1);
  if (sizes.empty()) return out;
  // What is laid out one after the other stays so, whatever its sizes turn out to be.
  if (numel.is_symbolic() && is_same(contiguous_strides(sizes), strides)) return contiguous_strides(shape);
  // Walks both shapes from the right. A run of input dimensions that lie in memory as one must be covered exactly by
  // output dimensions.
  int64_t to = static_cast<int64_t>(shape.size()) - 1;
  SymInt base = strides.back(), run = 1, covered = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    run *= sizes[d];
    bool ends = d == 0 || (!equal_or(sizes[d - 1], 1, false) && !equal_or(strides[d - 1], run * base, false));
    if (!ends) continue;
    // What is covered only grows, so that "not the same" is as good as "less", and the easier question where sizes are
    // symbols.
    while (to >= 0 && (!equal_or(covered, run, false) || equal_or(shape[to], 1, false))) {
      out[to] = covered * base;
      covered *= shape[to];
      --to;
    }
    // The numbers of elements are the same, so that the last run is covered where all others were.
    if (!equal_or(covered, run, d == 0 && to == -1)) return std::nullopt;
    if (d > 0) {
      base = strides[d - 1];
      run = covered = 1;
    }
  }
  if (to != -1) return std::nullopt;
  return out;
}

namespace {

/// a < b for the order of dimensions in memory, or `fallback` where only the run can tell; layouts rest on that then.
bool lies_below(SymInt a, SymInt b, bool fallback) {
  sym::LayoutWatch* watch = sym::LayoutWatch::current();
  if (watch && !a.same(1) && !b.same(1) && is_open(a, b)) watch->note_condition(fallback ? sym_lt(a, b) : sym_le(b, a));
  return less_or(a, b, fallback);
}

/// The same of the sizes of two dimensions of one stride. Contiguity rests on them, too.
bool is_shorter(SymInt a, SymInt b, bool fallback) {
  sym::LayoutWatch* watch = sym::LayoutWatch::current();
  if (watch && !both_plain(a, b) && !a.same(1) && !b.same(1) && !is_open(a, b)) watch->note_order(a, b);
  return lies_below(a, b, fallback);
}

// Dimensions from the innermost outwards; where strides tie, the larger one lies further out, as PyTorch has it.
// Comparisons of dimensions are no total order (a stride of 0 has no opinion), so the way of sorting is part of the
// rule.
SmallVector<int, 6> memory_order(SymIntArrayRef sizes, ArrayRef<SymShape> layouts) {
  auto compare = [&](int a, int b) {  // 1: a lies further out than b, -1: further in, 0: nothing says
    for (const SymShape& strides : layouts) {
      SymInt x = strides[a], y = strides[b];
      if (equal_or(x, 0, false) || equal_or(y, 0, false)) continue;
      // A stride that only the run will tell is taken to be the larger one.
      if (!equal_or(x, y, false)) return lies_below(x, y, x.has_hint()) ? -1 : 1;
      // A size that only the run will tell is more than one: programs that ask for strides refuse others.
      if (is_shorter(sizes[b], sizes[a], sizes[b].same(1))) return 1;
    }
    return 0;
  };
  SmallVector<int, 6> order;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) order.push_back(d);
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      int c = compare(order[j], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(order[j], order[at]);
      at = j;
    }
  }
  return order;
}

}  // namespace

SymShape dense_strides_like(SymIntArrayRef sizes, ArrayRef<SymShape> layouts) {
  SmallVector<int, 6> order = memory_order(sizes, layouts);
  // Without elements the two differ, also where only the run tells that there are none; row-major ones are made as
  // everywhere.
  if (std::is_sorted(order.begin(), order.end(), std::greater<>())) return contiguous_strides(sizes);
  SymShape out(sizes.size(), 1);
  SymInt step = 1;
  for (int d : order) {
    out[d] = step;
    step *= sizes[d];
  }
  return out;
}

uint64_t dim_mask(ArrayRef<int64_t> dims, int64_t rank, bool empty_is_all) {
  check(rank <= 64, "only tensors with up to 64 dims are supported");
  if (dims.empty() && empty_is_all) return rank == 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
  uint64_t mask = 0;
  for (int64_t d : dims) {
    int64_t wrapped = wrap_dim(d, rank);
    check(!(mask >> wrapped & 1), "dim ", wrapped, " appears multiple times in the list of dims");
    mask |= uint64_t{1} << wrapped;
  }
  return mask;
}

SymShape reduced_shape(SymIntArrayRef sizes, uint64_t mask, bool keepdim) {
  SymShape out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1)) out.push_back(sizes[d]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

SymShape strides_in_format(const Tensor& self, MemoryFormat format) {
  if (format != MemoryFormat::Preserve) return strides_for(self.sym_sizes(), format);
  if (self.is_contiguous() || self.is_non_overlapping_and_dense()) return SymShape(self.sym_strides());
  return dense_strides_like(self.sym_sizes(), {SymShape(self.sym_strides())});
}

SymShape strides_with_gaps(const Tensor& self) {
  for (size_t d = 0; d < self.sym_sizes().size(); ++d)
    if (self.sym_strides()[d].same(0) && !self.sym_sizes()[d].same(1))
      return strides_in_format(self, MemoryFormat::Preserve);
  return SymShape(self.sym_strides());
}

TensorSpec spec_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                     MemoryFormat format) {
  return TensorSpec(self.sym_sizes(), strides_in_format(self, format), dtype.value_or(self.dtype()),
                    device.value_or(self.device()));
}

Device common_device(ArrayRef<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors) {
    if (!t->defined()) continue;
    if (!first) {
      first = t;
      continue;
    }
    auto joins = [](const Tensor& x) { return x.dim() == 0 && x.device().type == DeviceType::CPU; };
    if (t->device() == first->device()) {
      if (joins(*first)) first = t;
      continue;
    }
    if (joins(*t)) continue;
    if (joins(*first)) first = t;
    else fail_two_devices(first->device(), t->device(), first->is_fake());
  }
  return first ? first->device() : Device();
}

Tensor sum_to_size(const Tensor& grad, SymIntArrayRef sizes) {
  if (grad.sym_sizes().size() == sizes.size()) {
    bool same = true;
    for (size_t i = 0; i < sizes.size(); ++i) same &= sizes[i].same(grad.sym_sizes()[i]);
    if (same) return grad;
  }
  if (sizes.empty()) return grad.sum();
  std::vector<int64_t> dims;
  int64_t lead = grad.dim() - static_cast<int64_t>(sizes.size());
  // A size that only the run tells was broadcast unless it is the same one; the sum of a single element is that
  // element.
  for (int64_t d = 0; d < grad.dim(); ++d)
    if (d < lead || (equal_or(sizes[d - lead], 1, false) && !equal_or(grad.sym_sizes()[d], 1, false)))
      dims.push_back(d);
  Tensor out = dims.empty() ? grad : grad.sum(dims, true);
  return lead > 0 ? out.view(sizes) : out;
}

}  // namespace umbra::ops
