#include "construct.h"

#include <algorithm>
#include <atomic>

#include "call.h"
#include "core/stored_types.h"
#include "kernels/fits.h"
#include "numpy_arrays.h"
#include "tensor_type.h"
#include "torch_function.h"
#include "umbra/capture/functionalize.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/jit/trace.h"
#include "values.h"

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)
bool type_caster<umbra::DType>::from_python(handle source, uint8_t, cleanup_list*) noexcept {
  return umbra::python::read_dtype(source.ptr(), value);
}
handle type_caster<umbra::DType>::from_cpp(umbra::DType source, rv_policy, cleanup_list*) noexcept {
  return umbra::python::wrap(source);
}
bool type_caster<umbra::Device>::from_python(handle source, uint8_t, cleanup_list*) noexcept {
  try {
    return umbra::python::read_device(source.ptr(), value);
  } catch (...) {  // a string that names no device: torch's own words come from the operator
    return false;
  }
}
handle type_caster<umbra::Device>::from_cpp(umbra::Device source, rv_policy, cleanup_list*) noexcept {
  return umbra::python::guarded([&] { return umbra::python::wrap(source); });
}
NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)

namespace umbra::python {

namespace {

/// Calls `body` with a value of the element type.
template <class F> decltype(auto) with_type(DType dtype, F&& body) {
  switch (dtype) {
    case DType::UInt8: return body(uint8_t{});
    case DType::Int8: return body(int8_t{});
    case DType::Int16: return body(int16_t{});
    case DType::Int32: return body(int32_t{});
    case DType::Int64: return body(int64_t{});
    case DType::UInt16: return body(uint16_t{});
    case DType::UInt32: return body(uint32_t{});
    case DType::UInt64: return body(uint64_t{});
    case DType::Float16: return body(Half{});
    case DType::BFloat16: return body(BFloat16{});
    case DType::Float32: return body(float{});
    case DType::Float64: return body(double{});
    case DType::Complex64: return body(std::complex<float>{});
    case DType::Complex128: return body(std::complex<double>{});
    case DType::Bool: return body(bool{});
    case DType::Float8E4M3: return body(Float8E4M3{});
    case DType::Float8E5M2: return body(Float8E5M2{});
    case DType::Float8E4M3FNUZ: return body(Float8E4M3FNUZ{});
    case DType::Float8E5M2FNUZ: return body(Float8E5M2FNUZ{});
    case DType::Float8E8M0FNU: return body(Float8E8M0FNU{});
    case DType::Complex32: return body(ComplexHalf{});
    case DType::Undefined: break;
  }
  fail("elements of dtype ", dtype, " cannot be read or written one by one");
}

template <class T>
constexpr bool is_complex_type =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>> || std::is_same_v<T, ComplexHalf>;

bool is_nested(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }
bool is_sequence_of_data(PyObject* object) {
  return is_nested(object) || (PySequence_Check(object) && !is_tensor(object));
}

/// The sizes that the first element of each level tells; the others are compared with them when they are read.
std::vector<int64_t> sizes_of(PyObject* data) {
  std::vector<int64_t> sizes;
  nb::object level = nb::borrow(data);
  while (is_sequence_of_data(level.ptr())) {
    Py_ssize_t length = PySequence_Size(level.ptr());
    if (length < 0) throw nb::python_error();
    sizes.push_back(length);
    check<ValueError>(sizes.size() <= 128, "too many dimensions '", short_type_name(Py_TYPE(level.ptr())), "'");
    if (length == 0) break;
    nb::object first = nb::steal(PySequence_GetItem(level.ptr(), 0));
    if (!first.is_valid()) {
      PyErr_Clear();
      fail<ValueError>("could not determine the shape of object type '", short_type_name(Py_TYPE(level.ptr())), "'");
    }
    level = std::move(first);
  }
  return sizes;
}

bool is_symbol(PyObject* object) { return is_sym_int(object) || is_sym_float(object) || is_sym_bool(object); }

/// Whether a number among the data is one that a captured program computes.
bool has_symbol(PyObject* data) {
  Scalar value;
  if (!is_nested(data)) return is_symbol(data) && read_scalar(data, value) && value.is_symbolic();
  PyObject** items = PySequence_Fast_ITEMS(data);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(data),
                     [&](PyObject* item) { return item != data && has_symbol(item); });
}

/// The type of NumPy's arrays and numbers; nothing where it is of another kind.
std::optional<DType> numpy_dtype(PyObject* object) {
  std::string_view name = type_name(object);
  bool array = is_numpy_array(object);
  if (!array && !name.starts_with("numpy.")) return std::nullopt;
  if (DType t = dtype_from_name(std::string(name.substr(6))); !array && t != DType::Undefined) return t;
  if (name.starts_with("numpy.bool")) return DType::Bool;
  return tensor_from_buffer(object).dtype();
}

/// The type that holds all elements.
DType inferred_dtype(PyObject* object) {
  if (PyFloat_CheckExact(object)) return default_dtype();
  if (PyLong_CheckExact(object)) return DType::Int64;
  if (PyBool_Check(object) || is_sym_bool(object)) return DType::Bool;
  if (is_tensor(object)) return tensor_of(object).dtype();
  if (PyUnicode_Check(object) || PyBytes_Check(object))
    fail<TypeError>("new(): invalid data type '", short_type_name(Py_TYPE(object)), "'");
  if (!is_nested(object)) {
    if (std::optional<DType> own = numpy_dtype(object)) return *own;
    if (PyComplex_Check(object)) return complex_type(default_dtype());
    if (PyFloat_Check(object) || is_sym_float(object)) return default_dtype();
    if (PyLong_Check(object) || is_sym_int(object)) return DType::Int64;
    if (!is_sequence_of_data(object)) fail("Could not infer dtype of ", short_type_name(Py_TYPE(object)));
  }
  nb::object list = owned(PySequence_Fast(object, "not a sequence"));
  Py_ssize_t length = PySequence_Fast_GET_SIZE(list.ptr());
  if (length == 0) return default_dtype();
  DType common = DType::Undefined;
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list.ptr(), i);
    check<TypeError>(item != object, "new(): self-referential lists are incompatible");
    DType t = inferred_dtype(item);
    common = common == DType::Undefined || t == common ? t : promote_types(common, t);
  }
  return common;
}

