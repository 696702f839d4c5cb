// Tensor: a handle on shared metadata over shared memory. Copying a Tensor copies the handle.
//
//     Tensor x = randn({8, 64});
//     Tensor y = x.transpose(0, 1);      // shares x's storage
//     y.sizes();                         // [64, 8]
//
// Operators are methods and free functions alike; both are generated from the operators' schemas
// (umbra/generated/methods.inc, umbra/generated/functions.h).
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "umbra/core/accessor.h"
#include "umbra/core/arguments.h"
#include "umbra/core/device.h"
#include "umbra/core/dispatch_key.h"
#include "umbra/core/dtype.h"
#include "umbra/core/error.h"
#include "umbra/core/grad_mode.h"
#include "umbra/core/intrusive.h"
#include "umbra/core/scalar.h"
#include "umbra/core/storage.h"
#include "umbra/core/sym_int.h"

namespace UMBRA_API umbra {

class Tensor;
class Generator;

namespace indexing {
class Indices;
}

/// What autograd keeps about a tensor; autograd/ has the only implementation.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
};

/// How often a tensor's contents changed; its own where `.data` or `set_` cut it off from its storage's count.
struct VersionCounter final : RefCounted {
  uint32_t version = 0;
};

/// How a view came to be; what autograd says when it is changed in place depends on it.
enum class ViewKind : uint8_t { Plain, MultiOutput, NoGrad, Inference, CustomFunction };

/// The metadata behind Tensor handles.
class TensorImpl final : public RefCounted {
 public:
  TensorImpl(Storage storage, DType dtype, Device device, DispatchKeySet keys)
      : storage_(std::move(storage)),
        dtype_(dtype),
        device_(device),
        inference_(is_inference_mode_enabled()),
        keys_(keys) {
    // Outside inference mode autograd has to see what is done to such a tensor, to refuse it.
    if (inference_) keys_ |= DispatchKey::Autograd;
  }

  int64_t dim() const { return dim_; }
  SymIntArrayRef sym_sizes() const { return {sizes_(), static_cast<size_t>(dim_)}; }
  SymIntArrayRef sym_strides() const { return {strides_(), static_cast<size_t>(dim_)}; }
  SymInt sym_storage_offset() const { return offset_; }
  SymInt sym_numel() const { return numel_; }
  /// True where a size, a stride or the offset is an expression.
  bool is_symbolic() const { return symbolic_; }
  /// Row-major without gaps, as far as plain numbers tell: false where something is symbolic.
  bool known_contiguous() const { return contiguous_; }
  /// How many elements of the storage, from the offset on, the geometry reaches over; 0 where it is symbolic.
  int64_t extent() const { return extent_; }
  /// Sizes, strides and offset at once; numel follows.
  void set_geometry(SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset = 0);
  /// Row-major strides for the sizes.
  void set_contiguous(SymIntArrayRef sizes);

  const Storage& storage() const { return storage_; }
  void set_storage(Storage storage) { storage_ = std::move(storage); }
  DType dtype() const { return dtype_; }
  void set_dtype(DType dtype) { dtype_ = dtype; }
  Device device() const { return device_; }
  void set_device(Device device) { device_ = device; }
  Layout layout() const { return layout_; }
  void set_layout(Layout layout) { layout_ = layout; }
  DispatchKeySet keys() const { return keys_; }
  void set_keys(DispatchKeySet keys) { keys_ = keys; }
  void add_key(DispatchKey key) { keys_ |= key; }
  void remove_key(DispatchKey key) { keys_ = keys_ - key; }

  uint32_t version() const { return own_version_ ? own_version_->version : storage_->version(); }
  void bump_version() { own_version_ ? void(++own_version_->version) : storage_->bump_version(); }
  /// Gives the tensor a counter of its own (`.data`), or another's (views of such a tensor).
  void set_version_counter(IntrusivePtr<VersionCounter> counter) { own_version_ = std::move(counter); }
  const IntrusivePtr<VersionCounter>& version_counter() const { return own_version_; }

