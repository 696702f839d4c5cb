// x.to(...), x.float(), x.cpu(), x.type(): conversions by dtype and device.
#include "conversions.h"

#include "call.h"
#include "overridable.h"
#include "tensor_type.h"
#include "values.h"

namespace umbra::python {

namespace {

/// What `to` was asked for.
struct Request {
  std::optional<DType> dtype;
  std::optional<Device> device;
  Value format;
  bool non_blocking = false, copy = false;
};

bool read_flag(PyObject* object, const char* name) {
  check<TypeError>(PyBool_Check(object), "to(): argument '", name, "' must be bool, not ",
                   short_type_name(Py_TYPE(object)));
  return object == Py_True;
}

/// A positional argument: a tensor to be like, a dtype, a device.
bool read_target(PyObject* object, Request& out) {
  DType dtype;
  Device device;
  if (is_tensor(object)) {
    const Tensor& other = tensor_of(object);
    out.dtype = other.dtype();
    out.device = other.device();
  } else if (read_dtype(object, dtype)) {
    out.dtype = dtype;
  } else if (read_device(object, device)) {
    out.device = device;
  } else {
    return object == Py_None;
  }
  return true;
}

[[noreturn]] void fail_target(PyObject* object) {
  fail<TypeError>(
      "to() received an invalid combination of arguments - got (", short_type_name(Py_TYPE(object)),
      "), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, "
      "bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool non_blocking = "
      "False, bool copy = False, *, torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = "
      "False, bool copy = False, *, torch.memory_format memory_format = None)\n");
}

Request read_request(PyObject* args, PyObject* kwargs) {
  Request out;
  Py_ssize_t flags = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    if (PyBool_Check(item)) (flags++ == 0 ? out.non_blocking : out.copy) = item == Py_True;
    else if (!read_target(item, out)) fail_target(item);
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
    std::string_view name = text_of(key);
    if (name == "non_blocking") out.non_blocking = read_flag(value, "non_blocking");
    else if (name == "copy") out.copy = read_flag(value, "copy");
    else if (name == "memory_format") {
      if (value == Py_None) continue;
      check<TypeError>(Py_TYPE(value) == g_memory_format_type,
                       "to(): argument 'memory_format' must be torch.memory_format, not ",
                       short_type_name(Py_TYPE(value)));
      out.format = Value(static_cast<MemoryFormat>(constant_of(value)));
    } else if (name == "dtype" || name == "device" || name == "tensor" || name == "other") {
      if (!read_target(value, out)) fail_target(value);
    } else {
      fail<TypeError>("to() got an unexpected keyword argument '", std::string(name), "'");
    }
  }
  return out;
}

Tensor convert(const Tensor& self, const Request& r) {
  if (r.device && r.dtype) return call<"aten::to.device">(self, *r.device, *r.dtype, r.non_blocking, r.copy, r.format);
  if (r.dtype) return call<"aten::to.dtype">(self, *r.dtype, r.non_blocking, r.copy, r.format);
  if (r.device)
    return call<"aten::to.dtype_layout">(self, self.dtype(), Layout::Strided, *r.device, Value(), r.non_blocking,
                                         r.copy, r.format);
  if (r.copy || !r.format.is_none())
    return call<"aten::to.dtype_layout">(self, Value(), Value(), Value(), Value(), r.non_blocking, r.copy, r.format);
  return self;
}

PyObject* to(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] { return wrap(convert(tensor_of(self), read_request(args, kwargs))); });
}

template <DType kDType> PyObject* to_dtype(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] { return wrap(call<"aten::to.dtype">(tensor_of(self), kDType)); });
}
PyObject* to_cpu(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] { return wrap(convert(tensor_of(self), {.device = Device()})); });
}
PyObject* to_cuda(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&] {
    Device device(DeviceType::CUDA);
    if (PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) != Py_None)
      check<TypeError>(read_device(PyTuple_GET_ITEM(args, 0), device),
                       "cuda(): argument 'device' must be torch.device");
    return wrap(convert(tensor_of(self), {.device = device}));
  });
}

std::string legacy_name(const Tensor& t) {
  std::string device = t.device().type == DeviceType::CPU ? "" : to_string(Device(t.device().type)) + ".";
  return "torch." + device + kernel_name(t.dtype()) + "Tensor";
}

/// "torch.FloatTensor" or "torch.cuda.FloatTensor" to its dtype.
DType dtype_of_legacy_name(std::string_view text) {
  size_t dot = text.rfind('.');
  std::string_view last = dot == std::string_view::npos ? text : text.substr(dot + 1);
  for (int i = 0; i < kDTypeCount; ++i)
    if (last == std::string(kernel_name(static_cast<DType>(i))) + "Tensor") return static_cast<DType>(i);
  fail<ValueError>("invalid type: '", std::string(text), "'");
}

PyObject* type(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    PyObject* target = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (!target && kwargs) target = PyDict_GetItemString(kwargs, "dtype");
    if (!target || target == Py_None) return make_text(legacy_name(t)).release().ptr();
    Request request;
    if (PyUnicode_Check(target)) {
      request.dtype = dtype_of_legacy_name(text_of(target));
    } else if (nb::hasattr(nb::handle(target), "_legacy_dtype")) {  // torch.FloatTensor itself
      DType dtype;
      read_dtype(nb::object(nb::handle(target).attr("_legacy_dtype")).ptr(), dtype);
      request.dtype = dtype;
    } else if (!read_target(target, request)) {
      fail<TypeError>("dtype must be a type, str, or dtype object");
    }
    return wrap(convert(t, request));
  });
}

}  // namespace

void add_conversion_methods(std::vector<PyMethodDef>& methods) {
  std::initializer_list<PyMethodDef> own = {
      method<"to", to>(),
      method<"type", type>(),
      method<"cpu", to_cpu>(),
      method<"cuda", to_cuda>(),
      method<"float", to_dtype<DType::Float32>>(),
      method<"double", to_dtype<DType::Float64>>(),
      method<"half", to_dtype<DType::Float16>>(),
      method<"bfloat16", to_dtype<DType::BFloat16>>(),
      method<"int", to_dtype<DType::Int32>>(),
      method<"long", to_dtype<DType::Int64>>(),
      method<"short", to_dtype<DType::Int16>>(),
      method<"char", to_dtype<DType::Int8>>(),
      method<"byte", to_dtype<DType::UInt8>>(),
      method<"bool", to_dtype<DType::Bool>>(),
      method<"cfloat", to_dtype<DType::Complex64>>(),
      method<"cdouble", to_dtype<DType::Complex128>>(),
  };
  methods.insert(methods.end(), own);
}

}  // namespace umbra::python
