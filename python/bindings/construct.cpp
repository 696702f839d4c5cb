#include "construct.h"

#include "call.h"
#include "core/stored_types.h"
#include "kernels/fits.h"
#include "numpy_arrays.h"
#include "tensor_type.h"
#include "torch_function.h"
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
bool is_array(PyObject* object) { return PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !is_tensor(object); }
/// An array among other data; NumPy's single numbers have buffers too.
bool is_array_of_dims(PyObject* object) {
  if (!is_array(object) || !PySequence_Check(object)) return false;
  if (PyObject_Size(object) >= 0) return true;
  PyErr_Clear();  // an array of no dimensions
  return false;
}
/// A range, a storage, an object of a user's class with a length and items.
bool is_other_sequence(PyObject* object) {
  if (is_tensor(object) || !PySequence_Check(object) || is_array(object)) return false;
  if (PyObject_Size(object) >= 0) return true;
  PyErr_Clear();
  return false;
}
/// NumPy's array of no dimensions as the number that it holds.
nb::object unboxed(PyObject* object) {
  if (!is_numpy_array(object)) return nb::borrow(object);
  return owned(PyObject_CallMethod(object, "__getitem__", "(())"));
}

/// Anything else that can be counted through: ranges, other sequences.
nb::object as_list(PyObject* object) {
  nb::object list = nb::steal(PySequence_List(object));
  if (list.is_valid()) return list;
  PyErr_Clear();
  fail<ValueError>("could not determine the shape of object type '", short_type_name(Py_TYPE(object)), "'");
}

/// One walk over the data: its sizes and the dtype that holds all elements.
class Survey {
 public:
  explicit Survey(PyObject* data) { visit(data, 0); }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  DType dtype() const { return found_ ? dtype_ : default_dtype(); }
  /// Whether a number among the data is one that a captured program computes.
  bool symbolic() const { return symbolic_; }

 private:
  void visit(PyObject* object, size_t depth) {
    if (PyUnicode_Check(object)) {
      check<ValueError>(depth == 0 || closed_, "too many dimensions 'str'");
      fail<TypeError>("new(): invalid data type 'str'");
    }
    if (PyBytes_Check(object)) fail<TypeError>("new(): invalid data type 'bytes'");
    if (is_nested(object) || is_array_of_dims(object) || is_other_sequence(object)) return sequence(object, depth);
    check<TypeError>(depth == sizes_.size() || !closed_, "not a sequence");
    closed_ = true;
    check<ValueError>(depth == sizes_.size(), "expected sequence of length ", depth < sizes_.size() ? sizes_[depth] : 0,
                      " at dim ", depth);
    element(object);
  }

  void sequence(PyObject* object, size_t depth) {
    check<ValueError>(depth < 128, "too many dimensions '", short_type_name(Py_TYPE(object)), "'");
    nb::object list = is_nested(object) ? nb::borrow(object) : as_list(object);
    auto length = static_cast<int64_t>(PySequence_Fast_GET_SIZE(list.ptr()));
    if (depth == sizes_.size()) {
      check<TypeError>(!closed_, "not a sequence");
      sizes_.push_back(length);
    } else {
      check<ValueError>(sizes_[depth] == length, "expected sequence of length ", sizes_[depth], " at dim ", depth,
                        " (got ", length, ")");
    }
    if (length == 0) closed_ = true;
    for (Py_ssize_t i = 0; i < length; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(list.ptr(), i);
      // One that begins with itself has too many dimensions.
      check<TypeError>(i == 0 || item != object, "new(): self-referential lists are incompatible");
      visit(item, depth + 1);
    }
  }

  void element(PyObject* boxed) {
    nb::object number = unboxed(boxed);
    DType t = dtype_of_element(number.ptr());
    Scalar value;
    symbolic_ |= is_symbol(number.ptr()) && read_scalar(number.ptr(), value) && value.is_symbolic();
    dtype_ = found_ ? promote_types(dtype_, t) : t;
    found_ = true;
  }