/// A Python integer of 64 bits, without a sign for a type that has none of them.
Scalar integer_element(PyObject* object, DType dtype) {
  if (dtype == DType::UInt64) {
    check<TypeError>(PyLong_Check(object), "an integer is required");
    unsigned long long wide = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) throw nb::python_error();
    return Scalar(wide);
  }
  if (PyFloat_Check(object)) return Scalar(PyFloat_AS_DOUBLE(object));
  nb::object number = owned(PyNumber_Index(object));
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  check<ValueError>(!overflow, "Overflow when unpacking long long");
  return Scalar(static_cast<int64_t>(value));
}

Scalar bool_element(PyObject* object) {
  if (PyFloat_Check(object)) return Scalar(PyFloat_AS_DOUBLE(object) != 0);
  bool has_truth =
      PyBool_Check(object) || PyComplex_Check(object) || std::string_view(type_name(object)).starts_with("numpy.bool");
  nb::object number = has_truth ? nb::borrow(object) : owned(PyNumber_Index(object));
  return Scalar(PyObject_IsTrue(number.ptr()) == 1);
}

/// What is to become an element of the type, by the protocol that the type asks for: `__index__`, `__float__` or
/// `__complex__`.
Scalar element_of(PyObject* object, DType dtype) {
  Scalar symbol;
  if (is_symbol(object) && read_scalar(object, symbol)) return symbol;
  if (is_tensor(object) && tensor_of(object).is_fake()) return call_value<"aten::item">(tensor_of(object)).to_scalar();
  if (dtype == DType::Bool) return bool_element(object);
  if (is_integral(dtype, false)) return integer_element(object, dtype);
  check<ValueError>(!is_tensor(object) || tensor_of(object).sym_numel().same(1),
                    "only one element tensors can be converted to Python scalars");
  if (is_complex(dtype)) {
    Py_complex value = PyComplex_AsCComplex(object);
    if (PyErr_Occurred()) throw nb::python_error();
    return Scalar(std::complex<double>(value.real, value.imag));
  }
  double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return Scalar(value);
}