  AutogradMetaBase* autograd_meta() const { return autograd_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaBase> meta) { autograd_ = std::move(meta); }

  /// The tensor this one was taken of by a view operator: always the root, never a view itself.
  const IntrusivePtr<TensorImpl>& view_base() const { return view_base_; }
  void set_view_base(IntrusivePtr<TensorImpl> base, ViewKind kind = ViewKind::Plain) {
    view_base_ = std::move(base);
    view_kind_ = kind;
    view_version_ = view_base_ ? version() : 0;
  }
  ViewKind view_kind() const { return view_kind_; }
  /// The version at which what autograd knows of this view was right; a later one means that its history has to be
  /// found anew.
  uint32_t view_version() const { return view_version_; }
  void set_view_version(uint32_t version) { view_version_ = version; }

  /// What the tensor's layer needs: the FakeMode of a fake tensor, the value behind a functional one.
  const IntrusivePtr<RefCounted>& layer_state() const { return layer_state_; }
  void set_layer_state(IntrusivePtr<RefCounted> state) { layer_state_ = std::move(state); }

  bool is_conj() const { return conj_; }
  void set_conj(bool v) { conj_ = v; }
  bool is_neg() const { return neg_; }
  void set_neg(bool v) { neg_ = v; }
  /// A 0-d tensor made of a plain number: takes part in promotion with a number's priority.
  bool is_wrapped_number() const { return wrapped_number_; }
  void set_wrapped_number(bool v) { wrapped_number_ = v; }
  bool is_inference() const { return inference_; }
  void set_inference(bool v) { inference_ = v; }

  /// The Python object that stands for this tensor, if there is one. As a rule the object holds the tensor and is not
  /// counted here; where only C++ still refers to a tensor whose object must not be lost, it is the tensor that holds
  /// the object.
  void* python_object() const { return python_object_; }
  bool owns_python_object() const { return owns_python_object_; }
  void set_python_object(void* object, bool owned = false) {
    python_object_ = object;
    owns_python_object_ = owned;
  }
  /// How an owned object is let go; the Python binding sets it.
  static void (*release_python_object)(void* object);

  ~TensorImpl() override;

 protected:
  void release_resources() override;

 private:
  const SymInt* sizes_() const { return dim_ <= kInline ? inline_ : heap_.get(); }
  const SymInt* strides_() const { return dim_ <= kInline ? inline_ + kInline : heap_.get() + dim_; }
  static constexpr int kInline = 5;

  Storage storage_;
  SymInt inline_[2 * kInline];
  std::unique_ptr<SymInt[]> heap_;
  SymInt offset_ = 0, numel_ = 1;
  int64_t extent_ = 1;
  int32_t dim_ = 0;
  DType dtype_;
  Device device_;
  Layout layout_ = Layout::Strided;
  bool symbolic_ = false, contiguous_ = true, conj_ = false, neg_ = false, wrapped_number_ = false, inference_;
  bool owns_python_object_ = false;
  ViewKind view_kind_ = ViewKind::Plain;
  uint32_t view_version_ = 0;
  DispatchKeySet keys_;
  std::unique_ptr<AutogradMetaBase> autograd_;
  IntrusivePtr<VersionCounter> own_version_;
  IntrusivePtr<TensorImpl> view_base_;
  IntrusivePtr<RefCounted> layer_state_;
  void* python_object_ = nullptr;
};

