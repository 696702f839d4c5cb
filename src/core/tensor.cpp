#include "umbra/core/tensor.h"

#include "core/layout_asked.h"
#include "umbra/core/call_site.h"

namespace umbra {

constinit thread_local GradModeState detail::grad_mode_state;

// ---- TensorImpl ----

namespace {
// An empty tensor has none, however large its other dimensions.
SymInt count_elements(SymIntArrayRef sizes) {
  for (SymInt s : sizes)
    if (s.same(0)) return 0;
  return product(sizes);
}

/// What follows from sizes and strides that are plain numbers, found in one pass.
struct PlainGeometry {
  int64_t numel = 1, extent = 1;  // extent: INT64_MAX where it does not fit, which is more than any storage has
  bool contiguous = true, empty = false, overflows = false;

  PlainGeometry(const SymInt* sizes, const SymInt* strides, int32_t dim) {
    int64_t step;
    bool too_far = false;
    for (int32_t d = dim; d-- > 0;) {
      int64_t size = sizes[d].value(), stride = strides[d].value();
      if (size == 1) continue;
      empty |= size == 0;
      contiguous &= stride == numel;
      overflows |= __builtin_mul_overflow(numel, size, &numel);
      too_far |= __builtin_mul_overflow(size - 1, stride, &step);
      too_far |= __builtin_add_overflow(extent, step, &extent);
    }
    if (too_far) extent = INT64_MAX;
    if (!empty) return;
    numel = extent = 0;
    contiguous = true;
    overflows = false;
  }
};
}  // namespace

void TensorImpl::set_geometry(SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  int32_t dim = static_cast<int32_t>(sizes.size());
  check(strides.size() == sizes.size(), "sizes and strides differ in length");
  SymInt* to = inline_;
  SymInt* strides_to = inline_ + kInline;
  std::unique_ptr<SymInt[]> heap;
  if (dim > kInline) {
    heap.reset(new SymInt[2 * static_cast<size_t>(dim)]);
    to = heap.get();
    strides_to = to + dim;
  }
  bool symbolic = offset.is_symbolic();
  for (int32_t i = 0; i < dim; ++i) symbolic |= sizes[i].is_symbolic() | strides[i].is_symbolic();
  PlainGeometry plain(sizes.data(), strides.data(), symbolic ? 0 : dim);
  SymInt numel = symbolic || plain.overflows ? count_elements(sizes) : SymInt(plain.numel);  // which says what is wrong
  for (int32_t i = 0; i < dim; ++i) {
    to[i] = sizes[i];
    strides_to[i] = strides[i];
  }
  extent_ = symbolic ? 0 : plain.extent;
  contiguous_ = !symbolic && plain.contiguous;
  heap_ = std::move(heap);
  dim_ = dim;
  numel_ = numel;
  offset_ = offset;
  symbolic_ = symbolic;
}

void TensorImpl::set_contiguous(SymIntArrayRef sizes) { set_geometry(sizes, contiguous_strides(sizes), 0); }

void (*TensorImpl::release_python_object)(void* object) = nullptr;

TensorImpl::~TensorImpl() {
  if (owns_python_object_) release_python_object(python_object_);
}

void TensorImpl::release_resources() {
  if (owns_python_object_) release_python_object(python_object_);
  owns_python_object_ = false;
  storage_ = nullptr;
  autograd_.reset();
  view_base_ = nullptr;
  layer_state_ = nullptr;
  own_version_ = nullptr;
}

// ---- geometry ----

int64_t wrap_dim(int64_t dim, int64_t rank, bool wrap_scalar) {
  if (rank == 0) {
    check<IndexError>(wrap_scalar, "Dimension specified as ", dim, " but tensor has no dimensions");
    rank = 1;
  }
  check<IndexError>(dim >= -rank && dim < rank, "Dimension out of range (expected to be in range of [", -rank, ", ",
                    rank - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + rank : dim;
}

namespace {
/// The room that a dimension takes. What is known of its size is not relied on: strides of nothing do not matter.
SymInt at_least_one(SymInt size) {
  if (!size.is_symbolic()) return std::max<int64_t>(size.value(), 1);
  SymBool positive = sym_compare(SymOp::Ge, size, 1);
  return !positive.is_symbolic() && positive.value() ? size : sym_max(size, 1);
}
}  // namespace

SymShape contiguous_strides(SymIntArrayRef sizes) {
  SymShape strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * at_least_one(sizes[i]);
  return strides;
}

SymShape strides_for(SymIntArrayRef sizes, MemoryFormat format) {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d) return contiguous_strides(sizes);
  size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  check(sizes.size() == rank, "required rank ", rank, " tensor to use ",
        rank == 4 ? "channels_last" : "channels_last_3d", " format");
  SymShape strides(rank, 1);
  SymInt step = sizes[1];
  for (size_t i = rank; i-- > 2;) {
    strides[i] = step;
    step *= sizes[i];
  }
  strides[0] = step;
  strides[1] = 1;
  return strides;
}

SymInt detail::product(SymIntArrayRef values) {
  SymInt result = 1;
  for (SymInt v : values) result *= v;
  return result;
}

SymInt storage_bytes(SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset, int64_t item_size) {
  bool symbolic = offset.is_symbolic();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is_symbolic() && sizes[i].value() == 0) return 0;
    symbolic |= sizes[i].is_symbolic() | strides[i].is_symbolic();
  }
  if (symbolic) {
    SymInt last = offset + 1;
    for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
    return last * item_size;
  }
  int64_t bytes, step;
  bool overflow = __builtin_add_overflow(offset.value(), 1, &bytes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    overflow |= __builtin_mul_overflow(sizes[i].value() - 1, strides[i].value(), &step);
    overflow |= __builtin_add_overflow(bytes, step, &bytes);
  }
  overflow |= __builtin_mul_overflow(bytes, item_size, &bytes);
  if (overflow) fail("Storage size calculation overflowed with sizes=", umbra::to_string(sizes));
  return bytes;
}

