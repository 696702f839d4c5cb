// x[...] and x[...] = v: integers select, slices slice, None adds a dimension, tensors and masks gather or scatter.
#include "ops/index/subscript.h"

#include <limits>

#include "umbra/core/indexing.h"
#include "umbra/generated/functions.h"

namespace umbra::indexing {

Indices::Indices(std::initializer_list<TensorIndex> items) : items_(items) {}
Indices::Indices(std::vector<TensorIndex> items) : items_(std::move(items)) {}
Indices::Indices(TensorList tensors) : items_(tensors.begin(), tensors.end()) {}
Indices::Indices(const std::vector<Tensor>& tensors) : Indices(TensorList(tensors)) {}

void fail_bounds(int64_t index, int64_t position, SymInt size) {
  fail<IndexError>("index ", index, " is out of bounds for dimension ", position, " with size ", size);
}

void check_index(const Tensor& t, int64_t dim, SymInt index, int64_t position) {
  if (t.dim() == 0 && !index.is_symbolic() && index.value() != 0) fail_bounds(index.value(), position, 0);
  check<IndexError>(t.dim() > 0,
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                    "convert a 0-dim tensor to a number");
  SymInt size = t.sym_sizes()[static_cast<size_t>(dim)];
  if (size.is_symbolic() || index.is_symbolic()) return;
  int64_t i = index.value(), n = size.value();
  if (i < -n || i >= n) fail_bounds(i, position, size);
}

namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

bool is_mask(const Tensor& index) { return index.dtype() == DType::Bool || index.dtype() == DType::UInt8; }

Tensor select_checked(const Tensor& t, int64_t dim, SymInt index, int64_t position) {
  check_index(t, dim, index, position);
  return select(t, dim, index);
}

Tensor slice_of(const Tensor& t, int64_t dim, const Slice& s) {
  check<IndexError>(t.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  int64_t step = s.step.value_or(1).guard_int();
  check<ValueError>(step > 0, "step must be greater than zero");
  return slice(t, dim, s.start.value_or(0), s.stop.value_or(kToTheEnd), step);
}

bool is_whole(const Tensor& t, int64_t dim, const Slice& s) {
  if (!s.start.value_or(0).same(0) || !s.step.value_or(1).same(1) || dim >= t.dim()) return false;
  SymInt size = t.sym_sizes()[static_cast<size_t>(dim)];
  // As in PyTorch, `:` over a size that is not known stays in graphs.
  return s.stop.value_or(kToTheEnd).same(kToTheEnd) ? !size.is_symbolic() : known_equal(*s.stop, size);
}

/// How many dimensions of the tensor an item takes up.
int64_t dimensions_of(const TensorIndex& item) {
  switch (item.kind()) {
    case TensorIndex::Kind::NewDimension:
    case TensorIndex::Kind::Ellipsis:
    case TensorIndex::Kind::Bool: return 0;
    case TensorIndex::Kind::Integer:
    case TensorIndex::Kind::Slice: return 1;
    case TensorIndex::Kind::Tensor: return is_mask(item.tensor()) ? item.tensor().dim() : 1;
  }
  return 1;
}

/// Applies the items of an index one after the other.
class Applier {
 public:
  explicit Applier(const Tensor& self) : self_(self) { out_.result = self; }

  Prepared apply(const std::vector<TensorIndex>& items) {
    int64_t specified = 0;
    for (const TensorIndex& item : items) specified += dimensions_of(item);
    check<IndexError>(specified <= self_.dim(), "too many indices for tensor of dimension ", self_.dim());
    for (size_t i = 0; i < items.size(); ++i) one(items[i], specified, static_cast<int64_t>(i));
    return std::move(out_);
  }

 private:
  void one(const TensorIndex& item, int64_t specified, int64_t position) {
    switch (item.kind()) {
      case TensorIndex::Kind::Tensor: return tensor(item.tensor(), position);
      case TensorIndex::Kind::Bool: return boolean(item.boolean());
      case TensorIndex::Kind::Integer:
        out_.result = select_checked(out_.result, dim_, item.integer(), position);
        return;
      case TensorIndex::Kind::Slice:
        if (!is_whole(out_.result, dim_, item.slice())) out_.result = slice_of(out_.result, dim_, item.slice());
        ++dim_;
        return;
      case TensorIndex::Kind::Ellipsis: dim_ += self_.dim() - specified; return;
      case TensorIndex::Kind::NewDimension: out_.result = unsqueeze(out_.result, dim_++); return;
    }
  }

  void set_index(Tensor index) {
    auto at = static_cast<size_t>(dim_ - covered_);
    if (out_.indices.size() <= at) out_.indices.resize(at + 1);
    out_.indices[at] = std::move(index);
  }

  void boolean(bool value) {
    out_.result = unsqueeze(out_.result, dim_);
    Tensor index = empty({value ? 1 : 0}, {.dtype = DType::Int64, .device = out_.result.device()});
    set_index(value ? index.fill_(0) : index);
    ++dim_;
  }

  void tensor(const Tensor& index, int64_t position) {
    // A number that differs from one element of a batch to the next cannot be read: it is an index like any other.
    if (index.dim() == 0 && is_integral(index.dtype(), true) && !index.keys().has(DispatchKey::Level)) {
      Scalar value = index.item();
      if (is_mask(index)) return boolean(value.to_bool());
      out_.result = select_checked(out_.result, dim_, value.to_sym_int(), position);
      return;
    }
    set_index(index);
    // A mask stands for as many dimensions as it has, in one place of the list.
    dim_ += is_mask(index) ? index.dim() : 1;
    covered_ += is_mask(index) ? index.dim() - 1 : 0;
  }

  const Tensor& self_;
  Prepared out_;
  int64_t dim_ = 0, covered_ = 0;
};

void copy_to(const Tensor& to, const Tensor& from) {
  if (to.sym_sizes() == from.sym_sizes()) return void(to.copy_(from));
  if (from.dim() == 0) return void(to.fill_(from));
  // Leading dimensions of size one do not count.
  SymIntArrayRef sizes = from.sym_sizes();
  while (!sizes.empty() && sizes[0] == 1) sizes = sizes.drop_front();
  Tensor value = from.view(sizes);
  to.copy_(to.sym_sizes() == sizes ? value : value.expand(to.sym_sizes()));
}

/// Writes a number where one mask holds, by the operator that PyTorch takes; false where that is index_put_.
bool fill_where(const Prepared& prepared, const Scalar& value) {
  const Tensor& mask = prepared.indices[0];
  if (prepared.indices.size() != 1 || mask.dtype() != DType::Bool || !(mask.sym_sizes() == prepared.result.sym_sizes()))
    return false;
  prepared.result.masked_fill_(mask, value);
  return true;
}

/// Whether a write to the tensor would be seen by nobody but the handle it is written through.
bool is_nobody_elses(const Tensor& t) {
  return t.impl()->use_count() == 1 && !t.is_view() && !t.impl()->layer_state() && t.storage()->use_count() == 1;
}

void refuse_lost_write(const Tensor& to) {
  check<TypeError>(!is_nobody_elses(to),
                   "what is assigned to here is a tensor of its own, not a view: nobody would see what is written. "
                   "Elements that a mask or a list of positions names are written with index_put_");
}

}  // namespace

TensorIndex::TensorIndex(const char* text) : kind_(Kind::Ellipsis) {
  check<IndexError>(std::string_view(text) == "...", "\"...\" is the only text that stands for an index, got \"", text,
                    "\"");
}

Prepared prepare(const Tensor& self, const std::vector<TensorIndex>& items) { return Applier(self).apply(items); }

Tensor get(const Tensor& self, const std::vector<TensorIndex>& items) {
  Prepared prepared = prepare(self, items);
  if (!prepared.indices.empty()) return umbra::index(prepared.result, prepared.indices);
  return prepared.result.is_same(self) ? alias(self) : prepared.result;
}

void set(const Tensor& self, const std::vector<TensorIndex>& items, const Tensor& values) {
  Prepared prepared = prepare(self, items);
  if (prepared.indices.empty()) copy_to(prepared.result, values);
  else umbra::index_put_(prepared.result, prepared.indices, values);
}

void set(const Tensor& self, const std::vector<TensorIndex>& items, const Scalar& value) {
  Prepared prepared = prepare(self, items);
  if (prepared.indices.empty()) prepared.result.fill_(value);
  else if (!fill_where(prepared, value)) {
    const Tensor& to = prepared.result;
    umbra::index_put_(to, prepared.indices, scalar_tensor(value, {.dtype = to.dtype(), .device = to.device()}));
  }
}

}  // namespace umbra::indexing

