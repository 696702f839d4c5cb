// x.to(...), x.float(), x.cpu(), x.type(): conversions by dtype and device.
#include "conversions.h"

#include <algorithm>

#include "call.h"
#include "overridable.h"
#include "signatures.h"
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

/// The arguments of one call of `to`, by place and by name, read as one of its three forms: like a tensor, to a dtype,
/// or to a device and a dtype.
class RequestReader {
 public:
  RequestReader(PyObject* args, PyObject* kwargs) : args_(args), kwargs_(kwargs) {
    PyObject* first = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    DType dtype;
    if (first && is_tensor(first)) places_ = {"tensor", "non_blocking", "copy"};
    else if (first && read_dtype(first, dtype)) places_ = {"dtype", "non_blocking", "copy"};
    else if (!first && kwargs && PyDict_GetItemString(kwargs, "tensor")) places_ = {"tensor", "non_blocking", "copy"};
  }

  Request read() {
    auto count = static_cast<size_t>(PyTuple_GET_SIZE(args_));
    check<TypeError>(count <= 4, "to() takes from 0 to 4 positional arguments but ", count, " were given");
    if (count > places_.size()) refuse();
    for (size_t i = 0; i < count; ++i) take(places_[i], PyTuple_GET_ITEM(args_, static_cast<Py_ssize_t>(i)));
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (kwargs_ && PyDict_Next(kwargs_, &position, &key, &value)) {
      std::string_view name = text_of(key);
      auto place = std::ranges::find(places_, name);
      bool known = name == "memory_format" || place != places_.end();
      if (!known || (place != places_.end() && static_cast<size_t>(place - places_.begin()) < count)) refuse();
      take(name, value);
    }
    return out_;
  }

 private:
  void take(std::string_view name, PyObject* object) {
    DType dtype;
    Device device;
    if (name == "non_blocking" || name == "copy") {
      if (!PyBool_Check(object)) refuse();
      (name == "copy" ? out_.copy : out_.non_blocking) = object == Py_True;
    } else if (name == "tensor") {
      if (!is_tensor(object)) refuse();
      out_.dtype = tensor_of(object).dtype();
      out_.device = tensor_of(object).device();
      if (!is_plain_tensor_type(Py_TYPE(object))) {  // whose handler may say another
        nb::object told = nb::steal(checked(PyObject_GetAttrString(object, "device")));
        if (!read_device(told.ptr(), device)) refuse();
        out_.device = device;
      }
    } else if (object == Py_None) {
      return;
    } else if (name == "memory_format") {
      if (Py_TYPE(object) != g_memory_format_type) refuse();
      out_.format = Value(static_cast<MemoryFormat>(constant_of(object)));
    } else if (name == "dtype") {
      if (!read_dtype(object, dtype)) refuse();
      out_.dtype = dtype;
    } else {
      if (!read_device(object, device)) refuse();
      out_.device = device;
    }
  }

  [[noreturn]] void refuse() const {
    std::string given;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args_); ++i)
      given += (given.empty() ? "" : ", ") + argument_type(PyTuple_GET_ITEM(args_, i));
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (kwargs_ && PyDict_Next(kwargs_, &position, &key, &value))
      given += concat(given.empty() ? "" : ", ", std::string(text_of(key)), "=", argument_type(value));
    if (PyTuple_GET_SIZE(args_) == 0) given += ", ";
    fail<TypeError>(
        "to() received an invalid combination of arguments - got (", given,
        "), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, "
        "bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool non_blocking = "
        "False, bool copy = False, *, torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking "
        "= "
        "False, bool copy = False, *, torch.memory_format memory_format = None)\n");
  }

  PyObject *args_, *kwargs_;
  std::vector<std::string_view> places_ = {"device", "dtype", "non_blocking", "copy"};
  Request out_;
};

Tensor convert(const Tensor& self, const Request& r) {
  if (r.device && r.dtype) return call<"aten::to.device">(self, *r.device, *r.dtype, r.non_blocking, r.copy, r.format);
  if (r.dtype) return call<"aten::to.dtype">(self, *r.dtype, r.non_blocking, r.copy, r.format);
  if (r.device)
    return call<"aten::to.dtype_layout">(self, self.dtype(), self.layout(), *r.device, Value(), r.non_blocking, r.copy,
                                         r.format);
  if (r.copy || !r.format.is_none())
    return call<"aten::to.dtype_layout">(self, Value(), Value(), Value(), Value(), r.non_blocking, r.copy, r.format);
  return self;
}

PyObject* to(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Request request;
    try {
      request = RequestReader(args, kwargs).read();
    } catch (const TypeError&) {
      PyObject* result = nullptr;  // a Proxy, say
      if (offer_call("to", self, args, kwargs, &result)) return result;
      throw;
    }
    return wrap(convert(tensor_of(self), request));
  });
}

