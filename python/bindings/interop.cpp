// Memory shared with NumPy and everything else that speaks Python's buffer protocol.
#include <atomic>

#include "call.h"
#include "construct.h"
#include "core/stored_types.h"
#include "lock.h"
#include "numpy_arrays.h"
#include "tensor_type.h"
#include "umbra/core/warning.h"
#include "umbra/jit/trace.h"
#include "values.h"

namespace umbra::python {

namespace {

[[noreturn]] void fail_of_elements(const std::string& what) {
  fail<TypeError>("can't convert ", what,
                  ". The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
                  "int16, int8, uint64, uint32, uint16, uint8, and bool.");
}

/// The class of a NumPy array's elements, or of a number of NumPy's: "numpy.longdouble"; empty for what is not NumPy's.
std::string numpy_element_name(PyObject* object) {
  if (!is_numpy_array(object) && !std::string_view(Py_TYPE(object)->tp_name).starts_with("numpy.")) return "";
  nb::handle type = nb::handle(object).attr("dtype").attr("type");
  return concat("numpy.", nb::cast<std::string>(type.attr("__name__")));
}

/// Times have no format: NumPy refuses the buffers of arrays of them, and those of single ones have no shape.
void refuse_times(const std::string& element) {
  if (element == "numpy.datetime64" || element == "numpy.timedelta64")
    fail_of_elements("np.ndarray of type " + element);
}

/// The dtype of a buffer's format, in struct's notation.
DType dtype_of_format(const char* format, Py_ssize_t item, const std::string& element) {
  std::string_view f = format ? format : "B";
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || f[0] == '<')) f.remove_prefix(1);
  check<ValueError>(
      f.empty() || (f[0] != '>' && f[0] != '!'),
      "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
      "currently not supported.");
  if (f == "?") return DType::Bool;
  if (f == "e") return DType::Float16;
  if (f == "f") return DType::Float32;
  if (f == "d") return DType::Float64;
  if (f == "Zf") return DType::Complex64;
  if (f == "Zd") return DType::Complex128;
  bool is_signed = f.size() == 1 && std::string_view("bhilq").find(f[0]) != std::string_view::npos;
  bool is_unsigned = f.size() == 1 && std::string_view("BHILQc").find(f[0]) != std::string_view::npos;
  if (is_signed) return item == 1 ? DType::Int8 : item == 2 ? DType::Int16 : item == 4 ? DType::Int32 : DType::Int64;
  if (is_unsigned)
    return item == 1 ? DType::UInt8 : item == 2 ? DType::UInt16 : item == 4 ? DType::UInt32 : DType::UInt64;
  fail_of_elements(element.empty() ? concat("an array of format '", std::string(f), "'")
                                   : "np.ndarray of type " + element);
}

/// A buffer of Python's, held until the memory is no longer used; let go under the interpreter lock.
struct HeldBuffer {
  Py_buffer view;
  HeldBuffer(PyObject* object, int flags) {
    if (PyObject_GetBuffer(object, &view, flags) < 0) throw nb::python_error();
  }
  ~HeldBuffer() {
    if (!Py_IsInitialized()) return;
    WithLock lock;
    PyBuffer_Release(&view);
  }
};

std::shared_ptr<HeldBuffer> hold(PyObject* object) {
  // Read-only memory is taken too; writing to it is the user's own risk, as in PyTorch.
  PyErr_Clear();
  try {
    return std::make_shared<HeldBuffer>(object, PyBUF_RECORDS);
  } catch (nb::python_error&) {
    return std::make_shared<HeldBuffer>(object, PyBUF_RECORDS_RO);
  }
}

const char* numpy_name(DType t) {
  check<TypeError>(t != DType::BFloat16 && t != DType::Complex32 && !is_float8(t), "Got unsupported ScalarType ",
                   kernel_name(t));
  return name(t);
}

/// Says, once in a process for each kind of memory, that a tensor does not know that it must not write.
void warn_of_read_only(const char* kind, std::atomic<bool>& warned) {
  if (!tells_once(warned)) return;
  warn("The given ", kind,
       " is not writable, and tensors that cannot be written are not supported: a write to the tensor goes to memory "
       "that was not meant for it. Copy it, or make it writable, before it becomes a tensor.");
}

