#include "io/tensor_bytes.h"

#include <sys/mman.h>

#include <cstring>

namespace umbra::io {

Storage storage_over(const Bytes& bytes, DType dtype) {
  size_t alignment = static_cast<size_t>(item_size(is_complex(dtype) ? real_type(dtype) : dtype));
  auto size = static_cast<int64_t>(bytes.size());
  if (size > 0 && reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0)
    return StorageImpl::wrap(const_cast<std::byte*>(bytes.data()), size, [owner = bytes.owner()] {});
  Storage storage = StorageImpl::allocate(size);
  if (size > 0) std::memcpy(storage->data(), bytes.data(), bytes.size());
  return storage;
}

int64_t checked_numel(IntArrayRef sizes, const std::string& what) {
  int64_t numel = 1;
  bool overflow = false, empty = false;
  for (int64_t size : sizes) {
    check<ValueError>(size >= 0, what, " has the negative size ", size);
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(numel, size, &numel);
  }
  if (empty) return 0;
  // Keeps clear of the bound from which SymInt takes numbers for something else.
  check<ValueError>(!overflow && numel <= INT64_MAX / 16, what, " has sizes ", sizes, ", which are too large");
  return numel;
}

std::vector<int64_t> row_major_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    // Sizes beside a zero may be anything: their strides are never used, but must not overflow.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(sizes[d], 1), &stride)) stride = 1;
  }
  return strides;
}

namespace {

/// Elements that the geometry reaches to, from the storage's first; an error for what no storage could hold.
int64_t checked_extent(IntArrayRef sizes, IntArrayRef strides, int64_t offset, const std::string& what) {
  check<ValueError>(sizes.size() == strides.size(), what, " has ", sizes.size(), " sizes and ", strides.size(),
                    " strides");
  check<ValueError>(sizes.size() <= 64, what, " has ", sizes.size(), " dimensions; at most 64 are possible");
  check<ValueError>(offset >= 0, what, " has the negative storage offset ", offset);
  int64_t last = offset;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    check<ValueError>(strides[d] >= 0, what, " has the negative stride ", strides[d]);
    int64_t reach = 0;
    overflow |= sizes[d] > 0 && __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  if (checked_numel(sizes, what) == 0) return 0;
  check<ValueError>(!overflow && last < INT64_MAX / 16, what, " has strides ", strides, ", which are too large");
  return last + 1;
}

}  // namespace

Tensor tensor_over(const Storage& storage, DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                   const std::string& what) {
  int64_t extent = checked_extent(sizes, strides, offset, what);
  int64_t bytes = storage->bytes().value();
  check<ValueError>(extent <= bytes / item_size(dtype), what, " needs more data than the ", bytes,
                    " bytes there are: sizes ", sizes, ", strides ", strides, ", offset ", offset, ", ", name(dtype));
  auto impl = make_counted<TensorImpl>(storage, dtype, Device(), DispatchKey::CPU);
  impl->set_geometry(as_sym(sizes), as_sym(strides), offset);
  return Tensor(std::move(impl));
}

Tensor zeros_of(DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset, const std::string& what) {
  int64_t size = checked_extent(sizes, strides, offset, what) * item_size(dtype);
  if (size == 0) return tensor_over(StorageImpl::allocate(0), dtype, sizes, strides, offset, what);
  auto length = static_cast<size_t>(size);
  void* data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) fail<OutOfMemoryError>(what, " needs ", size, " bytes, more than this machine gives");
  Storage storage = StorageImpl::wrap(data, size, [data, length] { munmap(data, length); });
  return tensor_over(storage, dtype, sizes, strides, offset, what);
}

Tensor without_data(const Tensor& tensor) {
  Device meta(DeviceType::Meta);
  auto impl = make_counted<TensorImpl>(StorageImpl::without_data(tensor.storage()->bytes(), meta), tensor.dtype(), meta,
                                       DispatchKey::Meta);
  impl->set_geometry(tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
  return Tensor(std::move(impl));
}

Tensor tensor_over(const Bytes& bytes, DType dtype, IntArrayRef sizes, const std::string& what) {
  int64_t numel = checked_numel(sizes, what), size = 0;
  bool fits = !__builtin_mul_overflow(numel, item_size(dtype), &size) && static_cast<uint64_t>(size) == bytes.size();
  check<ValueError>(fits, what, " has ", bytes.size(), " bytes, which do not make sizes ", sizes, " of ", name(dtype));
  return tensor_over(storage_over(bytes, dtype), dtype, sizes, row_major_strides(sizes), 0, what);
}

void check_savable(const Tensor& tensor, const std::string& what) {
  check<ValueError>(tensor.defined(), what, " is not defined");
  check<ValueError>(!tensor.is_symbolic() && tensor.device().type == DeviceType::CPU && tensor.storage()->has_data(),
                    what, " has no data that could be saved: it is fake, or on another device (", tensor.device(), ")");
  check<ValueError>(item_size(tensor.dtype()) > 0, what, " has no dtype");
}

std::string_view storage_bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.storage()->data()), static_cast<size_t>(tensor.storage()->bytes().value())};
}

namespace {

/// Appends the elements below one index of the outer dimensions.
void pack(const Tensor& tensor, int64_t dim, const char* from, std::string& out) {
  auto item = static_cast<size_t>(tensor.item_size());
  if (dim == tensor.dim()) {
    out.append(from, item);
    return;
  }
  int64_t size = tensor.sizes()[dim], step = tensor.strides()[dim] * tensor.item_size();
  if (dim + 1 == tensor.dim() && step == tensor.item_size()) {
    out.append(from, static_cast<size_t>(size) * item);
    return;
  }
  for (int64_t i = 0; i < size; ++i) pack(tensor, dim + 1, from + i * step, out);
}

}  // namespace

std::string_view packed_bytes(const Tensor& tensor, std::string& buffer) {
  auto size = static_cast<size_t>(tensor.numel() * tensor.item_size());
  if (size == 0) return {};
  const char* data = static_cast<const char*>(tensor.raw_data());
  if (tensor.is_contiguous()) return {data, size};
  buffer.clear();
  buffer.reserve(size);
  pack(tensor, 0, data, buffer);
  return buffer;
}

const char* storage_class(DType dtype) {
  switch (dtype) {
    case DType::Float64: return "DoubleStorage";
    case DType::Float32: return "FloatStorage";
    case DType::Float16: return "HalfStorage";
    case DType::BFloat16: return "BFloat16Storage";
    case DType::Int64: return "LongStorage";
    case DType::Int32: return "IntStorage";
    case DType::Int16: return "ShortStorage";
    case DType::Int8: return "CharStorage";
    case DType::UInt8: return "ByteStorage";
    case DType::Bool: return "BoolStorage";
    case DType::Complex64: return "ComplexFloatStorage";
    case DType::Complex128: return "ComplexDoubleStorage";
    default: return nullptr;
  }
}

}  // namespace umbra::io