// ---- Tensor ----

void Tensor::fail_undefined() { fail("this tensor is undefined: it has neither sizes nor a dtype nor data"); }

void Tensor::refuse_symbolic(SymIntArrayRef values) {
  if (any_symbolic(values)) fail("Cannot call sizes() on tensor with symbolic sizes/strides");
}

SymInt Tensor::sym_size(int64_t d) const { return sym_sizes()[wrap_dim(d, dim(), false)]; }
SymInt Tensor::sym_stride(int64_t d) const {
  if (is_symbolic() && is_user_code(__builtin_return_address(0))) layout_asked(*this, false);
  return sym_strides()[wrap_dim(d, dim(), false)];
}

void* Tensor::raw_data() const {
  const StorageImpl* memory = storage().get();
  if (!memory || !memory->has_data()) fail("Cannot access data pointer of Tensor that doesn't have storage");
  // A storage may have shrunk since the view was made, and a view may come from a file: nothing is read beyond the end.
  int64_t offset = storage_offset(), extent = impl_->extent(), item = item_size(), end;
  bool beyond = __builtin_add_overflow(offset, extent, &end) || __builtin_mul_overflow(end, item, &end) ||
                end > memory->bytes().value();
  if (beyond && extent > 0) [[unlikely]]
    fail("the tensor of sizes ", umbra::to_string(sym_sizes()), ", strides ", umbra::to_string(sym_strides()),
         " and storage offset ", offset, " is out of bounds for a storage of ", memory->bytes(), " bytes");
  return static_cast<char*>(memory->data()) + offset * item;
}

void Tensor::fail_dtype(DType wanted) const {
  fail("expected scalar type ", kernel_name(wanted), " but found ", kernel_name(dtype()));
}
void Tensor::fail_accessor(int64_t dims) const {
  fail("TensorAccessor expected ", dims, " dims but tensor has ", dim());
}

namespace {

/// a == b; false where only the run can tell: the layout is then taken to be the general one.
bool surely_equal(SymInt a, SymInt b) {
  if (a.same(b)) return true;
  return (a.is_symbolic() || b.is_symbolic()) && sym_eq(a, b).guard_or(false);
}

/// The product of sizes as strides of new tensors have it: a size that only the run tells is one at least.
SymInt padded_product(SymIntArrayRef sizes) {
  SymInt product = 1;
  for (SymInt size : sizes) product *= size.has_hint() ? size : sym_max(size, 1);
  return product;
}

/// Whether a stride steps over the sizes behind it, whose product is given.
bool spans(SymInt stride, SymInt product, SymIntArrayRef behind) {
  return surely_equal(stride, product) || (!product.has_hint() && surely_equal(stride, padded_product(behind)));
}

bool follows_order(SymIntArrayRef sizes, SymIntArrayRef strides, ArrayRef<int> order) {
  SymInt expected = 1;
  for (int d : order) {
    if (surely_equal(sizes[d], 1)) continue;
    if (!surely_equal(strides[d], expected)) return false;
    expected *= sizes[d];
  }
  return true;
}

constexpr int kChannelsLast[] = {1, 3, 2, 0};
constexpr int kChannelsLast3d[] = {1, 4, 3, 2, 0};

// Channels-last by the strides alone; where one element a sample leaves nothing to go by, it is not.
bool strides_like_channels_last(SymIntArrayRef sizes, SymIntArrayRef strides, ArrayRef<int> order) {
  if (surely_equal(strides[1], 0)) return false;
  SymInt least = 0;
  for (int d : order) {
    if (surely_equal(sizes[d], 0)) return false;
    if (sym_lt(strides[d], least).guard_or(true)) return false;
    if (d == 0 && surely_equal(least, strides[1])) return false;  // N111: contiguous rather than channels-last
    least = strides[d];
    if (sym_gt(sizes[d], 1).guard_or(true)) least *= sizes[d];
  }
  return true;
}

}  // namespace

