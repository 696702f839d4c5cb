// Operators that give a tensor other memory or another size, in place.
#include "ops/common/factory_arguments.h"
#include "ops/common/needs_data.h"
#include "ops/common/unbacked.h"
#include "ops/factory/factory.h"
#include "umbra/core/sparse.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_sizes(SymIntArrayRef sizes) {
  for (SymInt s : sizes)
    if (!s.is_symbolic() && s.value() < 0)
      fail("Trying to create tensor with negative dimension ", s, ": ", to_string(sizes));
}

/// What a storage got more shows that it was never written, where that is asked for.
void fill_growth(const Tensor& self, int64_t before, int64_t after) {
  if (!self.storage()->has_data()) return;
  auto grown = make_counted<TensorImpl>(self.storage(), self.dtype(), self.device(), DispatchKeySet(DispatchKey::CPU));
  grown->set_geometry({SymInt(after - before)}, {SymInt(1)}, before);
  fill_new_memory(Tensor(std::move(grown)));
}

/// The memory first: where it cannot grow, the tensor stays as it was.
void set_size(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  const Storage& storage = self.storage();
  SymInt bytes = storage_bytes(sizes, strides, offset, self.item_size()), have = storage->bytes();
  if (bytes.is_symbolic() || have.is_symbolic()) {
    if (!storage->has_data()) storage->set_bytes(bytes);
  } else if (have < bytes) {
    storage->resize(bytes.value());
    fill_growth(self, have.value() / self.item_size(), bytes.value() / self.item_size());
  }
  self.impl()->set_geometry(sizes, strides, offset);
}

/// Whether a tensor has the size and so keeps its strides. Those of a contiguous one are what they would become, and
/// where only the run tells, the answer does not matter.
bool keeps_strides(const Tensor& self, SymIntArrayRef size) {
  if (static_cast<size_t>(self.dim()) != size.size()) return false;
  bool open = false;
  for (size_t d = 0; d < size.size(); ++d) open |= is_open(self.sym_sizes()[d], size[d]);
  return !(open && self.is_contiguous()) && self.sym_sizes() == size;
}

Tensor resize_to(const Tensor& self, SymIntArrayRef size, OptionalFormat format) {
  if (self.is_fake() || !make_nothing(size)) check_sizes(size);
  check(format != MemoryFormat::Preserve, "Unsupported memory formatPreserve");
  bool same_size = keeps_strides(self, size);
  if (format || !same_size)
    set_size(self, SymShape(size), strides_for(size, format.value_or(MemoryFormat::Contiguous)),
             self.sym_storage_offset());
  if (!same_size) self.impl()->bump_version();
  return self;
}

Tensor resize_like(const Tensor& self, const Tensor& other, OptionalFormat format) {
  if (format == MemoryFormat::Preserve) format = other.suggested_format();
  return resize_to(self, other.sym_sizes(), format);
}

/// A CSR matrix gets more rows or columns, which are empty. Rows that go would leave elements that no row has.
Tensor resize_sparse(const Tensor& self, SymIntArrayRef size, OptionalFormat) {
  check<NotImplementedError>(self.layout() == Layout::SparseCsr,
                             "Could not run 'aten::resize_' with arguments from the '",
                             self.layout() == Layout::SparseCoo ? "SparseCPU" : "SparseCsrCPU",
                             "' backend: it is not defined for tensors of layout ", to_string(self.layout()));
  check(size.size() >= 2, "torch.resize_: Only batched sparse CSR matrices are supported, but got size ",
        to_string(size));
  size_t batch = static_cast<size_t>(self.dim()) - 2;
  SymInt rows = size[size.size() - 2], columns = size.back(), before = self.sym_size(-2);
  check(columns >= self.sym_size(-1),
        "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not ",
        "supported. The original number of columns is ", self.sym_size(-1),
        " while the requested new number of columns is ", columns, ".");
  check<NotImplementedError>(
      rows >= before && size.size() == batch + 2 && size.slice(0, batch) == self.sym_sizes().slice(0, batch),
      "resize_ to fewer rows or to another batch of sparse CSR matrices is not in Umbra yet");
  SparseParts parts = sparse_parts(self);
  SymShape more(parts.compressed.sym_sizes());
  more.back() = rows - before;
  Tensor ends = parts.compressed.narrow(-1, -1, 1).expand(more);
  parts.compressed = cat({parts.compressed, ends}, -1);
  set_sparse(self, size, std::move(parts));
  return self;
}

Tensor resize_sparse_like(const Tensor& self, const Tensor& other, OptionalFormat) {
  if (self.layout() != Layout::SparseCoo) return resize_sparse(self, other.sym_sizes(), {});
  check(other.layout() == Layout::SparseCoo, "resize_as_ of a tensor of layout ", to_string(self.layout()),
        " needs one of the same layout, not ", to_string(other.layout()));
  return self.sparse_resize_(other.sizes(), other.sparse_dim(), other.dense_dim());
}