Tensor frombuffer(nb::handle object, DType dtype, int64_t count, int64_t offset, bool requires_grad) {
  check<ValueError>(PyObject_CheckBuffer(object.ptr()), "object does not implement Python buffer protocol.");
  auto held = hold(object.ptr());
  static std::atomic<bool> warned = false;
  if (held->view.readonly) warn_of_read_only("buffer", warned);
  int64_t item = item_size(dtype), length = held->view.len;
  check<ValueError>(length > 0 && count != 0, "both buffer length (", length, ") and count (", count,
                    ") must not be 0");
  check<ValueError>(offset >= 0 && offset < length, "offset (", offset,
                    " bytes) must be non-negative and no greater than "
                    "buffer length (",
                    length, " bytes) minus 1");
  check<ValueError>(count > 0 || (length - offset) % item == 0, "buffer length (", length - offset,
                    " bytes) after offset (", offset, " bytes) must be a multiple of element size (", item, ")");
  int64_t elements = count < 0 ? (length - offset) / item : count;
  check<ValueError>(offset + elements * item <= length, "requested buffer length (", elements, " * ", item,
                    " bytes) after offset (", offset, " bytes) must not be greater than actual buffer length (", length,
                    " bytes)");
  Tensor out = from_memory(static_cast<char*>(held->view.buf) + offset, {elements}, {int64_t{1}}, dtype, [held] {});
  if (requires_grad) require_gradient(out);
  return out;
}

}  // namespace

Tensor tensor_from_buffer(PyObject* object) {
  std::string element = numpy_element_name(object);
  refuse_times(element);
  auto held = hold(object);
  const Py_buffer& view = held->view;
  DType dtype = dtype_of_format(view.format, view.itemsize, element);
  std::vector<int64_t> sizes(view.shape, view.shape + view.ndim), strides;
  for (int i = 0; i < view.ndim; ++i) {
    check<ValueError>(view.strides[i] >= 0,
                      "At least one stride in the given numpy array is negative, and tensors with negative strides are "
                      "not currently supported. (You can probably work around this by making a copy of your array "
                      " with array.copy().) ");
    check<ValueError>(view.strides[i] % view.itemsize == 0,
                      "given numpy array strides not a multiple of the element byte size. "
                      "Copy the numpy array to reallocate the memory.");
    strides.push_back(view.strides[i] / view.itemsize);
  }
  // Of an array without elements NumPy tells a buffer's reader other strides than the array's own.
  if (view.len == 0 && is_numpy_array(object))
    for (int i = 0; i < view.ndim; ++i)
      strides[i] = nb::cast<int64_t>(nb::handle(object).attr("strides")[nb::int_(i)]) / view.itemsize;
  return from_memory(view.buf, sizes, strides, dtype, [held] {});
}

PyObject* to_numpy(const Tensor& t) {
  check<TypeError>(!t.keys().has(DispatchKey::Sparse), "can't convert ", short_name(t.layout()),
                   " layout tensor to numpy. Use Tensor.to_dense() first.");
  check(!t.keys().has(DispatchKey::Level), "Cannot access data pointer of Tensor that doesn't have storage");
  bool wrapper = t.impl()->keys().has(DispatchKey::Subclass) && !t.storage()->has_data();
  check(!t.is_fake() && !wrapper, ".numpy() is not supported for tensor subclasses.");
  check<TypeError>(t.device().type == DeviceType::CPU, "can't convert ", t.device(),
                   " device type tensor to numpy. Use "
                   "Tensor.cpu() to copy the tensor to host memory first.");
  check(!is_grad_enabled() || !t.requires_grad(),
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  check(!t.is_conj(),
        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.");
  check(!t.is_neg(),
        "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.");
  int64_t item = t.item_size();
  nb::list strides;
  for (int64_t s : t.strides()) strides.append(s * item);
  nb::object ndarray = nb::module_::import_("numpy").attr("ndarray");
  nb::object dtype = make_text(numpy_name(t.dtype()));
  nb::object shape = owned(wrap_tuple(t.sym_sizes()));
  if (t.numel() == 0) return ndarray(shape, dtype).release().ptr();
  return ndarray(shape, dtype, nb::steal(storage_buffer(t.storage())), t.storage_offset() * item, nb::tuple(strides))
      .release()
      .ptr();
}

void bind_interop(nb::module_& m) {
  m.def(
      "from_numpy",
      [](nb::handle array) {
        check<TypeError>(is_numpy_array(array.ptr()), "expected np.ndarray (got ",
                         short_type_name(Py_TYPE(array.ptr())), ")");
        jit::warn_of_constant("torch.from_numpy");
        static std::atomic<bool> warned = false;
        if (!nb::cast<bool>(array.attr("flags").attr("writeable"))) warn_of_read_only("NumPy array", warned);
        return call<"aten::lift_fresh">(tensor_from_buffer(array.ptr()));
      },
      "A tensor that shares a numpy array's memory.");
  m.def("frombuffer", &frombuffer, nb::arg("buffer"), nb::kw_only(), nb::arg("dtype"), nb::arg("count") = -1,
        nb::arg("offset") = 0, nb::arg("requires_grad") = false,
        "A tensor of one dimension over the memory of an object with a buffer, such as a bytearray.");
  m.def("_tensor_from_buffer", [](nb::handle object) { return tensor_from_buffer(object.ptr()); });
}

}  // namespace umbra::python