void warn_of_arrays() {
  static std::atomic<bool> told = false;
  if (tells_once(told))
    warn(
        "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
        "single numpy.ndarray with numpy.array() before converting to a tensor.");
}

/// Writes the elements in row-major order.
char* fill(PyObject* object, size_t depth, const std::vector<int64_t>& sizes, DType dtype, char* to) {
  if (depth == sizes.size()) {
    Scalar value = element_of(object, dtype);
    // Integers take numbers that fit; floats take all, as infinity if they must.
    check(!is_integral(dtype, false) || kernels::fits(value, dtype), "value cannot be converted to type ", name(dtype),
          " without overflow");
    store_scalar(to, dtype, value);
    return to + item_size(dtype);
  }
  nb::object list = owned(PySequence_Fast(object, "not a sequence"));
  auto length = static_cast<int64_t>(PySequence_Fast_GET_SIZE(list.ptr()));
  check<ValueError>(length == sizes[depth], "expected sequence of length ", sizes[depth], " at dim ", depth, " (got ",
                    length, ")");
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list.ptr(), i);
    if (is_numpy_array(item)) warn_of_arrays();
    to = fill(item, depth + 1, sizes, dtype, to);
  }
  return to;
}

PyObject* element_object(const char* at, DType dtype) { return wrap(load_scalar(at, dtype)); }

PyObject* list_of(const Tensor& t, int64_t dim, const char* at) {
  if (dim == t.dim()) return element_object(at, t.dtype());
  int64_t count = t.sizes()[static_cast<size_t>(dim)], step = t.strides()[static_cast<size_t>(dim)] * t.item_size();
  nb::object out = owned(PyList_New(count));
  for (int64_t i = 0; i < count; ++i) PyList_SET_ITEM(out.ptr(), i, checked(list_of(t, dim + 1, at + i * step)));
  return out.release().ptr();
}

/// Without data to read: element by element through item(), which knows constants and makes symbols.
PyObject* list_of_items(const Tensor& t) {
  if (t.dim() == 0) return wrap(call_value<"aten::item">(t));
  Value parts = call_value<"aten::unbind.int">(t);
  TensorList tensors = parts.tensor_list();
  nb::object out = owned(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), checked(list_of_items(tensors[i])));
  return out.release().ptr();
}

/// Data with numbers that a captured program computes: operators that put them together.
Tensor stack_elements(PyObject* object, size_t depth, size_t rank, DType dtype) {
  if (depth == rank) return call<"aten::scalar_tensor">(element_of(object, dtype), dtype);
  nb::object list = owned(PySequence_Fast(object, "not a sequence"));
  std::vector<Tensor> parts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.ptr()); ++i)
    parts.push_back(stack_elements(PySequence_Fast_GET_ITEM(list.ptr(), i), depth + 1, rank, dtype));
  return call<"aten::stack">(parts);
}

/// Copies of Python's data are made below all layers: what a mode sees is the finished literal.
class BelowLayers {
 public:
  BelowLayers() { dispatch_state() = {}; }

 private:
  SaveDispatchState saved_;
};

std::optional<DType> dtype_option(nb::handle object, const char* function) {
  if (object.is_none()) return std::nullopt;
  DType dtype = DType::Undefined;
  if (!read_dtype(object.ptr(), dtype))
    fail<TypeError>(function, "(): argument 'dtype' must be torch.dtype, not ", short_type_name(Py_TYPE(object.ptr())));
  return dtype;
}

Tensor copy_elements(PyObject* data, const std::vector<int64_t>& sizes, DType dtype) {
  SymIntArrayRef shape = as_sym(sizes);
  Tensor out = allocate_tensor(shape, contiguous_strides(shape), dtype, Device());
  if (out.numel() > 0) fill(data, 0, sizes, dtype, static_cast<char*>(out.raw_data()));
  return out;
}