UMBRA_OPERATOR("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
    .all_backends(resize_to)
    .sparse(resize_sparse)
    .functional_form("aten::resize")
    .not_differentiable()
    .tags({Tag::Core, Tag::InPlaceView});

UMBRA_OPERATOR("resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("resize.out")
    .all_backends([](const Tensor& self, SymIntArrayRef size, OptionalFormat format) {
      return self.clone().resize_(size, format);
    })
    .not_differentiable()
    .tags({Tag::Generated});

UMBRA_OPERATOR("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
    .all_backends(resize_like)
    .sparse(resize_sparse_like)
    .functional_form("aten::resize_as")
    .not_differentiable()
    .tags({Tag::InPlaceView});

UMBRA_OPERATOR("resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor")
    .generated_out("resize_as.out")
    .use(NoOutputsOnMeta{"resize_as.out"})
    .all_backends([](const Tensor& self, const Tensor& other, OptionalFormat format) {
      return self.clone().resize_as_(other, format);
    })
    .not_differentiable()
    .tags({Tag::Generated});

// ---- set_: the memory of another tensor, read by the type that the tensor has ----

/// From here on changes are counted for the tensor alone: it had a count of its own before it came to this memory.
Tensor take_memory(const Tensor& self, Storage storage) {
  auto counter = make_counted<VersionCounter>();
  counter->version = self.version() + 1;
  self.impl()->set_version_counter(std::move(counter));
  self.impl()->set_storage(std::move(storage));
  return self;
}

void check_source(const Tensor& self, const Tensor& source) {
  check(self.device() == source.device(), "Attempted to set the storage of a tensor on device \"", self.device(),
        "\" to a storage on different device \"", source.device(),
        "\".  This is no longer allowed; the devices must match.");
}

/// Memory grows with a tensor's size alone: one that keeps its size takes what it needs, or nothing.
void check_memory(const Tensor& self, const Tensor& source) {
  if (!(self.sym_sizes() == source.sym_sizes()) || !(self.sym_strides() == source.sym_strides()) || self.is_meta())
    return;
  SymInt need = storage_bytes(source.sym_sizes(), source.sym_strides(), source.sym_storage_offset(), self.item_size()),
         have = source.storage()->bytes();
  if (need.is_symbolic() || have.is_symbolic() || need <= have) return;
  fail("setStorage: sizes ", to_string(source.sym_sizes()), ", strides ", to_string(source.sym_strides()),
       ", storage offset ", source.sym_storage_offset(), ", and itemsize ", self.item_size(),
       " requiring a storage size of ", need, " are out of bounds for storage of size ", have);
}

UMBRA_OPERATOR("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& source) {
      check_source(self, source);
      check_memory(self, source);
      Tensor out = take_memory(self, source.storage());
      set_size(out, source.sym_sizes(), source.sym_strides(), source.sym_storage_offset());
      return out;
    })
    .tags({Tag::InPlaceView});

UMBRA_OPERATOR("set_(Tensor(a!) self) -> Tensor(a!)")
    .all_backends([](const Tensor& self) {
      bool with_data = self.storage()->has_data();
      Tensor out = take_memory(
          self, with_data ? StorageImpl::allocate(0, self.device()) : StorageImpl::without_data(0, self.device()));
      out.impl()->set_contiguous({0});
      return out;
    })
    .tags({Tag::InPlaceView});

UMBRA_OPERATOR(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] "
    "stride=[]) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& source, SymInt offset, SymIntArrayRef size,
                     SymIntArrayRef stride) {
      check_source(self, source);
      check(source.is_contiguous(), "passed in tensor to be used as storage must be contiguous");
      check_sizes(size);
      check(stride.empty() || stride.size() == size.size(), "mismatch in length of strides and shape");
      check(!offset.has_hint() || offset.hint() >= 0, "Tensor: invalid storage offset ", offset);
      SymShape strides = stride.empty() ? contiguous_strides(size) : SymShape(stride);
      Tensor out = take_memory(self, source.storage());
      set_size(out, SymShape(size), strides, offset);
      return out;
    })
    .tags({Tag::InPlaceView});

UMBRA_OPERATOR("set(Tensor self) -> Tensor")
    .generated_out("set.out")
    .all_backends([](const Tensor& self) { return self.clone().set_(); })
    .tags({Tag::Generated});
UMBRA_OPERATOR("set.source_Tensor(Tensor self, Tensor source) -> Tensor")
    .generated_out("set.source_Tensor_out")
    .all_backends([](const Tensor& self, const Tensor& source) { return self.clone().set_(source); })
    .tags({Tag::Generated});

// The tensor becomes another one, type and all; its history stays.
UMBRA_OPERATOR("shallow_copy_data_(Tensor(a!) self, Tensor source) -> Tensor(a!)")
    .all_backends([](const Tensor& self, const Tensor& source) {
      check(self.device().type == source.device().type,
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
            "type.");
      check(!self.requires_grad() || source.is_floating_point() || source.is_complex(),
            "data set to a tensor that requires gradients must be floating point or complex dtype");
      Tensor out = take_memory(self, source.storage());
      out.impl()->set_dtype(source.dtype());
      out.impl()->set_geometry(SymShape(source.sym_sizes()), SymShape(source.sym_strides()),
                               source.sym_storage_offset());
      return out;
    })
    .not_differentiable();

}  // namespace
}  // namespace umbra::ops