namespace umbra {

using indexing::TensorIndex;

Tensor Tensor::operator[](SymInt i) const { return indexing::get(*this, {i}); }
Tensor Tensor::operator[](const Tensor& index) const { return indexing::get(*this, {index}); }
Tensor Tensor::index(const indexing::Indices& indices) const { return indexing::get(*this, indices.items()); }

Tensor Tensor::index_put_(const indexing::Indices& indices, const Tensor& values, bool accumulate) const {
  if (!accumulate) indexing::set(*this, indices.items(), values);
  else {
    indexing::Prepared prepared = indexing::prepare(*this, indices.items());
    if (prepared.indices.empty()) prepared.result.add_(values);
    else umbra::index_put_(prepared.result, prepared.indices, values, true);
  }
  return *this;
}
Tensor Tensor::index_put_(const indexing::Indices& indices, const Scalar& value) const {
  indexing::set(*this, indices.items(), value);
  return *this;
}

Tensor Tensor::operator=(const Tensor& values) && {
  indexing::refuse_lost_write(*this);
  indexing::copy_to(*this, values);
  return *this;
}
Tensor Tensor::operator=(const Scalar& value) && {
  indexing::refuse_lost_write(*this);
  return fill_(value);
}

Tensor Tensor::to(Device device, bool non_blocking, bool copy) const {
  return to({.device = device}, non_blocking, copy);
}

}  // namespace umbra