  static bool is_symbol(PyObject* object) { return is_sym_int(object) || is_sym_float(object) || is_sym_bool(object); }

  static DType dtype_of_element(PyObject* object) {
    if (is_tensor(object)) {
      check<ValueError>(tensor_of(object).sym_numel().same(1),
                        "only one element tensors can be converted to Python scalars");
      return tensor_of(object).dtype();
    }
    if (std::optional<DType> own = numpy_dtype(object)) return *own;
    if (PyLong_Check(object)) return PyBool_Check(object) ? DType::Bool : DType::Int64;
    Scalar number;
    if (!read_scalar(object, number)) fail("Could not infer dtype of ", short_type_name(Py_TYPE(object)));
    if (number.is_complex()) return complex_type(default_dtype());
    return number.is_floating() ? default_dtype() : number.dtype();
  }

  static std::optional<DType> numpy_dtype(PyObject* object) {
    std::string_view name = type_name(object);
    if (!name.starts_with("numpy.")) return std::nullopt;
    DType t = dtype_from_name(std::string(name.substr(6)));
    if (t == DType::Undefined && name.starts_with("numpy.bool")) t = DType::Bool;
    return t == DType::Undefined ? std::nullopt : std::optional(t);
  }

  std::vector<int64_t> sizes_;
  bool closed_ = false, found_ = false, symbolic_ = false;
  DType dtype_ = DType::Bool;
};

/// A number that is to become an element of the dtype. Integers beyond 64 bits fit into floats.
Scalar element_of(PyObject* object, DType dtype) {
  Scalar number;
  if (PyLong_CheckExact(object)) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow && (dtype != DType::UInt64 || value >= 0)) return Scalar(static_cast<int64_t>(value));
    if (dtype == DType::UInt64) {  // its bits, in a signed integer
      unsigned long long wide = PyLong_AsUnsignedLongLong(object);
      if (PyErr_Occurred()) throw nb::python_error();
      return Scalar(static_cast<int64_t>(wide));
    }
    if (dtype == DType::Bool) return Scalar(true);
    check<ValueError>(!is_integral(dtype, false), "Overflow when unpacking long long");
    double real = PyLong_AsDouble(object);
    if (PyErr_Occurred()) throw nb::python_error();
    return Scalar(real);
  }
  if (is_tensor(object)) return call_value<"aten::item">(tensor_of(object)).to_scalar();
  if (!read_scalar(unboxed(object).ptr(), number)) fail("Could not infer dtype of ", short_type_name(Py_TYPE(object)));
  return number;
}

/// Integers take numbers that fit; floats take all, as infinity if they must.
void check_fits(PyObject* object, DType dtype, const Scalar& value) {
  if (value.is_complex() && !is_complex(dtype) && dtype != DType::Bool) {
    if (is_floating(dtype)) fail<TypeError>("must be real number, not ", short_type_name(Py_TYPE(object)));
    fail<TypeError>("'", short_type_name(Py_TYPE(object)), "' object cannot be interpreted as an integer");
  }
  if (!is_integral(dtype, false)) return;
  if (dtype == DType::UInt64) return check<TypeError>(value.is_integral(true), "an integer is required");
  check(kernels::fits(value, dtype), "value cannot be converted to type ", name(dtype), " without overflow");
}

/// Writes the elements in row-major order.
char* fill(PyObject* object, size_t depth, size_t rank, DType dtype, char* to) {
  if (depth == rank) {
    Scalar value = element_of(object, dtype);
    check_fits(object, dtype, value);
    store_scalar(to, dtype, value);
    return to + item_size(dtype);
  }
  nb::object list = is_nested(object) ? nb::borrow(object) : as_list(object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.ptr()); ++i)
    to = fill(PySequence_Fast_GET_ITEM(list.ptr(), i), depth + 1, rank, dtype, to);
  return to;
}

PyObject* element_object(const char* at, DType dtype) {
  if (dtype == DType::UInt64) {
    uint64_t value;
    std::memcpy(&value, at, sizeof(value));
    return PyLong_FromUnsignedLongLong(value);
  }
  return wrap(load_scalar(at, dtype));
}