/// Numbers in lists as a program makes a tensor of them.
Tensor lift(const Tensor& made) {
  Tensor lifted = call<"aten::lift_fresh">(made);
  // Programs that are recorded above autograd have the call that PyTorch makes of it a leaf with. (Inside a derivative
  // the level's tensor is a view, of which no leaf can be made in place, nor has to.)
  return active_mode(DispatchKey::PreProxy) && !lifted.is_view() ? call<"aten::detach_">(lifted) : lifted;
}

/// The elements of a storage's memory, of the type that is asked for: those of a storage without a type are integers.
Tensor copy_storage(nb::handle storage, std::optional<DType> dtype) {
  DType own = nb::hasattr(storage, "dtype") ? default_dtype() : DType::Int64;
  nb::object view = nb::module_::import_("umbra._old_constructor").attr("over_storage");
  nb::object shared = view(storage, nb::steal(wrap(dtype.value_or(own))));
  return call<"aten::clone">(tensor_of(shared.ptr()));
}

/// What another library's tensor holds.
Tensor copy_exchanged(nb::handle data, std::optional<DType> dtype) {
  nb::object shared = nb::module_::import_("umbra").attr("from_dlpack")(data);
  const Tensor& elements = tensor_of(shared.ptr());
  return dtype && *dtype != elements.dtype() ? call<"aten::_to_copy">(elements, *dtype) : call<"aten::clone">(elements);
}

Tensor make_literal(PyObject* data, std::optional<DType> dtype) {
  bool usual = is_nested(data) || PyNumber_Check(data);
  if (!usual && nb::hasattr(nb::handle(data), "untyped")) return lift(copy_storage(data, dtype));
  if (PyUnicode_Check(data) || PyBytes_Check(data))
    fail<TypeError>("new(): invalid data type '", short_type_name(Py_TYPE(data)), "'");
  if (is_numpy_array(data)) return lift(tensor_from_data(data, dtype));
  if (!usual && !is_sequence_of_data(data) && nb::hasattr(nb::handle(data), "__dlpack__"))
    return lift(copy_exchanged(data, dtype));
  std::vector<int64_t> sizes = sizes_of(data);
  DType type = dtype ? *dtype : inferred_dtype(data);
  if (has_symbol(data)) return stack_elements(data, 0, sizes.size(), type);
  return lift(copy_elements(data, sizes, type));
}

Tensor make_tensor(nb::handle data, nb::handle dtype_object, nb::handle device, bool requires_grad) {
  std::optional<DType> dtype = dtype_option(dtype_object, "tensor");
  Tensor out;
  if (is_tensor(data.ptr())) {
    out = call<"aten::detach">(call<"aten::clone">(tensor_of(data.ptr())));
    if (dtype && *dtype != out.dtype()) out = call<"aten::_to_copy">(out, *dtype);
  } else {
    out = make_literal(data.ptr(), dtype);
  }
  Device where;
  if (!device.is_none()) {
    check<TypeError>(read_device(device.ptr(), where), "tensor(): argument 'device' must be torch.device, not ",
                     short_type_name(Py_TYPE(device.ptr())));
    if (!(where == out.device())) out = call<"aten::_to_copy">(out, Value(), Value(), where);
  }
  if (requires_grad) require_gradient(out);
  return out;
}

}  // namespace

void require_gradient(Tensor made) {
  check(is_floating(made.dtype()) || made.is_complex(),
        "Only Tensors of floating point and complex dtype can require gradients");
  made.requires_grad_(true);
}

Scalar load_scalar(const void* from, DType dtype) {
  return with_type(dtype, [&](auto kind) -> Scalar {
    using T = decltype(kind);
    T v;
    std::memcpy(&v, from, sizeof(T));
    if constexpr (std::is_same_v<T, bool>) return Scalar(v);
    else if constexpr (std::is_integral_v<T>) return Scalar(v);
    else if constexpr (is_complex_type<T>) return Scalar(std::complex<double>(v));
    else if constexpr (std::is_same_v<T, double>) return Scalar(v);
    else return Scalar(static_cast<double>(static_cast<float>(v)));
  });
}