/// How a factory makes its tensor: `empty({2, 3}, {.dtype = DType::Int64, .device = "cuda"})`.
struct TensorOptions {
  std::optional<DType> dtype = {};
  std::optional<Layout> layout = {};
  std::optional<Device> device = {};
  std::optional<bool> pin_memory = {};
  bool requires_grad = false;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  /// A variable becomes a handle on another tensor.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// An expression is written to: `x[1] = y`, `m.select(0, 1) = 0`. Refused where nobody could see what was written,
  /// as with the result of an operator that makes no view.
  Tensor operator=(const Tensor& values) &&;
  Tensor operator=(const Scalar& value) &&;

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const IntrusivePtr<TensorImpl>& pointer() const { return impl_; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // ---- metadata; an error where the tensor is undefined ----
  int64_t dim() const { return metadata().dim(); }
  SymIntArrayRef sym_sizes() const { return metadata().sym_sizes(); }
  SymIntArrayRef sym_strides() const { return metadata().sym_strides(); }
  SymInt sym_numel() const { return metadata().sym_numel(); }
  SymInt sym_storage_offset() const { return metadata().sym_storage_offset(); }
  /// Plain sizes; an error where one is symbolic.
  IntArrayRef sizes() const { return plain(sym_sizes(), is_symbolic()); }
  IntArrayRef strides() const { return plain(sym_strides(), is_symbolic()); }
  int64_t numel() const { return metadata().sym_numel().guard_int(); }
  int64_t storage_offset() const { return metadata().sym_storage_offset().guard_int(); }
  /// Size of a dimension; negative ones count from the end.
  SymInt sym_size(int64_t d) const;
  SymInt sym_stride(int64_t d) const;
  int64_t size(int64_t d) const { return sym_size(d).guard_int(); }
  int64_t stride(int64_t d) const { return sym_stride(d).guard_int(); }
  DType dtype() const { return metadata().dtype(); }
  Device device() const { return metadata().device(); }
  Layout layout() const { return metadata().layout(); }
  int64_t item_size() const { return umbra::item_size(metadata().dtype()); }
  DispatchKeySet keys() const { return metadata().keys(); }
  const Storage& storage() const { return metadata().storage(); }
  bool is_symbolic() const { return metadata().is_symbolic(); }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_complex() const { return umbra::is_complex(dtype()); }
  bool is_conj() const { return metadata().is_conj(); }
  bool is_neg() const { return metadata().is_neg(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return (format == MemoryFormat::Contiguous && metadata().known_contiguous()) || follows_format(format);
  }
  /// Every element has its own place and there are no gaps.
  bool is_non_overlapping_and_dense() const;
  /// Contiguous, ChannelsLast or ChannelsLast3d: the format that new tensors made like this one take.
  MemoryFormat suggested_format() const;
  bool is_fake() const { return metadata().keys().has(DispatchKey::Fake); }
  bool is_meta() const { return metadata().device().type == DeviceType::Meta; }
  TensorOptions options() const { return {.dtype = dtype(), .layout = layout(), .device = device()}; }
  bool is_view() const { return static_cast<bool>(metadata().view_base()); }
  uint32_t version() const { return metadata().version(); }

  /// The first element's address. Only tensors with data have one.
  void* raw_data() const;
  /// The same as elements of their own type; an error where it is another. A std::byte is anybody's.
  template <class T> T* data() const {
    constexpr DType wanted = dtype_of<std::remove_const_t<T>>;
    constexpr bool any = std::is_same_v<std::remove_const_t<T>, std::byte>;
    static_assert(any || wanted != DType::Undefined, "no tensor has elements of this type");
    if (!any && dtype() != wanted) [[unlikely]]
      fail_dtype(wanted);
    return static_cast<T*>(raw_data());
  }
  /// The elements by their indices: `x.accessor<float, 2>()[1][2]`.
  template <class T, size_t N> TensorAccessor<T, N> accessor() const {
    if (dim() != static_cast<int64_t>(N)) [[unlikely]]
      fail_accessor(static_cast<int64_t>(N));
    return {data<T>(), sizes().data(), strides().data()};
  }

  // ---- autograd (defined in autograd/) ----
  bool requires_grad() const;
  Tensor& requires_grad_(bool value = true);
  bool is_leaf() const;
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;
  /// Differentiates this scalar (or with `gradient`, any shape) with respect to the leaves below it.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  void retain_grad() const;

  // ---- operators as methods ----
  // The layers below ops/ call none, and are compiled without: a new operator leaves their objects as they are.
#ifndef UMBRA_WITHOUT_OPERATORS
#include "umbra/generated/methods.inc"
#endif

  // ---- what C++ adds to them (ops/) ----
#ifndef UMBRA_WITHOUT_OPERATORS
  /// The tensor on another device; itself where it is there already.
  Tensor to(Device device, bool non_blocking = false, bool copy = false) const;
  /// The only element as a number of C++; an error where it does not fit.
  template <class T> T item() const { return umbra::detail::number_of<T>(item()); }
#endif
  /// Element `i` of the first dimension, a view; `x[mask]` and `x[positions]` gather.
  Tensor operator[](SymInt i) const;
  Tensor operator[](const Tensor& index) const;
  /// As Python's `x[...]`: `x.index({Slice(0, 2), "...", nullopt, mask})` (core/indexing.h).
  Tensor index(const indexing::Indices& indices) const;
  Tensor index_put_(const indexing::Indices& indices, const Tensor& values, bool accumulate = false) const;
  Tensor index_put_(const indexing::Indices& indices, const Scalar& value) const;
  Tensor operator-() const;
  Tensor operator~() const;
  Tensor operator!() const;

 private:
  const TensorImpl& metadata() const {
    if (!impl_) [[unlikely]]
      fail_undefined();
    return *impl_;
  }
  [[noreturn]] static void fail_undefined();
  static IntArrayRef plain(SymIntArrayRef values, bool may_be_symbolic) {
    if (may_be_symbolic) refuse_symbolic(values);
    return {reinterpret_cast<const int64_t*>(values.data()), values.size()};
  }
  bool follows_format(MemoryFormat format) const;
  [[noreturn]] void fail_dtype(DType wanted) const;
  [[noreturn]] void fail_accessor(int64_t dims) const;
  static void refuse_symbolic(SymIntArrayRef values);
  IntrusivePtr<TensorImpl> impl_;
};

/// Wraps a dimension that may be negative; IndexError in PyTorch's words outside the range.
int64_t wrap_dim(int64_t dim, int64_t rank, bool wrap_scalar = true);

/// Row-major strides, or those of another format.
SymShape contiguous_strides(SymIntArrayRef sizes);
SymShape strides_for(SymIntArrayRef sizes, MemoryFormat format);
namespace detail {
SymInt product(SymIntArrayRef values);
}
#ifdef UMBRA_INTERNAL
using detail::product;
#endif
/// Bytes a storage needs for the geometry to lie inside it.
SymInt storage_bytes(SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset, int64_t item_size);

/// A new tensor with memory (CPU) or without (meta). Operators use `empty`; this is what `empty` does in the end.
Tensor allocate_tensor(SymIntArrayRef sizes, SymIntArrayRef strides, DType dtype, Device device);
/// A tensor over the same storage with another geometry; views are made of this. Keeps keys, dtype, bits and layer
/// state.
Tensor alias_tensor(const Tensor& source, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset);
/// A 0-d CPU tensor that behaves as the number does in promotion.
Tensor wrapped_number(const Scalar& value);
/// A tensor over foreign memory of the given geometry.
Tensor from_memory(void* data, IntArrayRef sizes, IntArrayRef strides, DType dtype, std::function<void()> release);

using TensorList = ArrayRef<Tensor>;

/// Prints the tensor as Python's `print` does (umbra/core/print.h has more).
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
// As messages spell them: "[2, 3]", "torch.float32", "cuda:1".
std::ostream& operator<<(std::ostream& out, IntArrayRef values);
std::ostream& operator<<(std::ostream& out, SymIntArrayRef values);
std::ostream& operator<<(std::ostream& out, SymInt value);
std::ostream& operator<<(std::ostream& out, DType type);
std::ostream& operator<<(std::ostream& out, Device device);
std::ostream& operator<<(std::ostream& out, Layout layout);
std::ostream& operator<<(std::ostream& out, MemoryFormat format);
std::ostream& operator<<(std::ostream& out, const Scalar& value);

}  // namespace umbra