/// What a conversion with a name of its own is told: `x.half(memory_format=...)`, `x.cuda(0, non_blocking=True)`.
/// `places` are the arguments that need no name; a memory format always does.
Request told_by_name(const char* name, std::vector<std::string_view> places, PyObject* args, PyObject* kwargs) {
  Request out;
  auto take = [&](std::string_view argument, PyObject* object) {
    Device device;
    auto expect = [&](bool fits, const char* type) {
      check<TypeError>(fits, name, "(): argument '", std::string(argument), "' must be ", type, ", not ",
                       short_type_name(Py_TYPE(object)));
    };
    if (argument == "non_blocking") {
      expect(PyBool_Check(object), "bool");
      out.non_blocking = object == Py_True;
    } else if (object == Py_None) {
      return;
    } else if (argument == "memory_format") {
      expect(Py_TYPE(object) == g_memory_format_type, "torch.memory_format");
      out.format = Value(static_cast<MemoryFormat>(constant_of(object)));
    } else {
      expect(read_device(object, device), "torch.device");
      out.device = device;
    }
  };
  auto count = static_cast<size_t>(PyTuple_GET_SIZE(args));
  check<TypeError>(count <= places.size(), name, "() takes ", places.size(), " positional arguments but ", count,
                   count == 1 ? " was given" : " were given");
  for (size_t i = 0; i < count; ++i) take(places[i], PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
    auto place = std::ranges::find(places, text_of(key));
    bool known = text_of(key) == "memory_format" || place != places.end();
    check<TypeError>(known, name, "() got an unexpected keyword argument '", std::string(text_of(key)), "'");
    bool twice = place != places.end() && static_cast<size_t>(place - places.begin()) < count;
    check<TypeError>(!twice, name, "() got multiple values for argument '", std::string(text_of(key)), "'");
    take(text_of(key), value);
  }
  return out;
}

bool is_told_nothing(PyObject* args, PyObject* kwargs) {
  return PyTuple_GET_SIZE(args) == 0 && (!kwargs || PyDict_GET_SIZE(kwargs) == 0);
}

/// "bool", "half", "cfloat": the method that converts to a type.
std::string name_of_conversion(DType dtype) {
  if (dtype == DType::Complex64) return "cfloat";
  if (dtype == DType::Complex128) return "cdouble";
  if (dtype == DType::Complex32) return "chalf";
  std::string name(kernel_name(dtype));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

template <DType kDType> PyObject* to_dtype(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (is_told_nothing(args, kwargs)) return wrap(call<"aten::to.dtype">(tensor_of(self), kDType));
    Request request = told_by_name(name_of_conversion(kDType).c_str(), {}, args, kwargs);
    request.dtype = kDType;
    return wrap(convert(tensor_of(self), request));
  });
}
PyObject* to_cpu(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Request request = told_by_name("cpu", {}, args, kwargs);
    request.device = Device();
    return wrap(convert(tensor_of(self), request));
  });
}
PyObject* to_cuda(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Request request = told_by_name("cuda", {"device", "non_blocking"}, args, kwargs);
    if (!request.device) request.device = Device(DeviceType::CUDA);
    return wrap(convert(tensor_of(self), request));
  });
}

std::string legacy_name(const Tensor& t) {
  std::string device = t.device().type == DeviceType::CPU ? "" : to_string(Device(t.device().type)) + ".";
  return "torch." + device + kernel_name(t.dtype()) + "Tensor";
}

/// "torch.FloatTensor" or "torch.cuda.FloatTensor" to its dtype.
Device device_of_legacy_name(std::string_view text) {
  size_t first = text.find('.'), last = text.rfind('.');
  if (first == last) return Device();
  return Device(std::string(text.substr(first + 1, last - first - 1)));
}
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
    PyObject *target = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr, *key, *value;
    Py_ssize_t position = 0;
    check<TypeError>(PyTuple_GET_SIZE(args) <= 2, "type() takes at most 2 positional arguments");
    while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
      bool is_dtype = text_of(key) == "dtype" && !target;
      check<TypeError>(is_dtype || text_of(key) == "non_blocking", "type() got an unexpected keyword argument '",
                       std::string(text_of(key)), "'");
      if (is_dtype) target = value;
    }
    if (!target || target == Py_None) return make_text(legacy_name(t)).release().ptr();
    DType dtype;
    if (PyUnicode_Check(target)) {
      dtype = dtype_of_legacy_name(text_of(target));
      return wrap(convert(t, {.dtype = dtype, .device = device_of_legacy_name(text_of(target))}));
    } else if (nb::hasattr(nb::handle(target), "_legacy_dtype")) {  // torch.FloatTensor itself
      read_dtype(nb::object(nb::handle(target).attr("_legacy_dtype")).ptr(), dtype);
    } else if (target == reinterpret_cast<PyObject*>(g_tensor_type)) {
      dtype = default_dtype();
    } else if (PyType_Check(target)) {
      fail<ValueError>("invalid type: '", short_type_name(reinterpret_cast<PyTypeObject*>(target)), "'");
    } else if (!read_dtype(target, dtype)) {
      fail<TypeError>("dtype must be a type, str, or dtype object");
    }
    return wrap(convert(t, {.dtype = dtype}));
  });
}

/// What Module.to is asked for: device, dtype, non_blocking and memory format.
nb::tuple parse_to(nb::args args, nb::kwargs kwargs) {
  Request request = RequestReader(args.ptr(), kwargs.ptr()).read();
  check(!request.copy, ".to() does not accept copy argument");
  nb::object device = nb::none(), dtype = nb::none();
  if (request.device) device = nb::steal(wrap(*request.device));
  if (request.dtype) dtype = nb::steal(wrap(*request.dtype));
  return nb::make_tuple(device, dtype, request.non_blocking, nb::steal(wrap(request.format)));
}

}  // namespace

void bind_conversions(nb::module_& m) { m.def("_parse_to", &parse_to); }

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