namespace {
bool is_row_major(const Tensor& t) {
  SymIntArrayRef sizes = t.sym_sizes(), strides = t.sym_strides();
  if (!t.sym_numel().is_symbolic() && t.sym_numel().value() == 0) return true;
  SymInt expected = 1;
  for (int64_t d = t.dim(); d-- > 0;) {
    if (strides[d].same(expected)) {
      expected *= sizes[d];
      continue;
    }
    if (surely_equal(sizes[d], 1)) continue;
    if (!spans(strides[d], expected, sizes.slice(d + 1, t.dim() - d - 1))) return false;
    expected *= sizes[d];
  }
  return true;
}

bool follows(const Tensor& t, MemoryFormat format) {
  SymIntArrayRef sizes = t.sym_sizes(), strides = t.sym_strides();
  if (format == MemoryFormat::ChannelsLast) return t.dim() == 4 && follows_order(sizes, strides, {kChannelsLast, 4});
  if (format == MemoryFormat::ChannelsLast3d)
    return t.dim() == 5 && follows_order(sizes, strides, {kChannelsLast3d, 5});
  return is_row_major(t);
}

void nobody_wants_to_know(const Tensor&, bool) {}
}  // namespace
void (*layout_asked)(const Tensor& tensor, bool contiguous) = nobody_wants_to_know;

bool Tensor::follows_format(MemoryFormat format) const {
  bool answer = follows(*this, format);
  if (is_symbolic() && is_user_code(__builtin_return_address(0)))
    layout_asked(*this, answer && format == MemoryFormat::Contiguous);
  return answer;
}

bool Tensor::is_non_overlapping_and_dense() const {
  if (is_contiguous()) return true;
  SymIntArrayRef sizes = sym_sizes(), strides = sym_strides();
  SmallVector<int, 6> order;
  for (int d = 0; d < dim(); ++d)
    if (!surely_equal(sizes[d], 1)) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return sym_lt(strides[a], strides[b]).guard_or(false); });
  SymInt expected = 1;
  for (int d : order) {
    if (!surely_equal(strides[d], expected)) return false;
    expected *= sizes[d];
  }
  return true;
}

MemoryFormat Tensor::suggested_format() const {
  // What lies both ways (one channel, one element for each) was asked to lie by channels where their stride is 1.
  if (dim() < 4 || dim() > 5 || (is_contiguous() && !sym_strides()[1].same(1))) return MemoryFormat::Contiguous;
  if (dim() == 4 && strides_like_channels_last(sym_sizes(), sym_strides(), {kChannelsLast, 4}))
    return MemoryFormat::ChannelsLast;
  if (dim() == 5 && strides_like_channels_last(sym_sizes(), sym_strides(), {kChannelsLast3d, 5}))
    return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

// ---- making tensors ----

namespace {
SymInt bytes_of_new(SymIntArrayRef sizes, SymIntArrayRef strides, int64_t item) {
  bool symbolic = false;
  for (size_t d = 0; d < sizes.size(); ++d) symbolic |= sizes[d].is_symbolic() | strides[d].is_symbolic();
  int64_t bytes;
  PlainGeometry plain(sizes.data(), strides.data(), symbolic ? 0 : static_cast<int32_t>(sizes.size()));
  if (symbolic || plain.extent == INT64_MAX || __builtin_mul_overflow(plain.extent, item, &bytes))
    return storage_bytes(sizes, strides, 0, item);
  return bytes;
}
}  // namespace

Tensor allocate_tensor(SymIntArrayRef sizes, SymIntArrayRef strides, DType dtype, Device device) {
  for (SymInt s : sizes)
    if (!s.is_symbolic() && s.value() < 0) [[unlikely]]
      fail("Trying to create tensor with negative dimension ", s, ": ", umbra::to_string(sizes));
  SymInt bytes = bytes_of_new(sizes, strides, item_size(dtype));
  Storage storage = allocator(device.type) ? StorageImpl::allocate(bytes.guard_int(), device)
                                           : StorageImpl::without_data(bytes, device);
  auto impl = make_counted<TensorImpl>(std::move(storage), dtype, device, backend_key(device));
  impl->set_geometry(sizes, strides);
  return Tensor(std::move(impl));
}

Tensor alias_tensor(const Tensor& source, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  TensorImpl* from = source.impl();
  auto impl = make_counted<TensorImpl>(from->storage(), from->dtype(), from->device(), from->keys());
  impl->set_geometry(sizes, strides, offset);
  impl->set_conj(from->is_conj());
  impl->set_neg(from->is_neg());
  impl->set_inference(from->is_inference());
  impl->set_layout(from->layout());
  if (from->layer_state()) impl->set_layer_state(from->layer_state());
  if (from->version_counter()) impl->set_version_counter(from->version_counter());
  return Tensor(std::move(impl));
}

Tensor from_memory(void* data, IntArrayRef sizes, IntArrayRef strides, DType dtype, std::function<void()> release) {
  SymInt bytes = storage_bytes(as_sym(sizes), as_sym(strides), 0, item_size(dtype));
  auto impl = make_counted<TensorImpl>(StorageImpl::wrap(data, bytes.value(), std::move(release)), dtype, Device(),
                                       DispatchKey::CPU);
  impl->set_geometry(as_sym(sizes), as_sym(strides));
  return Tensor(std::move(impl));
}

}  // namespace umbra