void store_scalar(void* to, DType dtype, const Scalar& value) {
  with_type(dtype, [&](auto kind) {
    using T = decltype(kind);
    T v;
    if constexpr (std::is_same_v<T, bool>) v = value.to_bool();
    else if constexpr (std::is_integral_v<T>) v = value.to<T>();
    else if constexpr (std::is_same_v<T, ComplexHalf>) v = T(std::complex<float>(value.to_complex()));
    else if constexpr (is_complex_type<T>) v = T(value.to_complex());
    else if constexpr (std::is_same_v<T, double>) v = value.to_double();
    else v = T(static_cast<float>(value.to_double()));
    std::memcpy(to, &v, sizeof(T));
  });
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_numpy_array(data)) {
    BelowLayers scope;
    Tensor shared = tensor_from_buffer(data);
    return dtype && *dtype != shared.dtype() ? call<"aten::_to_copy">(shared, *dtype) : call<"aten::clone">(shared);
  }
  std::vector<int64_t> sizes = sizes_of(data);
  return copy_elements(data, sizes, dtype ? *dtype : inferred_dtype(data));
}

PyObject* to_list(const Tensor& tensor) {
  if (tensor.is_fake() || (is_functional(tensor) && !tensor.storage()->has_data())) return list_of_items(tensor);
  if (auto* object = static_cast<PyObject*>(tensor.impl()->python_object()))
    check(!tensor.impl()->keys().has(DispatchKey::Subclass), ".tolist() is not supported for tensor subclasses, got ",
          short_type_name(Py_TYPE(object)));
  check<NotImplementedError>(tensor.storage()->has_data() || tensor.numel() == 0,
                             "Cannot copy out of meta tensor; no data!");
  Tensor plain = tensor;
  if (plain.is_conj()) plain = call<"aten::resolve_conj">(plain);
  if (plain.is_neg()) plain = call<"aten::resolve_neg">(plain);
  return list_of(plain, 0, plain.numel() ? static_cast<const char*>(plain.raw_data()) : nullptr);
}

/// torch.tensor under a function mode: the mode is asked with the arguments that were given.
static nb::object offer_tensor(nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad,
                               bool pin_memory) {
  nb::dict options;
  if (!dtype.is_none()) options["dtype"] = dtype;
  if (!device.is_none()) options["device"] = device;
  if (requires_grad) options["requires_grad"] = true;
  if (pin_memory) options["pin_memory"] = true;
  nb::object function = nb::module_::import_("umbra").attr("tensor");
  return nb::module_::import_("umbra.overrides").attr("handle_torch_function")(function, nb::tuple(), data, **options);
}

/// What torch.tensor does not take, in the words of PyTorch's functions.
static void refuse_arguments_of_tensor(nb::args given, nb::kwargs named) {
  check<TypeError>(given.size() <= 1, "tensor() takes 1 positional argument but ", given.size(), " were given");
  check<TypeError>(given.size() == 1 || named.contains("data"),
                   "tensor() missing 1 required positional arguments: \"data\"");
  for (auto [key, value] : named) {
    std::string name = nb::cast<std::string>(key);
    check<TypeError>(name != "data" || given.size() == 0, "tensor() got multiple values for argument 'data'");
    bool flag = name == "requires_grad" || name == "pin_memory";
    check<TypeError>(flag || name == "data" || name == "dtype" || name == "device",
                     "tensor() got an unexpected keyword argument '", name, "'");
    check<TypeError>(!flag || PyBool_Check(value.ptr()), "tensor(): argument '", name, "' must be bool, not ",
                     short_type_name(Py_TYPE(value.ptr())));
  }
}

void bind_construct(nb::module_& m) {
  m.def(
      "tensor",
      [](nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad, bool pin_memory) -> nb::object {
        if (torch_function_modes_active()) return offer_tensor(data, dtype, device, requires_grad, pin_memory);
        check(!pin_memory, "Cannot access accelerator device when none is available.");
        jit::warn_of_constant("torch.tensor");
        if (is_tensor(data.ptr()))
          warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or ",
               "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).");
        return nb::cast(make_tensor(data, dtype, device, requires_grad));
      },
      nb::arg("data").none(), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, nb::arg("pin_memory") = false,
      "A tensor of a number, nested lists, an array or another tensor; the elements are copied.");
  m.def("tensor", &refuse_arguments_of_tensor);  // the last overload: what fits no other
}

}  // namespace umbra::python