PyObject* list_of(const Tensor& t, int64_t dim, const char* at) {
  if (dim == t.dim()) return element_object(at, t.dtype());
  int64_t count = t.sizes()[static_cast<size_t>(dim)], step = t.strides()[static_cast<size_t>(dim)] * t.item_size();
  nb::object out = owned(PyList_New(count));
  for (int64_t i = 0; i < count; ++i) PyList_SET_ITEM(out.ptr(), i, checked(list_of(t, dim + 1, at + i * step)));
  return out.release().ptr();
}

/// Without data to read: element by element through item(), which knows constants and makes symbols.
PyObject* list_of_items(const Tensor& t) {
  if (t.dim() == 0) return wrap(call_value<"aten::item">(t).to_scalar());
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
  nb::object list = is_nested(object) ? nb::borrow(object) : as_list(object);
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

Tensor copy_elements(PyObject* data, const Survey& survey, DType dtype) {
  SymIntArrayRef sizes = as_sym(survey.sizes());
  Tensor out = allocate_tensor(sizes, contiguous_strides(sizes), dtype, Device());
  if (out.numel() > 0) fill(data, 0, survey.sizes().size(), dtype, static_cast<char*>(out.raw_data()));
  return out;
}

/// Numbers in lists as a program makes a tensor of them.
Tensor lift(const Tensor& made) {
  Tensor lifted = call<"aten::lift_fresh">(made);
  // Programs that are recorded above autograd have the call that PyTorch makes of it a leaf with.
  return active_mode(DispatchKey::PreProxy) ? call<"aten::detach_">(lifted) : lifted;
}

/// The elements of a storage's memory, of the type that is asked for: those of a storage without a type are integers.
Tensor copy_storage(nb::handle storage, std::optional<DType> dtype) {
  DType own = nb::hasattr(storage, "dtype") ? default_dtype() : DType::Int64;
  nb::object view = nb::module_::import_("umbra._tensor").attr("_over_storage");
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
  if (is_array(data)) return lift(tensor_from_data(data, dtype));
  if (!usual && !is_other_sequence(data) && nb::hasattr(nb::handle(data), "__dlpack__"))
    return lift(copy_exchanged(data, dtype));
  Survey survey(data);
  DType type = dtype.value_or(survey.dtype());
  if (survey.symbolic()) return stack_elements(data, 0, survey.sizes().size(), type);
  return lift(copy_elements(data, survey, type));
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
    else if constexpr (std::is_integral_v<T>) return Scalar(static_cast<int64_t>(v));
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
    else if constexpr (std::is_integral_v<T>) v = static_cast<T>(value.to_int());
    else if constexpr (std::is_same_v<T, ComplexHalf>) v = T(std::complex<float>(value.to_complex()));
    else if constexpr (is_complex_type<T>) v = T(value.to_complex());
    else if constexpr (std::is_same_v<T, double>) v = value.to_double();
    else v = T(static_cast<float>(value.to_double()));
    std::memcpy(to, &v, sizeof(T));
  });
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_array(data)) {
    BelowLayers scope;
    Tensor shared = tensor_from_buffer(data);
    return dtype && *dtype != shared.dtype() ? call<"aten::_to_copy">(shared, *dtype) : call<"aten::clone">(shared);
  }
  Survey survey(data);
  return copy_elements(data, survey, dtype.value_or(survey.dtype()));
}

PyObject* to_list(const Tensor& tensor) {
  if (tensor.is_fake()) return list_of_items(tensor);
  if (!tensor.storage()->has_data() && tensor.numel() > 0) {
    check<NotImplementedError>(!tensor.is_meta(), "Cannot copy out of meta tensor; no data!");
    fail(".tolist() is not supported for tensor subclasses without data of their own");
  }
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
      nb::arg("requires_grad") = false, nb::arg("pin_memory") = false);
}

}  // namespace umbra::python
